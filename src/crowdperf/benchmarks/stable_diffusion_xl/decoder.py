"""What makes a picture of a latent one: the decoder of the autoencoder, with the parameter names of diffusers.

Source of the structure: diffusers 0.42.1 (PyPI), models/autoencoders/autoencoder_kl.py and vae.py.
"""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from crowdperf.benchmarks.stable_diffusion_xl.attention import Attention, Resampling, ResnetBlock

_EPS = 1e-6


class _Look(Attention):
    """Attention of a picture's places to each other, beside a shortcut."""

    def __init__(self, width: int, groups: int) -> None:
        super().__init__(width, width, 1, bias=True)
        self.group_norm = nn.GroupNorm(groups, width, eps=_EPS)

    def look(self, x: Tensor) -> Tensor:
        rows = self.group_norm(x).flatten(2).transpose(1, 2)
        return self(rows, rows).transpose(1, 2).reshape(x.shape) + x


class _Middle(nn.Module):
    def __init__(self, width: int, groups: int) -> None:
        super().__init__()
        self.resnets = nn.ModuleList(ResnetBlock(width, width, groups, _EPS) for _ in range(2))
        self.attentions = nn.ModuleList([_Look(width, groups)])

    def forward(self, x: Tensor) -> Tensor:
        looked = self.attentions[0].look(self.resnets[0](x))  # type: ignore[operator]
        return self.resnets[1](looked)


class _Up(nn.Module):
    def __init__(self, given: int, made: int, count: int, groups: int, is_last: bool) -> None:
        super().__init__()
        self.resnets = nn.ModuleList(
            ResnetBlock(made if number else given, made, groups, _EPS) for number in range(count)
        )
        self.upsamplers = nn.ModuleList([] if is_last else [Resampling(made, is_up=True)])

    def forward(self, x: Tensor) -> Tensor:
        for part in (*self.resnets, *self.upsamplers):
            x = part(x)
        return x


class _Stack(nn.Module):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        widths, groups = [int(width) for width in reversed(config["image_channels"])], int(config["groups"])
        self.conv_in = nn.Conv2d(4, widths[0], 3, padding=1)
        self.mid_block = _Middle(widths[0], groups)
        self.up_blocks = nn.ModuleList(
            _Up(given, made, int(config["image_layers"]), groups, number == len(widths) - 1)
            for number, (given, made) in enumerate(zip([widths[0], *widths], widths, strict=False))
        )
        self.conv_norm_out = nn.GroupNorm(groups, widths[-1], eps=_EPS)
        self.conv_out = nn.Conv2d(widths[-1], 3, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.mid_block(self.conv_in(x))
        for block in self.up_blocks:
            x = block(x)
        return self.conv_out(functional.silu(self.conv_norm_out(x)))


class Decoder(nn.Module):
    """latent float[batch, 4, height, width] to image [batch, 3, ...], -1..1 and beyond."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.scale = float(config["latent_scale"])
        self.post_quant_conv = nn.Conv2d(4, 4, 1)
        self.decoder = _Stack(config)

    def forward(self, latent: Tensor) -> Tensor:
        return self.decoder(self.post_quant_conv(latent / self.scale))
