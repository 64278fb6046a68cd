#!/bin/bash
# Installs the model builder with transformers beside torch into its own environment, and loads it once.
set -euo pipefail

"${CM_PYTHON_BIN_WITH_PATH}" -I -m pip install --disable-pip-version-check --no-input --quiet \
  --requirement "${CM_TMP_CURRENT_SCRIPT_PATH}/requirements.txt"
"${CM_PYTHON_BIN_WITH_PATH}" -I -c '
from importlib.metadata import version
import onnxruntime_genai.models.builder
print(version("onnxruntime-genai"))' >version.txt
