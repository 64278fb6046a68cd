"""The openvino backend: runs blobs of generate-engine,_openvino (`crowdperf.models.engines`) on processors.

A blob is imported, which takes a fraction of the time of a compilation. All instances share one imported network, and
so its weights; each has a stream of OpenVINO's and an inference request of its own. A single instance computes in the
thread that calls; several queue their requests, because OpenVINO gives streams to calling threads as they come, and two
of them could then wait for one. Inputs are read where they are, outputs are views of OpenVINO's memory.

Tensors that the network calls states stay OpenVINO's. An instance of such a network has two requests that take turns:
the output of one is the input of the other, and is never copied.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import openvino

from crowdperf.harness.backends.openvino.library import (
    DEVICE,
    library_version,
    precision_type,
    require_built_for_here,
    require_precision,
)
from crowdperf.harness.base.backend import BackendRequest
from crowdperf.harness.base.cores import available_cores, physical_cores
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.tensors import Infer, NetworkSpec, TensorSpec


@dataclass(frozen=True, slots=True)
class _Imported:
    """An imported network, and how long that took."""

    compiled: openvino.CompiledModel
    seconds: float


class OpenVinoBackend:
    """An imported network; each instance has a request of its own."""

    def __init__(self, imported: _Imported, request: BackendRequest) -> None:
        self._compiled: openvino.CompiledModel | None = imported.compiled
        self._seconds = imported.seconds
        self._request = request

    def instance(self, number: int) -> Infer:
        """Return the call; OpenVINO releases Python's global lock while the network runs."""
        assert self._compiled is not None
        network = self._request.network
        has_states = any(spec.is_state for spec in (*network.inputs, *network.outputs))
        is_alone = self._request.instances == 1
        calls = [
            _Call(self._compiled.create_infer_request(), self._compiled, network, is_alone).infer
            for _ in range(2 if has_states else 1)
        ]
        return _in_turns(calls) if has_states else calls[0]

    def versions(self) -> Mapping[str, str]:
        """Return OpenVINO's version, and that this network's blob was imported."""
        name = self._request.network.name
        return {
            "openvino": library_version(),
            f"openvino blob {name}": f"imported in {self._seconds:.2f} s, not compiled in the run",
        }

    def close(self) -> None:
        """Drop the network; OpenVINO frees it with the last request."""
        self._compiled = None


def _in_turns(calls: Sequence[Infer]) -> Infer:
    turns = cycle(calls)

    def infer(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        return next(turns)(inputs)

    return infer


class _Call:
    """One inference request with the places of the network's tensors in it."""

    def __init__(
        self,
        request: openvino.InferRequest,
        compiled: openvino.CompiledModel,
        network: NetworkSpec,
        is_alone: bool,
    ) -> None:
        self._request = request
        self._inputs = [(spec.name, compiled.input(spec.name)) for spec in network.inputs]
        self._outputs = [(spec, compiled.output(spec.name)) for spec in network.outputs]
        self._run: Callable[[], object] = self._here if is_alone else self._queued

    def infer(self, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the outputs: views that the next call overwrites; states as OpenVINO's tensors."""
        held = [_as_tensor(inputs[name]) for name, _ in self._inputs]
        for (_, port), tensor in zip(self._inputs, held, strict=True):
            self._request.set_tensor(port, tensor)
        self._run()
        return {spec.name: self._answer(spec, port) for spec, port in self._outputs}

    def _here(self) -> None:
        self._request.infer({}, share_inputs=True, share_outputs=True)

    def _queued(self) -> None:
        self._request.start_async()
        self._request.wait()

    def _answer(self, spec: TensorSpec, port: openvino.ConstOutput) -> Any:
        tensor = self._request.get_tensor(port)
        return tensor if spec.is_state else tensor.data


def _as_tensor(value: Any) -> openvino.Tensor:
    """Return an array as a tensor that shares its memory; OpenVINO takes no read-only memory, so that is copied."""
    if isinstance(value, openvino.Tensor):
        return value
    array = np.ascontiguousarray(value)
    return openvino.Tensor(array, shared_memory=bool(array.flags.writeable))


def settings(request: BackendRequest, physical: int) -> dict[str, Any]:
    """Return OpenVINO's properties for a request; `physical`: how many cores the process may use.

    As many streams as instances and no more threads than were asked for. Threads are kept on cores where every
    instance has its own. Weights and activations stay in the file's precision: no group-wise quantisation on the fly.
    Names: openvino/runtime/properties.hpp, 2026.4.
    """
    threads = request.instances * request.threads
    return {
        "INFERENCE_PRECISION_HINT": precision_type(request.precision),
        "NUM_STREAMS": request.instances,
        "INFERENCE_NUM_THREADS": threads,
        "ENABLE_CPU_PINNING": bool(request.cores),
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,
        **({"ENABLE_HYPER_THREADING": True} if threads > physical else {}),
    }


def open_backend(request: BackendRequest) -> OpenVinoBackend:
    """Return the imported network; raises HarnessError when the blob, its version or its precision is another one."""
    if request.engine:
        require_built_for_here(request.engine)
    wanted = settings(request, len(physical_cores(available_cores())))
    imported = _import(request.file, wanted)
    for kind, ports, specs in (
        ("input", imported.compiled.inputs, request.network.inputs),
        ("output", imported.compiled.outputs, request.network.outputs),
    ):
        found = {name for port in ports for name in port.get_names()}
        missing = [spec.name for spec in specs if spec.name not in found]
        if missing:
            raise HarnessError(
                f"the blob has no {kind} {', '.join(missing)}, only: {', '.join(sorted(found))}",
                "use the file that generate,engine,_openvino makes of this model",
            )
    require_precision(imported.compiled, request.precision)
    return OpenVinoBackend(imported, request)


def _import(path: Path, properties: Mapping[str, Any]) -> _Imported:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise HarnessError(f"cannot read {path}: {error.strerror}", "build the engine again") from error
    start_s = time.perf_counter()
    try:
        compiled = openvino.Core().import_model(content, DEVICE, dict(properties))
    except (RuntimeError, TypeError) as error:
        said = str(error).strip().splitlines()
        raise HarnessError(
            f"OpenVINO {library_version()} cannot import {path}: {said[-1] if said else error!r}",
            "a blob only opens with the version and the CPU type it was built for: rebuild the engine",
        ) from error
    return _Imported(compiled, time.perf_counter() - start_s)
