"""The onnxruntime backend: runs an ONNX file with the CPU or the CUDA execution provider.

One session serves every instance where a call has one thread: onnxruntime then computes in the caller's own thread and
keeps no pool, and the weights are in memory once. With more threads each instance has a session, whose pool stays on
the instance's cores. Tensors that the network calls states stay onnxruntime's: on the CPU they are handed over without
a copy, on a GPU they stay there.

The CUDA path selects and checks its provider, but was not run on hardware: no GPU was at hand when it was written.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnxruntime

from crowdperf.harness.base.backend import BackendRequest, choose_tf32
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.tensors import Infer, NetworkSpec, TensorSpec, require_types

_TYPES = {
    "tensor(float)": "float32", "tensor(double)": "float64", "tensor(float16)": "float16", "tensor(bool)": "bool",
    **{f"tensor({name})": name for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
}  # fmt: skip
"""onnxruntime's word for a tensor's type -> numpy's."""

_PROVIDER_OF_DEVICE = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}

Provider: TypeAlias = tuple[str, Mapping[str, str]]
"""Name of an execution provider and its options."""


class OnnxRuntimeBackend:
    """Open sessions; instance n uses session n modulo their number."""

    def __init__(
        self, sessions: Sequence[onnxruntime.InferenceSession], network: NetworkSpec, gpus: tuple[int, ...]
    ) -> None:
        self._sessions = list(sessions)
        self._network = network
        self._gpus = gpus
        self._calls: dict[int, Infer] = {}  # on GPUs, where layouts of different sizes share them

    def instance(self, number: int) -> Infer:
        """Return the call; it releases Python's global lock while the network runs."""
        session = self._sessions[number % len(self._sessions)]
        if self._gpus:
            if number not in self._calls:
                gpu = self._gpus[number % len(self._gpus)]
                self._calls[number] = _gpu_call(session, self._network, ("cuda", gpu))
            return self._calls[number]
        if any(spec.is_state for spec in (*self._network.inputs, *self._network.outputs)):
            return _stateful_call(session, self._network)
        if _can_be_bound(self._network):
            return _bound_call(session, self._network)
        return _plain_call(session, self._network)

    def versions(self) -> Mapping[str, str]:
        return {"onnxruntime": str(onnxruntime.__version__)}

    def keep(self, instances: int) -> None:
        for number in [number for number in self._calls if number >= instances]:
            del self._calls[number]

    def close(self) -> None:
        """Drop the sessions; onnxruntime frees each with the last reference."""
        self.keep(0)
        self._sessions.clear()


def _plain_call(session: onnxruntime.InferenceSession, network: NetworkSpec) -> Infer:
    run, names = session.run, [spec.name for spec in network.outputs]

    def infer(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        return dict(zip(names, run(names, inputs), strict=True))

    return infer


def _can_be_bound(network: NetworkSpec) -> bool:
    """Whether all sizes are fixed, and no output can be an input of the next call, which would read it and fill it."""
    if not all(spec.is_fixed for spec in (*network.inputs, *network.outputs)):
        return False
    taken = {(spec.dtype, spec.shape) for spec in network.inputs}
    return taken.isdisjoint((spec.dtype, spec.shape) for spec in network.outputs)


def _bound_call(session: onnxruntime.InferenceSession, network: NetworkSpec) -> Infer:
    """Answers in arrays of its own, as large as the largest call so far, which the next call fills again. onnxruntime
    gets an array only when it is another one than before: `run` costs 1 to 4 us more.

    The first call with a number of samples answers as `run` does; where these answers are not as the specification
    says, so do all later ones.
    """
    plain, binding, first = _plain_call(session, network), session.io_binding(), network.inputs[0].name
    arrays: Mapping[str, Any] = {}
    answers: dict[int, Mapping[str, Any]] = {}  # the first so many rows of these arrays
    bound: dict[str, Any] = {}
    bound_count = largest = 0

    def infer(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        nonlocal arrays, bound_count, largest
        count = len(inputs[first])
        answer = answers.get(count)
        if answer is None:
            found = plain(inputs)
            if count > largest:
                arrays, largest, bound_count = {spec.name: spec.zeros(count) for spec in network.outputs}, count, 0
                answers.clear()
            own = {name: array[:count] for name, array in arrays.items()}
            if all((array.shape, array.dtype) == (found[name].shape, found[name].dtype) for name, array in own.items()):
                answers[count] = own
            return found
        if count != bound_count:
            for spec in network.outputs:
                array = answer[spec.name]
                binding.bind_output(spec.name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)
            bound_count = count
        for name, array in inputs.items():
            if array is not bound.get(name):
                binding.bind_cpu_input(name, array)  # shares the memory of a contiguous array, else copies it
                bound[name] = array if array.flags.c_contiguous else None
        session.run_with_iobinding(binding)
        return answer

    return infer


def _stateful_call(session: onnxruntime.InferenceSession, network: NetworkSpec) -> Infer:
    """States go in and come out as OrtValues: no copy, where `run` would make an array of each."""
    run, outputs = session.run_with_ort_values, network.outputs
    names = [spec.name for spec in outputs]

    def infer(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        values = {name: _ort_value(value) for name, value in inputs.items()}
        answers = run(names, values)
        return _by_name(outputs, answers)

    return infer


def _by_name(outputs: Sequence[TensorSpec], answers: Sequence[Any]) -> dict[str, Any]:
    """Return OrtValues by name: states as they are, others as arrays."""
    pairs = zip(outputs, answers, strict=True)
    return {spec.name: answer if spec.is_state else answer.numpy() for spec, answer in pairs}


def _ort_value(value: Any) -> Any:
    """Return an array as an OrtValue on the CPU, which shares its memory; an OrtValue as it is."""
    if isinstance(value, np.ndarray):
        return onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(value))
    return value


def _gpu_call(session: onnxruntime.InferenceSession, network: NetworkSpec, device: tuple[str, int]) -> Infer:
    """One binding for all calls. An input has memory on the device, which is made again only when its shape changes;
    states stay there, and outputs of fixed sizes come back into the same memory of the host. device: its name for
    onnxruntime and its number."""
    binding, outputs = session.io_binding(), network.outputs
    inputs_there: dict[str, Any] = {}
    outputs_here: dict[tuple[str, int], Any] = {}

    def to_device(name: str, value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return value
        kept = inputs_there.get(name)
        if kept is None or tuple(kept.shape()) != value.shape:
            kept = onnxruntime.OrtValue.ortvalue_from_shape_and_type(value.shape, value.dtype.type, *device)
            inputs_there[name] = kept
        kept.update_inplace(np.ascontiguousarray(value))
        return kept

    def bind_output(spec: TensorSpec, count: int) -> None:
        if spec.is_state or not spec.is_fixed:
            binding.bind_output(spec.name, *(device if spec.is_state else ("cpu", 0)))
            return
        kept = outputs_here.get((spec.name, count))
        if kept is None:
            kept = outputs_here[(spec.name, count)] = onnxruntime.OrtValue.ortvalue_from_numpy(spec.zeros(count))
        binding.bind_ortvalue_output(spec.name, kept)

    def infer(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        values = {name: to_device(name, value) for name, value in inputs.items()}
        for name, value in values.items():
            binding.bind_ortvalue_input(name, value)
        binding.clear_binding_outputs()  # else it writes into what the last call gave away
        for spec in outputs:
            bind_output(spec, next(iter(values.values())).shape()[0])
        session.run_with_iobinding(binding)
        return _by_name(outputs, binding.get_outputs())

    return infer


def session_options(threads: int, is_spinning: bool = False, cores: Sequence[int] = ()) -> onnxruntime.SessionOptions:
    """Return the options of every session: `threads` for one operator, none between operators.

    Spinning threads take the cores that LoadGen and the Python side need: only where a query is answered in LoadGen's
    own thread do they not. cores: the caller's, then those of the pool's threads, which are one fewer than `threads`.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors; below, each initializer that it folds away has a line
    options.add_session_config_entry("session.intra_op.allow_spinning", "1" if is_spinning else "0")
    if threads > 1 and len(cores) >= threads:
        # "1;2": one entry for each thread of the pool; logical processors count from 1
        # (onnxruntime_session_options_config_keys.h, session.intra_op_thread_affinities, read 2026-11-21).
        affinities = ";".join(str(core + 1) for core in cores[1:threads])
        options.add_session_config_entry("session.intra_op_thread_affinities", affinities)
    return options


def open_backend(request: BackendRequest) -> OnnxRuntimeBackend:
    """Return the open sessions.

    Raises HarnessError when the file is no usable model, lacks a tensor of the request, or when onnxruntime would
    answer with another execution provider than the device asks for (it falls back to the CPU without an error).
    """
    provider = _PROVIDER_OF_DEVICE[request.device]
    if request.device == "cpu":
        return open_sessions(request, [((provider, {}),)])
    return open_sessions(request, [((provider, cuda_options(request, gpu)),) for gpu in request.gpus or (0,)])


def cuda_options(request: BackendRequest, gpu: int) -> dict[str, str]:
    """Return the options of CUDAExecutionProvider, which takes TensorFloat-32 for fp32 where nothing is said (use_tf32,
    cuda_execution_provider_info.h of onnxruntime, read 2026-11-28)."""
    return {"device_id": str(gpu), "use_tf32": "1" if choose_tf32(request.precision) else "0"}


def open_sessions(request: BackendRequest, choices: Sequence[Sequence[Provider]]) -> OnnxRuntimeBackend:
    """Return sessions with the first provider of each of `choices` (others serve operators it lacks); raises as
    `open_backend`."""
    path = request.file
    is_cpu = request.device == "cpu"
    if not is_cpu:
        preload_cuda()
    sessions = []
    if is_cpu and request.threads > 1 and request.instances > 1:
        cores = request.cores or ((),) * request.instances
        for number in range(request.instances):
            options = session_options(request.threads, request.is_spinning, cores[number])
            sessions.append(_open_session(path, options, choices[0]))
    else:
        for choice in choices:
            sessions.append(_open_session(path, session_options(request.threads, request.is_spinning), choice))
    for kind, found, wanted in (
        ("input", sessions[0].get_inputs(), request.network.inputs),
        ("output", sessions[0].get_outputs(), request.network.outputs),
    ):
        types = {tensor.name: _TYPES.get(tensor.type, tensor.type) for tensor in found}
        require_types("the ONNX file", kind, types, wanted)
    return OnnxRuntimeBackend(sessions, request.network, () if is_cpu else (request.gpus or (0,)))


def preload_cuda() -> None:
    """Load CUDA's and cuDNN's libraries from NVIDIA's pip packages, where they lie beside onnxruntime (from 1.21 on):
    no search path of the system leads there. An empty directory: these packages first, then the system's libraries."""
    if (preload := getattr(onnxruntime, "preload_dlls", None)) is not None:
        preload(directory="")


def _open_session(
    path: Path, options: onnxruntime.SessionOptions, choice: Sequence[Provider]
) -> onnxruntime.InferenceSession:
    wanted = choice[0][0]
    available = onnxruntime.get_available_providers()
    if wanted not in available:
        raise HarnessError(
            f"the device needs onnxruntime's {wanted}, but this build only has: {', '.join(available)}",
            "install onnxruntime-gpu into this environment, or use device cpu",
        )
    try:
        session = onnxruntime.InferenceSession(
            str(path), options, providers=[(name, dict(values)) for name, values in choice]
        )
    except Exception as error:  # onnxruntime's exceptions share no base class of their own
        raise HarnessError(f"onnxruntime cannot open {path}: {error}", "rebuild the model") from error
    require_provider(session.get_providers(), wanted)
    return session


def require_provider(found: Sequence[str], wanted: str) -> None:
    """Raise HarnessError when a session's first provider is not the wanted one."""
    if found[0] != wanted:
        raise HarnessError(
            f"onnxruntime fell back to {found[0]} instead of {wanted}",
            "look for the library it could not load in the lines above, or use device cpu",
        )
