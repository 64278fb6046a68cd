#!/bin/bash
# Builds the engines into the current folder (the cache entry); arguments.txt (written by the hook) has one argument of
# crowdperf.models.engines in each line.
set -euo pipefail

mapfile -t arguments <arguments.txt
"${CM_TMP_ENGINE_PYTHON:-${CM_PYTHON_BIN_WITH_PATH}}" -B -m crowdperf.models.engines "${arguments[@]}"
