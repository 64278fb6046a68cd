#!/bin/bash
# Writes the waveforms as the harness loads them into the cache entry; goes on where an earlier run stopped.
set -euo pipefail

"${CM_PYTHON_BIN_WITH_PATH}" -B -m crowdperf.harness preprocess --model rnnt --dataset "${CM_DATASET_PATH}" \
    --output "${PWD}/preprocessed" --workers "${CM_NUM_PREPROCESS_THREADS}"
