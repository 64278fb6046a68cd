#!/bin/bash
# Installs the server's packages into its own environment, puts the server together in the cache entry, and asks it once.
# locked.txt is there when a lockfile names the packages. Each pip call leaves its report for packages.json.
set -euo pipefail

if [[ "${CM_TRITON_SERVER_KIND:-}" == "container" ]]; then exit 0; fi
recipe="${CM_TMP_CURRENT_SCRIPT_PATH}"
pip=("${CM_PYTHON_BIN_WITH_PATH}" -I -m pip)
count=0
install() {
  count=$((count + 1))
  local told=()
  if "${pip[@]}" install --help | grep -q -- --report; then told=(--report "report-${count}.json"); fi # pip 22.2
  "${pip[@]}" install --disable-pip-version-check --no-input --quiet "${told[@]}" "$@"
}

if [[ -f locked.txt ]]; then
  checked=()
  if grep -q -- --hash= locked.txt; then checked=(--require-hashes); fi
  install --no-deps "${checked[@]}" --requirement locked.txt
else
  install --requirement "${recipe}/requirements.txt"
  if [[ "${CM_TRITON_SERVER_KIND:-}" == neuron* ]]; then # its environment compiles the networks, too
    install safetensors
  fi
  if [[ "${CM_TRITON_SERVER_KIND:-}" == "neuron-simulated" ]]; then # the build for processors, from an index that has it
    install --retries=1 --timeout=5 --extra-index-url https://download.pytorch.org/whl/cpu torch==2.13.0+cpu
  fi
  if [[ "${CM_TRITON_SERVER_KIND:-}" == "neuron" ]]; then
    read -ra packages <<<"${CM_TMP_NEURON_PACKAGES}"
    install --extra-index-url "${CM_TMP_NEURON_INDEX}" "${packages[@]}"
  fi
  install --no-deps nvidia-pytriton==0.7.0 # its proxy and what that requires stay away
fi
"${CM_PYTHON_BIN_WITH_PATH}" -B "${recipe}/assemble.py"
