#!/bin/bash
# Makes the model and its model.json in the cache entry; preprocess says how (CM_PUBLISHED_MODEL_WORK).
set -euo pipefail

bash "${CM_MLPERF_DATA_LIB_PATH}/published_model.sh" -m crowdperf.standins.fits.rgat
