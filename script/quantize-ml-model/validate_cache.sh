#!/bin/bash
# Run by the engine before it reuses an entry: exit code 0 = model.json is still the one that was quantised.
[[ -f "${CM_ML_MODEL_QUANTIZED_FROM:-}" ]] || exit 1
read -r found _ < <(sha256sum -- "${CM_ML_MODEL_QUANTIZED_FROM}")
[[ "${found}" == "${CM_ML_MODEL_QUANTIZED_FROM_SHA256:-}" ]] || {
  echo "the model was made again since it was quantised"
  exit 1
}
