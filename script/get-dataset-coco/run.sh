#!/bin/bash
# Makes, chooses or checks the images; preprocess says which (CM_DATASET_COCO_WORK).
set -euo pipefail

python="${CM_PYTHON_BIN_WITH_PATH}"
here="${CM_TMP_CURRENT_SCRIPT_PATH}"

case "${CM_DATASET_COCO_WORK}" in
synthetic)
    "${python}" -B -m crowdperf.standins.datasets.scenes --layout coco --classes "${here}/classes.txt" \
        --count "${CM_DATASET_SIZE}" --pictures "${CM_DATASET_COCO_PICTURES}" \
        --seed "${CM_DATASET_COCO_SEED}" \
        --output_dir "${CM_DATASET_COCO_FOLDER}"
    ;;
filter)
    "${python}" -B "${here}/keep_free.py" --from "${PWD}" --output_dir "${CM_DATASET_COCO_FOLDER}"
    ;;
check) ;;
*)
    echo "CM_DATASET_COCO_WORK is ${CM_DATASET_COCO_WORK}" >&2
    exit 2
    ;;
esac
if [ "${CM_DATASET_COCO_IS_WITH_CALIBRATION:-no}" = yes ]; then
    "${python}" -B -m crowdperf.harness.commands.listed_images --dataset coco --url "${CM_DATASET_COCO_CALIBRATION_URL}" \
        --output_dir "${CM_DATASET_COCO_FOLDER}"
fi
"${python}" -B -m crowdperf.harness.commands.check_dataset --dataset coco --thorough \
    --folder "${CM_DATASET_COCO_FOLDER}" --count "${CM_DATASET_SIZE}"
