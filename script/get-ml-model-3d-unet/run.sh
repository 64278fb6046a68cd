#!/bin/bash
# Makes the model and its model.json in the cache entry; preprocess says how (CM_PUBLISHED_MODEL_WORK).
set -euo pipefail

declare -A fit=([unet3d]=fit_model.py [unet3d_brats]=fit_brats.py)
bash "${CM_MLPERF_DATA_LIB_PATH}/published_model.sh" \
    "${CM_TMP_CURRENT_SCRIPT_PATH}/${fit[${CM_PUBLISHED_MODEL_ARCHITECTURE}]}"
