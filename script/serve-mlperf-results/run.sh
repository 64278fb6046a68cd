#!/bin/bash
# Starts the server and stays until it has ended; Ctrl-C and SIGTERM end it.
set -euo pipefail

mapfile -t arguments <<<"${CM_TMP_COLLECTOR_WORDS}"
gate="${CM_TMP_CURRENT_SCRIPT_PATH}/../check-mlperf-submission" # whose rules the logs of an upload are checked with
export PYTHONPATH="${CM_TMP_CURRENT_SCRIPT_PATH}:${gate}${PYTHONPATH:+:${PYTHONPATH}}"
exec "${CM_MLPERF_RESULTS_SERVER_PYTHON}" -B -m results_web "${arguments[@]}"
