#!/bin/bash
# Installs the server's packages into its own environment, puts the server together in the cache entry, and asks it once.
set -euo pipefail

if [[ "${CM_TRITON_SERVER_KIND:-}" == "container" ]]; then exit 0; fi
recipe="${CM_TMP_CURRENT_SCRIPT_PATH}"
pip=("${CM_PYTHON_BIN_WITH_PATH}" -I -m pip install --disable-pip-version-check --no-input --quiet)
"${pip[@]}" --requirement "${recipe}/requirements.txt"
if [[ "${CM_TRITON_SERVER_KIND:-}" == neuron* ]]; then # its environment compiles the networks, too
  "${pip[@]}" safetensors
fi
if [[ "${CM_TRITON_SERVER_KIND:-}" == "neuron-simulated" ]]; then # the build for processors, from whatever index has it
  "${pip[@]}" --retries=1 --timeout=5 --extra-index-url https://download.pytorch.org/whl/cpu torch==2.13.0+cpu
fi
if [[ "${CM_TRITON_SERVER_KIND:-}" == "neuron" ]]; then
  read -ra packages <<<"${CM_TMP_NEURON_PACKAGES}"
  "${pip[@]}" --extra-index-url "${CM_TMP_NEURON_INDEX}" "${packages[@]}"
fi
"${pip[@]}" --no-deps nvidia-pytriton==0.7.0 # its proxy and what that requires stay away
"${CM_PYTHON_BIN_WITH_PATH}" -B "${recipe}/assemble.py"
