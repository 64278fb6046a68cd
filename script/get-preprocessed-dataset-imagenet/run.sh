#!/bin/bash
# Writes the images as the network takes them into the cache entry; goes on where an earlier run stopped.
set -euo pipefail

"${CM_PYTHON_BIN_WITH_PATH}" -B -m crowdperf.harness preprocess --model resnet50 --dataset "${CM_DATASET_IMAGENET_PATH}" \
  --model_info "${PWD}/model.json" --output "${PWD}/preprocessed" --workers "${CM_NUM_PREPROCESS_THREADS}"
