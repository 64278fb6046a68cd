"""Writes a folder of Hugging Face as a GGUF file: what crowdperf.models.llama_gguf reads, and engines of GGUF run."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from safetensors.numpy import load_file

from crowdperf.models.llama_gguf import _CONTROL, _OF_LAYERS, _WHOLE, Weights, _write
from crowdperf.models.model_json import describe_files, write_model_info

_NORMAL = 1
"""A type of tokens: gguf's TokenType."""


def gguf_name(name: str) -> str:
    """Return GGUF's name of a tensor: "model.layers.3.mlp.up_proj.weight" -> "blk.3.ffn_up.weight"."""
    stem = name.removesuffix(".weight")
    if stem in _WHOLE:
        return f"{_WHOLE[stem]}.weight"
    _, _, number, part = stem.split(".", 3)
    return f"blk.{number}.{_OF_LAYERS[part]}.weight"


def side_by_side(weight: Weights, heads: int) -> Weights:
    """Return a query's or key's matrix as GGUF keeps it: of each head, pairs instead of halves."""
    size = len(weight) // heads
    return weight.reshape(heads, 2, size // 2, -1).swapaxes(1, 2).reshape(weight.shape)


def write_gguf(folder: Path, path: Path) -> Path:
    """Write the model of a folder as a GGUF file of F16, with a model.json beside it; return the path of that."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    _add_tokenizer(writer, folder, config)
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    weights = load_file(folder / "model.safetensors")
    for name, weight in weights.items():
        part = name.split(".")[-2]
        kept = side_by_side(weight, heads[part]) if part in heads else weight
        writer.add_tensor(gguf_name(name), kept.astype(np.float16) if kept.ndim == 2 else kept)
    _write(writer)
    info = {"name": path.stem, "framework": "gguf", "precision": "fp16", "is_synthetic": True}
    return write_model_info(path.parent, {**info, "files": describe_files({"model": [path]})})


def _add_tokenizer(writer: Any, folder: Path, config: Mapping[str, Any]) -> None:
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    numbered = sorted(tokenizer["model"]["vocab"].items(), key=lambda item: int(item[1]))
    special = {added["id"] for added in tokenizer["added_tokens"] if added["special"]}
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([token for token, _ in numbered])
    writer.add_token_types([_CONTROL if number in special else _NORMAL for _, number in numbered])
    merges = tokenizer["model"]["merges"]
    writer.add_token_merges([pair if isinstance(pair, str) else " ".join(pair) for pair in merges])
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_add_bos_token(False)
    template = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8")).get("chat_template")
    if template:
        writer.add_chat_template(template)
