"""GPT-J, with the parameter names of Hugging Face's GPTJForCausalLM; one network for the prompt and for each new token.

Source of the structure: "GPT-J-6B" (mesh-transformer-jax) as transformers' modeling_gptj.py states it: layer norm, then
attention and a wide layer side by side, rotary positions on the first `rotary_dim` values of each head, turned in
neighbouring pairs.

What attention looks at is in three parts. The *prompt* is kept once for all beams of a sample, since it is the same for
all. The *past* is what each beam has said so far; `source` says which beam of the last call each beam goes on from, so
that the caches are put in order here and may stay on the device. The *new* tokens come with the call. Prompt and past
start with one slot that is never looked at, so that no tensor is ever empty.
"""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch.nn import functional

CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "full": {  # config.json of EleutherAI/gpt-j-6B
        "n_embd": 4096,
        "n_layer": 28,
        "n_head": 16,
        "rotary_dim": 64,
        "vocab_size": 50400,
        "layer_norm_epsilon": 1e-5,
        "eos_token_id": 50256,
    },
    "tiny": {
        "n_embd": 64,
        "n_layer": 2,
        "n_head": 4,
        "rotary_dim": 8,
        "vocab_size": 1024,
        "layer_norm_epsilon": 1e-5,
        "eos_token_id": 0,
    },
}
CANDIDATES = 9
"""Tokens returned for each beam: twice four beams, and one more that may turn out to be the forbidden end."""

_MASKED = -1e30  # finite: a row of padding alone must not become NaN


def _rotated(values: torch.Tensor, sine: torch.Tensor, cosine: torch.Tensor) -> torch.Tensor:
    """Return [..., rotary_dim] turned; each pair of neighbours is one point."""
    first, second = values[..., 0::2], values[..., 1::2]
    turned = torch.stack((first * cosine - second * sine, second * cosine + first * sine), dim=-1)
    return turned.flatten(-2)


class Attention(torch.nn.Module):
    """The four projections; the sums are in `Block`."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        width = config["n_embd"]
        self.heads, self.rotary = int(config["n_head"]), int(config["rotary_dim"])
        self.k_proj = torch.nn.Linear(width, width, bias=False)
        self.v_proj = torch.nn.Linear(width, width, bias=False)
        self.q_proj = torch.nn.Linear(width, width, bias=False)
        self.out_proj = torch.nn.Linear(width, width, bias=False)

    def split(self, values: torch.Tensor) -> torch.Tensor:
        """Return [batch, beams, heads, new, head] of [batch, beams, new, width]."""
        batch, beams, new, width = values.shape
        return values.reshape(batch, beams, new, self.heads, width // self.heads).transpose(2, 3)

    def turn(self, values: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
        """Return split heads with their first `rotary` values turned by `angles`[batch, new, rotary / 2]."""
        sine, cosine = (part[:, None, None].to(values.dtype) for part in (angles.sin(), angles.cos()))
        turned = _rotated(values[..., : self.rotary], sine, cosine)
        return torch.cat((turned, values[..., self.rotary :]), dim=-1)


class Mlp(torch.nn.Module):
    """The wide layer: four times the width, GELU in its tanh form."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc_in = torch.nn.Linear(width, 4 * width)
        self.fc_out = torch.nn.Linear(4 * width, width)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return [..., width]."""
        wide: torch.Tensor = self.fc_in(values)
        return self.fc_out(functional.gelu(wide, approximate="tanh"))


class Block(torch.nn.Module):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.ln_1 = torch.nn.LayerNorm(config["n_embd"], eps=config["layer_norm_epsilon"])
        self.attn = Attention(config)
        self.mlp = Mlp(config["n_embd"])

    def forward(
        self,
        values: torch.Tensor,
        angles: torch.Tensor,
        caches: tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor],
        masks: tuple[torch.Tensor, torch.Tensor],
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the next layer's values[batch, beams, new, width], and keys and values of past and new tokens.

        caches: prompt keys, prompt values [batch, heads, prompt, head]; past keys, past values [batch, beams, heads,
        past, head]. masks: what is added to the scores of the prompt and of past and new tokens.
        """
        normal = self.ln_1(values)
        query = self.attn.turn(self.attn.split(self.attn.q_proj(normal)), angles)
        key = self.attn.turn(self.attn.split(self.attn.k_proj(normal)), angles)
        prompt_key, prompt_value, past_key, past_value = caches
        keys = torch.cat((past_key, key), dim=3)
        held = torch.cat((past_value, self.attn.split(self.attn.v_proj(normal))), dim=3)
        batch, beams, heads, new, head = query.shape
        # All beams of a sample ask the one prompt: one product of matrices instead of one for each beam.
        asked = query.transpose(1, 2).reshape(batch, heads, beams * new, head)
        scores = torch.cat(
            (
                torch.matmul(asked, prompt_key.transpose(2, 3))
                .reshape(batch, heads, beams, new, prompt_key.shape[2])
                .transpose(1, 2)
                / math.sqrt(head)
                + masks[0],
                torch.matmul(query, keys.transpose(3, 4)) / math.sqrt(head) + masks[1],
            ),
            dim=-1,
        )
        weights = functional.softmax(scores.float(), dim=-1).to(values.dtype)
        on_prompt, on_rest = weights[..., : prompt_key.shape[2]], weights[..., prompt_key.shape[2] :]
        seen = torch.matmul(
            on_prompt.transpose(1, 2).reshape(batch, heads, beams * new, prompt_key.shape[2]), prompt_value
        )
        seen = seen.reshape(batch, heads, beams, new, head).transpose(1, 2) + torch.matmul(on_rest, held)
        merged = seen.transpose(2, 3).reshape(batch, beams, new, heads * head)
        return values + self.attn.out_proj(merged) + self.mlp(normal), keys, held


class Transformer(torch.nn.Module):
    """Embedding and layers, under the name `transformer` as in the checkpoint."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.wte = torch.nn.Embedding(config["vocab_size"], config["n_embd"])
        self.h = torch.nn.ModuleList([Block(config) for _ in range(config["n_layer"])])
        self.ln_f = torch.nn.LayerNorm(config["n_embd"], eps=config["layer_norm_epsilon"])


class GptJ(torch.nn.Module):
    """The language model with its caches."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.transformer = Transformer(config)
        self.lm_head = torch.nn.Linear(config["n_embd"], config["vocab_size"])
        self.rotary = int(config["rotary_dim"])
        heads = int(config["n_head"])
        self._cache_sizes = (int(config["n_layer"]), heads, int(config["n_embd"]) // heads)

    def cache_shape(self, slots: int) -> tuple[int, int, int, int]:
        """Return (layers, heads, slots, head): the shape of one beam's keys, or values."""
        return (*self._cache_sizes[:2], slots, self._cache_sizes[2])

    def hidden(
        self,
        token: torch.Tensor,
        position: torch.Tensor,
        masks: tuple[torch.Tensor, torch.Tensor],
        caches: tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor],
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the last layer's values[batch, beams, new, width], and all keys and values, [batch, beams, layers,
        heads, past + new, head]; `caches` as the states of `forward`, the past already in order."""
        powers = torch.arange(0, self.rotary, 2, device=token.device).float() / self.rotary
        angles = position[..., None].float() * (1.0 / torch.pow(10000.0, powers))
        values = self.transformer.wte(token)
        keys, held = [], []
        for layer, block in enumerate(self.transformer.h):
            prompt = (caches[0][:, 0, layer], caches[1][:, 0, layer])
            past = (caches[2][:, :, layer], caches[3][:, :, layer])
            values, key, value = block(values, angles, (*prompt, *past), masks)
            keys.append(key)
            held.append(value)
        return self.transformer.ln_f(values), torch.stack(keys, dim=2), torch.stack(held, dim=2)

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the logarithms of the probabilities of the most likely next tokens [batch, beams, CANDIDATES], these
        tokens, and the keys and values that the next call needs. The nine inputs:
        crowdperf/benchmarks/gptj/model.py."""
        token, position, is_token, is_prompt, source, prompt_key, prompt_value, key, value = inputs
        batch, past_beams = key.shape[0], key.shape[1]
        flat = (source + torch.arange(batch, device=source.device)[:, None] * past_beams).reshape(-1)
        past_key, past_value = (
            cache.flatten(0, 1).index_select(0, flat).reshape(batch, -1, *cache.shape[2:]) for cache in (key, value)
        )
        masks = self.masks(is_prompt, is_token, key.shape[4])
        values, keys, held = self.hidden(token, position, masks, (prompt_key, prompt_value, past_key, past_value))
        logits = self.lm_head(values[:, :, -1]).float()
        top = torch.topk(functional.log_softmax(logits, dim=-1), CANDIDATES, dim=-1)
        return top.values, top.indices, keys, held

    def masks(self, is_prompt: torch.Tensor, is_token: torch.Tensor, past: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return what is added to scores [batch, 1, 1, 1, prompt] and [batch, 1, 1, new, past + new]: the first slot
        of the past is empty, and a new token sees those before it and itself."""
        new = torch.arange(is_token.shape[1], device=is_token.device)
        sees_new = (new[None, :] <= new[:, None])[None] & is_token[:, None, :]
        is_past = torch.arange(past, device=is_token.device) > 0
        sees_past = is_past[None, None, :].expand(is_token.shape[0], is_token.shape[1], -1)
        sees = torch.cat((sees_past, sees_new), dim=2)[:, None, None]
        return self._added(is_prompt[:, None, None, None]), self._added(sees)

    def _added(self, sees: torch.Tensor) -> torch.Tensor:
        return (~sees).to(self.lm_head.weight.dtype) * (_MASKED if self.lm_head.weight.dtype != torch.float16 else -6e4)


def build(network: str, config: Mapping[str, Any]) -> torch.nn.Module:
    return GptJ(config).eval()


def example_inputs(
    network: str, config: Mapping[str, Any], count: int, generator: torch.Generator
) -> tuple[torch.Tensor, ...]:
    """Return inputs as they are in the middle of a search."""
    beams, past_beams, new, prompt, past = 2, 3, 4, 5, 3
    head = config["n_embd"] // config["n_head"]
    token = torch.randint(config["vocab_size"], (count, beams, new), generator=generator)
    position = (torch.arange(new) + prompt + past).repeat(count, 1)
    is_token, is_prompt = torch.ones((count, new), dtype=torch.bool), torch.ones((count, prompt), dtype=torch.bool)
    source = torch.arange(beams).repeat(count, 1)
    sizes = ((1, prompt), (1, prompt), (past_beams, past), (past_beams, past))
    caches = [
        torch.randn((count, rows, config["n_layer"], config["n_head"], slots, head), generator=generator)
        for rows, slots in sizes
    ]
    return token, position, is_token, is_prompt, source, *caches


def convert_checkpoint(network: str, state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the published tensors without the constant masks of attention, which no parameter here has."""
    unused = ("attn.bias", "attn.masked_bias", "attn.embed_positions")
    return {name: tensor for name, tensor in state.items() if not name.endswith(unused)}
