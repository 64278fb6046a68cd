#!/bin/bash
# Makes, fetches or checks the data set; preprocess says which (CM_CNNDM_WORK).
set -euo pipefail

python="${CM_PYTHON_BIN_WITH_PATH}"

case "${CM_CNNDM_WORK}" in
synthetic)
    "${python}" -B -m crowdperf.standins.datasets.cnndm --output_dir "${PWD}" --count "${CM_DATASET_SYNTHETIC_SIZE}" \
        --lengths "${CM_CNNDM_LENGTHS}" --seed "${CM_DATASET_SYNTHETIC_SEED}" \
        --training_count "${CM_CNNDM_TRAINING_COUNT}"
    ;;
download) "${python}" -B "${CM_TMP_CURRENT_SCRIPT_PATH}/download.py" --output_dir "${PWD}" ;;
check) ;;
*)
    echo "CM_CNNDM_WORK is ${CM_CNNDM_WORK}" >&2
    exit 2
    ;;
esac
"${python}" -B -m crowdperf.harness.commands.check_dataset --dataset cnndm --folder "${CM_CNNDM_FOLDER}" --thorough \
    --count "${CM_CNNDM_EXPECTED_COUNT}"
