"""The onnxruntime backend with the TensorRT execution provider: onnxruntime builds the engines while it opens the file.

Engines and timings are kept beside the model file, so that only the first run waits for them. Operators that TensorRT
lacks run with CUDA. TensorRT's provider has no option for TensorFloat-32: the variable NVIDIA_TF32_OVERRIDE, which
`cuda_options` sets, says for both whether fp32 may be computed so. Not run on hardware: no GPU was at hand when it was
written.
"""

from __future__ import annotations

import os
from pathlib import Path

from harness.backends.base import BackendRequest
from harness.backends.onnxruntime.backend import OnnxRuntimeBackend, Provider, cuda_options, open_sessions
from harness.errors import HarnessError
from harness.tensors import NetworkSpec

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


def open_backend(request: BackendRequest) -> OnnxRuntimeBackend:
    """Return the open sessions; raises HarnessError when TensorRT is not what would answer."""
    if request.path is None:
        raise HarnessError("backend onnxruntime_tensorrt needs a model file", "give model_path or model_info_path")
    cache: Path | None = request.path.parent / _CACHE_FOLDER
    if not os.access(request.path.parent, os.W_OK):
        cache = None
    choices: list[tuple[Provider, ...]] = []
    for gpu in request.gpus or (0,):
        own = provider_options(request, gpu, cache)
        choices.append((("TensorrtExecutionProvider", own), ("CUDAExecutionProvider", cuda_options(request, gpu))))
    return open_sessions(request, choices)
