#!/bin/bash
# Run by the engine before it reuses an entry: exit code 0 = model.json is still the one that the repository is of.
[[ -f "${CM_TRITON_MODEL_FROM:-}" ]] || exit 1
read -r found _ < <(sha256sum -- "${CM_TRITON_MODEL_FROM}")
[[ "${found}" == "${CM_TRITON_MODEL_FROM_SHA256:-}" ]] || {
  echo "the model was made again since the repository was written"
  exit 1
}
