"""The backend openvino_genai: OpenVINO GenAI's pipeline with in-flight batching."""

from crowdperf.rules.record import BackendRecord, Package

RECORD = BackendRecord(
    framework="gguf",
    model_files="gguf",
    devices=("cpu",),
    precisions=("int4", "int8", "fp16"),
    packages=(Package(name="openvino-genai", tags="_package.openvino-genai", version_min="2025.2"),),
    library="openvino-genai",
    transformation="compiled for this CPU by OpenVINO",
    is_text=True,
    # What its reader of GGUF knows: gguf_utils of openvino.genai 2026.4.
    model_values={
        "model_type": ("llama", "qwen2", "qwen3"),
        "quantization": ("F16", "Q8_0", "Q4_0", "Q4_1", "Q4_K", "Q6_K"),
    },
)
