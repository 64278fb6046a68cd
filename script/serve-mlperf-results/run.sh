#!/bin/bash
# Starts the server and stays until it has ended; Ctrl-C and SIGTERM end it.
set -euo pipefail

mapfile -t arguments <<<"${CM_TMP_COLLECTOR_WORDS}"
export PYTHONPATH="${CM_TMP_CURRENT_SCRIPT_PATH}${PYTHONPATH:+:${PYTHONPATH}}"
exec "${CM_MLPERF_RESULTS_SERVER_PYTHON}" -B -m results_web "${arguments[@]}"
