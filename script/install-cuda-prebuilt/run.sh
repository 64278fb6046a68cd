#!/bin/bash
# Starts NVIDIA's run file so that it installs the toolkit alone, into this cache entry. --silent accepts its license.
set -euo pipefail

if [[ ! -f "${CM_CUDA_RUN_FILE_PATH}" ]]; then
  printf '%s\n' "${CM_CUDA_RUN_FILE_OFFLINE_TEXT}" >&2
  exit 1
fi

entry="${PWD}"
log=/tmp/cuda-installer.log # the installer's own choice where it may not write into /var/log
mkdir -p "${entry}/tmp"
touch "${entry}/tmp/started"

status=0
echo "installing the CUDA toolkit of ${CM_CUDA_RUN_FILE_PATH} into ${entry}/install; this accepts NVIDIA's CUDA EULA"
sh "${CM_CUDA_RUN_FILE_PATH}" --silent --toolkit --override --no-drm --no-man-page --no-opengl-libs \
  "--installpath=${entry}/install" "--tmpdir=${entry}/tmp" < /dev/null || status=$?
if [[ -f "${log}" && -O "${log}" && "${log}" -nt "${entry}/tmp/started" ]]; then
  mv -f "${log}" "${entry}/cuda-installer.log"
  [[ ${status} -eq 0 ]] || tail -n 8 "${entry}/cuda-installer.log" >&2
fi
rm -rf "${entry}/tmp"
if [[ ${status} -ne 0 ]]; then
  printf 'the run file ended with exit code %s; its log, if it wrote one, is %s\n' \
    "${status}" "${entry}/cuda-installer.log" >&2
  exit "${status}"
fi
