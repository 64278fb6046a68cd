"""Which operators an ONNX file has, read without the package onnx: hooks run in the engine's Python, which lacks it.

A protobuf message is a row of fields, each a number, a kind and a value; what is not wanted is skipped by its length,
so weights are not read. ModelProto.graph is field 7, GraphProto.node field 1, NodeProto.op_type field 4
(https://github.com/onnx/onnx/blob/main/onnx/onnx.proto, read 2026-11-21).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_GRAPH, _NODE, _OPERATOR = 7, 1, 4
_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5


class NoOnnxFile(Exception):
    """The file is no ONNX model; the text says why."""


def operators_in(path: Path) -> frozenset[str]:
    """Return the types of the main graph's operators. Raises OSError and NoOnnxFile."""
    names = set()
    size = path.stat().st_size
    with path.open("rb") as file:
        for graph, end in _messages(file, 0, size, _GRAPH):
            for node, node_end in _messages(file, graph, end, _NODE):
                for start, stop in _messages(file, node, node_end, _OPERATOR):
                    file.seek(start)
                    names.add(file.read(stop - start).decode("ascii", errors="replace"))
    if not names:
        raise NoOnnxFile(f"{path} contains no operators")
    return frozenset(names)


def _messages(file: BinaryIO, start: int, end: int, wanted: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of each value of the field `wanted` in the message from `start` to `end`."""
    at = start
    while at < end:
        file.seek(at)
        number, kind = divmod(_varint(file), 8)
        if kind == _VARINT:
            _varint(file)
            at = file.tell()
        elif kind == _BYTES:
            length = _varint(file)
            at = file.tell()
            if at + length > end:
                raise NoOnnxFile(f"{file.name} is cut off, or no ONNX file")
            if number == wanted:
                yield at, at + length
            at += length
        elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
            at = file.tell() + (8 if kind == _EIGHT_BYTES else 4)
        else:
            raise NoOnnxFile(f"{file.name} is not an ONNX file")


def _varint(file: BinaryIO) -> int:
    value = shift = 0
    while True:
        byte = file.read(1)
        if not byte or shift > 63:
            raise NoOnnxFile(f"{file.name} is cut off, or no ONNX file")
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
        shift += 7
