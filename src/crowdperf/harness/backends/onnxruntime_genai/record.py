"""The backend onnxruntime_genai: the Engine of onnxruntime-genai, which batches up to four requests on a processor."""

from crowdperf.rules.record import BackendRecord, Package

RECORD = BackendRecord(
    framework="onnxruntime-genai",
    model_files="onnxruntime_genai",
    devices=("cpu",),
    precisions=("fp32",),
    packages=(Package(name="onnxruntime-genai", tags="_package.onnxruntime-genai", version_min="0.18"),),
    library="onnxruntime-genai",
    transformation="written as ONNX by onnxruntime-genai's builder",
    is_text=True,
)
