"""The backend OpenVINO."""

from crowdperf.rules.record import BackendRecord, Package

RECORD = BackendRecord(
    framework="openvino",
    model_files="onnx",
    engine="openvino",
    engine_suffix="blob",
    int8_files="_static",
    devices=("cpu",),
    precisions=("fp32", "bf16", "int8"),
    packages=(Package(name="openvino", tags="_package.openvino", version_min="2025.0"),),
    library="openvino",
    transformation="compiled for this CPU by OpenVINO",
)
