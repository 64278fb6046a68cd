#!/bin/bash
# Run by the engine before it reuses an entry: exit code 0 = model.json is still the one that was calibrated.
[[ -z "${CM_CALIBRATION_FORCE:-}" ]] || {
  echo "--force_calibration"
  exit 1
}
[[ -f "${CM_ML_MODEL_CALIBRATION_MODEL_FILE:-}" ]] || exit 1
read -r found _ < <(sha256sum -- "${CM_ML_MODEL_CALIBRATION_MODEL_FILE}")
[[ "${found}" == "${CM_ML_MODEL_CALIBRATION_MODEL_SHA256:-}" ]] || {
  echo "the model was made again since it was calibrated"
  exit 1
}
