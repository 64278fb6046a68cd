#!/bin/bash
# Runs one LoadGen test with the harness beside this script; what it prints is kept in the folder of the run too.
set -euo pipefail

export PYTHONPATH="${CM_TMP_CURRENT_SCRIPT_PATH}${PYTHONPATH:+:${PYTHONPATH}}"
export PYTHONDONTWRITEBYTECODE=1
export ORT_DISABLE_TELEMETRY=1 # onnxruntime 1.31 makes a device id in the user's home and reports use; a benchmark does not

cd "${CM_MLPERF_OUTPUT_DIR}"
"${CM_PYTHON_BIN_WITH_PATH}" -m harness "${CM_MLPERF_RUN_JSON}" 2>&1 | tee "${CM_MLPERF_RUN_CONSOLE_FILE}"
