#!/bin/bash
# Makes synthetic clips in the cache entry, or opens the given copy.
set -euo pipefail

if [ "${CM_DATASET_WHISPER_WAY}" = synthetic ]; then
  "${CM_PYTHON_BIN_WITH_PATH}" -B -m crowdperf.standins.datasets.whisper --output_dir "${CM_DATASET_WHISPER_FOLDER}" \
    --count "${CM_DATASET_SIZE}" --longest_s "${CM_DATASET_WHISPER_LONGEST_S}" --seed "${CM_DATASET_WHISPER_SEED}"
fi
"${CM_PYTHON_BIN_WITH_PATH}" -B -m crowdperf.harness.commands.check_dataset --dataset whisper --folder "${CM_DATASET_WHISPER_FOLDER}"
