#!/bin/bash
# Makes GPT-J's network, its tokenizer and model.json in the cache entry; preprocess says how (CM_PUBLISHED_MODEL_WORK).
set -euo pipefail

here="${CM_TMP_CURRENT_SCRIPT_PATH}"
python="${CM_PYTHON_BIN_WITH_PATH}"
common=(--framework "${CM_ML_MODEL_FRAMEWORK}" --output_dir "${PWD}")

case "${CM_PUBLISHED_MODEL_WORK}" in
tiny)
    "${python}" -B "${here}/fit_gptj.py" "${common[@]}" --dataset_dir "${CM_DATASET_PATH}" --seed "${CM_ML_MODEL_SEED}"
    ;;
random)
    "${python}" -B "${here}/make_gptj.py" "${common[@]}" --dataset_dir "${CM_DATASET_PATH}" --seed "${CM_ML_MODEL_SEED}"
    ;;
convert)
    "${python}" -B "${here}/make_gptj.py" "${common[@]}" --checkpoint "${CM_PUBLISHED_MODEL_FILE_WITH_PATH}" \
        --facts "${CM_PUBLISHED_MODEL_FACTS}"
    ;;
*)
    echo "CM_PUBLISHED_MODEL_WORK is ${CM_PUBLISHED_MODEL_WORK}" >&2
    exit 2
    ;;
esac
