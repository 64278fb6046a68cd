"""The layers that the U-Net and the image decoder of Stable Diffusion XL share, with the parameter names of diffusers.

Source of the structure: diffusers 0.42.1 (PyPI), models/resnet.py, models/attention.py, models/transformers/
transformer_2d.py.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional


class ResnetBlock(nn.Module):
    """Two convolutions beside a shortcut; `time`: channels of the embedding of the step, 0 without one."""

    def __init__(self, given: int, made: int, groups: int, eps: float, time: int = 0) -> None:
        super().__init__()
        self.norm1 = nn.GroupNorm(groups, given, eps=eps)
        self.conv1 = nn.Conv2d(given, made, 3, padding=1)
        self.time_emb_proj = nn.Linear(time, made) if time else None
        self.norm2 = nn.GroupNorm(groups, made, eps=eps)
        self.conv2 = nn.Conv2d(made, made, 3, padding=1)
        self.conv_shortcut = nn.Conv2d(given, made, 1) if given != made else None

    def forward(self, x: Tensor, time: Tensor | None = None) -> Tensor:
        """x [batch, given, height, width] to [batch, made, height, width]."""
        y = self.conv1(functional.silu(self.norm1(x)))
        if self.time_emb_proj is not None and time is not None:
            y = y + self.time_emb_proj(functional.silu(time))[:, :, None, None]
        y = self.conv2(functional.silu(self.norm2(y)))
        return y + (x if self.conv_shortcut is None else self.conv_shortcut(x))


class Resampling(nn.Module):
    """Halves the sides with a strided convolution, or doubles them before one."""

    def __init__(self, channels: int, is_up: bool) -> None:
        super().__init__()
        self.is_up = is_up
        self.conv = nn.Conv2d(channels, channels, 3, stride=1 if is_up else 2, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        """x [batch, channels, height, width]."""
        return self.conv(functional.interpolate(x, scale_factor=2.0, mode="nearest") if self.is_up else x)


class Attention(nn.Module):
    """Attention of `width` channels to `context` ones."""

    def __init__(self, width: int, context: int, heads: int, bias: bool = False) -> None:
        super().__init__()
        self.heads = heads
        self.to_q = nn.Linear(width, width, bias=bias)
        self.to_k = nn.Linear(context, width, bias=bias)
        self.to_v = nn.Linear(context, width, bias=bias)
        self.to_out = nn.ModuleList([nn.Linear(width, width)])

    def forward(self, x: Tensor, context: Tensor) -> Tensor:
        """x [batch, rows, width], context [batch, seen, context]."""
        query, key, value = (
            part.reshape(part.shape[0], part.shape[1], self.heads, -1).transpose(1, 2)
            for part in (self.to_q(x), self.to_k(context), self.to_v(context))
        )
        seen = functional.scaled_dot_product_attention(query, key, value)
        return self.to_out[0](seen.transpose(1, 2).flatten(2))


class _Gated(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.proj = nn.Linear(width, 8 * width)

    def forward(self, x: Tensor) -> Tensor:
        values, gate = self.proj(x).chunk(2, dim=-1)
        return values * functional.gelu(gate)


class _TransformerBlock(nn.Module):
    def __init__(self, width: int, context: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(width) for _ in range(3))
        self.attn1 = Attention(width, width, heads)
        self.attn2 = Attention(width, context, heads)
        wide = nn.Sequential(_Gated(width), nn.Identity(), nn.Linear(4 * width, width))
        self.ff = nn.ModuleDict({"net": wide})

    def forward(self, x: Tensor, context: Tensor) -> Tensor:
        normal = self.norm1(x)
        x = x + self.attn1(normal, normal)
        x = x + self.attn2(self.norm2(x), context)
        return x + self.ff["net"](self.norm3(x))


class Transformer(nn.Module):
    """Lets the places of a picture look at each other and at the text."""

    def __init__(self, width: int, context: int, heads: int, depth: int, groups: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(groups, width, eps=1e-6)
        self.proj_in = nn.Linear(width, width)
        self.transformer_blocks = nn.ModuleList(_TransformerBlock(width, context, heads) for _ in range(depth))
        self.proj_out = nn.Linear(width, width)

    def forward(self, x: Tensor, context: Tensor) -> Tensor:
        """x [batch, width, height, width], context [batch, tokens, context]."""
        y = self.proj_in(self.norm(x).flatten(2).transpose(1, 2))
        for block in self.transformer_blocks:
            y = block(y, context)
        return self.proj_out(y).transpose(1, 2).reshape(x.shape) + x


def sinusoids(values: Tensor, width: int) -> Tensor:
    """Return [rows, width]: cosines, then sines, of float32[rows] at falling frequencies."""
    half = width // 2
    frequencies = torch.exp(torch.arange(half, device=values.device) * (-9.210340371976184 / half))  # -log(10000)
    angles = values[:, None] * frequencies[None]
    return torch.cat((angles.cos(), angles.sin()), dim=-1)
