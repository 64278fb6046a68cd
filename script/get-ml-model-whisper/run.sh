#!/bin/bash
# Makes the model and its model.json in the cache entry; preprocess says how (CM_PUBLISHED_MODEL_WORK).
set -euo pipefail

case "${CM_PUBLISHED_MODEL_WORK}" in
random) "${CM_PYTHON_BIN_WITH_PATH}" -B -m crowdperf.standins.tokenizers whisper --output_dir "${PWD}" ;;
convert) cp "${CM_PUBLISHED_MODEL_FILE_WITH_PATH}/tokenizer.json" "${PWD}/tokenizer.json" ;;
esac
"${CM_PYTHON_BIN_WITH_PATH}" -B -m crowdperf.models.published_model -m crowdperf.standins.fits.whisper
