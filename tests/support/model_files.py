"""Writes the smallest files of language models that are read without any library: GGUF and safetensors, with zeros."""

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crowdperf.data.gguf_file import BLOCKS

LLAMA = {
    "general.architecture": "llama", "llama.context_length": 256, "llama.block_count": 2, "llama.embedding_length": 64,
    "llama.attention.head_count": 4, "llama.attention.head_count_kv": [2, 2],
    "tokenizer.ggml.tokens": [f"t{number}" for number in range(40)],
    "tokenizer.ggml.token_type": [3, 3] + [1] * 38, "tokenizer.ggml.eos_token_id": 1,
}  # fmt: skip
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "max_position_embeddings": 256,
    "vocab_size": 40,
}  # fmt: skip
TOKENIZER = {"added_tokens": [{"id": 0, "content": "<s>"}], "model": {"vocab": {f"t{n}": n for n in range(40)}}}
_KINDS = {bool: (7, "?"), int: (4, "I"), float: (6, "f")}


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(value: Any) -> bytes:
    """A value behind the number of its type."""
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    if isinstance(value, list):
        inner = _value(value[0])[:4]
        return struct.pack("<I", 9) + inner + struct.pack("<Q", len(value)) + b"".join(_value(one)[4:] for one in value)
    number, form = _KINDS[type(value)]
    return struct.pack(f"<I{form}", number, value)


def gguf(path: Path, *, kind: str = "Q4_K", version: int = 3, without: tuple[str, ...] = (), **changes: Any) -> Path:
    """A GGUF file of one matrix and one norm. changes: keys, with "__" for the dot."""
    values = {**LLAMA, **{name.replace("__", "."): value for name, value in changes.items()}}
    values = {name: value for name, value in values.items() if name not in without}
    number, (_, block, size) = next((number, row) for number, row in BLOCKS.items() if row[0] == kind)
    matrix, norm = 8 * block // block * size, 64 * 4
    tensors = [("token_embd.weight", (block, 8), number, 0), ("output_norm.weight", (64,), 0, matrix)]
    data = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(values))
    data += b"".join(_text(name) + _value(value) for name, value in values.items())
    for name, sizes, code, offset in tensors:
        data += _text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, code, offset)
    data += b"\0" * (-len(data) % 32) + b"\0" * (matrix + norm)
    path.write_bytes(data)
    return path


def safetensors(path: Path, dtype: str = "BF16") -> Path:
    """A safetensors file of one matrix."""
    size = 64 * {"F32": 4, "BF16": 2, "F16": 2, "I8": 1}[dtype]
    head = json.dumps({"w": {"dtype": dtype, "shape": [8, 8], "data_offsets": [0, size]}}).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + b"\0" * size)
    return path


def huggingface(
    folder: Path, *, dtype: str = "BF16", shards: int = 1, without: tuple[str, ...] = (), **config: Any
) -> Path:
    """A folder in Hugging Face's layout, without some of its files."""
    folder.mkdir()
    names = [f"model-{number:05}-of-{shards:05}.safetensors" for number in range(1, shards + 1)]
    contents: Mapping[str, Any] = {
        "config.json": {**CONFIG, **config}, "tokenizer.json": TOKENIZER,
        "model.safetensors.index.json": {"weight_map": {f"w{name}": name for name in names}},
    }  # fmt: skip
    for name in names:
        safetensors(folder / name, dtype)
    for name, content in contents.items():
        (folder / name).write_text(json.dumps(content))
    for name in without:
        (folder / name).unlink()
    return folder
