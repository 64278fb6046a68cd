#!/bin/bash
# published_model.sh ARCHITECTURE: makes the model and its model.json in the current folder, the cache entry, as
# `published.plan` says (CM_PUBLISHED_MODEL_WORK). Run by the run.sh of recipes with published detection models.
set -euo pipefail

python="${CM_PYTHON_BIN_WITH_PATH}"
common=(--architecture "$1" --framework "${CM_ML_MODEL_FRAMEWORK}" --output_dir "${PWD}")

case "${CM_PUBLISHED_MODEL_WORK}" in
fit)
    "${python}" -B -m harness.making.fit_detection "${common[@]}" \
        --dataset_dir "${CM_DATASET_PATH}" --seed "${CM_ML_MODEL_SEED}"
    ;;
random)
    "${python}" -B -m harness.making.makemodel "${common[@]}" --config full --seed "${CM_ML_MODEL_SEED}"
    ;;
take) ;; # the published file is the model
convert)
    checkpoint="${CM_PUBLISHED_MODEL_FILE_WITH_PATH}"
    if [ "${CM_PUBLISHED_MODEL_IS_ARCHIVE:-no}" = yes ]; then
        checkpoint="${PWD}/${CM_ML_MODEL_FILE}" # unpacked by extract,file
    fi
    "${python}" -B -m harness.making.pickled_weights --input "${checkpoint}" --output "${PWD}/published.safetensors"
    "${python}" -B -m harness.making.makemodel "${common[@]}" --config full \
        --weights "${PWD}/published.safetensors" --facts "${CM_PUBLISHED_MODEL_FACTS}"
    rm -f "${PWD}/published.safetensors"
    if [ "${CM_PUBLISHED_MODEL_IS_ARCHIVE:-no}" = yes ]; then
        rm -f "${checkpoint}" # the archive stays
    fi
    ;;
*)
    echo "CM_PUBLISHED_MODEL_WORK is ${CM_PUBLISHED_MODEL_WORK}" >&2
    exit 2
    ;;
esac
