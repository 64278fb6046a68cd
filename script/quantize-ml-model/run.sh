#!/bin/bash
# Writes the model of lower precision into the current folder (the cache entry); arguments.txt (written by the hook) has
# one argument of crowdperf.models.quantize in each line.
set -euo pipefail

mapfile -t arguments <arguments.txt
if [[ "${CM_QUANTIZE_NEEDS_CALIBRATION}" == "yes" ]]; then
  arguments+=("--calibration=${CM_ML_MODEL_CALIBRATION_FILE}")
fi
"${CM_PYTHON_BIN_WITH_PATH}" -B -m crowdperf.models.quantize "${arguments[@]}"
