#!/bin/bash
# Writes the images as the model takes them into the cache entry; goes on where an earlier run stopped.
set -euo pipefail

"${CM_PYTHON_BIN_WITH_PATH}" -B -m crowdperf.harness preprocess --model "${CM_DATASET_PREPROCESSED_MODEL}" \
    --dataset "${CM_DATASET_PATH}" \
    --model_info "${CM_ML_MODEL_INFO_FILE}" --output "${PWD}/preprocessed" --workers "${CM_NUM_PREPROCESS_THREADS}"
