"""The tensorrt backend: runs engines that `making/engine` built (recipe generate-engine) on NVIDIA GPUs.

torch gives the buffers and the streams; each instance has an execution context and a stream. Opening without a GPU and
the refusals are tested; inference was not run on hardware: no GPU was at hand when it was written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from harness.backends.base import BackendRequest, choose_tf32
from harness.backends.tensorrt.library import SUFFIXES, load_library
from harness.errors import HarnessError
from harness.tensors import Infer, NetworkSpec, TensorSpec
from harness.torch_cuda import Cuda, Device, Staging


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
        device = Cuda(gpu)
        return Call(self._engines[gpu], self._network, device, device.handle).infer

    def versions(self) -> Mapping[str, str]:
        """Return the versions of the library and of torch."""
        return {self._library.__name__: str(self._library.__version__), "torch": str(torch.__version__)}

    def close(self) -> None:
        """Drop the engines."""
        self._engines.clear()


class Call:
    """One execution context. Buffers on the GPU and their addresses in the context stay from call to call; TensorRT is
    told of a shape or an address only when it changes."""

    def __init__(self, engine: Any, network: NetworkSpec, device: Device, handle: int) -> None:
        """handle: the CUDA stream of `device`."""
        self._context = engine.create_execution_context()
        if self._context is None:
            raise HarnessError("TensorRT gave no execution context", "is there enough memory on the GPU?")
        self._network, self._device, self._handle = network, device, handle
        self._staging = Staging(device)
        self._buffers: dict[str, torch.Tensor] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._addresses: dict[str, int] = {}

    def infer(self, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the outputs; states stay on the GPU."""
        found: dict[str, Any] = {}
        with self._device.use():
            for spec in self._network.inputs:
                tensor = self._to_gpu(spec.name, inputs[spec.name])
                self._set_shape(spec.name, tuple(tensor.shape))
                self._set_address(spec.name, tensor)
            answers = {spec.name: self._answer(spec) for spec in self._network.outputs}
            if not self._context.execute_async_v3(self._handle):
                raise HarnessError("TensorRT could not run the engine", "see the lines above")
            for spec in self._network.outputs:
                answer = answers[spec.name]
                if spec.is_state:
                    found[spec.name] = answer
                else:
                    pinned = self._staging.take(f"out {spec.name}", tuple(answer.shape), answer.dtype)
                    found[spec.name] = pinned.copy_(answer, non_blocking=True).numpy()
        self._device.synchronize()
        return found

    def _to_gpu(self, name: str, value: Any) -> torch.Tensor:
        if not isinstance(value, np.ndarray):
            state: torch.Tensor = value
            return state
        pinned = self._staging.filled(name, value)
        return self._kept(name, pinned.dtype, tuple(pinned.shape)).copy_(pinned, non_blocking=True)

    def _kept(self, name: str, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
        """Return a tensor of this shape in the buffer of a name, which grows and is used again."""
        size = math.prod(shape)
        buffer = self._buffers.get(name)
        if buffer is None or buffer.numel() < size or buffer.dtype != dtype:
            buffer = self._buffers[name] = self._device.buffer(dtype, (size,))
        return buffer[:size].view(*shape)

    def _set_shape(self, name: str, shape: tuple[int, ...]) -> None:
        if self._shapes.get(name) == shape:
            return
        if not self._context.set_input_shape(name, shape):
            raise HarnessError(
                f"the engine was not built for {name}{list(shape)}",
                "build it for larger batches or sizes: --largest_batch, --sizes",
            )
        self._shapes[name] = shape

    def _set_address(self, name: str, tensor: torch.Tensor) -> None:
        address = tensor.data_ptr()
        if self._addresses.get(name) != address:
            self._context.set_tensor_address(name, address)
            self._addresses[name] = address

    def _answer(self, spec: TensorSpec) -> torch.Tensor:
        """Return where an output goes; a state gets memory of its own, because the next call reads it."""
        shape = tuple(self._context.get_tensor_shape(spec.name))
        if any(size < 0 for size in shape):
            raise HarnessError(f"the shape of {spec.name} depends on values: {shape}", "use onnxruntime")
        dtype: torch.dtype = getattr(torch, spec.dtype)
        answer = self._device.buffer(dtype, shape) if spec.is_state else self._kept(f"out {spec.name}", dtype, shape)
        self._set_address(spec.name, answer)
        return answer


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
    choose_tf32(request.precision)
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
