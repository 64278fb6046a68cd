#!/bin/bash
# Makes GPT-J's network, its tokenizer and model.json in the cache entry; preprocess says how (CM_PUBLISHED_MODEL_WORK).
set -euo pipefail

python="${CM_PYTHON_BIN_WITH_PATH}"
common=(--framework "${CM_ML_MODEL_FRAMEWORK}" --output_dir "${PWD}")

case "${CM_PUBLISHED_MODEL_WORK}" in
tiny)
    "${python}" -B -m crowdperf.standins.fits.gptj "${common[@]}" --dataset_dir "${CM_DATASET_PATH}" \
        --seed "${CM_ML_MODEL_SEED}"
    ;;
random)
    "${python}" -B -m crowdperf.models.make_model --architecture gptj --config full "${common[@]}" \
        --seed "${CM_ML_MODEL_SEED}" --facts '{"license": "Apache-2.0"}'
    "${python}" -B -m crowdperf.standins.tokenizers gptj --output_dir "${PWD}" --dataset_dir "${CM_DATASET_PATH}"
    ;;
convert)
    "${python}" -B "${CM_TMP_CURRENT_SCRIPT_PATH}/convert_checkpoint.py" "${common[@]}" \
        --checkpoint "${CM_PUBLISHED_MODEL_FILE_WITH_PATH}" --facts "${CM_PUBLISHED_MODEL_FACTS}"
    ;;
*)
    echo "CM_PUBLISHED_MODEL_WORK is ${CM_PUBLISHED_MODEL_WORK}" >&2
    exit 2
    ;;
esac
