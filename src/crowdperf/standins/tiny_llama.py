"""Makes a tiny Llama with random weights and a tokenizer of its own, for tests and variations `_tiny`: no network, no
torch, a second of work.

    make(folder, vocab=512, hidden=64, layers=2, heads=4, kv_heads=2, seed=1)
    python3 -m crowdperf.standins.tiny_llama --name llama3.1-8b --size tiny --seed 1 [--without_weights]

The program writes into the current folder. All language models of MLPerf get the same architecture here: what is tried
with it is the way of a run, not the model.

The folder is one of Hugging Face (config.json, generation_config.json, tokenizer.json, tokenizer_config.json,
model.safetensors, all float32) with a model.json. The tokenizer is byte-level BPE, trained by `tokenizers` on the help
texts that ship with Python (pydoc_data), so its merges differ a little between releases of Python; the weights do not.
The weights are large enough that an answer depends on the whole prompt, and the likeliest token is seldom a near tie.
"""

import argparse
import importlib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.errors import HarnessError, program
from crowdperf.harness.base.libraries import import_library
from crowdperf.kit.whole_file import write_json
from crowdperf.models.model_json import describe_files, versions, write_model_info
from crowdperf.standins.tokenizers import trained

END_OF_TEXT, TURN_START, TURN_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
SPECIAL_TOKENS = (END_OF_TEXT, TURN_START, TURN_END)
"""Token ids 0, 1 and 2; an answer ends with TURN_END."""
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
LONGEST_CONTEXT = 65_536
"""Tokens: an answer of the longest benchmark (32,768) behind a prompt."""
_SMALLEST_VOCABULARY = len(SPECIAL_TOKENS) + 256
SIZES = {
    "tiny": {"vocab": 512, "hidden": 64, "layers": 2, "heads": 4, "kv_heads": 2},
    "synthetic": {"vocab": 2048, "hidden": 512, "layers": 8, "heads": 8, "kv_heads": 4},
}
"""0.1 and 20 million weights: our choice, for seconds and for minutes on two cores."""

Weights = Mapping[str, npt.NDArray[np.float32]]


def make(folder: Path, *, vocab: int, hidden: int, layers: int, heads: int, kv_heads: int, seed: int | None) -> Path:
    """Write the model into `folder`, which is made; return the path of its model.json. seed: None leaves the weights
    out: a server has its own.

    vocab: tokens of the tokenizer, special ones included, from 259. hidden: a multiple of `heads`; heads: a multiple of
    `kv_heads`. Raises HarnessError for sizes that cannot be combined.
    """
    if vocab < _SMALLEST_VOCABULARY or hidden % heads or heads % kv_heads or (hidden // heads) % 2:
        raise HarnessError(
            f"sizes of a tiny Llama: vocab {vocab}, hidden {hidden}, heads {heads}, kv_heads {kv_heads}",
            f"vocab >= {_SMALLEST_VOCABULARY}, hidden an even multiple of heads, heads a multiple of kv_heads",
        )
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = trained(bundled_texts(), vocab, SPECIAL_TOKENS)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = _config(tokenizer.get_vocab_size(), hidden, layers, heads, kv_heads)
    write_json(folder / "config.json", config)
    write_json(folder / "generation_config.json", {key: config[key] for key in ("bos_token_id", "eos_token_id")})
    write_json(folder / "tokenizer_config.json", _tokenizer_config())
    names = ["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"]
    if seed is not None:
        safetensors = import_library("safetensors.numpy", "safetensors")
        safetensors.save_file(dict(random_weights(config, seed)), str(folder / "model.safetensors"), {"format": "pt"})
        names.insert(0, "model.safetensors")
    info = {
        "name": "tiny-llama",
        "framework": "huggingface",
        "precision": "fp32",
        "is_synthetic": True,
        "files": describe_files({Path(name).stem: [folder / name] for name in names}),
        "seed": seed,
        "versions": versions("numpy", *(("safetensors",) if seed is not None else ()), "tokenizers"),
    }
    return write_model_info(folder, info)


def bundled_texts() -> Sequence[str]:
    """Return the help texts that ship with Python, by topic."""
    topics: Mapping[str, str] = importlib.import_module("pydoc_data.topics").topics
    return [topics[name] for name in sorted(topics)]


def random_weights(config: Mapping[str, Any], seed: int) -> Weights:
    """Return the tensors of a LlamaForCausalLM by Hugging Face's names, N(0, 1 / inputs), norms near 1."""
    generator = np.random.default_rng(seed)
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    head = hidden // config["num_attention_heads"]
    keys = head * config["num_key_value_heads"]

    def matrix(outputs: int, inputs: int, scale: float = 1.0) -> npt.NDArray[np.float32]:
        drawn = generator.standard_normal((outputs, inputs)) * scale / np.sqrt(inputs)
        return np.asarray(drawn, dtype=np.float32)

    def norm() -> npt.NDArray[np.float32]:
        return np.asarray(1 + 0.1 * generator.standard_normal(hidden), dtype=np.float32)

    weights = {"model.embed_tokens.weight": matrix(config["vocab_size"], hidden, scale=float(np.sqrt(hidden)))}
    for number in range(config["num_hidden_layers"]):
        layer = f"model.layers.{number}."
        weights[f"{layer}input_layernorm.weight"] = norm()
        weights[f"{layer}self_attn.q_proj.weight"] = matrix(hidden, hidden)
        weights[f"{layer}self_attn.k_proj.weight"] = matrix(keys, hidden)
        weights[f"{layer}self_attn.v_proj.weight"] = matrix(keys, hidden)
        weights[f"{layer}self_attn.o_proj.weight"] = matrix(hidden, hidden)
        weights[f"{layer}post_attention_layernorm.weight"] = norm()
        weights[f"{layer}mlp.gate_proj.weight"] = matrix(inner, hidden)
        weights[f"{layer}mlp.up_proj.weight"] = matrix(inner, hidden)
        weights[f"{layer}mlp.down_proj.weight"] = matrix(hidden, inner)
    weights["model.norm.weight"] = norm()
    weights["lm_head.weight"] = matrix(config["vocab_size"], hidden, scale=4.0)
    return weights


def _config(vocab: int, hidden: int, layers: int, heads: int, kv_heads: int) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": vocab,
        "hidden_size": hidden,
        "intermediate_size": 3 * hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": hidden // heads,
        "max_position_embeddings": LONGEST_CONTEXT,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "rope_scaling": None,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
        "bos_token_id": SPECIAL_TOKENS.index(TURN_START),
        "eos_token_id": SPECIAL_TOKENS.index(TURN_END),
        "torch_dtype": "float32",
    }


def _tokenizer_config() -> dict[str, Any]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": TURN_START,
        "eos_token": TURN_END,
        "unk_token": END_OF_TEXT,
        "pad_token": TURN_END,
        "model_max_length": LONGEST_CONTEXT,
        "clean_up_tokenization_spaces": False,
        "chat_template": CHAT_TEMPLATE,
    }


@program("tiny_llama")
def main(words: Sequence[str] | None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--name", required=True)
    parser.add_argument("--size", choices=sorted(SIZES), required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without_weights", action="store_true", help="config and tokenizer only")
    given = parser.parse_args(words)
    path = make(Path.cwd(), **SIZES[given.size], seed=None if given.without_weights else given.seed)
    info = json.loads(path.read_text(encoding="utf-8"))
    info |= {"name": given.name, "architecture": "Llama", "license": "CC0-1.0: made by a program"}
    write_json(path, info)


if __name__ == "__main__":
    sys.exit(main())
