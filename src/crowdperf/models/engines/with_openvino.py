"""Compiles networks with OpenVINO for this machine's processor, as blobs that the backend `openvino` imports.

The precision of an fp32 file is fp32 or, on a processor that has it, bf16; an int8 file keeps its QuantizeLinear and
DequantizeLinear pairs, which OpenVINO turns into 8-bit layers. A file of dynamic int8 (DynamicQuantizeLinear) is
refused: OpenVINO 2026.4.1 multiplies its matrices in fp32. Batch and named sizes stay free.
"""

import io
from pathlib import Path
from typing import Any

import openvino

from crowdperf.harness.backends.openvino.library import DEVICE, SUFFIX, built_for, precision_type
from crowdperf.harness.backends.openvino.library import require_precision as require_computed_in
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.tensors import NetworkSpec
from crowdperf.models.engines.task import Task

READS = "onnx"
FRAMEWORK = "openvino"


def suffix(task: Task) -> str:
    return SUFFIX


def require_precision(found: str, wanted: str) -> None:
    """Raise HarnessError where files in the precision `found` make no engine in the precision `wanted`."""
    precision_type(wanted)
    if found != wanted and (found, wanted) != ("fp32", "bf16"):
        raise HarnessError(
            f"the model's files are {found}, but {wanted} was requested",
            f"cm run script --tags=quantize,ml-model,_{wanted} makes them" if wanted == "int8" else "leave --precision",
        )


def build_network(task: Task, spec: NetworkSpec, file: Path, precision: str) -> bytes:
    """Return the blob of one network; raises HarnessError with what OpenVINO said."""
    properties = {"INFERENCE_PRECISION_HINT": precision_type(precision), "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0}
    try:
        compiled = openvino.Core().compile_model(str(file), DEVICE, properties)
    except RuntimeError as error:
        said = str(error).strip().splitlines()
        raise HarnessError(
            f"OpenVINO cannot compile {file} (network {spec.name}): {said[-1] if said else error!r}",
            "use the file that the model's recipe makes",
        ) from error
    require_computed_in(compiled, precision)
    content = io.BytesIO()
    compiled.export_model(content)
    return content.getvalue()


def facts(task: Task) -> dict[str, Any]:
    """Return the version and the processor that the blobs are bound to."""
    return {"device": DEVICE, "processor": _processor(), "built_for": built_for()}


def _processor() -> str:
    return str(openvino.Core().get_property(DEVICE, "FULL_DEVICE_NAME")).strip()
