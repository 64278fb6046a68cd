"""The network of the self-test: an ONNX file that adds its input to itself, written as protobuf without a library.

The server's environment has no onnx. Field numbers are those of onnx.proto (onnx 1.17, IR version 8, opset 13).
"""

from __future__ import annotations

FLOAT = 1
"""TensorProto.DataType.FLOAT."""
SIZE = 4


def _number(field: int, value: int) -> bytes:
    """A varint field; the values here are below 128."""
    return bytes([field << 3, value])


def _block(field: int, content: bytes) -> bytes:
    """A field with a length; the contents here are shorter than 128 bytes."""
    return bytes([field << 3 | 2, len(content)]) + content


def _value(name: str) -> bytes:
    """ValueInfoProto of float32[batch, 4]."""
    shape = _block(1, _block(2, b"batch")) + _block(1, _number(1, SIZE))
    tensor = _number(1, FLOAT) + _block(2, shape)
    return _block(1, name.encode()) + _block(2, _block(1, tensor))


def onnx_file() -> bytes:
    """The bytes of a model with the input x and the output y = x + x, both float32[batch, 4]."""
    node = _block(1, b"x") + _block(1, b"x") + _block(2, b"y") + _block(4, b"Add")
    graph = _block(1, node) + _block(2, b"doubling") + _block(11, _value("x")) + _block(12, _value("y"))
    return _number(1, 8) + _block(7, graph) + _block(8, _number(2, 13))
