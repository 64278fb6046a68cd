#!/bin/bash
# Makes synthetic rows or converts the day's text into the cache entry, then looks at the files that are used.
set -euo pipefail

python="${CM_PYTHON_BIN_WITH_PATH}"
recipe="${CM_TMP_CURRENT_SCRIPT_PATH}"
folder="${CM_DATASET_CRITEO_FOLDER}"

if [ "${CM_DATASET_CRITEO_WAY}" = synthetic ]; then
  "${python}" -B -m crowdperf.standins.datasets.criteo --output_dir "${folder}" --form "${CM_DATASET_CRITEO_FORM}" \
    --size "${CM_DATASET_CRITEO_KIND}" --count "${CM_DATASET_SIZE}" --seed "${CM_DATASET_CRITEO_SEED}"
  if [ "${CM_DATASET_CRITEO_FORM}" = one-hot ]; then
    "${python}" -B "${recipe}/convert_day.py" --input_dir "${folder}" --output_dir "${folder}"
  fi
elif [ -n "${CM_DATASET_CRITEO_TEXT_FOLDER:-}" ]; then
  mkdir -p "${folder}"
  "${python}" -B "${recipe}/convert_day.py" --input_dir "${CM_DATASET_CRITEO_TEXT_FOLDER}" --output_dir "${folder}"
fi
"${python}" -B "${recipe}/check_dataset.py" --folder "${folder}" --multi_hot "${CM_DATASET_CRITEO_MULTIHOT}"
