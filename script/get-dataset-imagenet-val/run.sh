#!/bin/bash
# Makes synthetic images in the cache entry, or looks at every real one.
set -euo pipefail

python="${CM_PYTHON_BIN_WITH_PATH}"
folder="${CM_DATASET_IMAGENET_VAL_FOLDER}"
check=("${python}" -B -m crowdperf.harness.commands.check_dataset --dataset imagenet --folder "${folder}" --thorough)

case "${CM_DATASET_IMAGENET_VAL_WAY}" in
synthetic)
  "${python}" -B -m crowdperf.standins.datasets.imagenet --output_dir "${folder}" --count "${CM_DATASET_SIZE}" \
    --seed "${CM_DATASET_IMAGENET_VAL_SEED}" --sizes "${CM_DATASET_IMAGENET_VAL_SIZES}"
  ;;
community)
  "${python}" -B "${CM_TMP_CURRENT_SCRIPT_PATH}/assemble_dataset.py" --unpacked "${CM_DATASET_IMAGENET_VAL_UNPACKED}" \
    --output_dir "${folder}" --count "${CM_DATASET_SIZE}"
  "${check[@]}"
  ;;
given)
  "${check[@]}"
  ;;
*)
  echo "CM_DATASET_IMAGENET_VAL_WAY is ${CM_DATASET_IMAGENET_VAL_WAY}" >&2
  exit 2
  ;;
esac
