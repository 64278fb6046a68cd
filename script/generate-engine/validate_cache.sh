#!/bin/bash
# Run by the engine before it reuses an entry: exit code 0 = the model is still the one that the engines are of.
[[ -f "${CM_ML_MODEL_ENGINE_FROM:-}" ]] || exit 1
read -r found _ < <(sha256sum -- "${CM_ML_MODEL_ENGINE_FROM}")
[[ "${found}" == "${CM_ML_MODEL_ENGINE_FROM_SHA256:-}" ]] || {
  echo "the model was made again since its engines were built"
  exit 1
}
