#!/bin/bash
# Makes prompts, and reference answers unless _prompts asks for none, in the current folder (the cache entry).
set -euo pipefail

content=()
if [ "${CM_SMOLLM2_CONTENT:-}" = prompts ]; then content=(--without_answers); fi

"${CM_PYTHON_BIN_WITH_PATH}" -B "${CM_TMP_CURRENT_SCRIPT_PATH}/make_dataset.py" \
    --model_info "${CM_ML_MODEL_INFO_FILE}" --output_dir "${PWD}" "${content[@]}"
