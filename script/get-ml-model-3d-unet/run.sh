#!/bin/bash
# Makes the model and its model.json in the cache entry; preprocess says how (CM_PUBLISHED_MODEL_WORK).
set -euo pipefail

declare -A fit=([unet3d]=crowdperf.standins.fits.unet3d [unet3d_brats]=crowdperf.standins.fits.unet3d_brats)
"${CM_PYTHON_BIN_WITH_PATH}" -B -m crowdperf.models.published_model -m "${fit[${CM_PUBLISHED_MODEL_ARCHITECTURE}]}"
