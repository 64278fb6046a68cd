#!/bin/bash
# Run by the engine before it reuses an entry: exit code 0 = the model, the library and the processor are still those
# that the engines are of.
[[ -f "${CM_ML_MODEL_ENGINE_FROM:-}" ]] || exit 1
read -r found _ < <(sha256sum -- "${CM_ML_MODEL_ENGINE_FROM}")
[[ "${found}" == "${CM_ML_MODEL_ENGINE_FROM_SHA256:-}" ]] || {
  echo "the model was made again since its engines were built"
  exit 1
}
[[ -z "${CM_ML_MODEL_ENGINE_LIBRARY_FILE:-}" || -f "${CM_ML_MODEL_ENGINE_LIBRARY_FILE}" ]] || {
  echo "another version of the library is installed now than the engines were built with"
  exit 1
}
if [[ -n "${CM_ML_MODEL_ENGINE_INSTRUCTION_SETS:-}" ]]; then # the names as crowdperf/harness/backends/openvino/library.py has them
  mapfile -t here < <(grep -m1 -E '^(flags|Features)' /proc/cpuinfo | tr ' \t' '\n\n' |
    grep -E 'sse4|avx|amx|fma|vnni|asimd|sve|bf16|i8mm' | LC_ALL=C sort -u)
  [[ "${here[*]}" == "${CM_ML_MODEL_ENGINE_INSTRUCTION_SETS}" ]] || {
    echo "the engines were built for a processor with other instruction sets"
    exit 1
  }
fi
