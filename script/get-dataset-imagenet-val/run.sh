#!/bin/bash
# Makes synthetic images in the cache entry, or looks at every real one.
set -euo pipefail

python="${CM_PYTHON_BIN_WITH_PATH}"
here="${CM_TMP_CURRENT_SCRIPT_PATH}"
folder="${CM_DATASET_IMAGENET_VAL_FOLDER}"

case "${CM_DATASET_IMAGENET_VAL_WAY}" in
synthetic)
  "${python}" -B -m crowdperf.standins.datasets.imagenet --output_dir "${folder}" --count "${CM_DATASET_SIZE}" \
    --seed "${CM_DATASET_IMAGENET_VAL_SEED}" --sizes "${CM_DATASET_IMAGENET_VAL_SIZES}"
  ;;
community)
  "${python}" -B "${here}/assemble_dataset.py" --unpacked "${CM_DATASET_IMAGENET_VAL_UNPACKED}" \
    --output_dir "${folder}" --count "${CM_DATASET_SIZE}"
  "${python}" -B "${here}/check_dataset.py" --folder "${folder}"
  ;;
given)
  "${python}" -B "${here}/check_dataset.py" --folder "${folder}"
  ;;
*)
  echo "CM_DATASET_IMAGENET_VAL_WAY is ${CM_DATASET_IMAGENET_VAL_WAY}" >&2
  exit 2
  ;;
esac
