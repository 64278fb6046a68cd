"""What the maker of OpenVINO's blobs and the backend share: the types of a precision, and what a blob is bound to.

A blob is the compiled network as `CompiledModel.export_model` writes it. It opens only with the version of OpenVINO
that wrote it, and holds what was chosen for the instruction sets of the processor it was compiled on. It does not hold
the precision of floating point: that is asked for again when it is imported, else OpenVINO takes bf16 on a processor
that has it.
"""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import openvino

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.watch.processor import processor_flags

SUFFIX = ".blob"
DEVICE = "CPU"
_TYPES = {"fp32": openvino.Type.f32, "bf16": openvino.Type.bf16, "int8": openvino.Type.f32}
"""What is computed in floating point; of an int8 file that is what its quantisation left."""
_INSTRUCTION_SETS = re.compile(r"(sse4|avx|amx|fma|vnni|asimd|sve|bf16|i8mm)")
_LAYERS = frozenset({"Convolution", "Deconvolution", "FullyConnected", "MatMul", "LSTMSequence", "LSTMCell"})
_EIGHT_BITS = frozenset({"i8", "u8"})
_HINT = "cm run script --tags=generate,engine,_openvino --model=NAME --precision=PRECISION rebuilds it here"


def library_version() -> str:
    """Return OpenVINO's version with its build, which is what a blob is bound to."""
    return str(openvino.get_version())


def instruction_sets() -> tuple[str, ...]:
    """Return this processor's flags that compiled code may depend on, sorted; empty where the system has no list."""
    return tuple(sorted(flag for flag in processor_flags() if _INSTRUCTION_SETS.search(flag)))


def built_for() -> dict[str, Any]:
    """Return what model.json's `engine` says of the version and the processor."""
    return {"openvino": library_version(), "instruction_sets": list(instruction_sets())}


def require_built_for_here(engine: Mapping[str, Any]) -> None:
    """Raise HarnessError where a blob was made with another OpenVINO or for another processor than are here."""
    wanted = engine.get("built_for")
    if not isinstance(wanted, Mapping):
        raise HarnessError("model.json does not record what its blob was built with (engine: built_for)", _HINT)
    if wanted.get("openvino") != library_version():
        raise HarnessError(
            f"the blob was built by OpenVINO {wanted.get('openvino')}, but {library_version()} is installed here", _HINT
        )
    theirs, ours = set(wanted.get("instruction_sets") or ()), set(instruction_sets())
    if theirs != ours:
        parts = (("only there", theirs - ours), ("only here", ours - theirs))
        differences = "; ".join(f"{where}: {', '.join(sorted(flags))}" for where, flags in parts if flags)
        raise HarnessError(f"the blob was built for a CPU with other instruction sets ({differences})", _HINT)


def precision_type(precision: str) -> openvino.Type:
    """Return the type to compute in; raises HarnessError for a precision that OpenVINO has not on this processor."""
    if precision not in _TYPES:
        raise HarnessError(f"OpenVINO does not support {precision} on the CPU; supported: {', '.join(_TYPES)}")
    capabilities = openvino.Core().get_property(DEVICE, "OPTIMIZATION_CAPABILITIES")
    if precision == "bf16" and "BF16" not in capabilities:
        raise HarnessError(
            f"this CPU has no bf16: OpenVINO would compute in fp32 (supported: {', '.join(capabilities)})",
            "use fp32 or int8",
        )
    return _TYPES[precision]


def require_precision(compiled: openvino.CompiledModel, precision: str) -> None:
    """Raise HarnessError where the network runs on another device, or in another precision, than was asked for."""
    devices = list(compiled.get_property("EXECUTION_DEVICES"))
    if devices != [DEVICE]:
        raise HarnessError(f"OpenVINO runs the network on {', '.join(devices)} instead of {DEVICE}")
    found, wanted = compiled.get_property("INFERENCE_PRECISION_HINT"), precision_type(precision)
    if found != wanted:
        raise HarnessError(f"OpenVINO computes in {found.get_type_name()} instead of {wanted.get_type_name()}")
    if precision == "int8" and not eight_bit_layers(compiled):
        raise HarnessError(
            "OpenVINO runs no layer of this network in 8 bits",
            "it does so with static quantization only: cm run script --tags=quantize,ml-model,_int8,_static",
        )


def eight_bit_layers(compiled: openvino.CompiledModel) -> int:
    """Return how many convolutions and matrix products take 8-bit operands, as OpenVINO's executable graph says."""
    counts: Counter[str] = Counter()
    for node in compiled.get_runtime_model().get_ops():
        info = node.get_rt_info()
        if info["layerType"].astype(str) in _LAYERS:
            counts[info["runtimePrecision"].astype(str)] += 1
    return sum(counts[name] for name in _EIGHT_BITS)
