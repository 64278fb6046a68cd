#!/bin/bash
# Makes the model's file and model.json in the cache entry.
set -euo pipefail

python="${CM_PYTHON_BIN_WITH_PATH}"
common=(--architecture dlrm_v2 --framework "${CM_ML_MODEL_FRAMEWORK}" --output_dir "${PWD}")

case "${CM_DLRM_V2_SOURCE}" in
tiny)
  "${python}" -B "${CM_TMP_CURRENT_SCRIPT_PATH}/../get-ml-model-dlrm/fit_model.py" "${common[@]}" \
    --dataset_dir "${CM_DATASET_PATH}" --seed "${CM_ML_MODEL_SEED}"
  ;;
random)
  "${python}" -B -m harness.making.makemodel --config full "${common[@]}" --seed "${CM_ML_MODEL_SEED}"
  ;;
published)
  "${python}" -B -m harness.making.makemodel --config full "${common[@]}" \
    --weights "${CM_DLRM_V2_WEIGHTS_PATH}" --facts "${CM_DLRM_V2_FACTS}"
  ;;
*)
  echo "CM_DLRM_V2_SOURCE is ${CM_DLRM_V2_SOURCE}" >&2
  exit 2
  ;;
esac
