#!/bin/bash
# Writes the model of lower precision into the current folder (the cache entry); arguments.txt (written by the hook) has
# one argument of crowdperf.models.quantize in each line.
set -euo pipefail

export ORT_DISABLE_TELEMETRY=1 # onnxruntime 1.31 makes a device id in the user's home and reports use

mapfile -t arguments <arguments.txt
if [[ "${CM_QUANTIZE_NEEDS_CALIBRATION}" == "yes" ]]; then
  arguments+=("--calibration=${CM_ML_MODEL_CALIBRATION_FILE}")
fi
"${CM_PYTHON_BIN_WITH_PATH}" -B -m crowdperf.models.quantize "${arguments[@]}"
