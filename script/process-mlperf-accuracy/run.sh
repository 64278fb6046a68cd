#!/bin/bash
# Scores the accuracy log of one run with the harness of app-mlperf-inference.
set -euo pipefail

export PYTHONPATH="${CM_MLPERF_ACCURACY_HARNESS_PATH}${PYTHONPATH:+:${PYTHONPATH}}"
export PYTHONDONTWRITEBYTECODE=1

"${CM_PYTHON_BIN_WITH_PATH}" -m harness score "${CM_MLPERF_ACCURACY_RUN_JSON}"
