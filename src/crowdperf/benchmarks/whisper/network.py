"""Whisper, with the parameter names of Hugging Face's WhisperForConditionalGeneration, as two networks.

The encoder takes the features of a clip and gives what the decoder's layers look at: keys and values of the clip for
each of them, once. The decoder takes new tokens and what was kept of those before, and gives the likeliest next token.
Keys and values of past tokens start with one slot that is never looked at, so that no tensor is empty.

Source of the structure: transformers' modeling_whisper.py as vllm restates it (layer norm before attention and before
the wide layer, GELU, no bias for keys), two convolutions of width 3 in front, the second with stride 2, learned
positions; sizes of "full": config.json of openai/whisper-large-v3.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "full": {
        "d_model": 1280,
        "encoder_layers": 32,
        "decoder_layers": 32,
        "heads": 20,
        "ffn_dim": 5120,
        "vocab_size": 51866,
        "mel_count": 128,
        "frame_count": 3000,
        "position_count": 448,
    },
    "tiny": {
        "d_model": 64,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "heads": 4,
        "ffn_dim": 128,
        "vocab_size": 262,
        "mel_count": 32,
        "frame_count": 400,
        "position_count": 64,
    },
}
"""frame_count: 10 ms each; the encoder has half as many positions. tiny: clips of up to 4 s."""

_HIDDEN = -6e4  # finite in float16, too


class _Attention(nn.Module):
    def __init__(self, width: int, heads: int, parts: str) -> None:
        super().__init__()
        self.heads = heads
        for part in parts.split():
            self.add_module(part, nn.Linear(width, width, bias=part != "k_proj"))

    def part(self, name: str, values: Tensor) -> Tensor:
        """Return [batch, heads, rows, head] of one projection."""
        made: Tensor = self.get_submodule(name)(values)
        return made.reshape(made.shape[0], made.shape[1], self.heads, -1).transpose(1, 2)

    def look(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return [batch, rows, width] after the last projection."""
        scores = (query * query.shape[-1] ** -0.5) @ key.transpose(-2, -1)
        seen = (scores if mask is None else scores + mask).softmax(-1) @ value
        return self.get_submodule("out_proj")(seen.transpose(1, 2).flatten(2))


class _Wide(nn.Module):
    """What both kinds of layer end with."""

    def __init__(self, width: int, wide: int) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(width, wide), nn.Linear(wide, width)
        self.final_layer_norm = nn.LayerNorm(width)

    def end(self, x: Tensor) -> Tensor:
        """Return the layer's values."""
        return x + self.fc2(functional.gelu(self.fc1(self.final_layer_norm(x))))


class _EncoderLayer(_Wide):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config["d_model"], config["ffn_dim"])
        self.self_attn = _Attention(config["d_model"], config["heads"], "k_proj v_proj q_proj out_proj")
        self.self_attn_layer_norm = nn.LayerNorm(config["d_model"])

    def forward(self, x: Tensor) -> Tensor:
        normal, attention = self.self_attn_layer_norm(x), self.self_attn
        query, key, value = (attention.part(name, normal) for name in ("q_proj", "k_proj", "v_proj"))
        return self.end(x + attention.look(query, key, value))


class _DecoderLayer(_Wide):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config["d_model"], config["ffn_dim"])
        self.self_attn = _Attention(config["d_model"], config["heads"], "k_proj v_proj q_proj out_proj")
        self.self_attn_layer_norm = nn.LayerNorm(config["d_model"])
        self.encoder_attn = _Attention(config["d_model"], config["heads"], "q_proj out_proj")
        self.encoder_attn_layer_norm = nn.LayerNorm(config["d_model"])

    def forward(self, x: Tensor, mask: Tensor, kept: tuple[Tensor, ...]) -> tuple[Tensor, Tensor, Tensor]:
        """Return values, keys and values of past and new; kept: those of the clip, then those of the past."""
        normal, attention = self.self_attn_layer_norm(x), self.self_attn
        key = torch.cat((kept[2], attention.part("k_proj", normal)), 2)
        value = torch.cat((kept[3], attention.part("v_proj", normal)), 2)
        x = x + attention.look(attention.part("q_proj", normal), key, value, mask)
        query = self.encoder_attn.part("q_proj", self.encoder_attn_layer_norm(x))
        return self.end(x + self.encoder_attn.look(query, kept[0], kept[1])), key, value


class _EncoderStack(nn.Module):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        width = config["d_model"]
        self.conv1 = nn.Conv1d(config["mel_count"], width, 3, padding=1)
        self.conv2 = nn.Conv1d(width, width, 3, stride=2, padding=1)
        self.embed_positions = nn.Embedding(config["frame_count"] // 2, width)
        self.layers = nn.ModuleList(_EncoderLayer(config) for _ in range(config["encoder_layers"]))
        self.layer_norm = nn.LayerNorm(width)

    def forward(self, features: Tensor) -> Tensor:
        x = functional.gelu(self.conv2(functional.gelu(self.conv1(features))))
        x = x.transpose(1, 2) + self.embed_positions.weight
        for layer in self.layers:
            x = layer(x)
        return self.layer_norm(x)


class _ClipLayer(nn.Module):
    """What a decoder's layer makes of the encoder's answer."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.encoder_attn = _Attention(config["d_model"], config["heads"], "k_proj v_proj")


class _Layers(nn.Module):
    def __init__(self, layers: list[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)


class Encoder(nn.Module):
    """features float32[batch, mels, frames] to keys and values [batch, layers, heads, positions, head]."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.encoder = _EncoderStack(config)
        self.decoder = _Layers([_ClipLayer(config) for _ in range(config["decoder_layers"])])

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys and values of the clip."""
        heard = self.encoder(features)
        attentions = [layer.get_submodule("encoder_attn") for layer in self.decoder.layers]
        made = [
            [one.part(name, heard) for one in attentions if isinstance(one, _Attention)]
            for name in ("k_proj", "v_proj")
        ]
        return torch.stack(made[0], 1), torch.stack(made[1], 1)


class _DecoderStack(_Layers):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__([_DecoderLayer(config) for _ in range(config["decoder_layers"])])
        self.embed_tokens = nn.Embedding(config["vocab_size"], config["d_model"])
        self.embed_positions = nn.Embedding(config["position_count"], config["d_model"])
        self.layer_norm = nn.LayerNorm(config["d_model"])


class Decoder(nn.Module):
    """New tokens int64[batch, new] at `position` int64[batch, new], with what is kept of clip and past, to the
    likeliest next token."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.decoder = _DecoderStack(config)

    def logits(self, token: Tensor, position: Tensor, *kept: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return logits [batch, new, vocabulary], and the keys and values of past and new tokens."""
        x = self.decoder.embed_tokens(token) + self.decoder.embed_positions(position)
        past, new = kept[2].shape[3], token.shape[1]
        columns = torch.arange(past + new, device=token.device)
        rows = torch.arange(new, device=token.device).unsqueeze(1)
        is_hidden = (columns == 0) | (columns > rows + past)
        mask = is_hidden.to(x.dtype) * _HIDDEN
        keys, values = [], []
        for number, layer in enumerate(self.decoder.layers):
            x, key, value = layer(x, mask, tuple(one[:, number] for one in kept))
            keys.append(key)
            values.append(value)
        scores: Tensor = self.decoder.layer_norm(x) @ self.decoder.embed_tokens.weight.t()
        return scores, torch.stack(keys, 1), torch.stack(values, 1)

    def forward(self, token: Tensor, position: Tensor, *kept: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return `symbol` int64[batch], and the keys and values of past and new tokens."""
        scores, keys, values = self.logits(token, position, *kept)
        return scores[:, -1].argmax(-1), keys, values


def build(network: str, config: Mapping[str, Any]) -> nn.Module:
    """Return one of the networks "encoder" and "decoder" in eval mode."""
    return (Encoder(config) if network == "encoder" else Decoder(config)).eval()


def example_inputs(
    network: str, config: Mapping[str, Any], count: int, generator: torch.Generator
) -> tuple[Tensor, ...]:
    """Return random features, or tokens in the middle of a transcript."""
    if network == "encoder":
        return (torch.randn((count, config["mel_count"], config["frame_count"]), generator=generator),)
    layers, heads, head = config["decoder_layers"], config["heads"], config["d_model"] // config["heads"]

    def state(slots: int) -> Tensor:
        return torch.randn((count, layers, heads, slots, head), generator=generator)

    tokens = torch.randint(0, config["vocab_size"], (count, 2), generator=generator)
    position = torch.tensor([[3, 4]]).expand(count, -1).contiguous()
    return (tokens, position, *(state(config["frame_count"] // 2) for _ in range(2)), *(state(4) for _ in range(2)))


def convert_checkpoint(network: str, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors without "model." in front."""
    return {name.removeprefix("model."): value for name, value in state.items()}
