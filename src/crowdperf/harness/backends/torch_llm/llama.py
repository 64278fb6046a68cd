"""Llama in torch: a folder of Hugging Face, and a static cache of keys and values with a row for each prompt.

Formulas: RMSNorm, rotary positions (as transformers lays them out: the first half of a head with its second), grouped
queries, SwiGLU. Norms and rotations are computed in float32 whatever the type of the weights.
Keys of config.json, and the scaling of rotary positions (`rope_type` "llama3"): transformers' LlamaConfig and
modeling_rope_utils.py.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch.nn import functional

from crowdperf.data.huggingface_folder import value_problems
from crowdperf.harness.backends.torch_llm.record import RECORD
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.text.tokenizer import end_tokens
from crowdperf.kit.text_documents import given_object

_CPU = torch.device("cpu")
_HINT = "torch_llm only runs models of the Llama architecture. Use another backend for this model"


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaConfig:
    """The sizes of a model. rope_scaling: the factors of Llama 3.1; None: positions as they are."""

    vocab: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_size: int
    longest: int
    norm_epsilon: float
    rope_base: float
    rope_scaling: Mapping[str, float] | None
    is_tied: bool
    end_tokens: tuple[int, ...]

    def cache_bytes(self, tokens: int, dtype: torch.dtype) -> int:
        """Return the bytes that keys and values of so many tokens take."""
        return 2 * self.layers * self.kv_heads * self.head_size * tokens * dtype.itemsize


def read_config(folder: Path) -> LlamaConfig:
    """Return the sizes in config.json; raises HarnessError for a file or an architecture that is not Llama's."""
    values = given_object(folder / "config.json", lambda why: HarnessError(why, "get the model again"))
    if problems := value_problems(values, RECORD.model_values):
        raise HarnessError(f"torch_llm cannot run the model: {'; '.join(problems)}", _HINT)
    rope = values.get("rope_parameters") or values.get("rope_scaling") or {}
    kind = rope.get("rope_type", rope.get("type", "default"))
    try:
        heads = int(values["num_attention_heads"])
        return LlamaConfig(
            vocab=int(values["vocab_size"]),
            hidden=int(values["hidden_size"]),
            layers=int(values["num_hidden_layers"]),
            heads=heads,
            kv_heads=int(values.get("num_key_value_heads") or heads),
            head_size=int(values.get("head_dim") or int(values["hidden_size"]) // heads),
            longest=int(values["max_position_embeddings"]),
            norm_epsilon=float(values["rms_norm_eps"]),
            rope_base=float(rope.get("rope_theta") or values.get("rope_theta") or 10000.0),
            rope_scaling=None if kind == "default" else {name: float(rope[name]) for name in _SCALING},
            is_tied=bool(values.get("tie_word_embeddings", False)),
            end_tokens=end_tokens(folder),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise HarnessError(f"{folder / 'config.json'} cannot be used: {error!r}", "get the model again") from error


_SCALING = ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")


def frequencies(config: LlamaConfig) -> torch.Tensor:
    """Return the rotation of each pair of a head's values for each position, float32[head_size / 2]."""
    exponents = torch.arange(0, config.head_size, 2, dtype=torch.float32) / config.head_size
    plain = 1.0 / config.rope_base**exponents
    if config.rope_scaling is None:
        return plain
    factor, low, high, original = (config.rope_scaling[name] for name in _SCALING)
    turns = original * plain / (2 * math.pi)  # in the context that the model first learnt
    smooth = ((turns - low) / (high - low)).clamp(0, 1)  # 0: far positions only, 1: near ones only
    return (1 - smooth) * plain / factor + smooth * plain


class Llama:
    """A model with its cache: `rows` prompts of up to `length` tokens, answers included. All of it is on `device`."""

    def __init__(
        self, config: LlamaConfig, weights: Mapping[str, torch.Tensor], dtype: torch.dtype, device: torch.device = _CPU
    ) -> None:
        self.config, self.device, self._dtype = config, device, dtype
        self._embedding = weights["model.embed_tokens.weight"].to(device, dtype)
        self._head = self._embedding if config.is_tied else weights["lm_head.weight"].to(device, dtype)
        self._norm = weights["model.norm.weight"].to(device).float()
        self._layers = [_Layer(weights, f"model.layers.{number}.", dtype, device) for number in range(config.layers)]
        self._cache = torch.empty(0)
        self._cosine, self._sine = torch.empty(0), torch.empty(0)

    def make_cache(self, rows: int, length: int) -> None:
        config = self.config
        shape = (config.layers, 2, rows, config.kv_heads, length, config.head_size)
        self._cache = torch.zeros(shape, dtype=self._dtype, device=self.device)
        angles = (torch.arange(length, dtype=torch.float32)[:, None] * frequencies(config)).to(self.device)
        self._cosine, self._sine = angles.cos(), angles.sin()

    def move(self, source: int, target: int, length: int) -> None:
        """Copy what is kept of a prompt of `length` tokens into another row."""
        self._cache[:, :, target, :, :length] = self._cache[:, :, source, :, :length]

    def prompt(self, row: int, tokens: Sequence[int]) -> torch.Tensor:
        """Keep a whole prompt in `row`; return what follows it, float32[1, vocab]."""
        count = len(tokens)
        hidden = self._embedding[torch.tensor(tokens, device=self.device)]

        def attend(layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
            key, value = key.transpose(0, 1), value.transpose(0, 1)  # [kv_heads, tokens, size]
            self._cache[layer, 0, row, :, :count], self._cache[layer, 1, row, :, :count] = key, value
            said = functional.scaled_dot_product_attention(
                query.transpose(0, 1)[None], key[None], value[None], is_causal=True, enable_gqa=True
            )
            return said[0].transpose(0, 1)

        return self._logits(self._run(hidden, torch.arange(count, device=self.device), attend)[-1:])

    def following(self, tokens: Sequence[int], positions: Sequence[int]) -> torch.Tensor:
        """Take the next token of each of the first rows; return what follows, float32[rows, vocab]."""
        rows, longest = len(tokens), max(positions) + 1
        place, row = torch.tensor(positions, device=self.device), torch.arange(rows, device=self.device)
        groups = self.config.heads // self.config.kv_heads
        is_there = (torch.arange(longest, device=self.device) <= place[:, None])[:, None, None]

        def attend(layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
            self._cache[layer, 0, row, :, place], self._cache[layer, 1, row, :, place] = key, value
            grouped = query.reshape(rows, self.config.kv_heads, groups, self.config.head_size)
            keys, values = (self._cache[layer, part, :rows, :, :longest] for part in (0, 1))
            said = functional.scaled_dot_product_attention(grouped, keys, values, attn_mask=is_there)
            return said.reshape(rows, self.config.heads, self.config.head_size)

        return self._logits(self._run(self._embedding[torch.tensor(tokens, device=self.device)], place, attend))

    def _run(self, hidden: torch.Tensor, positions: torch.Tensor, attend: Any) -> torch.Tensor:
        """Return the last layer's values, [n, hidden]; `attend` keeps keys and values, and gives [n, heads, size]."""
        config, count = self.config, len(hidden)
        cosine, sine = self._cosine[positions][:, None], self._sine[positions][:, None]
        sizes = [config.heads * config.head_size, *[config.kv_heads * config.head_size] * 2]
        for number, layer in enumerate(self._layers):
            normed = self._normed(hidden, layer.attention_norm)
            query, key, value = (
                part.reshape(count, -1, config.head_size)
                for part in torch.split(functional.linear(normed, layer.query_key_value), sizes, dim=-1)
            )
            said = attend(number, _rotated(query, cosine, sine), _rotated(key, cosine, sine), value)
            hidden = hidden + functional.linear(said.reshape(count, -1), layer.output)
            gate, up = functional.linear(self._normed(hidden, layer.mlp_norm), layer.gate_up).chunk(2, dim=-1)
            hidden = hidden + functional.linear(functional.silu(gate) * up, layer.down)
        return hidden

    def _normed(self, hidden: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        wide = hidden.float()
        scaled = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.config.norm_epsilon)
        return (scaled * weight).to(self._dtype)

    def _logits(self, hidden: torch.Tensor) -> torch.Tensor:
        return functional.linear(self._normed(hidden, self._norm), self._head).float()


class _Layer:
    """The weights of one layer; those that read the same input are one matrix."""

    def __init__(
        self, weights: Mapping[str, torch.Tensor], prefix: str, dtype: torch.dtype, device: torch.device
    ) -> None:
        def joined(*names: str) -> torch.Tensor:
            return torch.cat([weights[f"{prefix}{name}.weight"].to(device, dtype) for name in names])

        self.attention_norm = weights[f"{prefix}input_layernorm.weight"].to(device).float()
        self.query_key_value = joined("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
        self.output = joined("self_attn.o_proj")
        self.mlp_norm = weights[f"{prefix}post_attention_layernorm.weight"].to(device).float()
        self.gate_up = joined("mlp.gate_proj", "mlp.up_proj")
        self.down = joined("mlp.down_proj")


def _rotated(values: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    """Return [n, heads, size] turned by its positions; cosine, sine: float32[n, 1, size / 2]."""
    first, second = values.float().chunk(2, dim=-1)
    turned = torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)
    return turned.to(values.dtype)


def open_llama(folder: Path, files: Sequence[Path], dtype: torch.dtype, device: torch.device = _CPU) -> Llama:
    """Return the model with the weights of `files` on a device; raises HarnessError naming a tensor that is missing."""
    config = read_config(folder)
    weights: dict[str, torch.Tensor] = {}
    try:
        for path in files:
            weights |= load_file(path)
        return Llama(config, weights, dtype, device)
    except KeyError as error:
        raise HarnessError(f"the model's files have no tensor {error}", "get the model again") from error
    except Exception as error:  # safetensors raises its own kinds for a damaged file
        raise HarnessError(f"cannot read the model's weights: {error}", "get the model again") from error
