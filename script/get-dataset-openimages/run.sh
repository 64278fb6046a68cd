#!/bin/bash
# Makes, fetches or checks the images; preprocess says which (CM_DATASET_OPENIMAGES_WORK).
set -euo pipefail

python="${CM_PYTHON_BIN_WITH_PATH}"
here="${CM_TMP_CURRENT_SCRIPT_PATH}"

case "${CM_DATASET_OPENIMAGES_WORK}" in
synthetic)
    "${python}" -B -m crowdperf.standins.datasets.scenes --layout openimages --classes "${here}/classes.txt" \
        --count "${CM_DATASET_SIZE}" --pictures "${CM_DATASET_OPENIMAGES_PICTURES}" \
        --seed "${CM_DATASET_OPENIMAGES_SEED}" \
        --output_dir "${CM_DATASET_OPENIMAGES_FOLDER}"
    ;;
fetch)
    "${python}" -B "${here}/fetch_images.py" --boxes "${CM_DATASET_OPENIMAGES_BOXES_FILE}" \
        --names "${CM_DATASET_OPENIMAGES_NAMES_FILE}" --classes "${here}/classes.txt" \
        --images_url "${CM_DATASET_OPENIMAGES_IMAGES_URL}" --threads "${CM_DATASET_OPENIMAGES_THREADS:-10}" \
        --output_dir "${CM_DATASET_OPENIMAGES_FOLDER}"
    ;;
check) ;;
*)
    echo "CM_DATASET_OPENIMAGES_WORK is ${CM_DATASET_OPENIMAGES_WORK}" >&2
    exit 2
    ;;
esac
if [ "${CM_DATASET_OPENIMAGES_IS_WITH_CALIBRATION:-no}" = yes ]; then
    "${python}" -B -m crowdperf.harness.commands.listed_images --dataset openimages --url "${CM_DATASET_OPENIMAGES_CALIBRATION_URL}" \
        --output_dir "${CM_DATASET_OPENIMAGES_FOLDER}" --threads "${CM_DATASET_OPENIMAGES_THREADS:-10}"
fi
"${python}" -B -m crowdperf.harness.commands.check_dataset --dataset openimages --thorough \
    --folder "${CM_DATASET_OPENIMAGES_FOLDER}" --count "${CM_DATASET_SIZE}"
