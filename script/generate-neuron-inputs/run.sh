#!/bin/bash
# Writes the samples below the scratch space, also over those of an earlier call.
set -euo pipefail

"${CM_PYTHON_BIN_WITH_PATH}" -B -m crowdperf.models.neuron_inputs --model="${CM_NEURON_MODEL}" \
  --model_info="${CM_ML_MODEL_INFO_FILE}" --dataset="${CM_DATASET_PATH}" --store="${CM_DATASET_PREPROCESSED_PATH}" \
  --output_dir="${MLPERF_SCRATCH_PATH:-${CM_MLPERF_SCRATCH_PATH}}"
