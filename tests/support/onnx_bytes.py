"""ONNX files written without the package onnx, for tests in environments that lack it."""


def _field(number: int, content: bytes | int) -> bytes:
    """A field of a protobuf message, of fewer than 128 bytes."""
    if isinstance(content, int):
        return bytes([number << 3, content])
    return bytes([number << 3 | 2, len(content)]) + content


def _tensor(name: str, dims: tuple[int | str, ...]) -> bytes:
    shape = b"".join(_field(1, _field(2, one.encode()) if isinstance(one, str) else _field(1, one)) for one in dims)
    return _field(1, name.encode()) + _field(2, _field(1, _field(1, 1) + _field(2, shape)))


def network(*dims: int | str) -> bytes:
    """An ONNX file whose network passes x on as y."""
    node = _field(1, b"x") + _field(2, b"y") + _field(4, b"Identity")
    graph = _field(1, node) + _field(2, b"g") + _field(11, _tensor("x", dims)) + _field(12, _tensor("y", dims))
    return _field(1, 8) + _field(7, graph) + _field(8, _field(2, 17))
