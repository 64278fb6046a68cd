#!/bin/bash
# Makes the model and its model.json in the cache entry; preprocess says how (CM_PUBLISHED_MODEL_WORK).
set -euo pipefail

"${CM_PYTHON_BIN_WITH_PATH}" -B -m crowdperf.models.published_model -m crowdperf.standins.fits.dlrm
