"""The backend onnxruntime with its TensorRT provider."""

from mlperf_results.record import BackendRecord, Package

RECORD = BackendRecord(
    framework="onnx",
    model_files="onnx",
    int8_files="_static,_tensorrt",
    devices=("cuda",),
    precisions=("fp32", "tf32", "fp16", "int8"),
    packages=(
        Package(name="onnxruntime", tags="_onnxruntime_gpu", version_min="1.17.0"),
        Package(name="tensorrt", tags="_tensorrt"),
    ),
    library="onnxruntime",
    transformation="built into a TensorRT engine",
)
