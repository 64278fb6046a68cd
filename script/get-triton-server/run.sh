#!/bin/bash
# Puts the server together in the cache entry with the Python of its own environment, and asks it once.
set -euo pipefail

if [[ "${CM_TRITON_SERVER_KIND:-}" == "container" ]]; then exit 0; fi
"${CM_PYTHON_BIN_WITH_PATH}" -B "${CM_TMP_CURRENT_SCRIPT_PATH}/assemble.py"
