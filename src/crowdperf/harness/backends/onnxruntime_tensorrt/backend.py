"""The onnxruntime backend with the TensorRT execution provider: onnxruntime builds the engines while it opens the file.

Engines and timings are kept beside the model file, so that only the first run waits for them, in a folder for each
precision, compute capability and version of TensorRT: an engine is of use to no other, and onnxruntime's names of them
do not tell fp32 from tf32. Operators that TensorRT
lacks run with CUDA. TensorRT's provider has no option for TensorFloat-32: the variable NVIDIA_TF32_OVERRIDE, which
`cuda_options` sets, says for both whether fp32 may be computed so. CUDA graphs (trt_cuda_graph_enable) are not asked
for: a replay reads and writes the addresses of the recorded call, and here batches differ, instances share a session,
and outputs come back through memory that onnxruntime chooses. bf16 is not offered, so trt_bf16_enable is not set. Not
run on hardware: no GPU was at hand when it was written.
"""

import os
from importlib import metadata
from pathlib import Path

from crowdperf.harness.backends.onnxruntime.backend import OnnxRuntimeBackend, Provider, cuda_options, open_sessions
from crowdperf.harness.base.backend import BackendRequest
from crowdperf.harness.base.tensors import NetworkSpec
from crowdperf.harness.watch.nvml import compute_capability

_CACHE_FOLDER = "tensorrt-cache"


def profile_options(network: NetworkSpec, largest_batch: int) -> dict[str, str]:
    """Return the provider's options for batches of 1 to `largest_batch`, empty where a named size has no known end."""
    if not all(spec.is_fixed for spec in network.inputs):
        return {}

    def shapes(count: int) -> str:
        rows = ((spec.name, (count, *spec.fixed_shape)) for spec in network.inputs)
        return ",".join(f"{name}:{'x'.join(map(str, shape))}" for name, shape in rows)

    return {
        "trt_profile_min_shapes": shapes(1),
        "trt_profile_opt_shapes": shapes(largest_batch),
        "trt_profile_max_shapes": shapes(largest_batch),
    }


def provider_options(request: BackendRequest, gpu: int, cache: Path | None) -> dict[str, str]:
    """Return the options of TensorrtExecutionProvider; names as in onnxruntime's page of that provider."""
    kept = {} if cache is None else {
        "trt_engine_cache_enable": "1", "trt_engine_cache_path": str(cache),
        "trt_timing_cache_enable": "1", "trt_timing_cache_path": str(cache),
    }  # fmt: skip
    return {
        "device_id": str(gpu),
        # The file's own types decide: a quantised or converted file runs as it is, an fp32 one is not lowered.
        "trt_fp16_enable": "1" if request.precision == "fp16" else "0",
        "trt_int8_enable": "1" if request.precision == "int8" else "0",
        **kept,
        **profile_options(request.network, request.largest_batch),
    }


def cache_folder(request: BackendRequest, beside: Path, gpu: int) -> Path | None:
    """Return the folder of engines for a precision, a GPU and the version of TensorRT; None where nothing can be kept:
    the folder cannot be written, or nobody can tell what an engine there would be for."""
    if not os.access(beside, os.W_OK):
        return None
    try:
        versions = f"sm{compute_capability(gpu)}-tensorrt{metadata.version('tensorrt')}"
    except (OSError, metadata.PackageNotFoundError):
        return None
    return beside / _CACHE_FOLDER / f"{request.precision}-{versions}"


def open_backend(request: BackendRequest) -> OnnxRuntimeBackend:
    """Return the open sessions; raises HarnessError when TensorRT is not what would answer."""
    choices: list[tuple[Provider, ...]] = []
    for gpu in request.gpus or (0,):
        own = provider_options(request, gpu, cache_folder(request, request.file.parent, gpu))
        choices.append((("TensorrtExecutionProvider", own), ("CUDAExecutionProvider", cuda_options(request, gpu))))
    return open_sessions(request, choices)
