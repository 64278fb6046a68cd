"""Writes model.json for a published ONNX file of BERT: its names for our tensors, and the one length it may take.

    python3 describe_onnx.py --model model.onnx --output_dir FOLDER --facts '{"precision": "fp32", ...}'

The int8 file calls input_mask attention_mask and segment_ids token_type_ids; both were exported with a fixed length of
384 tokens. Nothing of that is taken for granted: the file is asked.
"""

import argparse
import json
import sys
from pathlib import Path

import onnx

from crowdperf.benchmarks.bert.model import INPUTS, OUTPUTS
from crowdperf.data.model_info import RealModel, write_model_info

ALIASES = {
    "input_ids": ("input_ids",),
    "input_mask": ("input_mask", "attention_mask"),
    "segment_ids": ("segment_ids", "token_type_ids"),
}


class OnnxError(Exception):
    """A file that is no BERT for question answering."""


def tensor_names(inputs: list[str], outputs: list[str]) -> dict[str, str]:
    """The file's names for ours where they differ; outputs are start and end in this order, as the reference takes
    them."""
    names = {}
    for name in INPUTS:
        found = [alias for alias in ALIASES[name] if alias in inputs]
        if len(found) != 1:
            raise OnnxError(f"no input is {name}: the file has {', '.join(inputs)}; known: {', '.join(ALIASES[name])}")
        names[name] = found[0]
    if len(inputs) != len(INPUTS) or len(outputs) != len(OUTPUTS):
        raise OnnxError(f"the file has {len(inputs)} inputs and {len(outputs)} outputs, expected 3 and 2")
    names.update(zip(OUTPUTS, outputs if set(outputs) != set(OUTPUTS) else OUTPUTS, strict=True))
    return {ours: theirs for ours, theirs in names.items() if ours != theirs}


def fixed_sizes(graph: onnx.GraphProto) -> tuple[int | None, int | None]:
    """The batch size and the length that the first input is fixed to, None for a free one."""
    initialized = {tensor.name for tensor in graph.initializer}
    first = next(value for value in graph.input if value.name not in initialized)
    sizes = [dim.dim_value if dim.HasField("dim_value") else None for dim in first.type.tensor_type.shape.dim]
    if len(sizes) != 2:
        raise OnnxError(f"input {first.name} has {len(sizes)} axes, expected 2: batch and tokens")
    return sizes[0] or None, sizes[1] or None


def describe(model_path: Path, facts: dict) -> RealModel:
    """What model.json says of the file. Raises OnnxError."""
    try:
        graph = onnx.load(str(model_path), load_external_data=False).graph
    except Exception as error:  # protobuf's own error is not public
        raise OnnxError(f"cannot read {model_path} as ONNX: {error}") from error
    initialized = {tensor.name for tensor in graph.initializer}
    inputs = [value.name for value in graph.input if value.name not in initialized]
    config: dict[str, object] = {}
    names = tensor_names(inputs, [value.name for value in graph.output])
    batch_size, length = fixed_sizes(graph)
    if names:
        config["tensor_names"] = names
    if length is not None:
        config["sequence_length"] = length
    if batch_size is not None:
        print(f"the file accepts batches of {batch_size} only: run it with --batch_size={batch_size}", file=sys.stderr)
    return RealModel(
        name="bert",
        framework="onnx",
        files={"model": model_path.resolve()},
        source=facts["source"],
        license=facts["license"],
        config=config,
        reference=facts["reference"],
        precision=facts["precision"],
        origin=facts["origin"],
        facts={} if batch_size is None else {"fixed_batch_size": batch_size},
    )


def main() -> int:
    """Command line entry; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--output_dir", type=Path, required=True)
    parser.add_argument("--facts", type=json.loads, required=True, help="source, license, reference, precision")
    given = parser.parse_args()
    try:
        write_model_info(given.output_dir.resolve(), describe(given.model, given.facts))
    except OnnxError as error:
        print(f"describe_onnx.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
