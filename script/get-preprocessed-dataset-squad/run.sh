#!/bin/bash
# Writes the tokenized questions into the current folder (the cache entry).
set -euo pipefail

"${CM_PYTHON_BIN_WITH_PATH}" -B -m crowdperf.harness preprocess --model bert --dataset "${CM_DATASET_SQUAD_PATH}" \
  --output "${PWD}" --workers "${CM_NUM_PREPROCESS_THREADS}"
