"""The backend TensorRT."""

from crowdperf.rules.record import BackendRecord, Package

RECORD = BackendRecord(
    framework="tensorrt",
    model_files="onnx",
    engine="tensorrt",
    engine_suffix="plan",
    has_largest_batch=True,
    int8_files="_static,_tensorrt_fp16",
    devices=("cuda",),
    precisions=("fp32", "tf32", "fp16", "int8"),
    packages=(
        Package(name="tensorrt", tags="_tensorrt"),
        Package(name="torch", tags="_torch_cuda", version_min="2.4.0"),
    ),
    library="tensorrt",
    short_name="TRT",
    transformation="built into a TensorRT engine",
)
