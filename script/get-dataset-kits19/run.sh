#!/bin/bash
# Makes synthetic cases in the cache entry, or looks at every case of the given copy.
set -euo pipefail

if [ "${CM_DATASET_KITS19_WAY}" = synthetic ]; then
  "${CM_PYTHON_BIN_WITH_PATH}" -B -m crowdperf.standins.datasets.kits19 \
    --output_dir "${CM_DATASET_KITS19_FOLDER}" --size "${CM_DATASET_KITS19_KIND}" \
    --count "${CM_DATASET_SIZE}" --calibration_count 8 --seed "${CM_DATASET_KITS19_SEED}"
else
  "${CM_PYTHON_BIN_WITH_PATH}" -B -m crowdperf.harness.commands.check_dataset --dataset kits19 --folder "${CM_DATASET_KITS19_FOLDER}"
fi
