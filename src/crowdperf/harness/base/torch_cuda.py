"""Runs a torch module on NVIDIA GPUs for the pytorch backend.

Each instance has a stream, and buffers by tensor name on the host (pinned) and on the GPU (`DeviceIo`), which the
TensorRT backend uses too. Samples of one shape lie in pinned memory (`sample_memory`); their `Rows` are copied from
there one by one, and nothing is gathered on the host. Where every tensor has a fixed shape, the forward pass is
captured for some batch sizes as CUDA graphs before the test (no kernel is launched from Python any more); a batch is
padded to the next captured size, and the rows of the padding are dropped. Other networks run eagerly. A model with a
`device_post` reduces its outputs on the GPU, and only its responses are copied to the host.

Not run on hardware: no GPU was at hand when it was written.
"""

from __future__ import annotations

import contextlib
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from torch import nn

from crowdperf.harness.base.backend import BackendRequest, DevicePost, choose_tf32
from crowdperf.harness.base.errors import HarnessError, OutOfDeviceMemory
from crowdperf.harness.base.tensors import Array, Infer, NetworkSpec, Rows, Tensors, TensorSpec

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
    """Whether every tensor has a fixed shape. A network that makes states and takes none runs once for each batch: its
    states may be large (an encoder's), and would be in memory twice."""
    is_fixed = all(tensor.is_fixed for tensor in (*network.inputs, *network.outputs))
    takes, makes = (any(tensor.is_state for tensor in tensors) for tensors in (network.inputs, network.outputs))
    return is_fixed and (takes or not makes)


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


def _nothing() -> None:
    return None


@dataclass(frozen=True, slots=True)
class Captured:
    """A recorded run: `replay` queues it again, the `outputs` are then written anew; `reset` frees it."""

    replay: Callable[[], None]
    outputs: tuple[torch.Tensor, ...]
    reset: Callable[[], None] = _nothing


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
        self._stream.synchronize()

    def pinned(self, dtype: torch.dtype, shape: Sequence[int]) -> torch.Tensor:
        return torch.zeros(tuple(shape), dtype=dtype, pin_memory=True)

    def buffer(self, dtype: torch.dtype, shape: Sequence[int]) -> torch.Tensor:
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
        return Captured(graph.replay, tuple(outputs), graph.reset)


def sample_memory(gpu: int, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Return an array in pinned memory, from which GPUs copy without a copy on the host before; values are any. Where
    none is to be had, the memory is an ordinary one: copies are slower then, and right.

    gpu: one that the run uses; torch would begin to use GPU 0 otherwise. Raises HarnessError where it is not there.
    """
    require_gpus((gpu,))
    try:
        with torch.cuda.device(gpu):
            return torch.empty(tuple(shape), dtype=_type_of(dtype), pin_memory=True).numpy()
    except RuntimeError as error:
        size_mb = math.prod(shape) * dtype.itemsize / 1e6
        print(f"torch: {size_mb:,.0f} MB of samples could not be pinned, copies are slower: {error}", file=sys.stderr)
        return np.empty(shape, dtype)


def _type_of(dtype: np.dtype[Any]) -> torch.dtype:
    found: torch.dtype = getattr(torch, dtype.name)
    return found


class DeviceIo:
    """The memory of one instance by tensor name, on the device and on the host, and the copies between them.

    Host buffers are pinned: from pageable memory a copy would neither be fast nor asynchronous. A buffer grows, and is
    used again by the next call. All copies are queued on the instance's stream: called inside of `device.use`.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._on_device: dict[str, torch.Tensor] = {}
        self._on_host: dict[str, torch.Tensor] = {}

    def to_device(self, name: str, value: Any) -> torch.Tensor:
        """Return an array, or rows of one, in the device's buffer of that name; a tensor, which is there, as it is."""
        return value if isinstance(value, torch.Tensor) else self.to_buffer(name, value)

    def to_buffer(self, name: str, value: Any) -> torch.Tensor:
        """Return an array, rows of one, or a state in the device's buffer of that name."""
        dtype = value.dtype if isinstance(value, torch.Tensor) else _type_of(value.dtype)
        target = self.buffer(name, dtype, value.shape)
        self.fill(target, name, value)
        return target

    def fill(self, target: torch.Tensor, name: str, value: Array | Rows | torch.Tensor) -> None:
        """Copy an array, rows of one in pinned memory, or a state into `target` on the device."""
        if isinstance(value, torch.Tensor):
            target.copy_(value)
            return
        if isinstance(value, Rows):
            source = torch.from_numpy(value.array)
            for place, row, count in value.runs():
                target[place : place + count].copy_(source[row : row + count], non_blocking=True)
            return
        pinned = _kept(self._on_host, self._device.pinned, name, (_type_of(value.dtype), value.shape))
        np.copyto(pinned.numpy(), value)
        target.copy_(pinned, non_blocking=True)

    def buffer(self, name: str, dtype: torch.dtype, shape: Sequence[int]) -> torch.Tensor:
        """Return the device's buffer of that name in this shape, with any values."""
        return _kept(self._on_device, self._device.buffer, name, (dtype, shape))

    def to_host(self, name: str, tensor: torch.Tensor, dtype: torch.dtype) -> Array:
        """Return the host's buffer of that name, into which a copy of `tensor` is queued."""
        pinned = _kept(self._on_host, self._device.pinned, f"out {name}", (dtype, tuple(tensor.shape)))
        return pinned.copy_(tensor, non_blocking=True).numpy()

    def holds(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor lies in one of the device's buffers, which the next call overwrites."""
        place = tensor.untyped_storage().data_ptr()
        return any(place == kept.untyped_storage().data_ptr() for kept in self._on_device.values())

    def close(self) -> None:
        self._device.synchronize()
        self._on_device.clear()
        self._on_host.clear()


def _kept(
    buffers: dict[str, torch.Tensor],
    make: Callable[[torch.dtype, Sequence[int]], torch.Tensor],
    name: str,
    form: tuple[torch.dtype, Sequence[int]],
) -> torch.Tensor:
    """Return the buffer of a name in a type and shape; a larger one is made where it does not hold that."""
    dtype, shape = form
    size, buffer = math.prod(shape), buffers.get(name)
    if buffer is None or buffer.numel() < size or buffer.dtype != dtype:
        buffer = buffers[name] = make(dtype, (size,))
    return buffer[:size].view(*shape)


class DeviceCall(ABC):
    """The call of one instance: copies in, runs the network and copies out on one stream."""

    def __init__(self, request: BackendRequest, device: Device) -> None:
        self._network, self._device = request.network, device
        self._io = DeviceIo(device)

    def infer(self, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the outputs; states stay on the GPU. Raises OutOfDeviceMemory."""
        try:
            with self._device.use():
                pairs = zip(self._network.outputs, self._queue(inputs), strict=True)
                found = {
                    spec.name: answer
                    if spec.is_state
                    else self._io.to_host(spec.name, answer, getattr(torch, spec.dtype))
                    for spec, answer in pairs
                }
        except torch.cuda.OutOfMemoryError as error:
            raise self._too_large(inputs) from error
        self._device.synchronize()
        return found

    def respond(self, post: DevicePost, inputs: Mapping[str, Any]) -> Any:
        """Return the responses that a model's `device_post` makes of a batch, as arrays: only they are copied to the
        host. Raises OutOfDeviceMemory."""
        network, io = self._network, self._io

        def call(values: Mapping[str, Any]) -> Mapping[str, Any]:
            pairs = zip(network.outputs, self._queue(values), strict=True)
            return {spec.name: answer.to(getattr(torch, spec.dtype)) for spec, answer in pairs}

        try:
            with self._device.use():
                rows = post({network.name: call}, inputs, io.to_buffer)
                is_batch = isinstance(rows, torch.Tensor)
                answers = [
                    io.to_host(f"response {place}", row, row.dtype)
                    for place, row in enumerate([rows] if is_batch else rows)
                ]
        except torch.cuda.OutOfMemoryError as error:
            raise self._too_large(inputs) from error
        self._device.synchronize()
        return answers[0] if is_batch else answers

    def _too_large(self, inputs: Mapping[str, Any]) -> OutOfDeviceMemory:
        count = min(map(len, inputs.values()))
        return OutOfDeviceMemory(
            f"a batch of {count} samples of network {self._network.name} needs more memory than the GPU has",
            f"give a smaller --batch_size than {count}, or another --precision",
        )

    @abstractmethod
    def _queue(self, inputs: Mapping[str, Any]) -> Sequence[torch.Tensor]:
        """Queue the network, and return its outputs on the GPU. The next call may overwrite them, but not states."""

    @abstractmethod
    def close(self) -> None:
        """Wait for the device and free what the call holds."""


class Instances(ABC):
    """The instances of a backend. The call of each is made once, so that layouts of different sizes share them."""

    def __init__(self) -> None:
        self._calls: dict[int, DeviceCall] = {}

    @abstractmethod
    def _make(self, number: int) -> DeviceCall:
        """Return a new call of an instance, with a stream of its own."""

    def _call(self, number: int) -> DeviceCall:
        if number not in self._calls:
            self._calls[number] = self._make(number)
        return self._calls[number]

    def instance(self, number: int) -> Infer:
        return self._call(number).infer

    def responding(self, post: DevicePost, number: int) -> Callable[[Tensors], Any]:
        """Return the call of an instance that ends in a model's `device_post`."""
        return partial(self._call(number).respond, post)

    def keep(self, instances: int) -> None:
        for number in [number for number in self._calls if number >= instances]:
            self._calls.pop(number).close()


class EagerCall(DeviceCall):
    """Runs the module as it is."""

    def __init__(self, module: nn.Module, request: BackendRequest, device: Device) -> None:
        super().__init__(request, device)
        self._module: nn.Module | None = module
        self._dtype = _TYPES[request.precision]

    def _queue(self, inputs: Mapping[str, Any]) -> Sequence[torch.Tensor]:
        io, module = self._io, self._module
        assert module is not None
        tensors = [io.to_device(spec.name, inputs[spec.name]) for spec in self._network.inputs]
        answers = module(*(tensor.to(self._dtype) if tensor.is_floating_point() else tensor for tensor in tensors))
        answers = answers if isinstance(answers, tuple) else (answers,)
        return [
            answer.clone() if spec.is_state and io.holds(answer) else answer
            for spec, answer in zip(self._network.outputs, answers, strict=True)
        ]

    def close(self) -> None:
        self._io.close()
        self._module = None


class GraphCall(DeviceCall):
    """A captured forward pass for each of some batch sizes, all captured when the call is made: none is left for the
    test. The sizes share their input buffers and their memory; a replay copies the rows of the batch only. States are
    copied in and out on the GPU, as the next replay writes where this one did."""

    def __init__(self, module: nn.Module, request: BackendRequest, device: Device) -> None:
        """Raises OutOfDeviceMemory where not even the smallest size can be captured; larger ones are left out."""
        super().__init__(request, device)
        self._module: nn.Module | None = module
        self._dtype = _TYPES[request.precision]
        self._inputs: dict[str, torch.Tensor] = {}
        self._graphs: dict[int, Captured] = {}
        for size in reversed(graph_sizes(request.largest_batch)):  # the largest's memory holds what smaller ones need
            try:
                if not self._graphs:
                    self._inputs = _buffers(device.buffer, self._network.inputs, size)
                self._graphs[size] = device.capture(partial(self._forward, size))
            except torch.cuda.OutOfMemoryError:
                continue
        self._sizes = tuple(sorted(self._graphs))
        if not self._sizes:
            raise OutOfDeviceMemory(
                f"one sample of network {self._network.name} needs more memory than the GPU has",
                "use another --precision, or another GPU",
            )

    def _queue(self, inputs: Mapping[str, Any]) -> Sequence[torch.Tensor]:
        """Queue at most `largest_batch` samples, padded to the next captured size."""
        count = len(inputs[self._network.inputs[0].name])
        graph = self._graphs.get(padded_size(count, self._sizes))
        if graph is None:
            raise OutOfDeviceMemory(
                f"got a batch of {count} samples, but at most {self._sizes[-1]} were requested or fit in GPU memory",
                "set a larger --batch_size if memory allows, so that more sizes are captured",
            )
        for name, target in self._inputs.items():
            self._io.fill(target[:count], name, inputs[name])
        graph.replay()
        return [
            answer[:count].clone() if spec.is_state else answer[:count]
            for spec, answer in zip(self._network.outputs, graph.outputs, strict=True)
        ]

    def _forward(self, size: int) -> Sequence[torch.Tensor]:
        assert self._module is not None
        tensors = [tensor[:size] for tensor in self._inputs.values()]
        answers = self._module(
            *(tensor.to(self._dtype) if tensor.is_floating_point() else tensor for tensor in tensors)
        )
        return answers if isinstance(answers, tuple) else (answers,)

    def close(self) -> None:
        self._io.close()
        for graph in self._graphs.values():
            graph.reset()
        self._graphs.clear()
        self._inputs.clear()
        self._module = None


class GpuBackend(Instances):
    """The module on each GPU; instance n uses GPU n modulo their number."""

    def __init__(
        self, modules: Mapping[int, nn.Module], request: BackendRequest, device_of: Callable[[int], Device] = Cuda
    ) -> None:
        super().__init__()
        self._modules = dict(modules)
        self._request = request
        self._device_of = device_of

    def _make(self, number: int) -> DeviceCall:
        gpus, request = tuple(self._modules), self._request
        gpu = gpus[number % len(gpus)]
        if is_capturable(request.network):
            try:
                return GraphCall(self._modules[gpu], request, self._device_of(gpu))
            except RuntimeError as error:  # as torch tells of what a capture does not allow
                print(f"torch: no CUDA graphs of network {request.network.name}: {error}", file=sys.stderr)
        return EagerCall(self._modules[gpu], request, self._device_of(gpu))

    def versions(self) -> Mapping[str, str]:
        cudnn = torch.backends.cudnn.version() or "none"  # type: ignore[no-untyped-call]
        return {"torch": str(torch.__version__), "cuda": str(torch.version.cuda), "cudnn": str(cudnn)}

    def close(self) -> None:
        self.keep(0)
        self._modules.clear()
        torch.cuda.empty_cache()


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


def require_gpus(gpus: Sequence[int]) -> None:
    """Raise HarnessError where torch does not see all of these GPUs."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if any(gpu >= count for gpu in gpus):
        cuda = "a build without CUDA" if torch.version.cuda is None else f"CUDA {torch.version.cuda}"
        raise HarnessError(
            f"torch {torch.__version__} ({cuda}) sees {count} GPUs; requested: {', '.join(map(str, gpus))}",
            "cm run script --tags=get,generic-python-lib,_torch_cuda --adr.python.name=mlperf-inference, "
            "or use device cpu with backend pytorch or onnxruntime",
        )


def open_on_gpus(request: BackendRequest, build: Callable[[torch.device], nn.Module]) -> GpuBackend:
    """Return what `build` makes on each GPU of the request; raises HarnessError when there is none, or not that one."""
    gpus = request.gpus or (0,)
    require_gpus(gpus)
    set_fp32(choose_tf32(request.precision))
    torch.backends.cudnn.benchmark = True  # shapes are few: the fastest convolution of each is looked for once
    return GpuBackend({gpu: build(torch.device("cuda", gpu)) for gpu in gpus}, request)
