"""CLIP's text encoder, with the parameter names of transformers' CLIPTextModel and CLIPTextModelWithProjection.

Source of the structure: transformers 5.23.0 (PyPI), models/clip/modeling_clip.py.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

_HIDDEN = -6e4  # finite in float16, too


class _Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        query, key, value = (
            part(x).reshape(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)
            for part in (self.q_proj, self.k_proj, self.v_proj)
        )
        seen = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return self.out_proj(seen.transpose(1, 2).flatten(2))


class _Wide(nn.Module):
    def __init__(self, width: int, is_quick: bool) -> None:
        super().__init__()
        self.is_quick = is_quick
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = self.fc1(x)
        return self.fc2(x * torch.sigmoid(1.702 * x) if self.is_quick else functional.gelu(x))


class _Layer(nn.Module):
    def __init__(self, width: int, heads: int, is_quick: bool) -> None:
        super().__init__()
        self.layer_norm1, self.layer_norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.self_attn, self.mlp = _Attention(width, heads), _Wide(width, is_quick)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = x + self.self_attn(self.layer_norm1(x), mask)
        return x + self.mlp(self.layer_norm2(x))


class _Embeddings(nn.Module):
    def __init__(self, vocabulary: int, positions: int, width: int) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(vocabulary, width)
        self.position_embedding = nn.Embedding(positions, width)


class _Encoder(nn.Module):
    def __init__(self, layers: list[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)


class _TextModel(nn.Module):
    def __init__(self, config: Mapping[str, Any], size: Mapping[str, Any], is_whole: bool) -> None:
        super().__init__()
        width, heads, count = (int(size[key]) for key in ("width", "heads", "layers"))
        self.embeddings = _Embeddings(int(config["vocabulary"]), int(config["positions"]), width)
        used = count if is_whole else count - 1
        self.encoder = _Encoder([_Layer(width, heads, not is_whole) for _ in range(used)])
        self.final_layer_norm = nn.LayerNorm(width) if is_whole else None


class TextEncoder(nn.Module):
    """tokens int64[rows, positions] to what the last layer but one gives, [rows, positions, width].

    is_whole: the second encoder, whose last layer is needed for the text as a whole; of the first one the last layer
    has no effect on the picture and is left out.
    """

    def __init__(self, config: Mapping[str, Any], size: Mapping[str, Any], is_whole: bool) -> None:
        super().__init__()
        self.text_model = _TextModel(config, size, is_whole)
        width = int(size["width"])
        self.text_projection = nn.Linear(width, int(config["pooled"]), bias=False) if is_whole else None

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Return the values of each token, and of the whole text [rows, pooled] (the first encoder: of no use)."""
        model = self.text_model
        x = model.embeddings.token_embedding(tokens) + model.embeddings.position_embedding.weight
        count = tokens.shape[1]
        mask = torch.full((count, count), _HIDDEN, dtype=x.dtype, device=x.device).triu(1)
        layers = list(model.encoder.layers)
        kept = x
        for layer in layers:
            kept, x = x, layer(x, mask)
        if self.text_projection is None or model.final_layer_norm is None:
            return x, x
        end = tokens.argmax(-1)  # the end token has the highest number; its first place counts
        last: Tensor = model.final_layer_norm(x)
        rows = last.gather(1, end[:, None, None].expand(-1, 1, last.shape[2])).squeeze(1)
        return kept, self.text_projection(rows)
