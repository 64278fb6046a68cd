#!/bin/bash
# Makes a synthetic graph in the cache entry, or opens the given copy.
set -euo pipefail

if [ "${CM_DATASET_IGBH_WAY}" = synthetic ]; then
  "${CM_PYTHON_BIN_WITH_PATH}" -B -m crowdperf.standins.datasets.igbh \
    --output_dir "${CM_DATASET_IGBH_FOLDER}" --kind "${CM_DATASET_IGBH_KIND}" \
    --count "${CM_DATASET_SIZE}" --seed "${CM_DATASET_IGBH_SEED}"
else
  "${CM_PYTHON_BIN_WITH_PATH}" -B -m crowdperf.harness.commands.check_dataset --dataset igbh --folder "${CM_DATASET_IGBH_FOLDER}"
fi
