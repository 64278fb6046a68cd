"""Llama models between GGUF files and folders of Hugging Face.

    write_float16(source, target)    a GGUF's model with its weights as F16
    write_huggingface(path, folder)  a GGUF's model, its weights as float32, with tokenizer and chat template

Names of keys and tensors: gguf-py/gguf/constants.py of ggml-org/llama.cpp, as the PyPI package gguf 0.19.0 has it. GGUF
keeps the rows of query and key so that the two halves of a head's pairs lie side by side (`permute` of llama.cpp's
conversion); reading turns that back.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.libraries import import_library
from crowdperf.kit.whole_file import write_json
from crowdperf.models.model_json import describe_files, versions, write_model_info

Weights = npt.NDArray[np.float32]
_WHOLE = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}
_OF_LAYERS = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_CONTROL = 3
"""A type of tokens: gguf's TokenType."""
_SPLITS = {"smollm": "digits"}
"""How text is cut before byte pairs, by `tokenizer.ggml.pre`: single digits first (llama.cpp's llama-vocab.cpp)."""


def in_halves(weight: Weights, heads: int) -> Weights:
    """Return a query's or key's matrix from GGUF's order: of each head, halves instead of pairs."""
    size = len(weight) // heads
    turned: Weights = weight.reshape(heads, size // 2, 2, -1).swapaxes(1, 2).reshape(weight.shape)
    return turned


def write_float16(source: Path, target: Path) -> None:
    """Write a GGUF's model with the matrices as F16 and everything else as it is; raises HarnessError."""
    gguf = import_library("gguf", "gguf")
    reader, writer = _reader(gguf, source), gguf.GGUFWriter(target, "llama")
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name in ("general.architecture", "general.file_type"):
            continue
        kind = field.types[0]
        inner = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, sub_type=inner)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    for tensor in reader.tensors:
        weight = _weight(gguf, tensor)
        writer.add_tensor(tensor.name, weight.astype(np.float16) if weight.ndim == 2 else weight)
    _write(writer)


def _write(writer: Any) -> None:
    for write in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
        write()
    writer.close()


def _reader(gguf: Any, path: Path) -> Any:
    try:
        return gguf.GGUFReader(path)
    except Exception as error:  # the library raises several kinds for a damaged file
        raise HarnessError(f"cannot read {path}: {error}", "get the model again") from error


def _weight(gguf: Any, tensor: Any) -> Weights:
    weight = np.asarray(gguf.quants.dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)
    return weight.reshape(tuple(int(size) for size in reversed(tensor.shape)))


def write_huggingface(path: Path, folder: Path, facts: Mapping[str, Any], *, has_weights: bool = True) -> Path:
    """Write a GGUF's model as a folder of Hugging Face, float32, with model.json; return the path of that.

    facts: further keys of model.json (name, license, source). has_weights: False leaves the weights out: what tokenises
    needs the other files only, and model.json then describes the GGUF. Raises HarnessError for another architecture.
    """
    gguf = import_library("gguf", "gguf")
    reader = _reader(gguf, path)
    values = {name: field.contents() for name, field in reader.fields.items()}
    if (family := values.get("general.architecture")) != "llama":
        raise HarnessError(f"{path.name} contains a model of architecture {family!r}; allowed: 'llama'")
    if (split := values.get("tokenizer.ggml.pre")) not in _SPLITS:
        raise HarnessError(f"{path.name} cuts text as {split!r}; allowed: {', '.join(_SPLITS)}")
    folder.mkdir(parents=True, exist_ok=True)
    names = {tensor.name for tensor in reader.tensors}
    contents = {
        "config.json": _config(values, is_tied="output.weight" not in names),
        "tokenizer_config.json": _tokenizer_config(values),
        "tokenizer.json": _tokenizer(values),
    }
    for name, content in contents.items():
        write_json(folder / name, content, indent=None, ensure_ascii=False)
    written = {Path(name).stem: [folder / name] for name in contents}
    if has_weights:
        _write_weights(gguf, reader, values, folder / "model.safetensors")
        written = {"model": [folder / "model.safetensors"], **written}
    else:
        written = {"model": [path], **written}
    return write_model_info(folder, {**facts, "files": describe_files(written), "versions": versions("gguf", "numpy")})


def _write_weights(gguf: Any, reader: Any, values: Mapping[str, Any], path: Path) -> None:
    """Write the dequantised tensors under Hugging Face's names."""
    heads = {"attn_q": values["llama.attention.head_count"], "attn_k": values["llama.attention.head_count_kv"]}
    whole, of_layers = ({there: here for here, there in names.items()} for names in (_WHOLE, _OF_LAYERS))
    weights = {}
    for tensor in reader.tensors:
        parts = tensor.name.split(".")
        weight = _weight(gguf, tensor)
        if parts[0] == "blk":
            weight = in_halves(weight, heads[parts[2]]) if parts[2] in heads else weight
            name = f"model.layers.{parts[1]}.{of_layers[parts[2]]}.weight"
        else:
            name = f"{whole[parts[0]]}.weight"
        weights[name] = np.ascontiguousarray(weight)
    import_library("safetensors.numpy", "safetensors").save_file(weights, str(path), {"format": "pt"})


def _config(values: Mapping[str, Any], *, is_tied: bool) -> dict[str, Any]:
    heads, hidden = values["llama.attention.head_count"], values["llama.embedding_length"]
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": values["llama.vocab_size"],
        "hidden_size": hidden,
        "intermediate_size": values["llama.feed_forward_length"],
        "num_hidden_layers": values["llama.block_count"],
        "num_attention_heads": heads,
        "num_key_value_heads": values["llama.attention.head_count_kv"],
        "head_dim": hidden // heads,
        "max_position_embeddings": values["llama.context_length"],
        "rms_norm_eps": float(np.float32(values["llama.attention.layer_norm_rms_epsilon"])),
        "rope_theta": values["llama.rope.freq_base"],
        "rope_scaling": None,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": is_tied,
        "bos_token_id": values["tokenizer.ggml.bos_token_id"],
        "eos_token_id": values["tokenizer.ggml.eos_token_id"],
        "torch_dtype": "float32",
    }


def _tokenizer_config(values: Mapping[str, Any]) -> dict[str, Any]:
    tokens = values["tokenizer.ggml.tokens"]
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": tokens[values["tokenizer.ggml.bos_token_id"]],
        "eos_token": tokens[values["tokenizer.ggml.eos_token_id"]],
        "model_max_length": values["llama.context_length"],
        "clean_up_tokenization_spaces": False,
        "chat_template": values["tokenizer.chat_template"],
    }


def _tokenizer(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tokenizer.json: byte-level BPE, with every digit by itself."""
    tokens, kinds = values["tokenizer.ggml.tokens"], values["tokenizer.ggml.token_type"]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": number, "content": token, **flags}
            for number, (token, kind) in enumerate(zip(tokens, kinds, strict=True))
            if kind == _CONTROL
        ],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level]
        },
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "vocab": {token: number for number, token in enumerate(tokens)},
            "merges": values["tokenizer.ggml.merges"],
        },
    }  # fmt: skip
