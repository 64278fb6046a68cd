"""The backend onnxruntime with its TensorRT provider."""

from crowdperf.rules.record import BackendRecord, Package

RECORD = BackendRecord(
    framework="onnx",
    model_files="onnx",
    int8_files="_static,_tensorrt",
    devices=("cuda",),
    precisions=("fp32", "tf32", "fp16", "int8"),
    packages=(
        Package(name="onnxruntime", tags="_onnxruntime_gpu", version_min="1.21.0"),
        # onnxruntime-gpu 1.31.1 is linked against libnvinfer.so.10 (readelf, 2026-11-28): TensorRT 11 it cannot load.
        Package(name="tensorrt", tags="_tensorrt", version_min="10.0", version_max="10.99"),
    ),
    library="onnxruntime",
    transformation="built into a TensorRT engine",
)
