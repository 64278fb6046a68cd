#!/bin/bash
# published_model.sh WORD...: makes the model and its model.json in the current folder, the cache entry, as
# `published.Model.plan` says (CM_PUBLISHED_MODEL_WORK). The words are those of Python that call the program which makes
# the tiny one. Run by the run.sh of recipes with published models.
set -euo pipefail

python="${CM_PYTHON_BIN_WITH_PATH}"
common=(--architecture "${CM_PUBLISHED_MODEL_ARCHITECTURE}" --framework "${CM_ML_MODEL_FRAMEWORK}" --output_dir "${PWD}")
make=("${python}" -B -m crowdperf.models.make_model "${common[@]}" --config full)

case "${CM_PUBLISHED_MODEL_WORK}" in
tiny)
    "${python}" -B "$@" "${common[@]}" --dataset_dir "${CM_DATASET_PATH}" --seed "${CM_ML_MODEL_SEED}"
    ;;
random)
    "${make[@]}" --seed "${CM_ML_MODEL_SEED}"
    ;;
take) ;; # the published file is the model
convert)
    weights="${CM_PUBLISHED_MODEL_FILE_WITH_PATH}"
    if [ "${CM_PUBLISHED_MODEL_IS_ARCHIVE:-no}" = yes ]; then
        weights="${PWD}/${CM_PUBLISHED_MODEL_MEMBER}" # unpacked by extract,file
    fi
    "${make[@]}" --weights "${weights}" --facts "${CM_PUBLISHED_MODEL_FACTS}"
    if [ "${CM_PUBLISHED_MODEL_IS_ARCHIVE:-no}" = yes ]; then
        rm -f "${weights}" # the archive stays
    fi
    ;;
*)
    echo "CM_PUBLISHED_MODEL_WORK is ${CM_PUBLISHED_MODEL_WORK}" >&2
    exit 2
    ;;
esac
