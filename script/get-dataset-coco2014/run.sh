#!/bin/bash
# Makes synthetic captions in the cache entry, or opens the given copy.
set -euo pipefail

if [ "${CM_DATASET_COCO2014_WAY}" = synthetic ]; then
  "${CM_PYTHON_BIN_WITH_PATH}" -B -m crowdperf.standins.datasets.coco2014 --output_dir "${CM_DATASET_COCO2014_FOLDER}" \
    --count "${CM_DATASET_SIZE}" --kind "${CM_DATASET_COCO2014_KIND}" --seed "${CM_DATASET_COCO2014_SEED}"
fi
"${CM_PYTHON_BIN_WITH_PATH}" -B -m crowdperf.harness.commands.check_dataset --dataset coco2014 --folder "${CM_DATASET_COCO2014_FOLDER}"
