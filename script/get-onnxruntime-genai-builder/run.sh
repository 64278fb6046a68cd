#!/bin/bash
# Installs the model builder with torch and transformers into its own environment, and loads it once.
set -euo pipefail

"${CM_PYTHON_BIN_WITH_PATH}" -I -m pip install --disable-pip-version-check --no-input --quiet --retries=1 --timeout=15 \
  --extra-index-url https://download.pytorch.org/whl/cpu --requirement "${CM_TMP_CURRENT_SCRIPT_PATH}/requirements.txt"
"${CM_PYTHON_BIN_WITH_PATH}" -I -c '
from importlib.metadata import version
import onnxruntime_genai.models.builder
print(version("onnxruntime-genai"))' >version.txt
