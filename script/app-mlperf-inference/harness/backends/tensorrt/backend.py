"""The tensorrt backend: runs engines that `making/engine_trt.py` built (recipe generate-engine) on NVIDIA GPUs.

torch gives the buffers and the streams; each instance has an execution context and a stream. Opening without a GPU and
the refusals are tested; inference was not run on hardware: no GPU was at hand when it was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from harness.backends.base import BackendRequest
from harness.backends.tensorrt.library import SUFFIXES, load_library
from harness.errors import HarnessError
from harness.tensors import Infer, NetworkSpec
from harness.torch_cuda import Staging


class TensorRtBackend:
    """An engine on each GPU; instance n uses GPU n modulo their number."""

    def __init__(self, library: Any, engines: Mapping[int, Any], network: NetworkSpec) -> None:
        self._library = library
        self._engines = dict(engines)
        self._network = network

    def instance(self, number: int) -> Infer:
        """Return the call of an instance with a context and a stream of its own."""
        gpus = tuple(self._engines)
        gpu = gpus[number % len(gpus)]
        return _Call(self._engines[gpu], self._network, gpu).infer

    def versions(self) -> Mapping[str, str]:
        """Return the versions of the library and of torch."""
        return {self._library.__name__: str(self._library.__version__), "torch": str(torch.__version__)}

    def close(self) -> None:
        """Drop the engines."""
        self._engines.clear()


class _Call:
    """One execution context."""

    def __init__(self, engine: Any, network: NetworkSpec, gpu: int) -> None:
        self._context = engine.create_execution_context()
        if self._context is None:
            raise HarnessError("TensorRT gave no execution context", "is there enough memory on the GPU?")
        self._network = network
        self._device = torch.device("cuda", gpu)
        self._stream = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        self._staging = Staging()

    def infer(self, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the outputs; states stay on the GPU."""
        context = self._context
        found: dict[str, Any] = {}
        with torch.cuda.device(self._device), torch.cuda.stream(self._stream):
            kept = []  # the buffers must live until the stream is done
            for spec in self._network.inputs:
                tensor = self._to_gpu(spec.name, inputs[spec.name])
                if not context.set_input_shape(spec.name, tuple(tensor.shape)):
                    raise HarnessError(
                        f"the engine was not built for {spec.name}{list(tensor.shape)}",
                        "build it for larger batches or sizes: --largest_batch, --sizes",
                    )
                context.set_tensor_address(spec.name, tensor.data_ptr())
                kept.append(tensor)
            answers = {}
            for spec in self._network.outputs:
                shape = tuple(context.get_tensor_shape(spec.name))
                if any(size < 0 for size in shape):
                    raise HarnessError(f"the shape of {spec.name} depends on values: {shape}", "use onnxruntime")
                dtype: torch.dtype = getattr(torch, spec.dtype)
                answers[spec.name] = torch.empty(shape, dtype=dtype, device=self._device)
                context.set_tensor_address(spec.name, answers[spec.name].data_ptr())
            if not context.execute_async_v3(self._stream.cuda_stream):
                raise HarnessError("TensorRT could not run the engine", "see the lines above")
            for spec in self._network.outputs:
                answer = answers[spec.name]
                if spec.is_state:
                    found[spec.name] = answer
                else:
                    pinned = self._staging.take(f"out {spec.name}", tuple(answer.shape), answer.dtype)
                    found[spec.name] = pinned.copy_(answer, non_blocking=True).numpy()
        self._stream.synchronize()
        return found

    def _to_gpu(self, name: str, value: Any) -> torch.Tensor:
        if not isinstance(value, np.ndarray):
            state: torch.Tensor = value
            return state
        return self._staging.filled(name, value).to(self._device, non_blocking=True)


def open_backend(request: BackendRequest) -> TensorRtBackend:
    """Return the open engines; raises HarnessError when file, library or GPU cannot be used as asked for."""
    if request.path is None:
        raise HarnessError("backend tensorrt needs an engine", "cm run script --tags=generate,engine")
    is_rtx = request.path.name.endswith(SUFFIXES["tensorrt_rtx"])
    library: Any = load_library("tensorrt_rtx" if is_rtx else "tensorrt")
    try:
        content = request.path.read_bytes()
    except OSError as error:
        raise HarnessError(f"cannot read {request.path}: {error.strerror}", "build the engine again") from error
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    gpus = request.gpus or (0,)
    if any(gpu >= count for gpu in gpus):
        raise HarnessError(
            f"torch {torch.__version__} sees {count} GPUs; asked for: {', '.join(map(str, gpus))}",
            "backend tensorrt needs an NVIDIA GPU and torch for CUDA; on a processor take onnxruntime or pytorch",
        )
    engines = {}
    for gpu in gpus:
        with torch.cuda.device(gpu):
            runtime = library.Runtime(library.Logger(library.Logger.WARNING))
            engine = runtime.deserialize_cuda_engine(content)
        if engine is None:
            raise HarnessError(
                f"{library.__name__} {library.__version__} cannot use {request.path} on GPU {gpu}",
                "an engine runs on the kind of GPU and with the version it was built for: build it again here",
            )
        engines[gpu] = engine
    return TensorRtBackend(library, engines, request.network)
