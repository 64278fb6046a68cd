"""The inputs, outputs and operators of an ONNX file, read without the package onnx, and how its calls are measured.

A wrong file or a missing shape is refused before anything is installed, so only the few fields of the file that
describe its tensors are read. Weights are skipped. Numbers of fields and types: onnx/onnx.proto of ONNX 1.22 (read
2026-11-28).
"""

import math
import mmap
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from crowdperf.data.errors import DataError

DTYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16",
    11: "float64", 12: "uint32", 13: "uint64",
}  # fmt: skip
"""TensorProto.DataType -> numpy's name. Text, complex numbers and types that numpy does not have are not measured."""

_PRECISIONS = {1: "fp32", 2: "int8", 3: "int8", 10: "fp16", 16: "bf16", 21: "int4", 22: "int4"}
"""Of weights; others (shapes, indices) say nothing about the arithmetic."""

_GRAPH, _NODE, _INITIALIZER, _INPUT, _OUTPUT = 7, 1, 5, 11, 12
_OPERATOR = 4
"""Of a node: its type."""
_EXTERNAL_DATA = 13
"""Of an initializer: pairs of keys and values, of which `location` names the file."""
_SHAPE_WORD = re.compile(r"\s*([^:=;]+?)\s*[:=]\s*((?:-?\d+\s*[,x]\s*)*-?\d+)\s*(?:;|,(?=\s*\S)|$)")
_LARGEST_SIZE = 2**31 - 1
_SHAPE_FORM = "NAME:1,3,224,224 (several: separated by semicolons)"
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphTensor:
    """An input or output. dtype: numpy's name. shape: with the batch axis. An open size is a name ("?" without one),
    and None means that the file has no number of axes."""

    name: str
    dtype: str
    shape: tuple[int | str, ...] | None

    def __str__(self) -> str:
        sizes = "any shape" if self.shape is None else ",".join(map(str, self.shape))
        return f"{self.name} {self.dtype}[{sizes}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """The interface of the network. precision: the number format of most of its weights, as MLPerf calls
    it; "fp32" without weights. beside: other files with its weights, sorted."""

    inputs: tuple[GraphTensor, ...]
    outputs: tuple[GraphTensor, ...]
    precision: str
    beside: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnNetwork:
    """How a network of the user is measured. inputs, outputs: of one sample. has_batches: the first axis is the batch;
    otherwise a sample is everything that one call gets. largest_batch: None where any size is possible."""

    inputs: tuple[GraphTensor, ...]
    outputs: tuple[GraphTensor, ...]
    has_batches: bool
    largest_batch: int | None


def _varint(data: memoryview, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, place
        shift += 7
        if shift > 63:
            raise ValueError("a number is longer than 64 bits")


def _fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield the fields of a protobuf message: number and value, of a message or text its bytes, not copied."""
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        number, wire = key >> 3, key & 7
        value: int | memoryview
        if wire == 0:
            value, place = _varint(data, place)
        elif wire in (1, 2, 5):
            size = {1: 8, 5: 4}.get(wire, 0)
            if wire == 2:
                size, place = _varint(data, place)
            if not number or place + size > len(data):
                raise ValueError("a field is longer than the file")
            value, place = data[place : place + size], place + size
        else:
            raise ValueError(f"not a message of ONNX (field {number} has wire type {wire})")
        yield number, value


def _parts(data: memoryview, number: int) -> list[memoryview]:
    return [value for found, value in _fields(data) if found == number and isinstance(value, memoryview)]


def _text(data: memoryview, number: int) -> str:
    return next((bytes(part).decode("utf-8") for part in _parts(data, number)), "")


def _size(dimension: memoryview) -> int | str:
    for number, value in _fields(dimension):
        if number == 1 and isinstance(value, int) and value < 1 << 63:
            return value
        if number == 2 and isinstance(value, memoryview) and len(value):
            return bytes(value).decode("utf-8")
    return "?"


def _tensor(data: memoryview) -> GraphTensor:
    """Return the tensor of a ValueInfoProto. Raises ValueError for one that is not a tensor of numbers."""
    name = _text(data, 1)
    kinds = [part for kind in _parts(data, 2) for part in _parts(kind, 1)]
    if not kinds:
        raise ValueError(f"{name} is not a tensor")
    code = next((value for number, value in _fields(kinds[0]) if number == 1), 0)
    if code not in DTYPES:
        raise ValueError(f"{name} has the element type {code}; supported: {', '.join(DTYPES.values())}")
    shapes = _parts(kinds[0], 2)
    sizes = tuple(_size(one) for one in _parts(shapes[0], 1)) if shapes else None
    return GraphTensor(name=name, dtype=DTYPES[int(code)], shape=sizes)


def read_graph(path: Path) -> Graph:
    """Return the inputs and outputs of an ONNX file. Raises DataError for a file that is not one, or has none, and
    for weights that are not beside it."""
    graph = _read(path, lambda data: _graph(data, path.parent))
    if missing := [file for file in graph.beside if not file.is_file()]:
        lost = ", ".join(map(str, missing))
        raise DataError(f"weights of {path} are in files that are missing: {lost}", "copy them to its folder")
    return graph


def operators_in(path: Path) -> frozenset[str]:
    """Return the types of the operators of an ONNX file. Raises DataError for a file that is not one, or has none."""
    return _read(path, _operators)


def _read(path: Path, read: Callable[[memoryview], Found]) -> Found:
    """Return what `read` makes of the main graph of a file. Raises DataError for its ValueError as well."""
    try:
        with path.open("rb") as file:
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))  # closed with its last slice
        graphs = _parts(data, _GRAPH)
        if len(graphs) != 1:
            raise ValueError("it has no graph")
        return read(graphs[0])
    except (OSError, ValueError, IndexError) as error:
        reason = error.strerror if isinstance(error, OSError) else "the file ends early"
        if isinstance(error, ValueError):
            reason = "the file is empty" if path.stat().st_size == 0 else str(error)
        raise DataError(f"{path} cannot be used as an ONNX file: {reason}", "give a file written by ONNX") from error


def _operators(graph: memoryview) -> frozenset[str]:
    names = frozenset(_text(node, _OPERATOR) for node in _parts(graph, _NODE))
    if not names:
        raise ValueError("its graph has no operators")
    return names


def _graph(graph: memoryview, folder: Path) -> Graph:
    inputs: list[memoryview] = []
    outputs: list[memoryview] = []
    weights: set[str] = set()
    beside: set[str] = set()
    counts: Counter[str] = Counter()
    for number, value in _fields(graph):
        if not isinstance(value, memoryview):
            continue
        if number == _INITIALIZER:
            weights.add(_text(value, 8))
            counts.update(_weights(value))
            rows = _parts(value, _EXTERNAL_DATA)
            beside.update(_text(row, 2) for row in rows if _text(row, 1) == "location")
        elif number in (_INPUT, _OUTPUT):
            (inputs if number == _INPUT else outputs).append(value)
    given = [one for one in inputs if _text(one, 1) not in weights]  # before IR version 4 weights are inputs as well
    if not given or not outputs:
        raise ValueError("its graph has no inputs or no outputs")
    precision = counts.most_common(1)[0][0] if counts else "fp32"
    if away := [name for name in sorted(beside) if Path(name).is_absolute() or ".." in Path(name).parts]:
        raise ValueError(f"its weights are outside its folder: {away[0]}")  # onnxruntime refuses them as well
    return Graph(
        inputs=tuple(map(_tensor, given)),
        outputs=tuple(map(_tensor, outputs)),
        precision=precision,
        beside=tuple(folder / name for name in sorted(beside)),
    )


def _weights(data: memoryview) -> dict[str, int]:
    """Return the number of weights in an initializer by their precision."""
    sizes: list[int] = []
    code = 0
    for number, value in _fields(data):
        if number == 1:  # dims, packed or one by one
            place = 0
            if isinstance(value, int):
                sizes.append(value)
            while isinstance(value, memoryview) and place < len(value):
                size, place = _varint(value, place)
                sizes.append(size)
        elif number == 2 and isinstance(value, int):
            code = value
    return {_PRECISIONS[code]: math.prod(sizes)} if code in _PRECISIONS else {}


def parse_shapes(text: str) -> dict[str, tuple[int, ...]]:
    """Return the shapes that `--shape` gives by name. Raises DataError for another form."""
    shapes: dict[str, tuple[int, ...]] = {}
    place = 0
    while place < len(text):
        found = _SHAPE_WORD.match(text, place)
        sizes = tuple(int(size) for size in re.split("[,x]", found[2])) if found else ()
        if found is None or min(sizes) < 1 or max(sizes) > _LARGEST_SIZE or found[1] in shapes:
            allowed = f"{_SHAPE_FORM}, each input once, sizes from 1 to {_LARGEST_SIZE}"
            raise DataError(f"--shape: found {text!r}", f"allowed: {allowed}")
        shapes[found[1]] = sizes
        place = found.end()
    return shapes


def own_network(graph: Graph, shapes: Mapping[str, Sequence[int]]) -> OwnNetwork:
    """Return how the network is measured. shapes: sizes of inputs by name, with the batch axis, for open
    sizes. Raises DataError naming every input whose shape is missing or impossible."""
    known = {one.name for one in graph.inputs}
    problems = [f"--shape has {name}, which is not an input" for name in shapes if name not in known]
    inputs = []
    for tensor in graph.inputs:
        shape, why = _with_sizes(tensor, shapes.get(tensor.name))
        problems += [why] if why else []
        inputs.append(GraphTensor(name=tensor.name, dtype=tensor.dtype, shape=shape))
    firsts = [one.shape[0] if one.shape else None for one in inputs]
    is_one = len(set(firsts)) == 1  # open sizes with different names are not all the batch
    has_batches = is_one and (isinstance(firsts[0], str) or firsts[0] == 1)
    first_of_outputs = [one.shape[0] if one.shape else None for one in graph.outputs]
    has_batches = has_batches and all(isinstance(size, str) or size == 1 for size in first_of_outputs)
    if not has_batches:
        inputs = [_with_first(one, shapes.get(one.name)) for one in inputs]
    open_sizes = [str(one) for one in inputs if any(isinstance(n, str) for n in (one.shape or ())[has_batches:])]
    if open_sizes and not problems:
        problems.append(f"sizes are missing: {', '.join(open_sizes)}")
    if problems:
        listed = ", ".join(map(str, graph.inputs))
        example = ";".join(f"{one.name}:{_example(one)}" for one in graph.inputs if one.shape != ())
        raise DataError(
            f"the network cannot be measured: {'. '.join(problems)}. Its inputs: {listed}", f"--shape='{example}'"
        )
    return OwnNetwork(
        inputs=tuple(_sample(one, has_batches) for one in inputs),
        outputs=tuple(_sample(one, has_batches) for one in graph.outputs),
        has_batches=has_batches,
        largest_batch=None if has_batches and isinstance(firsts[0], str) else 1,
    )


def _with_sizes(tensor: GraphTensor, given: Sequence[int] | None) -> tuple[tuple[int | str, ...] | None, str]:
    """Return the shape with the given sizes in it, an open first axis still open, and the problem if there is one."""
    if tensor.shape is None:
        return (None, f"{tensor.name} has no shape in the file") if given is None else (("?", *given[1:]), "")
    if given is None:
        return tensor.shape, ""
    own = tensor.shape
    if len(given) != len(own) or any(isinstance(size, int) and size != n for size, n in zip(own, given, strict=True)):
        shown = ",".join(map(str, given))
        return own, f"--shape gives {shown} for {tensor}"
    first = own[:1] if own and isinstance(own[0], str) else tuple(given[:1])
    return (*first, *given[1:]), ""


def _with_first(tensor: GraphTensor, given: Sequence[int] | None) -> GraphTensor:
    """Return a tensor of a network without batches: an open first size is the given one, else 1."""
    if not tensor.shape or isinstance(tensor.shape[0], int):
        return tensor
    first = given[0] if given else 1
    return GraphTensor(name=tensor.name, dtype=tensor.dtype, shape=(first, *tensor.shape[1:]))


def _sample(tensor: GraphTensor, has_batches: bool) -> GraphTensor:
    shape = tensor.shape if tensor.shape is None or not has_batches else tensor.shape[1:]
    return GraphTensor(name=tensor.name, dtype=tensor.dtype, shape=shape)


def _example(tensor: GraphTensor) -> str:
    sizes = tensor.shape if tensor.shape is not None else ("N",)
    return ",".join("1" if place == 0 and isinstance(size, str) else str(size) for place, size in enumerate(sizes))
