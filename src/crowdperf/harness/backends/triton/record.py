"""The backend triton: a real tritonserver of this machine answers, with onnxruntime behind it."""

from crowdperf.rules.record import BackendRecord, Package

RECORD = BackendRecord(
    framework="onnx",
    model_files="onnx",
    devices=("cpu",),
    precisions=("fp32", "fp16", "bf16", "int8"),
    # The client alone: the server has a virtual environment of its own (get-triton-server), with another numpy.
    packages=(Package(name="tritonclient", tags="_package.tritonclient[grpc]", version_min="2.60.0"),),
    library="tritonclient",
    short_name="Triton",
    recipes=("get,triton,server",),
    is_served=True,
    # Server 2.51.0, that of nvidia-pytriton 0.7.0 (NVIDIA's release notes for 24.10). Its digest could not be looked up
    # (2026-11-23), and none is invented.
    image="nvcr.io/nvidia/tritonserver:24.10-py3",
    unfit={
        "cuda": "the server of nvidia-pytriton computes on the CPU. A GPU needs NVIDIA's container: "
        "cm run script --tags=serve,mlperf,model,_container,_plan",
    },
)
