#!/bin/bash
# Makes the model's files and model.json in the cache entry.
set -euo pipefail

python="${CM_PYTHON_BIN_WITH_PATH}"
here="${CM_TMP_CURRENT_SCRIPT_PATH}"
common=(--architecture stable_diffusion_xl --framework "${CM_ML_MODEL_FRAMEWORK}" --output_dir "${PWD}")

case "${CM_SDXL_SOURCE}" in
tiny)
  "${python}" -B "${here}/make_tiny.py" --framework "${CM_ML_MODEL_FRAMEWORK}" --output_dir "${PWD}" \
    --dataset_dir "${CM_DATASET_PATH}" --seed "${CM_ML_MODEL_SEED}"
  ;;
random)
  "${python}" -B "${here}/write_tokenizer.py" "${PWD}"
  "${python}" -B -m harness.making.makemodel --config full "${common[@]}" --seed "${CM_ML_MODEL_SEED}"
  ;;
published)
  cp "${CM_SDXL_WEIGHTS_PATH}/tokenizer/vocab.json" "${CM_SDXL_WEIGHTS_PATH}/tokenizer/merges.txt" "${PWD}/"
  "${python}" -B -m harness.making.makemodel --config full "${common[@]}" \
    --weights "${CM_SDXL_WEIGHTS_PATH}" --facts "${CM_SDXL_FACTS}"
  ;;
*)
  echo "CM_SDXL_SOURCE is ${CM_SDXL_SOURCE}" >&2
  exit 2
  ;;
esac
