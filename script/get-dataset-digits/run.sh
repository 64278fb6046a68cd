#!/bin/bash
# Writes the digits dataset into the current folder (the cache entry).
set -euo pipefail

"${CM_PYTHON_BIN_WITH_PATH}" -B "${CM_TMP_CURRENT_SCRIPT_PATH}/make_dataset.py" --output_dir "${PWD}"
