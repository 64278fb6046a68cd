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
)
