#!/bin/bash
# Makes a model or fetches one; preprocess says which (CM_ML_MODEL_TEXT_WORK). A given one is only described.
set -euo pipefail

here="${CM_TMP_CURRENT_SCRIPT_PATH}"
python="${CM_PYTHON_BIN_WITH_PATH}"

content=()
if [ "${CM_ML_MODEL_TEXT_CONTENT:-model}" = tokenizer ]; then content=(--without_weights); fi

case "${CM_ML_MODEL_TEXT_WORK}" in
tiny | synthetic)
    "${python}" -B -m crowdperf.standins.tiny_llama --name "${CM_ML_MODEL_TEXT_NAME}" --size "${CM_ML_MODEL_TEXT_WORK}" \
        --seed "${CM_ML_MODEL_SEED}" "${content[@]}"
    ;;
fetch)
    "${python}" -B "${here}/fetch.py" --repository "${CM_ML_MODEL_TEXT_REPOSITORY}" \
        --revision "${CM_ML_MODEL_TEXT_REVISION}" "${content[@]}"
    ;;
take) ;;
*)
    echo "CM_ML_MODEL_TEXT_WORK is ${CM_ML_MODEL_TEXT_WORK}" >&2
    exit 2
    ;;
esac
