"""CLIP ViT-B/32 as the scorer of pictures uses it, with open_clip's parameter names; sizes follow from the weights.

Source of the structure: open_clip_torch 2.26.1 (PyPI), transformer.py and model.py, there
build_model_from_openai_state_dict: quick GELU, 64 channels a head.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

_HEAD = 64
VIT_B_32 = {"width": 768, "layers": 12, "patch": 32, "grid": 7, "embed": 512, "text_width": 512, "text_layers": 12,
            "vocabulary": 49408, "positions": 77}  # fmt: skip


class _Wide(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.c_fc, self.c_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = self.c_fc(x)
        return self.c_proj(x * torch.sigmoid(1.702 * x))


class _Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = nn.MultiheadAttention(width, max(1, width // _HEAD), batch_first=True)
        self.mlp = _Wide(width)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        normal = self.ln_1(x)
        x = x + self.attn(normal, normal, normal, need_weights=False, attn_mask=mask)[0]
        return x + self.mlp(self.ln_2(x))


class _Stack(nn.Module):
    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.resblocks = nn.ModuleList(_Block(width) for _ in range(layers))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        for block in self.resblocks:
            x = block(x, mask)
        return x


class _Visual(nn.Module):
    def __init__(self, sizes: Mapping[str, int]) -> None:
        super().__init__()
        width = sizes["width"]
        self.conv1 = nn.Conv2d(3, width, sizes["patch"], stride=sizes["patch"], bias=False)
        self.class_embedding = nn.Parameter(torch.zeros(width))
        self.positional_embedding = nn.Parameter(torch.zeros(sizes["grid"] ** 2 + 1, width))
        self.ln_pre, self.ln_post = nn.LayerNorm(width), nn.LayerNorm(width)
        self.transformer = _Stack(width, sizes["layers"])
        self.proj = nn.Parameter(torch.zeros(width, sizes["embed"]))

    def forward(self, pictures: Tensor) -> Tensor:
        x = self.conv1(pictures).flatten(2).transpose(1, 2)
        x = torch.cat((self.class_embedding.expand(len(x), 1, -1), x), dim=1) + self.positional_embedding
        return self.ln_post(self.transformer(self.ln_pre(x))[:, 0]) @ self.proj


class Clip(nn.Module):
    """Pictures and texts to directions that compare."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        super().__init__()
        width = sizes["text_width"]
        self.side, self.positions = sizes["patch"] * sizes["grid"], sizes["positions"]
        self.visual = _Visual(sizes)
        self.transformer = _Stack(width, sizes["text_layers"])
        self.token_embedding = nn.Embedding(sizes["vocabulary"], width)
        self.positional_embedding = nn.Parameter(torch.zeros(self.positions, width))
        self.ln_final = nn.LayerNorm(width)
        self.text_projection = nn.Parameter(torch.zeros(width, sizes["embed"]))

    def pictures(self, values: Tensor) -> Tensor:
        """float32[batch, 3, side, side], normalised, to directions of length 1, [batch, embed]."""
        return nn.functional.normalize(self.visual(values), dim=-1)

    def texts(self, tokens: Tensor) -> Tensor:
        """int64[batch, positions] to directions of length 1; the end token has the highest number."""
        mask = torch.full((self.positions, self.positions), float("-inf")).triu(1)
        x = self.ln_final(self.transformer(self.token_embedding(tokens) + self.positional_embedding, mask))
        rows = x[torch.arange(len(x)), tokens.argmax(-1)]
        return nn.functional.normalize(rows @ self.text_projection, dim=-1)


def sizes_of(state: Mapping[str, Tensor]) -> dict[str, int]:
    """Return the sizes that a state dict has. Raises KeyError for one that is no CLIP with a vision transformer."""

    def layers(prefix: str) -> int:
        return len({name.removeprefix(prefix).split(".")[0] for name in state if name.startswith(prefix)})

    convolution = state["visual.conv1.weight"]
    return {
        "width": convolution.shape[0],
        "patch": convolution.shape[2],
        "grid": round((len(state["visual.positional_embedding"]) - 1) ** 0.5),
        "embed": state["text_projection"].shape[1],
        "layers": layers("visual.transformer.resblocks."),
        "text_width": state["ln_final.weight"].shape[0],
        "text_layers": layers("transformer.resblocks."),
        "vocabulary": len(state["token_embedding.weight"]),
        "positions": len(state["positional_embedding"]),
    }
