#!/bin/bash
# Makes the model's file and model.json in the cache entry; a published ONNX file is described by the hook instead.
set -euo pipefail

python="${CM_PYTHON_BIN_WITH_PATH}"
common=(--framework "${CM_ML_MODEL_FRAMEWORK}" --output_dir "${PWD}")
make=("${python}" -B -m harness.making.makemodel --architecture "${CM_3D_UNET_ARCHITECTURE}" --config full)

case "${CM_3D_UNET_WAY}" in
fit)
  "${python}" -B "${CM_TMP_CURRENT_SCRIPT_PATH}/${CM_3D_UNET_FIT}" "${common[@]}" \
    --dataset_dir "${CM_DATASET_PATH}" --seed "${CM_ML_MODEL_SEED}"
  ;;
random)
  "${make[@]}" "${common[@]}" --seed "${CM_ML_MODEL_SEED}"
  ;;
checkpoint)
  "${make[@]}" "${common[@]}" --weights "${CM_3D_UNET_PUBLISHED_PATH}" --facts "${CM_3D_UNET_FACTS}"
  ;;
published-onnx) ;;
*)
  echo "CM_3D_UNET_WAY is ${CM_3D_UNET_WAY}" >&2
  exit 2
  ;;
esac
