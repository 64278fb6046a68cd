"""Writes the digits network as an ONNX file, without the package onnx: installing and importing it for these few bytes
took a tenth of the processor time of a first run.

An ONNX file is one protobuf message (https://protobuf.dev/programming-guides/encoding): each field is its number with
the kind of its value, then the value. Numbers of fields, types and enumerations from onnx.proto of ONNX 1.23, whose own
`helper` writes the same bytes (a test compares them).

The graph: Conv, Relu, MaxPool, Flatten, Gemm; input `image` float32[batch, 1, 8, 8], output `logits`
float32[batch, 10].
"""

import numpy as np
from network import PADDING, PATCH_SIZE, POOL_SIZE, Network

# Operator set 13 and file format 8 are read by every onnxruntime from 1.10 on (table "Backwards compatibility" of
# https://onnxruntime.ai/docs/reference/compatibility.html, read 2026-11-21). The graph needs nothing newer.
OPERATOR_SET = 13
FILE_FORMAT = 8
PRODUCER = "crowdperf get-ml-model-digits"
_FLOAT = 1  # TensorProto.DataType
_INT, _INTS = 2, 7  # AttributeProto.AttributeType


def _varint(value: int) -> bytes:
    """A whole number from 0: seven bits in each byte, the lowest first."""
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])


def _field(number: int, value: int | str | bytes) -> bytes:
    """A field of a message: a whole number, or a text or message behind its length."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _attribute(name: str, value: int | list[int]) -> bytes:
    if isinstance(value, int):
        return _field(1, name) + _field(3, value) + _field(20, _INT)
    return _field(1, name) + b"".join(_field(8, item) for item in value) + _field(20, _INTS)


def _node(operator: str, inputs: list[str], output: str, **attributes: int | list[int]) -> bytes:
    fields = [*(_field(1, name) for name in inputs), _field(2, output), _field(4, operator)]
    return b"".join([*fields, *(_field(5, _attribute(name, attributes[name])) for name in sorted(attributes))])


def _value(name: str, *dimensions: str | int) -> bytes:
    """A float32 input or output of the graph. dimensions: their sizes, a name for one that is free."""
    shape = b"".join(_field(1, _field(2 if isinstance(one, str) else 1, one)) for one in dimensions)
    return _field(1, name) + _field(2, _field(1, _field(1, _FLOAT) + _field(2, shape)))


def _weights(name: str, values: np.ndarray) -> bytes:
    """A float32 array."""
    assert values.dtype == np.float32
    sizes = b"".join(_field(1, size) for size in values.shape)
    return sizes + _field(2, _FLOAT) + _field(8, name) + _field(9, values.astype("<f4").tobytes())


def model_bytes(network: Network) -> bytes:
    """The network as an ONNX file with a free batch size."""
    kernel = [PATCH_SIZE, PATCH_SIZE]
    nodes = (
        _node("Conv", ["image", "filters", "filter_bias"], "maps", kernel_shape=kernel, pads=[PADDING] * 4),
        _node("Relu", ["maps"], "positive_maps"),
        _node("MaxPool", ["positive_maps"], "pooled", kernel_shape=[POOL_SIZE] * 2, strides=[POOL_SIZE] * 2),
        _node("Flatten", ["pooled"], "features", axis=1),
        _node("Gemm", ["features", "head", "head_bias"], "logits"),
    )
    names = ("filters", "filter_bias", "head", "head_bias")
    graph = [
        *(_field(1, node) for node in nodes),
        _field(2, "digits"),
        *(_field(5, _weights(name, getattr(network, name))) for name in names),
        _field(11, _value("image", "batch", 1, 8, 8)),
        _field(12, _value("logits", "batch", 10)),
    ]
    operators = _field(1, "") + _field(2, OPERATOR_SET)
    return _field(1, FILE_FORMAT) + _field(2, PRODUCER) + _field(7, b"".join(graph)) + _field(8, operators)
