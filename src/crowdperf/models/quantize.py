"""Makes an ONNX model of lower precision from an fp32 one: `python3 -m crowdperf.models.quantize --help`.

    int8 static    weights per channel, activations by the ranges of a calibration (QuantizeLinear/DequantizeLinear
                   around operators): for convolutional networks
    int8 dynamic   weights per channel, activations measured at each call: for networks of matrices (transformers,
                   LSTMs, multi-layer perceptrons)
    fp16           weights and operators in half precision, inputs and outputs stay float32: for GPUs. A network whose
                   activations are too large for it (`NetworkSpec.overflows_in_fp16`) stays in fp32

`auto` takes static for a network with convolutions and dynamic for others. bf16 is not made: onnxruntime has no bf16
kernels on the processor; the pytorch backend runs fp32 files in bf16.
"""

import argparse
import importlib
import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from crowdperf.harness.base.errors import HarnessError, program
from crowdperf.harness.base.model_facts import ModelFacts, ModelFile, parse_calibration, read_model_facts
from crowdperf.harness.watch.processor import has_vnni
from crowdperf.kit.whole_file import file_sha256
from crowdperf.models.calibrate import STATIC_OPERATORS
from crowdperf.models.calibration import Calibration, Range, read_calibration
from crowdperf.models.model_json import OF_THE_FILES, copy_beside, describe_files, versions, write_model_info

PRECISIONS = ("int8", "fp16")
METHODS = ("auto", "static", "dynamic")
TARGETS = ("cpu", "tensorrt", "tensorrt_fp16")
"""cpu: unsigned activations, the form of onnxruntime's quickest kernels on x86. tensorrt: signed symmetric activations
and biases that are no integers, the only form that TensorRT reads. tensorrt_fp16: the same, and what is not quantised
is in fp16, the scales too: for TensorRT itself. onnxruntime 1.31.1 answers such a file wrongly on the processor unless
its graph optimisations are off, from its basic ones on (resnet50 tiny: up to 3.6 off logits of at most 3.8, else 0.17;
2026-11-28), and those come before its TensorRT provider too."""
_TYPED_SCALES = 19
"""The operator set from which QuantizeLinear takes float16 (Changelog.md of onnx)."""
_DYNAMIC_OPERATORS = ("MatMul", "Gemm", "LSTM", "Attention")
_LAYERS = ("Conv", "ConvTranspose", "MatMul", "Gemm")
_EXTERNAL_BYTES = 1_900_000_000
"""Of weights, from which they lie in a file beside the ONNX file: a protobuf message ends at 2 GiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What to make. calibration and target: for static int8 only."""

    model_info: Path
    output_dir: Path
    precision: str
    method: str = "auto"
    calibration: Path | None = None
    target: str = "cpu"


def quantize(task: Task) -> Path:
    """Write the model's files in the precision asked for, and model.json last; return its path. Raises HarnessError."""
    facts = read_model_facts(None, task.model_info)
    _check(task, facts)
    info = json.loads(task.model_info.read_text(encoding="utf-8"))
    calibration, too_large = _calibration(task, facts), overflowing(facts, info.get("architecture"))
    task.output_dir.mkdir(parents=True, exist_ok=True)
    files, methods, for_gpu = {}, {}, task.target == "tensorrt_fp16"
    for network, file in sorted(facts.files.items()):
        path = task.output_dir / f"{file.path.stem}.{task.precision}.onnx"
        if task.precision == "fp16" and network in too_large:
            _save(onnx.load(str(file.path)), path)
            methods[network] = {"method": "fp32"}
        else:
            own = replace(task, target="tensorrt") if for_gpu and network in too_large else task
            methods[network] = _write_network(own, network, file, calibration, path)
        weights = path.with_name(f"{path.name}.data")
        files[network] = [path, *([weights] if weights.exists() else [])]
    beside = copy_beside(task.model_info.parent, task.output_dir)
    return write_model_info(
        task.output_dir,
        {
            **{key: value for key, value in info.items() if key not in OF_THE_FILES},
            "precision": task.precision,
            "origin": facts.origin,
            "calibration": None if calibration is None else calibration.provenance["calibration"],
            "files": describe_files(files),
            "beside": beside,
            "quantisation": {
                "methods": methods,
                "from_sha256": {network: file.sha256 for network, file in facts.files.items()},
                "calibration": None
                if calibration is None or task.calibration is None
                else {
                    "sha256": file_sha256(task.calibration),
                    "method": calibration.method,
                    "provenance": dict(calibration.provenance),
                },
                "target": task.target,
                "reduce_range": task.precision == "int8" and task.target == "cpu" and not has_vnni(),
                "versions": versions("onnxruntime", "onnx", "numpy"),
            },
        },
    )


def _check(task: Task, facts: ModelFacts) -> None:
    if task.precision not in PRECISIONS or task.method not in METHODS:
        raise HarnessError(
            f"precision {task.precision!r}, method {task.method!r}; allowed: {', '.join(PRECISIONS)} "
            f"and {', '.join(METHODS)}",
            "bf16 does not need a separate file: use backend pytorch",
        )
    if facts.framework != "onnx" or facts.precision != "fp32":
        raise HarnessError(
            f"{task.model_info} describes a {facts.precision} model for {facts.framework}, but only fp32 ONNX models "
            "can be lowered",
            "use the model's variation _onnx",
        )
    for network, file in facts.files.items():
        if file.sha256 is not None and file_sha256(file.path) != file.sha256:
            raise HarnessError(f"network {network}: {file.path} is not the file that model.json describes",
                               "rebuild the model")  # fmt: skip


def _calibration(task: Task, facts: ModelFacts) -> Calibration | None:
    """Return the calibration, which must be of these very files."""
    if task.calibration is None or task.precision != "int8":
        return None
    calibration = read_calibration(task.calibration)
    found = calibration.provenance.get("model", {}).get("sha256", {})
    expected = {network: file.sha256 or file_sha256(file.path) for network, file in facts.files.items()}
    if found != expected:
        raise HarnessError(
            f"{task.calibration} was made with another model than {task.model_info}",
            "calibrate this model: cm run script --tags=calibrate,ml-model",
        )
    if parse_calibration(calibration.provenance.get("calibration"), str(task.calibration)) is None:
        raise HarnessError(
            f"{task.calibration} does not record the samples it was made with",
            "calibrate again: cm run script --tags=calibrate,ml-model --renew",
        )
    return calibration


def overflowing(facts: ModelFacts, architecture: str | None) -> frozenset[str]:
    """Return the names of the networks whose activations fp16 cannot hold; none of a model.json without an
    architecture, which no program here made."""
    if architecture is None:
        return frozenset()
    networks = importlib.import_module(f"crowdperf.benchmarks.{architecture}.model").open_model(facts).networks
    return frozenset(spec.name for spec in networks if spec.overflows_in_fp16)


def _write_network(
    task: Task, network: str, file: ModelFile, calibration: Calibration | None, path: Path
) -> dict[str, Any]:
    """Write one network's file; return how it was made, for model.json."""
    if task.precision == "fp16":
        _write_half(file.path, path)
        return {"method": "fp16"}
    model = onnx.load(str(file.path))
    has_convolutions = any(node.op_type in ("Conv", "ConvTranspose") for node in model.graph.node)
    method = task.method if task.method != "auto" else ("static" if has_convolutions else "dynamic")
    if method == "dynamic":
        if has_convolutions:
            print(f"quantize: network {network} has convolutions, which dynamic int8 leaves in fp32", file=sys.stderr)
        _write_dynamic(file.path, path, _is_large(model))
    else:
        if calibration is None:
            raise HarnessError(
                f"network {network} is quantized with static ranges, but there is no calibration",
                "cm run script --tags=calibrate,ml-model, or --method=dynamic",
            )
        _write_static(without_weight_copies(model), calibration.networks.get(network, {}), task.target, path)
    operators = Counter(node.op_type for node in onnx.load(str(path), load_external_data=False).graph.node)
    return {"method": method, "operators": dict(sorted(operators.items()))}


def nodes_in_fp32(model: onnx.ModelProto, ranges: Mapping[str, Range]) -> list[str]:
    """Return the names of nodes to leave in fp32: those without a range, and the ends of the network.

    The ends are the last layers with weights and what follows them. Nothing evens out their rounding any more, and 8
    bits are few for numbers such as boxes: with them ssd_mobilenet (tiny) kept 97.0 % of its mean average precision.
    A network whose every layer is a last one is quantised whole.
    """
    weights = {initializer.name for initializer in model.graph.initializer}
    left = set()
    for node in model.graph.node:
        data = [name for name in (*node.input[:1], *node.output) if name and name not in weights]
        if node.op_type in STATIC_OPERATORS and any(name not in ranges for name in data):
            left.add(node.name)
    ends = _ends(model)
    layers = {node.name for node in model.graph.node if node.op_type in _LAYERS}
    return sorted(left if layers <= ends else left | ends)


def _ends(model: onnx.ModelProto) -> set[str]:
    """Return the names of the nodes from the outputs back to, and with, the first layer with weights on each way."""
    maker = {name: node for node in model.graph.node for name in node.output}
    waiting = [value.name for value in model.graph.output]
    found: set[str] = set()
    while waiting:
        node = maker.get(waiting.pop())
        if node is None or node.name in found:
            continue
        found.add(node.name)
        if node.op_type not in _LAYERS:
            waiting += node.input
    return found


def without_weight_copies(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with every Identity of a weight replaced by the weight itself.

    torch's exporter writes equal weights once and copies them by Identity nodes. A convolution whose bias comes from a
    node is not turned into an integer one: ResNet-50 with such biases ran at 0.74 of fp32's speed, without at 3 times.
    """
    weights = {initializer.name for initializer in model.graph.initializer}
    outputs = {value.name for value in model.graph.output}
    copies = {
        node.output[0]: node.input[0]
        for node in model.graph.node
        if node.op_type == "Identity" and node.input[0] in weights and node.output[0] not in outputs
    }
    kept = [node for node in model.graph.node if not (node.op_type == "Identity" and node.output[0] in copies)]
    for node in kept:
        node.input[:] = [copies.get(name, name) for name in node.input]
    del model.graph.node[:]
    model.graph.node.extend(kept)
    return model


def _write_static(model: onnx.ModelProto, ranges: Mapping[str, Range], target: str, path: Path) -> None:
    from onnxruntime.quantization import CalibrationMethod, QDQQuantizer, QuantType, TensorsData

    if not ranges:
        raise HarnessError("the calibration has no range of this network's tensors", "calibrate again")
    for number, node in enumerate(model.graph.node):
        node.name = node.name or f"{node.op_type}_{number}"
    left = nodes_in_fp32(model, ranges)
    data = TensorsData(
        CalibrationMethod.MinMax,
        {name: (np.array(low, np.float32), np.array(high, np.float32)) for name, (low, high) in ranges.items()},
    )
    for_gpu = target != "cpu"
    # Without VNNI the sum of two products can overflow 16 bits, so weights get seven bits on such a processor.
    quantizer = QDQQuantizer(
        model=onnx.shape_inference.infer_shapes(model),
        per_channel=True,
        reduce_range=not for_gpu and not has_vnni(),
        weight_qType=QuantType.QInt8,
        activation_qType=QuantType.QInt8 if for_gpu else QuantType.QUInt8,
        tensors_range=data,
        nodes_to_quantize=[],
        nodes_to_exclude=left,
        op_types_to_quantize=list(STATIC_OPERATORS),
        extra_options={"ActivationSymmetric": True, "QuantizeBias": False} if for_gpu else {},
    )
    quantizer.quantize_model()
    if target == "tensorrt_fp16":
        typed = onnx.version_converter.convert_version(quantizer.model.model, _TYPED_SCALES)
        _save(_halved(onnx.shape_inference.infer_shapes(typed)), path)
    else:
        quantizer.model.save_model_to_file(str(path), _is_large(quantizer.model.model))


def _write_dynamic(source: Path, path: Path, is_large: bool) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)  # it advises fusions, which onnxruntime does when it opens the file
    try:
        quantize_dynamic(
            str(source),
            str(path),
            op_types_to_quantize=list(_DYNAMIC_OPERATORS),
            per_channel=True,
            reduce_range=not has_vnni(),
            weight_type=QuantType.QInt8,
            use_external_data_format=is_large,
        )
    finally:
        root.setLevel(level)


def _write_half(source: Path, path: Path) -> None:
    _save(_halved(_with_shapes(source)), path)


def _with_shapes(path: Path) -> onnx.ModelProto:
    """Return the model with its shapes inferred before its external weights are read: onnx infers from at most
    2 GiB."""
    model: onnx.ModelProto = onnx.shape_inference.infer_shapes(onnx.load(str(path), load_external_data=False))
    onnx.load_external_data_for_model(model, str(path.parent))
    return model


def _halved(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model, whose shapes are inferred, in half precision with float32 inputs and outputs. It is
    changed itself.

    What follows the last layers stays in float32: fp16 has steps of half a pixel from 512 on,
    which move corners of boxes.
    """
    from onnxruntime.transformers.float16 import convert_float_to_float16
    from onnxruntime.transformers.onnx_model import OnnxModel

    ends = _ends(model)
    left = [node.name for node in model.graph.node if node.name in ends and node.op_type not in _LAYERS]
    halved: onnx.ModelProto = convert_float_to_float16(
        model, keep_io_types=True, disable_shape_infer=True, node_block_list=left
    )
    _skip_halves(halved.graph)
    OnnxModel(halved).topological_sort()  # as ONNX asks; the converter puts its casts last
    return halved


def _skip_halves(graph: onnx.GraphProto) -> None:
    """Take away the casts to fp16 and back that the converter puts between two nodes in float32, and before outputs."""
    maker = {node.output[0]: node for node in graph.node if node.op_type == "Cast"}
    for node in maker.values():
        before = maker.get(node.input[0])
        if before is not None and (before.attribute[0].i, node.attribute[0].i) == (
            onnx.TensorProto.FLOAT16,
            onnx.TensorProto.FLOAT,
        ):
            node.CopyFrom(onnx.helper.make_node("Identity", [before.input[0]], list(node.output), node.name))
    used = {name for node in graph.node for name in node.input} | {value.name for value in graph.output}
    unused = [node for node in maker.values() if node.op_type == "Cast" and node.output[0] not in used]
    for node in unused:
        graph.node.remove(node)


def _save(model: onnx.ModelProto, path: Path) -> None:
    if _is_large(model):
        onnx.save(model, str(path), save_as_external_data=True, location=f"{path.name}.data")
    else:
        onnx.save(model, str(path))


def _is_large(model: onnx.ModelProto) -> bool:
    graph = model.graph  # a message of more than 2 GiB cannot say its size
    size_bytes: int = sum(part.ByteSize() for part in (*graph.initializer, *graph.node))
    return size_bytes > _EXTERNAL_BYTES


@program("quantize")
def main(words: Sequence[str] | None) -> None:
    parser = argparse.ArgumentParser(
        prog="python3 -m crowdperf.models.quantize", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--model_info", required=True, type=Path, help="model.json of the fp32 ONNX model")
    parser.add_argument("--output_dir", required=True, type=Path)
    parser.add_argument("--precision", required=True, choices=PRECISIONS)
    parser.add_argument("--method", default="auto", choices=METHODS, help="of int8 (default: %(default)s)")
    parser.add_argument("--target", default="cpu", choices=TARGETS, help="of static int8 (default: %(default)s)")
    parser.add_argument("--calibration", type=Path, help="calibration.json, for static int8")
    given = parser.parse_args(words)
    start_s = time.perf_counter()
    path = quantize(Task(**vars(given)))
    methods = json.loads(path.read_text(encoding="utf-8"))["quantisation"]["methods"]
    how = ", ".join(f"{network} {row['method']}" for network, row in methods.items())
    print(f"{given.precision}: {how} in {time.perf_counter() - start_s:.1f} s -> {path}")


if __name__ == "__main__":
    sys.exit(main())
