"""Runs a torch module on NVIDIA GPUs for the pytorch backend.

Each instance has a stream and pinned staging buffers. Where every tensor has a fixed shape and none is a state, the
forward pass is captured once for some batch sizes as a CUDA graph (no kernel is launched from Python any more); a
batch is padded to the next captured size, and the rows of the padding are dropped. Other networks run eagerly.

Not run on hardware: no GPU was at hand when it was written.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from harness.backends.base import BackendRequest
from harness.errors import HarnessError
from harness.tensors import Array, Infer, NetworkSpec

_TYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
_WARM_UP_CALLS = 3
"""Eager calls before a capture, as torch's page on CUDA graphs asks for: libraries set themselves up in them."""


def graph_sizes(largest: int) -> tuple[int, ...]:
    """Return the batch sizes to capture: powers of two, and the largest; a batch wastes less than half a graph."""
    sizes = {largest}
    size = 1
    while size < largest:
        sizes.add(size)
        size *= 2
    return tuple(sorted(sizes))


def padded_size(count: int, sizes: Sequence[int]) -> int:
    """Return the smallest captured size that holds `count` samples; `count` itself when none does."""
    return next((size for size in sizes if size >= count), count)


def is_capturable(network: NetworkSpec) -> bool:
    """Whether every tensor has a fixed shape and none is a state."""
    tensors = (*network.inputs, *network.outputs)
    return all(tensor.is_fixed and not tensor.is_state for tensor in tensors)


class GpuBackend:
    """A copy of the module on each GPU; instance n uses GPU n modulo their number."""

    def __init__(self, modules: Mapping[int, nn.Module], request: BackendRequest) -> None:
        self._modules = dict(modules)
        self._request = request

    def instance(self, number: int) -> Infer:
        """Return the call of an instance with a stream of its own."""
        gpus = tuple(self._modules)
        gpu = gpus[number % len(gpus)]
        module, request = self._modules[gpu], self._request
        if is_capturable(request.network):
            return GraphCall(module, request, gpu).infer
        return EagerCall(module, request, gpu).infer

    def versions(self) -> Mapping[str, str]:
        """Return the versions of torch and of the CUDA libraries it was built with."""
        cudnn = torch.backends.cudnn.version() or "none"  # type: ignore[no-untyped-call]
        return {"torch": str(torch.__version__), "cuda": str(torch.version.cuda), "cudnn": str(cudnn)}

    def close(self) -> None:
        """Drop the modules and give their memory back."""
        self._modules.clear()
        torch.cuda.empty_cache()


class Staging:
    """Pinned host buffers and their copies: from pageable memory a copy would neither be fast nor asynchronous."""

    def __init__(self) -> None:
        self._buffers: dict[tuple[str, torch.dtype], torch.Tensor] = {}

    def take(self, name: str, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """Return a pinned tensor of this shape; the buffer of a name grows and is used again."""
        wanted = int(np.prod(shape, dtype=np.int64))
        buffer = self._buffers.get((name, dtype))
        if buffer is None or buffer.numel() < wanted:
            buffer = self._buffers[(name, dtype)] = torch.empty(wanted, dtype=dtype, pin_memory=True)
        return buffer[:wanted].view(*shape)

    def filled(self, name: str, array: Array) -> torch.Tensor:
        """Return the pinned tensor of `name` with the values of `array`."""
        dtype: torch.dtype = getattr(torch, array.dtype.name)
        pinned = self.take(name, array.shape, dtype)
        np.copyto(pinned.numpy(), array)
        return pinned


class EagerCall:
    """Copies in, runs the module and copies out on one stream."""

    def __init__(self, module: nn.Module, request: BackendRequest, gpu: int) -> None:
        self._module, self._network = module, request.network
        self._dtype = _TYPES[request.precision]
        self._device = torch.device("cuda", gpu)
        self._stream = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        self._staging = Staging()

    def infer(self, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the outputs; states stay on the GPU."""
        with torch.inference_mode(), torch.cuda.device(self._device), torch.cuda.stream(self._stream):
            tensors = [self._to_gpu(spec.name, inputs[spec.name]) for spec in self._network.inputs]
            answers = self._module(*tensors)
            answers = answers if isinstance(answers, tuple) else (answers,)
            found: dict[str, Any] = {}
            for spec, answer in zip(self._network.outputs, answers, strict=True):
                if spec.is_state:
                    found[spec.name] = answer
                    continue
                dtype: torch.dtype = getattr(torch, spec.dtype)
                pinned = self._staging.take(f"out {spec.name}", tuple(answer.shape), dtype)
                found[spec.name] = pinned.copy_(answer, non_blocking=True).numpy()
        self._stream.synchronize()
        return found

    def _to_gpu(self, name: str, value: Any) -> torch.Tensor:
        if not isinstance(value, np.ndarray):
            state: torch.Tensor = value
            return state
        tensor = self._staging.filled(name, value).to(self._device, non_blocking=True)
        return tensor.to(self._dtype) if tensor.is_floating_point() else tensor


class GraphCall:
    """One captured forward pass for each of some batch sizes."""

    def __init__(self, module: nn.Module, request: BackendRequest, gpu: int) -> None:
        self._module, self._network = module, request.network
        self._dtype = _TYPES[request.precision]
        self._device = torch.device("cuda", gpu)
        self._stream = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        self._sizes = graph_sizes(request.largest_batch)
        self._graphs: dict[int, _Graph] = {}

    def infer(self, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the outputs of a batch, whose size is padded to the next captured one."""
        count = len(inputs[self._network.inputs[0].name])
        size = padded_size(count, self._sizes)
        with torch.inference_mode(), torch.cuda.device(self._device):
            graph = self._graphs.get(size)
            if graph is None:
                graph = self._graphs[size] = _Graph(self._network, size, self._device)
                graph.capture(self._forward, self._stream)
            with torch.cuda.stream(self._stream):
                graph.replay(inputs, count)
            self._stream.synchronize()
        return {name: pinned[:count].numpy() for name, pinned in graph.host_outputs.items()}

    def _forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        answers = self._module(
            *(tensor.to(self._dtype) if tensor.is_floating_point() else tensor for tensor in tensors)
        )
        return answers if isinstance(answers, tuple) else (answers,)


class _Graph:
    """The buffers and the CUDA graph of one batch size."""

    def __init__(self, network: NetworkSpec, size: int, device: torch.device) -> None:
        self._network, self._size, self._device = network, size, device
        self._graph = torch.cuda.CUDAGraph()
        self.host_inputs = {spec.name: _pinned(spec.dtype, (size, *spec.fixed_shape)) for spec in network.inputs}
        self.host_outputs = {spec.name: _pinned(spec.dtype, (size, *spec.fixed_shape)) for spec in network.outputs}
        self._gpu_inputs = [tensor.to(device) for tensor in self.host_inputs.values()]
        self._gpu_outputs: Sequence[torch.Tensor] = ()

    def capture(self, forward: Callable[..., tuple[torch.Tensor, ...]], stream: torch.cuda.Stream) -> None:
        """Run the forward pass some times, then record it; other threads may use CUDA meanwhile."""
        stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UP_CALLS):
                forward(*self._gpu_inputs)
        stream.synchronize()
        with torch.cuda.graph(self._graph, stream=stream, capture_error_mode="thread_local"):
            self._gpu_outputs = forward(*self._gpu_inputs)
        stream.synchronize()

    def replay(self, inputs: Mapping[str, Any], count: int) -> None:
        """Queue copy in, forward pass and copy out of `count` samples on the current stream."""
        for (name, pinned), target in zip(self.host_inputs.items(), self._gpu_inputs, strict=True):
            np.copyto(pinned.numpy()[:count], inputs[name])
            target.copy_(pinned, non_blocking=True)
        self._graph.replay()
        for pinned, answer in zip(self.host_outputs.values(), self._gpu_outputs, strict=True):
            pinned.copy_(answer, non_blocking=True)


def _pinned(dtype: str, shape: Sequence[int]) -> torch.Tensor:
    kind: torch.dtype = getattr(torch, dtype)
    return torch.zeros(tuple(shape), dtype=kind, pin_memory=True)


def open_on_gpus(request: BackendRequest, module: nn.Module) -> GpuBackend:
    """Return the module on each GPU of the request; raises HarnessError when there is none, or not that one."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    gpus = request.gpus or (0,)
    missing = [gpu for gpu in gpus if gpu >= count]
    if missing:
        build = "a build without CUDA" if torch.version.cuda is None else f"CUDA {torch.version.cuda}"
        raise HarnessError(
            f"torch {torch.__version__} ({build}) sees {count} GPUs; asked for: {', '.join(map(str, gpus))}",
            "cm run script --tags=get,generic-python-lib,_torch_cuda --adr.python.name=mlperf-inference, "
            "or use device cpu",
        )
    # fp32 stays fp32: TensorFloat-32 has ten bits of mantissa and would be another precision under the same name.
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True  # shapes are few: the fastest convolution of each is looked for once
    return GpuBackend({gpu: copy.deepcopy(module).to(torch.device("cuda", gpu)) for gpu in gpus}, request)
