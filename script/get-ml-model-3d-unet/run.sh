#!/bin/bash
# Makes the model and its model.json in the cache entry; preprocess says how (CM_PUBLISHED_MODEL_WORK).
set -euo pipefail

declare -A fit=([unet3d]=crowdperf.standins.fits.unet3d [unet3d_brats]=crowdperf.standins.fits.unet3d_brats)
bash "${CM_MLPERF_DATA_LIB_PATH}/published_model.sh" -m "${fit[${CM_PUBLISHED_MODEL_ARCHITECTURE}]}"
