#!/bin/bash
# Run by the engine before it reuses an entry of this recipe: exit code 0 = the package is still there.
# Only builtins, so it costs no process. The metadata file has the version in its path: it goes when the package is
# removed or upgraded. The Python must be the one that the package was found in.

package_key="${CM_GENERIC_PYTHON_PACKAGE_NAME^^}"
package_key="CM_PYTHONLIB_${package_key//[^A-Z0-9]/_}"
metadata_key="${package_key}_METADATA_PATH"
python_key="${package_key}_PYTHON"

[[ -n "${!metadata_key:-}" ]] || exit 1
[[ "${!python_key:-}" == "${CM_PYTHON_BIN_WITH_PATH:-}" ]] || exit 1
[[ -f "${!metadata_key}" ]] || exit 1

# Its main file is there, and no other build of it that writes the same files.
module_key="${package_key}_MODULE_FILE"
rivals_key="${package_key}_RIVALS"
[[ -z "${!module_key:-}" || -f "${!module_key}" ]] || exit 1
IFS=: read -ra patterns <<<"${!rivals_key:-}"
for pattern in "${patterns[@]}"; do
    if compgen -G "$pattern" >/dev/null; then exit 1; fi
done
