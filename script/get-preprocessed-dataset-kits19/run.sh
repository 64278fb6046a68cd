#!/bin/bash
# Writes the volumes as the harness loads them into the cache entry; goes on where an earlier run stopped.
set -euo pipefail

"${CM_PYTHON_BIN_WITH_PATH}" -B -m crowdperf.harness preprocess --model 3d-unet-99 --dataset "${CM_DATASET_PATH}" \
  --model_info "${PWD}/window.json" --output "${PWD}/preprocessed" --workers "${CM_NUM_PREPROCESS_THREADS}"
