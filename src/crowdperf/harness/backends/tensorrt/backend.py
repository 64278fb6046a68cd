"""The tensorrt backend: runs engines that `crowdperf.models.engines` built (recipe generate-engine) on NVIDIA GPUs.

torch gives the buffers, streams and CUDA graphs; each instance has execution contexts and a stream of its own. Opening
without a GPU and the refusals are tested; inference was not run on hardware: no GPU was at hand when it was written.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from crowdperf.harness.backends.tensorrt.library import SUFFIXES, load_library
from crowdperf.harness.base.backend import BackendRequest, choose_tf32
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.tensors import NetworkSpec, require_types
from crowdperf.harness.base.torch_cuda import (
    Captured,
    Cuda,
    Device,
    DeviceCall,
    Instances,
    graph_sizes,
    is_capturable,
    require_gpus,
)
from crowdperf.harness.base.torch_cuda import sample_memory as sample_memory


class TensorRtBackend(Instances):
    """An engine on each GPU; instance n uses GPU n modulo their number."""

    def __init__(self, library: Any, engines: Mapping[int, Any], request: BackendRequest) -> None:
        super().__init__()
        self._library = library
        self._engines = dict(engines)
        self._request = request

    def _make(self, number: int) -> Call:
        gpus = tuple(self._engines)
        gpu = gpus[number % len(gpus)]
        device = Cuda(gpu)
        return Call(self._engines[gpu], self._request, device, device.handle)

    def versions(self) -> Mapping[str, str]:
        return {self._library.__name__: str(self._library.__version__), "torch": str(torch.__version__)}

    def close(self) -> None:
        self.keep(0)
        self._engines.clear()


class _Context:
    """An execution context of one profile of an engine. TensorRT is told of a shape or an address only when it
    changes."""

    def __init__(self, engine: Any, profile: int, handle: int) -> None:
        self.context = engine.create_execution_context()
        if self.context is None:
            raise HarnessError("TensorRT gave no execution context", "is there enough memory on the GPU?")
        if profile and not self.context.set_optimization_profile_async(profile, handle):
            raise HarnessError(f"TensorRT cannot use profile {profile} of the engine", "build the engine again")
        self._handle = handle
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._addresses: dict[str, int] = {}

    def set_input(self, name: str, tensor: torch.Tensor) -> None:
        shape = tuple(tensor.shape)
        if self._shapes.get(name) != shape:
            if not self.context.set_input_shape(name, shape):
                raise HarnessError(
                    f"the engine was not built for {name}{list(shape)}",
                    "build it for larger batches or sizes: --largest_batch, --sizes",
                )
            self._shapes[name] = shape
        self.set_address(name, tensor)

    def set_address(self, name: str, tensor: torch.Tensor) -> None:
        address = tensor.data_ptr()
        if self._addresses.get(name) != address:
            self.context.set_tensor_address(name, address)
            self._addresses[name] = address

    def shape_of(self, name: str) -> tuple[int, ...]:
        """Return the shape of an output for the inputs that were told of."""
        shape = tuple(self.context.get_tensor_shape(name))
        if any(size < 0 for size in shape):
            raise HarnessError(f"the shape of {name} depends on values: {shape}", "use onnxruntime")
        return shape

    def run(self) -> None:
        if not self.context.execute_async_v3(self._handle):
            raise HarnessError("TensorRT could not run the engine", "see the lines above")


class Call(DeviceCall):
    """One instance. Buffers on the GPU and their addresses in the contexts stay from call to call.

    An engine with a second profile (batch 1) has a second context for it. Where every size is fixed (`is_capturable`),
    batches of powers of two and the largest are captured as CUDA graphs before the test; others are queued layer by
    layer, as all are where TensorRT lets none be captured.
    """

    def __init__(self, engine: Any, request: BackendRequest, device: Device, handle: int) -> None:
        """handle: the CUDA stream of `device`."""
        super().__init__(request, device)
        profiles = range(min(2, engine.num_optimization_profiles))
        self._contexts = [_Context(engine, profile, handle) for profile in profiles]
        self._graphs: dict[int, Captured] = {}
        if is_capturable(self._network):
            self._capture(request.largest_batch)

    def _queue(self, inputs: Mapping[str, Any]) -> Sequence[torch.Tensor]:
        graph = self._graphs.get(len(inputs[self._network.inputs[0].name]))
        place = self._io.to_device if graph is None else self._io.to_buffer
        tensors = {spec.name: place(spec.name, inputs[spec.name]).contiguous() for spec in self._network.inputs}
        if graph is None:
            return self._run(tensors)
        graph.replay()
        return [
            answer.clone() if spec.is_state else answer
            for spec, answer in zip(self._network.outputs, graph.outputs, strict=True)
        ]

    def _run(self, tensors: Mapping[str, torch.Tensor]) -> Sequence[torch.Tensor]:
        """Queue the engine for these inputs and return its outputs."""
        context = self._contexts[-1 if len(next(iter(tensors.values()))) == 1 else 0]
        for name, tensor in tensors.items():
            context.set_input(name, tensor)
        answers = []
        for spec in self._network.outputs:
            form = getattr(torch, spec.dtype), context.shape_of(spec.name)
            # A state gets memory of its own, because the next call reads it.
            answer = self._device.buffer(*form) if spec.is_state else self._io.buffer(f"out {spec.name}", *form)
            context.set_address(spec.name, answer)
            answers.append(answer)
        context.run()
        return answers

    def _capture(self, largest: int) -> None:
        """Record the sizes, the largest first: the buffers then have their place for good."""
        network = self._network
        for size in reversed(graph_sizes(largest)):
            tensors = {
                spec.name: self._io.buffer(spec.name, getattr(torch, spec.dtype), (size, *spec.fixed_shape)).zero_()
                for spec in network.inputs
            }
            try:
                self._graphs[size] = self._device.capture(partial(self._run, tensors))
            except RuntimeError as error:
                print(f"tensorrt: no CUDA graphs of network {network.name}: {error}", file=sys.stderr)
                self._graphs.clear()
                return

    def close(self) -> None:
        self._io.close()
        for graph in self._graphs.values():
            graph.reset()
        self._graphs.clear()
        self._contexts.clear()


def require_tensors(library: Any, engine: Any, network: NetworkSpec) -> None:
    """Raise HarnessError where the engine's tensors are not those of the network's specification by name, mode and
    type: memory is read and written by the specification, and another type would be other numbers without a word."""
    names = [engine.get_tensor_name(number) for number in range(engine.num_io_tensors)]
    modes = library.TensorIOMode
    for kind, mode, specs in (("input", modes.INPUT, network.inputs), ("output", modes.OUTPUT, network.outputs)):
        found = {name: _type_name(library, engine, name) for name in names if engine.get_tensor_mode(name) == mode}
        require_types(f"the engine of network {network.name}", kind, found, specs)
        if kind == "input" and (unknown := sorted(found.keys() - {spec.name for spec in specs})):
            raise HarnessError(
                f"the engine of network {network.name} needs inputs that the benchmark does not provide: "
                f"{', '.join(unknown)}",
                "build the engine from the file that the model's recipe makes",
            )


def _type_name(library: Any, engine: Any, name: str) -> str:
    dtype = engine.get_tensor_dtype(name)
    try:
        return str(np.dtype(library.nptype(dtype)))
    except TypeError:  # numpy has no such type: bfloat16, fp8, int4
        return str(dtype)


def open_backend(request: BackendRequest) -> TensorRtBackend:
    """Return the open engines; raises HarnessError when file, library or GPU cannot be used as asked for."""
    path = request.file
    is_rtx = path.name.endswith(SUFFIXES["tensorrt_rtx"])
    library: Any = load_library("tensorrt_rtx" if is_rtx else "tensorrt")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise HarnessError(f"cannot read {path}: {error.strerror}", "build the engine again") from error
    gpus = request.gpus or (0,)
    require_gpus(gpus)
    choose_tf32(request.precision)
    engines = {}
    for gpu in gpus:
        with torch.cuda.device(gpu):
            runtime = library.Runtime(library.Logger(library.Logger.WARNING))
            engine = runtime.deserialize_cuda_engine(content)
        if engine is None:
            raise HarnessError(
                f"{library.__name__} {library.__version__} cannot use {path} on GPU {gpu}",
                "an engine runs on the kind of GPU and with the version it was built for: build it again here",
            )
        require_tensors(library, engine, request.network)
        engines[gpu] = engine
    return TensorRtBackend(library, engines, request)
