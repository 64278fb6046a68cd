#!/bin/bash
# Makes synthetic cases in the cache entry, or looks at every case of the given copy.
set -euo pipefail

if [ "${CM_DATASET_BRATS19_WAY}" = synthetic ]; then
  "${CM_PYTHON_BIN_WITH_PATH}" -B -m crowdperf.standins.datasets.brats19 \
    --output_dir "${CM_DATASET_BRATS19_FOLDER}" --size "${CM_DATASET_BRATS19_KIND}" \
    --count "${CM_DATASET_SIZE}" --calibration_count 8 --seed "${CM_DATASET_BRATS19_SEED}"
else
  "${CM_PYTHON_BIN_WITH_PATH}" -B -m crowdperf.harness.commands.check_dataset --dataset brats19 --folder "${CM_DATASET_BRATS19_FOLDER}"
fi
