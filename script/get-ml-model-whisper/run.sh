#!/bin/bash
# Makes the model's file and model.json in the cache entry.
set -euo pipefail

python="${CM_PYTHON_BIN_WITH_PATH}"
common=(--architecture whisper --framework "${CM_ML_MODEL_FRAMEWORK}" --output_dir "${PWD}")

case "${CM_WHISPER_SOURCE}" in
tiny)
  "${python}" -B "${CM_TMP_CURRENT_SCRIPT_PATH}/fit_model.py" --framework "${CM_ML_MODEL_FRAMEWORK}" --output_dir "${PWD}" \
    --dataset_dir "${CM_DATASET_PATH}" --seed "${CM_ML_MODEL_SEED}"
  ;;
random)
  "${python}" -B "${CM_TMP_CURRENT_SCRIPT_PATH}/write_tokenizer.py" "${PWD}/tokenizer.json"
  "${python}" -B -m harness.making.makemodel --config full "${common[@]}" --seed "${CM_ML_MODEL_SEED}"
  ;;
published)
  cp "${CM_WHISPER_WEIGHTS_PATH}/tokenizer.json" "${PWD}/tokenizer.json"
  "${python}" -B -m harness.making.makemodel --config full "${common[@]}" \
    --weights "${CM_WHISPER_WEIGHTS_PATH}" --facts "${CM_WHISPER_FACTS}"
  ;;
*)
  echo "CM_WHISPER_SOURCE is ${CM_WHISPER_SOURCE}" >&2
  exit 2
  ;;
esac
