#!/bin/bash
# Writes the inputs of the user's network into the current folder (the cache entry).
set -euo pipefail

words=(--network "${CM_OWN_NETWORK_CONFIG}" --output "${PWD}" --seed "${CM_OWN_INPUTS_SEED:-0}")
[ -z "${CM_OWN_INPUTS_COUNT:-}" ] || words+=(--count "${CM_OWN_INPUTS_COUNT}")
[ -z "${CM_MLPERF_OWN_INPUTS_PATH:-}" ] || words+=(--inputs "${CM_MLPERF_OWN_INPUTS_PATH}")
[ -z "${CM_MLPERF_OWN_EXPECTED_PATH:-}" ] || words+=(--expected "${CM_MLPERF_OWN_EXPECTED_PATH}")
"${CM_PYTHON_BIN_WITH_PATH}" -m crowdperf.benchmarks.own_onnx.make_inputs "${words[@]}"
