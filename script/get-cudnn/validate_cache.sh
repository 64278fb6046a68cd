#!/bin/bash
# Run by the engine before it reuses an entry of this recipe: exit code 0 = it still is what the archive holds.
# Asked with a tar file: size and time of change tell that it is the same; when they do not, its SHA-256 does.
# An archive that was deleted since is no reason to unpack it again.

tar_file="${CM_CUDNN_TAR_FILE_PATH:-}"
[[ "${tar_file}" == /* ]] || tar_file="${CM_TMP_CURRENT_PATH:-}/${tar_file}"
[[ -n "${CM_CUDNN_TAR_FILE_PATH:-}" && -f "${tar_file}" ]] || exit 0
[[ "$(stat -L -c '%s %.9Y' -- "${tar_file}" 2> /dev/null)" != "${CM_CUDNN_TAR_FILE_STAMP:-}" ]] || exit 0
digest="$(sha256sum < "${tar_file}")" || exit 0
[[ "${digest%% *}" != "${CM_CUDNN_TAR_FILE_SHA256:-}" ]] || exit 0
echo "the archive ${tar_file} has changed since" >&2
exit 1
