#!/bin/bash
# Makes or converts the model in the current folder (the cache entry); preprocess says which.
set -euo pipefail

python="${CM_PYTHON_BIN_WITH_PATH:-python3}"

case "${CM_RESNET50_WORK}" in
random)
  "${python}" -B -m crowdperf.models.make_model --architecture resnet50 --config "${CM_RESNET50_CONFIG}" \
    --framework "${CM_ML_MODEL_FRAMEWORK}" --seed "${CM_ML_MODEL_SEED}" --output_dir "${PWD}" \
    --facts '{"license": "Apache-2.0 (made by this project)"}'
  ;;
fitted)
  "${python}" -B -m crowdperf.standins.fitted_models --architecture resnet50 \
    --dataset_dir "${CM_DATASET_IMAGENET_PATH}" --output_dir "${PWD}"
  ;;
fit)
  "${python}" -B -m crowdperf.standins.fits.resnet50 --config "${CM_RESNET50_CONFIG}" --framework "${CM_ML_MODEL_FRAMEWORK}" \
    --seed "${CM_ML_MODEL_SEED}" --dataset_dir "${CM_DATASET_IMAGENET_PATH}" --output_dir "${PWD}"
  ;;
convert)
  "${python}" -B -m crowdperf.models.make_model --architecture resnet50 --framework pytorch --output_dir "${PWD}" \
    --weights "${CM_RESNET50_PUBLISHED_FILE}" --config "${CM_RESNET50_CONFIG}" --facts "${CM_RESNET50_FACTS}"
  ;;
nothing) ;;
*)
  echo "CM_RESNET50_WORK is ${CM_RESNET50_WORK}" >&2
  exit 2
  ;;
esac
