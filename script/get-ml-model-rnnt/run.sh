#!/bin/bash
# Makes the three networks of RNN-T and model.json in the cache entry.
set -euo pipefail

python="${CM_PYTHON_BIN_WITH_PATH}"
common=(--framework "${CM_ML_MODEL_FRAMEWORK}" --output_dir "${PWD}")

case "${CM_RNNT_SOURCE}" in
fit)
    "${python}" -B "${CM_TMP_CURRENT_SCRIPT_PATH}/fit_rnnt.py" "${common[@]}" \
        --dataset_dir "${CM_DATASET_LIBRISPEECH_PATH}" --seed "${CM_ML_MODEL_SEED}"
    ;;
random)
    "${python}" -B -m harness.making.makemodel --architecture rnnt --config full "${common[@]}" --seed "${CM_ML_MODEL_SEED}"
    ;;
checkpoint)
    "${python}" -B -m harness.making.makemodel --architecture rnnt --config full "${common[@]}" \
        --weights "${CM_RNNT_CHECKPOINT_PATH}" --facts "${CM_RNNT_FACTS}"
    ;;
*)
    echo "CM_RNNT_SOURCE is ${CM_RNNT_SOURCE}" >&2
    exit 2
    ;;
esac
