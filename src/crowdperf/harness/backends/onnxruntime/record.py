"""The backend onnxruntime."""

from crowdperf.rules.record import BackendRecord, Package

RECORD = BackendRecord(
    framework="onnx",
    model_files="onnx",
    devices=("cpu", "cuda"),
    precisions=("fp32", "fp16", "bf16", "int8"),
    gpu_precisions=("tf32",),
    packages=(
        Package(name="onnxruntime", tags="_package.onnxruntime", version_min="1.17.0", device="cpu"),
        # 1.21 is the first that loads the CUDA libraries of pip's packages (`preload_dlls`).
        Package(name="onnxruntime", tags="_onnxruntime_gpu", version_min="1.21.0", device="cuda"),
    ),
    library="onnxruntime",
    is_default=True,
)
