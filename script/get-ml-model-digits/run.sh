#!/bin/bash
# Fits the digits model on the training part and writes it into the current folder (the cache entry).
set -euo pipefail

export ORT_DISABLE_TELEMETRY=1 # onnxruntime 1.31 makes a device id in the user's home and reports use
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 # the same weights on any number of cores

"${CM_PYTHON_BIN_WITH_PATH}" -B "${CM_TMP_CURRENT_SCRIPT_PATH}/fit_model.py" \
  --dataset_dir "${CM_DATASET_DIGITS_PATH}" --output_dir "${PWD}"
