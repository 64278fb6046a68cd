"""Writes a Triton model repository: `<model>/config.pbtxt`, and the model's file in `<model>/1/`.

    repository/digits/config.pbtxt
    repository/digits/1/digits.onnx

The same input gives the same bytes. config.pbtxt is the text form of Triton's ModelConfig (model_config.proto of
triton-inference-server/common, r24.10).
Sizes of a tensor are those of one sample; a size with a name ("tokens") is -1. A tensor with one number for each sample
has `dims: [ 1 ]` here, because Triton knows no tensor without sizes. No path in it is absolute.
"""

import json
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.tensors import NetworkSpec, TensorSpec
from crowdperf.rules.server_settings import ServedModel

DATA_TYPES = {
    "bool": "BOOL", "uint8": "UINT8", "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64", "int8": "INT8",
    "int16": "INT16", "int32": "INT32", "int64": "INT64", "float16": "FP16", "float32": "FP32", "float64": "FP64",
}  # fmt: skip
"""numpy's names and those of the KServe protocol (required_api.md, "Tensor Data Types"); config.pbtxt has TYPE_ before
them."""
BACKEND = "onnxruntime"
VERSION = "1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """How a model is served. threads: of each instance."""

    served: ServedModel
    threads: int
    is_on_gpu: bool = False


def require_servable(benchmark: str, networks: Sequence[NetworkSpec]) -> NetworkSpec:
    """Return the one network of a benchmark; raises HarnessError naming the benchmark that cannot be served."""
    if len(networks) != 1:
        names = ", ".join(network.name for network in networks)
        raise HarnessError(
            f"{benchmark} has {len(networks)} networks ({names}), but here Triton can serve only one", _other()
        )
    network = networks[0]
    states = [spec.name for spec in (*network.inputs, *network.outputs) if spec.is_state]
    if states:
        raise HarnessError(
            f"{benchmark} passes states between calls ({', '.join(states)}), which Triton would copy each time",
            _other(),
        )
    return network


def _other() -> str:
    return "use the backend onnxruntime or pytorch for this benchmark"


def require_fixed_sizes(benchmark: str, network: NetworkSpec) -> None:
    """Raise HarnessError for inputs whose size differs from sample to sample: Triton batches equal sizes only."""
    ragged = [spec.name for spec in network.inputs if not spec.is_fixed]
    if ragged:
        raise HarnessError(
            f"the inputs {', '.join(ragged)} of {benchmark} differ in size from sample to sample, and Triton's batcher "
            "joins samples of one size only",
            "--batching=client: batches are then padded before they are sent",
        )


def tensor_lines(kind: str, spec: TensorSpec) -> list[str]:
    """Return the lines of config.pbtxt for an "input" or "output"; raises HarnessError for a type that Triton lacks."""
    if spec.dtype not in DATA_TYPES:
        raise HarnessError(
            f"Triton has no type for {spec.dtype} (tensor {spec.name}). Its types: {', '.join(DATA_TYPES)}"
        )
    sizes = [size if isinstance(size, int) else -1 for size in spec.shape] or [1]
    return [
        f"{kind} {{",
        f"  name: {json.dumps(spec.name)}",
        f"  data_type: TYPE_{DATA_TYPES[spec.dtype]}",
        f"  dims: [ {', '.join(map(str, sizes))} ]",
        "}",
    ]


def _batching(served: ServedModel) -> Iterable[str]:
    if not served.is_batched_by_server:
        return
    yield "dynamic_batching {"
    if served.preferred_batch_size:
        yield f"  preferred_batch_size: [ {', '.join(map(str, served.preferred_batch_size))} ]"
    yield f"  max_queue_delay_microseconds: {served.max_queue_delay_us}"
    yield "}"


def shared_lines(network: NetworkSpec, served: ServedModel, kind: str) -> list[str]:
    """Return the lines of config.pbtxt that every backend has, behind its own first ones. kind: of the instances.
    Raises HarnessError for a tensor of a type that Triton lacks."""
    return [
        f"max_batch_size: {served.max_batch_size}",
        *(line for spec in network.inputs for line in tensor_lines("input", spec)),
        *(line for spec in network.outputs for line in tensor_lines("output", spec)),
        "version_policy { specific { versions: [ 1 ] } }",
        f"instance_group [ {{ count: {served.instance_count} kind: KIND_{kind} }} ]",
    ]


def parameter_line(name: str, value: object) -> str:
    """Return the line of config.pbtxt with a parameter of the backend."""
    return f'parameters {{ key: "{name}" value {{ string_value: {json.dumps(str(value))} }} }}'


def config_text(model: str, file_name: str, network: NetworkSpec, settings: ModelSettings) -> str:
    """Return the content of config.pbtxt; raises HarnessError for a tensor of a type that Triton lacks."""
    lines = [
        f"name: {json.dumps(model)}",
        f"backend: {json.dumps(BACKEND)}",
        f"default_model_filename: {json.dumps(file_name)}",
        *shared_lines(network, settings.served, "GPU" if settings.is_on_gpu else "CPU"),
        *_batching(settings.served),
        parameter_line("intra_op_thread_count", settings.threads),
    ]
    return "\n".join(lines) + "\n"


def require_valid(text: str, model: str) -> None:
    """Raise HarnessError unless Triton's own schema reads the text (tritonclient brings it) with this model's name."""
    from google.protobuf import text_format
    from tritonclient.grpc import model_config_pb2

    try:
        parsed = text_format.Parse(text, model_config_pb2.ModelConfig())
    except text_format.ParseError as error:
        raise HarnessError(f"Triton's schema rejects the generated config.pbtxt: {error}") from error
    if parsed.name != model:
        raise HarnessError(f"Triton's schema reads the name {parsed.name!r} where {model!r} was written")


def write_linked(folder: Path, model: str, file: Path, text: str) -> None:
    """Write a repository for this machine and this run: the version's folder is a link to the model's own folder, so
    that nothing is copied, and files beside the model are found."""
    shutil.rmtree(folder, ignore_errors=True)  # of an earlier layout or run; it removes the link, not what it leads to
    (folder / model).mkdir(parents=True)
    (folder / model / VERSION).symlink_to(file.resolve().parent, target_is_directory=True)
    (folder / model / "config.pbtxt").write_text(text, encoding="utf-8")
