"""The header of a GGUF file, read without the package gguf, so that a wrong file is refused before anything is
installed. Weights are not read.

Form of the file, names of keys, numbers of types: docs/gguf.md of ggml-org/ggml and gguf-py/gguf/constants.py of
ggml-org/llama.cpp, as the PyPI package gguf 0.19.0 has it (read 2026-11-28).
"""

import math
import mmap
import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.data.errors import DataError

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _ARRAY = 8, 9
_MAX_COUNT = 1 << 24
"""Of keys, tensors, or elements of an array; the largest vocabularies have 2^18 tokens. This project's choice."""
_NORMAL = 1
"""A type of tokens: gguf's TokenType. Others are control tokens, bytes, or not in use."""

BLOCKS = {
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 9: ("Q8_1", 32, 40), 10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210), 15: ("Q8_K", 256, 292),
    16: ("IQ2_XXS", 256, 66), 17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98), 19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82), 23: ("IQ4_XS", 256, 136),
    24: ("I8", 1, 1), 25: ("I16", 1, 2), 26: ("I32", 1, 4), 27: ("I64", 1, 8), 28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 56), 30: ("BF16", 1, 2), 34: ("TQ1_0", 256, 54), 35: ("TQ2_0", 256, 66),
    39: ("MXFP4", 32, 17), 40: ("NVFP4", 64, 36), 41: ("Q1_0", 128, 18),
}  # fmt: skip
"""Types of tensors by number: name, weights in a block, bytes of a block."""

_FLOATS = {"F32": "fp32", "F16": "fp16", "BF16": "bf16"}


def precision_of(kind: str) -> str:
    """Return the number format of weights of a type as runs name it: quantized weights are "int4" up to 4 bits and
    "int8" above, whatever GGUF calls them."""
    if kind in _FLOATS:
        return _FLOATS[kind]
    bits = next((int(letter) for letter in kind if letter.isdigit()), 8)
    return "int4" if bits <= 4 else "int8"


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufFile:
    """values: the file's keys; of arrays of texts only the number of elements. quantization: GGUF's type of most
    weights. vocabulary: tokens in all. special: ids of tokens that are not ordinary text."""

    values: Mapping[str, Any]
    quantization: str
    vocabulary: int
    special: tuple[int, ...]

    @property
    def architecture(self) -> str:
        """The name of the architecture, such as "llama"."""
        return str(self.values.get("general.architecture", ""))

    def number(self, key: str) -> int | None:
        """Return a number of the architecture, of one for each layer the largest, None if it is missing."""
        found = self.values.get(f"{self.architecture}.{key}")
        found = max(found, default=None) if isinstance(found, tuple) else found
        return found if type(found) is int else None


class _Reader:
    """Reads values one after the other. Raises struct.error if the file ends before."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data, self.place = data, 0

    def take(self, form: str) -> Any:
        """Return one number."""
        (value,) = struct.unpack_from(f"<{form}", self._data, self.place)
        self.place += struct.calcsize(f"<{form}")
        return value

    def count(self, what: str) -> int:
        """Return a number of things that follow."""
        found: int = self.take("Q")
        if found > _MAX_COUNT:
            raise ValueError(f"its header declares {found:,} {what}")
        return found

    def text(self) -> str:
        """Return a text."""
        size = self.take("Q")
        begin, self.place = self.place, self.place + size
        if self.place > len(self._data):
            raise struct.error
        return self._data[begin : self.place].decode("utf-8", "replace")

    def value(self, kind: int) -> Any:
        """Return a value; of an array of texts its length."""
        if kind == _TEXT:
            return self.text()
        if kind in _NUMBERS:
            return self.take(_NUMBERS[kind])
        if kind != _ARRAY:
            raise ValueError(f"a key has the unknown type {kind}")
        inner, count = self.take("I"), self.count("elements")
        if inner in _NUMBERS:
            return self.array(_NUMBERS[inner], count)
        if inner != _TEXT:
            raise ValueError(f"an array has elements of the unknown type {inner}")
        for _ in range(count):
            self.text()
        return count

    def array(self, form: str, count: int) -> tuple[Any, ...]:
        """Return `count` numbers."""
        found = struct.unpack_from(f"<{count}{form}", self._data, self.place)
        self.place += struct.calcsize(f"<{count}{form}")
        return found


def read_gguf(path: Path) -> GgufFile:
    """Return the header. Raises DataError for a file that is not GGUF, is truncated, or has no language
    model."""
    try:
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
            if magic != _MAGIC:
                raise ValueError(_other_file(magic))
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                found, needed = _header(_Reader(data))
        if needed > (size := path.stat().st_size):
            raise ValueError(f"it is truncated: {size:,} bytes of {needed:,}")
    except (OSError, ValueError, struct.error) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        if isinstance(error, struct.error):
            reason = "it is truncated: the header is incomplete"
        raise DataError(
            f"{path} cannot be used as a GGUF file: {reason}", "give one that llama.cpp's conversion wrote, complete"
        ) from error
    _require_language_model(path, found)
    return found


def _other_file(magic: bytes) -> str:
    if not magic:
        return "the file is empty"
    return "it is a pointer of Git LFS: run git lfs pull" if magic == b"vers" else "it does not begin with GGUF"


def _header(reader: _Reader) -> tuple[GgufFile, int]:
    """Return the header, and the bytes that the file needs for its tensors."""
    reader.place = len(_MAGIC)
    if (version := reader.take("I")) not in _VERSIONS:
        raise ValueError(f"it has version {version}; supported: {', '.join(map(str, _VERSIONS))}")
    tensors, keys = reader.count("tensors"), reader.count("keys")
    values = {reader.text(): reader.value(reader.take("I")) for _ in range(keys)}
    weights: Counter[str] = Counter()
    end = 0
    for _ in range(tensors):
        reader.text()
        sizes = reader.array("Q", reader.take("I"))
        kind, offset = reader.take("I"), reader.take("Q")
        if kind not in BLOCKS:
            raise ValueError(f"a tensor has the unknown type {kind}")
        name, block, block_bytes = BLOCKS[kind]
        count = math.prod(sizes)
        end = max(end, offset + count // block * block_bytes)
        weights[name] += count if len(sizes) > 1 else 0  # norms and biases stay in F32 whatever the matrices are
    alignment = _whole(values, "general.alignment") or 32
    begin = -(-reader.place // alignment) * alignment
    kinds = values.get("tokenizer.ggml.token_type")
    kinds = kinds if isinstance(kinds, tuple) else ()
    found = GgufFile(
        values=values,
        quantization=weights.most_common(1)[0][0] if weights else "",
        vocabulary=_whole(values, "tokenizer.ggml.tokens"),
        special=tuple(number for number, kind in enumerate(kinds) if kind != _NORMAL),
    )
    return found, begin + end


def _whole(values: Mapping[str, Any], key: str) -> int:
    found = values.get(key)
    return found if type(found) is int else 0


def _require_language_model(path: Path, found: GgufFile) -> None:
    """Raise DataError for a file that is only a part of a model, or has no model that writes text."""
    if (parts := _whole(found.values, "split.count")) > 1:
        why, way = f"that is one of {parts} parts", f"merge them: llama-gguf-split --merge {path} MERGED.gguf"
    elif found.values.get("general.type", "model") != "model":
        why, way = f"of type {found.values['general.type']}, not a model", "give the model's own file"
    elif not found.quantization or not found.vocabulary:
        part = "weights" if not found.quantization else "tokens of a tokenizer"
        why, way = f"without {part}", "give a model that writes text"
    elif found.values.get(f"{found.architecture}.attention.causal") is False:
        why, way = f"of {found.architecture}, which writes no text", "give a model that writes text"
    elif missing := [key for key in _NEEDED if not found.number(key)]:
        keys = ", ".join(f"{found.architecture}.{key}" for key in missing)
        why, way = f"without {keys}", "give a model that writes text, with attention"
    else:
        return
    raise DataError(f"{path} cannot be measured: it is a GGUF file {why}", way)


_NEEDED = ("context_length", "block_count", "embedding_length", "attention.head_count")
