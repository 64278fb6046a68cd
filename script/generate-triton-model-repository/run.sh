#!/bin/bash
# Writes the repository into the current folder (the cache entry); arguments.txt (written by the hook) has one argument
# of crowdperf.models.triton_repository in each line.
set -euo pipefail

mapfile -t arguments <arguments.txt
"${CM_PYTHON_BIN_WITH_PATH}" -B -m crowdperf.models.triton_repository "${arguments[@]}"
