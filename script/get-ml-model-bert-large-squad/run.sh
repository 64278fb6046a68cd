#!/bin/bash
# Makes, converts or describes the model in the current folder (the cache entry); preprocess says which.
set -euo pipefail

here="${CM_TMP_CURRENT_SCRIPT_PATH}"
python="${CM_PYTHON_BIN_WITH_PATH}"

case "${CM_BERT_WORK}" in
synthetic)
  "${python}" -B -m crowdperf.models.make_model --architecture bert --config full --framework "${CM_ML_MODEL_FRAMEWORK}" \
    --seed "${CM_ML_MODEL_SEED}" --output_dir "${PWD}" --facts '{"license": "Apache-2.0"}'
  ;;
tiny)
  "${python}" -B -m crowdperf.standins.fitted_models --architecture bert --dataset_dir "${CM_DATASET_SQUAD_PATH}" \
    --output_dir "${PWD}"
  ;;
fit)
  "${python}" -B -m crowdperf.standins.fits.bert --dataset_dir "${CM_DATASET_SQUAD_PATH}" \
    --framework "${CM_ML_MODEL_FRAMEWORK}" --output_dir "${PWD}"
  ;;
convert)
  "${python}" -B -m crowdperf.models.make_model --architecture bert --config full --framework "${CM_ML_MODEL_FRAMEWORK}" \
    --weights "${CM_BERT_PUBLISHED_FILE}" --output_dir "${PWD}" --facts "${CM_BERT_FACTS}"
  if [ "${CM_BERT_IS_DOWNLOADED}" = yes ]; then
    rm -f -- "${CM_BERT_PUBLISHED_FILE}" # what was made of it holds the same weights
  fi
  ;;
describe)
  "${python}" -B "${here}/describe_onnx.py" --model "${CM_BERT_PUBLISHED_FILE}" --output_dir "${PWD}" \
    --facts "${CM_BERT_FACTS}"
  ;;
given) ;;
*)
  echo "CM_BERT_WORK is ${CM_BERT_WORK}" >&2
  exit 2
  ;;
esac
