#!/bin/bash
# Starts the server with the harness's own code and stays until it has ended; Ctrl-C and SIGTERM end it.
set -euo pipefail

export HARNESS_ENDS_WITH="${CM_TMP_TRITON_SERVE_OWNER:-}" # when cm is killed, nobody asks this server any more
mapfile -t arguments <<<"${CM_TMP_TRITON_SERVE_WORDS}"
exec "${CM_PYTHON_BIN_WITH_PATH}" -B -m crowdperf.harness.backends.triton.serve "${arguments[@]}"
