#!/bin/bash
# Checks that the LoadGen in the chosen Python belongs to the round that was asked for.
set -euo pipefail

"${CM_PYTHON_BIN_WITH_PATH}" -B "${CM_TMP_CURRENT_SCRIPT_PATH}/check_loadgen.py" \
  --round "${CM_MLPERF_LOADGEN_ROUND}" > tmp-run-env.out
