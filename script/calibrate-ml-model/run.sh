#!/bin/bash
# Calibrates the model; arguments.txt (written by the hook) has one argument of crowdperf.models.calibrate in each line.
set -euo pipefail

mapfile -t arguments <arguments.txt
"${CM_PYTHON_BIN_WITH_PATH}" -B -m crowdperf.models.calibrate "${arguments[@]}"
