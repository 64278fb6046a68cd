#!/bin/bash
# Starts the server and stays until it has ended; Ctrl-C and SIGTERM end it.
set -euo pipefail

if [ "${CM_MLPERF_COLLECTOR_FORM:-}" = "datasette" ]; then
  "${CM_MLPERF_RESULTS_SERVER_PYTHON}" -I -B "${CM_TMP_CURRENT_SCRIPT_PATH}/copy_database.py" \
    "${CM_TMP_COLLECTOR_DB}" results.db
  exec "${CM_MLPERF_RESULTS_SERVER_PYTHON}" -I -B -m datasette serve --immutable results.db --host 127.0.0.1 \
    --port "${CM_TMP_COLLECTOR_PORT}" --setting allow_download off
fi
mapfile -t arguments <<<"${CM_TMP_COLLECTOR_WORDS}"
exec "${CM_MLPERF_RESULTS_SERVER_PYTHON}" -B -m crowdperf.web "${arguments[@]}"
