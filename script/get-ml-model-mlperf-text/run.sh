#!/bin/bash
# Makes a model or fetches one; preprocess says which (CM_ML_MODEL_TEXT_WORK). A given one is only described.
set -euo pipefail

here="${CM_TMP_CURRENT_SCRIPT_PATH}"
python="${CM_PYTHON_BIN_WITH_PATH}"

case "${CM_ML_MODEL_TEXT_WORK}" in
tiny | synthetic)
    "${python}" -B "${here}/make.py" --name "${CM_ML_MODEL_TEXT_NAME}" --size "${CM_ML_MODEL_TEXT_WORK}" \
        --seed "${CM_ML_MODEL_SEED}"
    ;;
fetch)
    "${python}" -B "${here}/fetch.py" --repository "${CM_ML_MODEL_TEXT_REPOSITORY}" \
        --revision "${CM_ML_MODEL_TEXT_REVISION}"
    ;;
take) ;;
*)
    echo "CM_ML_MODEL_TEXT_WORK is ${CM_ML_MODEL_TEXT_WORK}" >&2
    exit 2
    ;;
esac
