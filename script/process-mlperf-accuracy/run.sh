#!/bin/bash
# Scores the accuracy log of one run with the harness of app-mlperf-inference.
set -euo pipefail

cd "${CM_MLPERF_ACCURACY_RESULTS_DIR}" # Python would find the user's files in the folder of the command

score() { "${CM_PYTHON_BIN_WITH_PATH}" -m crowdperf.harness score "${CM_MLPERF_ACCURACY_RUN_JSON}"; }

if [ "${CM_TMP_SILENT:-no}" != "yes" ]; then
  score
elif ! said="$(score 2>&1)"; then # the score is no problem; what went wrong is one
  printf '%s\n' "${said}" >&2
  exit 1
fi

