"""The backend triton: a real tritonserver of this machine answers, with onnxruntime behind it."""

from mlperf_results.record import BackendRecord, Package

_ROWS = "a sample is itself a batch of rows, of another number each, and a server counts rows"

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
        "rnnt": "it has two networks and hands states from call to call, which a server would copy each time",
        "gptj": "it hands states from call to call, which a server would copy each time",
        "dlrm": _ROWS,
        "dlrm_v2": _ROWS,
        "unet3d": "it cuts a volume into windows, so that one sample is many inferences",
        "cuda": "the server of nvidia-pytriton computes on the CPU; a GPU needs NVIDIA's container: "
        "cm run script --tags=serve,mlperf,model,_container,_plan",
    },
)
