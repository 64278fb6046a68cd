"""NVIDIA's layout of a model repository for AWS Neuron, and the tensors of a network in it.

    repository/resnet50/config.pbtxt        backend python, KIND_MODEL, the four parameters
    repository/resnet50/1/model.py          triton_model.py, which stands beside this module
    repository/resnet50/1/resnet50.pt       the compiled network

Names of tensors, parameters and the split of the cores are those of inferentia/scripts/gen_triton_model.py in
triton-inference-server/python_backend (140f1cbb, read 2026-11-23): INPUT__<n> and OUTPUT__<n> in the order of the
network's arguments; each of `count` instances gets its part of the cores. What differs: COMPILED_MODEL may be the name
of a file beside model.py, so that a repository can be moved, and NEURON_LIBRARY says what runs it. A compiled network
takes one size of each tensor and int32 where ours takes int64; several outputs of one shape are one, side by side in
its last axis (README_Triton_Inferentia.md of mlcommons/inference_results_v2.0, 425a0d30).
"""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crowdperf.harness.backends.triton.repository import VERSION, parameter_line, shared_lines
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.tensors import Array, NetworkSpec, Tensors, TensorSpec
from crowdperf.rules.server_settings import ServedModel

PROGRAM = Path(__file__).with_name("triton_model.py")
"""The model.py of each repository. Triton's stub runs it, so that nothing here imports it."""
LIBRARIES = ("torch_neuron", "torch_neuronx", "simulated")
THREADS_PER_CORE = 1
"""The registry of NVIDIA's submission to v2.0 has 1 for both benchmarks."""
_WIRE_TYPES = {"int64": "int32"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuronSettings:
    """How a compiled network is served. cores: how many NeuronCores all instances share, from first_core on. library:
    one of LIBRARIES."""

    served: ServedModel
    cores: int
    first_core: int = 0
    threads_per_core: int
    library: str


Place = Callable[[Path, Path], object]
"""Puts a file where it is served from: its path, and the place."""


def link(source: Path, target: Path) -> None:
    target.symlink_to(source.resolve())


def core_ranges(settings: NeuronSettings) -> tuple[str, ...]:
    """Return the NeuronCores of each instance ("0-1", "2-3"), as NEURON_RT_VISIBLE_CORES has them; what does not divide
    is left over at the end. Raises HarnessError for more instances than cores."""
    cores, count = settings.cores, settings.served.instance_count
    each = cores // count
    if each < 1:
        raise HarnessError(
            f"{count} instances share {cores} NeuronCores, but each needs its own", f"--instance_count={cores}"
        )
    return tuple(f"{number * each}-{(number + 1) * each - 1}" for number in range(count))


def require_client_batches(batching: str) -> None:
    """Raise HarnessError where Triton's batcher is to make the batches."""
    if batching == "server":
        raise HarnessError(
            "a compiled network processes requests one at a time, so Triton's batcher has no "
            "effect (as in NVIDIA's submission to v2.0: --disable_batch_requests_to_neuron)",
            "--batching=client: the harness makes the batches",
        )


def fixed_shape(spec: TensorSpec, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Return the shape of one sample with a number for every size; raises HarnessError for a size without one."""
    unknown = [size for size in spec.shape if isinstance(size, str) and size not in sizes]
    if unknown:
        raise HarnessError(f"the size {unknown[0]} of {spec.name} has no bound, and Neuron compiles for one size")
    return tuple(sizes[size] if isinstance(size, str) else size for size in spec.shape)


def wire_network(network: NetworkSpec, sizes: Mapping[str, int]) -> NetworkSpec:
    """Return the tensors of the compiled network; raises HarnessError for outputs that cannot be joined."""
    inputs = tuple(
        TensorSpec(
            name=f"INPUT__{number}",
            dtype=_WIRE_TYPES.get(spec.dtype, spec.dtype),
            shape=fixed_shape(spec, sizes),
        )
        for number, spec in enumerate(network.inputs)
    )
    shapes = {(spec.dtype, fixed_shape(spec, sizes)) for spec in network.outputs}
    if len(shapes) > 1:
        raise HarnessError(f"the outputs of {network.name} differ in type or size and cannot be joined into one")
    ((dtype, shape),) = shapes
    several = (len(network.outputs),) if len(network.outputs) > 1 else ()
    return NetworkSpec(
        name=network.name,
        inputs=inputs,
        outputs=(TensorSpec(name="OUTPUT__0", dtype=dtype, shape=(*shape, *several)),),
    )


def to_wire(network: NetworkSpec, wire: NetworkSpec, inputs: Tensors) -> dict[str, Array]:
    """Return a batch as the compiled network takes it: padded with zeros, in its types."""
    padded = {}
    for spec, target in zip(network.inputs, wire.inputs, strict=True):
        array = inputs[spec.name]
        if array.shape[1:] == target.shape:
            padded[target.name] = np.ascontiguousarray(array, dtype=target.dtype)
            continue
        place = target.zeros(len(array))
        place[tuple(slice(size) for size in array.shape)] = array
        padded[target.name] = place
    return padded


def from_wire(network: NetworkSpec, inputs: Tensors, answers: Tensors) -> dict[str, Array]:
    """Return the network's outputs, cut to the sizes that the batch had before it was padded."""
    sizes = {
        size: inputs[spec.name].shape[axis + 1]
        for spec in network.inputs
        for axis, size in enumerate(spec.shape)
        if isinstance(size, str)
    }
    (joined,) = answers.values()
    found = {}
    for number, spec in enumerate(network.outputs):
        whole = joined[..., number] if len(network.outputs) > 1 else joined
        cut = (slice(None), *(slice(sizes[size] if isinstance(size, str) else size) for size in spec.shape))
        found[spec.name] = np.ascontiguousarray(whole[cut])
    return found


def config_text(model: str, file_name: str, wire: NetworkSpec, settings: NeuronSettings) -> str:
    """Return the content of config.pbtxt; raises HarnessError for more instances than cores."""
    core_ranges(settings)
    parameters = {
        "COMPILED_MODEL": file_name,
        "NEURON_CORE_START_INDEX": settings.first_core,
        "NEURON_CORE_END_INDEX": settings.first_core + settings.cores - 1,
        "NUM_THREADS_PER_CORE": settings.threads_per_core,
        "NEURON_LIBRARY": settings.library,
    }
    lines = [
        f"name: {json.dumps(model)}",
        'backend: "python"',
        *shared_lines(wire, settings.served, "MODEL"),
        *(parameter_line(key, value) for key, value in parameters.items()),
    ]
    return "\n".join(lines) + "\n"


def write_repository(folder: Path, model: str, compiled: Path, text: str, place: Place = link) -> None:
    """Write a repository. The compiled network is a link, for this machine and this run, unless
    `place` puts it there otherwise."""
    shutil.rmtree(folder, ignore_errors=True)
    version = folder / model / VERSION
    version.mkdir(parents=True)
    place(compiled, version / compiled.name)
    shutil.copy(PROGRAM, version / "model.py")
    (folder / model / "config.pbtxt").write_text(text, encoding="utf-8")
