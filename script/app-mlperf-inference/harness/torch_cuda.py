"""Runs a torch module on NVIDIA GPUs for the pytorch backend.

Each instance has a stream and pinned staging buffers. Where every tensor has a fixed shape and none is a state, the
forward pass is captured for some batch sizes as CUDA graphs before the test (no kernel is launched from Python any
more); a batch is padded to the next captured size, and the rows of the padding are dropped. Other networks run eagerly.

Not run on hardware: no GPU was at hand when it was written.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from torch import nn

from harness.backends.base import BackendRequest, choose_tf32
from harness.errors import HarnessError
from harness.tensors import Array, Infer, NetworkSpec, TensorSpec

_TYPES = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
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
            return GraphCall(module, request, Cuda(gpu)).infer
        return EagerCall(module, request, Cuda(gpu)).infer

    def versions(self) -> Mapping[str, str]:
        """Return the versions of torch and of the CUDA libraries it was built with."""
        cudnn = torch.backends.cudnn.version() or "none"  # type: ignore[no-untyped-call]
        return {"torch": str(torch.__version__), "cuda": str(torch.version.cuda), "cudnn": str(cudnn)}

    def close(self) -> None:
        """Drop the modules and give their memory back."""
        self._modules.clear()
        torch.cuda.empty_cache()


class Device(Protocol):
    """What the calls of an instance need of a GPU; tests put a processor in its place."""

    def use(self) -> AbstractContextManager[None]:
        """Return a block in which torch's calls go to this device and this instance's stream."""

    def synchronize(self) -> None:
        """Wait until the stream has done all that was queued."""

    def pinned(self, dtype: torch.dtype, shape: Sequence[int]) -> torch.Tensor:
        """Return zeros in host memory that the device copies from and to directly."""

    def buffer(self, dtype: torch.dtype, shape: Sequence[int]) -> torch.Tensor:
        """Return a tensor in the device's memory, with any values."""

    def capture(self, run: Callable[[], Sequence[torch.Tensor]]) -> Captured:
        """Return a recording of `run`. All recordings of one device object share their memory, so the outputs of one
        are overwritten by the next replay of any."""


@dataclass(frozen=True, slots=True)
class Captured:
    """A recorded run: `replay` queues it again, the `outputs` are then written anew."""

    replay: Callable[[], None]
    outputs: tuple[torch.Tensor, ...]


class Cuda:
    """One instance's stream on a GPU, and the memory pool of its CUDA graphs."""

    def __init__(self, gpu: int) -> None:
        self._device = torch.device("cuda", gpu)
        self._stream = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        self._pool = torch.cuda.graph_pool_handle()

    @property
    def handle(self) -> int:
        """The stream, for libraries that take a CUDA stream."""
        return int(self._stream.cuda_stream)

    @contextlib.contextmanager
    def use(self) -> Iterator[None]:
        """Return a block in which torch's calls go to this GPU and stream."""
        with torch.inference_mode(), torch.cuda.device(self._device), torch.cuda.stream(self._stream):
            yield

    def synchronize(self) -> None:
        """Wait for the stream."""
        self._stream.synchronize()

    def pinned(self, dtype: torch.dtype, shape: Sequence[int]) -> torch.Tensor:
        """Return zeros in pinned memory."""
        return torch.zeros(tuple(shape), dtype=dtype, pin_memory=True)

    def buffer(self, dtype: torch.dtype, shape: Sequence[int]) -> torch.Tensor:
        """Return a tensor on the GPU, with any values."""
        return torch.empty(tuple(shape), dtype=dtype, device=self._device)

    def capture(self, run: Callable[[], Sequence[torch.Tensor]]) -> Captured:
        """Run it some times, then record it; other threads may use CUDA meanwhile. Called outside of `use`."""
        graph = torch.cuda.CUDAGraph()
        self._stream.wait_stream(torch.cuda.current_stream(self._device))
        with self.use():
            for _ in range(_WARM_UP_CALLS):
                run()
        self.synchronize()
        with (
            torch.inference_mode(),
            torch.cuda.device(self._device),
            torch.cuda.graph(graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"),
        ):
            outputs = run()
        self.synchronize()
        return Captured(graph.replay, tuple(outputs))


class Staging:
    """Pinned host buffers and their copies: from pageable memory a copy would neither be fast nor asynchronous."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._buffers: dict[tuple[str, torch.dtype], torch.Tensor] = {}

    def take(self, name: str, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """Return a pinned tensor of this shape; the buffer of a name grows and is used again."""
        wanted = int(np.prod(shape, dtype=np.int64))
        buffer = self._buffers.get((name, dtype))
        if buffer is None or buffer.numel() < wanted:
            buffer = self._buffers[(name, dtype)] = self._device.pinned(dtype, (wanted,))
        return buffer[:wanted].view(*shape)

    def filled(self, name: str, array: Array) -> torch.Tensor:
        """Return the pinned tensor of `name` with the values of `array`."""
        dtype: torch.dtype = getattr(torch, array.dtype.name)
        pinned = self.take(name, array.shape, dtype)
        np.copyto(pinned.numpy(), array)
        return pinned


class EagerCall:
    """Copies in, runs the module and copies out on one stream."""

    def __init__(self, module: nn.Module, request: BackendRequest, device: Device) -> None:
        self._module, self._network, self._device = module, request.network, device
        self._dtype = _TYPES[request.precision]
        self._staging = Staging(device)

    def infer(self, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the outputs; states stay on the GPU."""
        with self._device.use():
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
        self._device.synchronize()
        return found

    def _to_gpu(self, name: str, value: Any) -> torch.Tensor:
        if not isinstance(value, np.ndarray):
            state: torch.Tensor = value
            return state
        pinned = self._staging.filled(name, value)
        tensor = self._device.buffer(pinned.dtype, pinned.shape).copy_(pinned, non_blocking=True)
        return tensor.to(self._dtype) if tensor.is_floating_point() else tensor


class GraphCall:
    """A captured forward pass for each of some batch sizes, all captured when the call is made: none is left for the
    test. The sizes share their input buffers and their memory; a replay copies the rows of the batch only."""

    def __init__(self, module: nn.Module, request: BackendRequest, device: Device) -> None:
        self._module, self._network, self._device = module, request.network, device
        self._dtype = _TYPES[request.precision]
        self._sizes = graph_sizes(request.largest_batch)
        largest = request.largest_batch
        self._host_inputs = _buffers(device.pinned, self._network.inputs, largest)
        self._host_outputs = _buffers(device.pinned, self._network.outputs, largest)
        self._gpu_inputs = _buffers(device.buffer, self._network.inputs, largest)
        # The largest first: its memory then holds what the smaller ones need.
        self._graphs = {size: device.capture(partial(self._forward, size)) for size in reversed(self._sizes)}

    def infer(self, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the outputs of at most `largest_batch` samples, padded to the next captured size."""
        count = len(inputs[self._network.inputs[0].name])
        graph = self._graphs.get(padded_size(count, self._sizes))
        if graph is None:
            hint = "give a larger batch_size, for which more is captured"
            raise HarnessError(f"a batch of {count} samples came; at most {self._sizes[-1]} were asked for", hint)
        with self._device.use():
            for name, pinned in self._host_inputs.items():
                np.copyto(pinned.numpy()[:count], inputs[name])
                self._gpu_inputs[name][:count].copy_(pinned[:count], non_blocking=True)
            graph.replay()
            for pinned, answer in zip(self._host_outputs.values(), graph.outputs, strict=True):
                pinned[:count].copy_(answer[:count], non_blocking=True)
        self._device.synchronize()
        return {name: pinned[:count].numpy() for name, pinned in self._host_outputs.items()}

    def _forward(self, size: int) -> Sequence[torch.Tensor]:
        tensors = [tensor[:size] for tensor in self._gpu_inputs.values()]
        answers = self._module(
            *(tensor.to(self._dtype) if tensor.is_floating_point() else tensor for tensor in tensors)
        )
        return answers if isinstance(answers, tuple) else (answers,)


def _buffers(
    make: Callable[[torch.dtype, Sequence[int]], torch.Tensor], specs: Sequence[TensorSpec], count: int
) -> dict[str, torch.Tensor]:
    """Return a buffer of `count` samples of zeros for each tensor: a capture must not see impossible values."""
    return {spec.name: make(getattr(torch, spec.dtype), (count, *spec.fixed_shape)).zero_() for spec in specs}


def set_fp32(has_tf32: bool) -> None:
    """Let torch multiply fp32 numbers on GPUs in TensorFloat-32, or as IEEE has it.

    `fp32_precision` is there since torch 2.9, where `allow_tf32` is deprecated and the two must not be mixed; recurrent
    networks and convolutions of cuDNN have a switch of their own, which is "tf32" at first (torch 2.13, 2026-11-28).
    """
    matmul: Any = torch.backends.cuda.matmul
    if not hasattr(matmul, "fp32_precision"):
        matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = has_tf32
        return
    cudnn: Any = torch.backends.cudnn
    parts: tuple[Any, ...] = (torch.backends, matmul, cudnn, cudnn.conv, cudnn.rnn)
    for part in parts:
        part.fp32_precision = "tf32" if has_tf32 else "ieee"


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
    set_fp32(choose_tf32(request.precision))
    torch.backends.cudnn.benchmark = True  # shapes are few: the fastest convolution of each is looked for once
    return GpuBackend({gpu: copy.deepcopy(module).to(torch.device("cuda", gpu)) for gpu in gpus}, request)
