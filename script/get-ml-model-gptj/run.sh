#!/bin/bash
# Makes GPT-J's network, its tokenizer and model.json in the cache entry.
set -euo pipefail

here="${CM_TMP_CURRENT_SCRIPT_PATH}"
python="${CM_PYTHON_BIN_WITH_PATH}"
common=(--framework "${CM_ML_MODEL_FRAMEWORK}" --output_dir "${PWD}")

case "${CM_GPTJ_SOURCE}" in
fit)
    "${python}" -B "${here}/fit_gptj.py" "${common[@]}" --dataset_dir "${CM_DATASET_CNNDM_PATH}" \
        --seed "${CM_ML_MODEL_SEED}"
    ;;
random)
    "${python}" -B "${here}/make_gptj.py" "${common[@]}" --dataset_dir "${CM_DATASET_CNNDM_PATH}" \
        --seed "${CM_ML_MODEL_SEED}"
    ;;
checkpoint)
    "${python}" -B "${here}/make_gptj.py" "${common[@]}" --checkpoint "${GPTJ_CHECKPOINT_PATH}" \
        --source "${CM_GPTJ_CHECKPOINT_SOURCE}"
    ;;
*)
    echo "CM_GPTJ_SOURCE is ${CM_GPTJ_SOURCE}" >&2
    exit 2
    ;;
esac
