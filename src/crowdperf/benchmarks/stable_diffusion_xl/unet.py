"""The U-Net of Stable Diffusion XL: the noise in a latent picture, with the parameter names of diffusers.

Source of the structure: diffusers 0.42.1 (PyPI), models/unets/unet_2d_condition.py and unet_2d_blocks.py.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from crowdperf.benchmarks.stable_diffusion_xl.attention import Resampling, ResnetBlock, Transformer, sinusoids

_EPS = 1e-5
SIZES = 6
"""Numbers that the network is told of the picture: height and width wanted, twice, and where it was cut."""


class _Embedding(nn.Module):
    def __init__(self, given: int, made: int) -> None:
        super().__init__()
        self.linear_1, self.linear_2 = nn.Linear(given, made), nn.Linear(made, made)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear_2(functional.silu(self.linear_1(x)))


class _Block(nn.Module):
    """Resnet blocks, each with a transformer behind it where the block has attention, and a change of size."""

    def __init__(self, config: Mapping[str, Any], level: int, givens: list[int], resampling: bool | None) -> None:
        """givens: channels that each resnet block gets. resampling: up (true), down (false) or none."""
        super().__init__()
        width, groups = int(config["channels"][level]), int(config["groups"])
        depth, heads = int(config["depths"][level]), int(config["heads"][level])
        time, context = 4 * int(config["channels"][0]), int(config["context"])
        self.resnets = nn.ModuleList(ResnetBlock(given, width, groups, _EPS, time) for given in givens)
        self.attentions = nn.ModuleList(
            Transformer(width, context, heads, depth, groups) for _ in range(len(givens) if depth else 0)
        )
        parts = [] if resampling is None else [Resampling(width, resampling)]
        self.downsamplers, self.upsamplers = (nn.ModuleList(parts if resampling is up else []) for up in (False, True))

    def step(self, number: int, x: Tensor, time: Tensor, context: Tensor) -> Tensor:
        x = self.resnets[number](x, time)
        if len(self.attentions):
            x = self.attentions[number](x, context)
        return x


class _Middle(nn.Module):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        width, groups, time = int(config["channels"][-1]), int(config["groups"]), 4 * int(config["channels"][0])
        self.resnets = nn.ModuleList(ResnetBlock(width, width, groups, _EPS, time) for _ in range(2))
        self.attentions = nn.ModuleList(
            [Transformer(width, int(config["context"]), int(config["heads"][-1]), int(config["depths"][-1]), groups)]
        )

    def forward(self, x: Tensor, time: Tensor, context: Tensor) -> Tensor:
        x = self.attentions[0](self.resnets[0](x, time), context)
        return self.resnets[1](x, time)


class UNet(nn.Module):
    """The noise in `latent`; what else it takes: `forward`."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        widths, layers = [int(width) for width in config["channels"]], int(config["layers"])
        time, last = 4 * widths[0], len(widths) - 1
        self.width, self.size_width = widths[0], int(config["size_width"])
        self.conv_in = nn.Conv2d(4, widths[0], 3, padding=1)
        self.time_embedding = _Embedding(widths[0], time)
        self.add_embedding = _Embedding(int(config["pooled"]) + SIZES * self.size_width, time)
        kept, down = [widths[0]], []
        for level, width in enumerate(widths):
            givens = [widths[max(level - 1, 0)], *[width] * (layers - 1)]
            down.append(_Block(config, level, givens, None if level == last else False))
            kept += [width] * (layers + (level != last))
        self.down_blocks = nn.ModuleList(down)
        self.mid_block = _Middle(config)
        up, given = [], widths[-1]
        for level in range(last, -1, -1):
            givens = []
            for _ in range(layers + 1):
                givens.append(given + kept.pop())
                given = widths[level]
            up.append(_Block(config, level, givens, None if level == 0 else True))
        self.up_blocks = nn.ModuleList(up)
        self.conv_norm_out = nn.GroupNorm(int(config["groups"]), widths[0], eps=_EPS)
        self.conv_out = nn.Conv2d(widths[0], 4, 3, padding=1)

    def forward(self, latent: Tensor, time: Tensor, context: Tensor, pooled: Tensor, sizes: Tensor) -> Tensor:
        """Return float[batch, 4, height, width]; latent of that shape, time float32[batch] of the 1,000 of the
        training, context [batch, tokens, channels], pooled [batch, channels], sizes float32[batch, 6]."""
        told = sinusoids(sizes.flatten(), self.size_width).reshape(sizes.shape[0], -1).to(pooled.dtype)
        step = self.time_embedding(sinusoids(time, self.width).to(latent.dtype))
        step = step + self.add_embedding(torch.cat((pooled, told), dim=-1))
        x = self.conv_in(latent)
        kept = [x]
        for block in self.down_blocks:
            assert isinstance(block, _Block)
            for number in range(len(block.resnets)):
                x = block.step(number, x, step, context)
                kept.append(x)
            for part in block.downsamplers:
                x = part(x)
                kept.append(x)
        x = self.mid_block(x, step, context)
        for block in self.up_blocks:
            assert isinstance(block, _Block)
            for number in range(len(block.resnets)):
                x = block.step(number, torch.cat((x, kept.pop()), dim=1), step, context)
            for part in block.upsamplers:
                x = part(x)
        return self.conv_out(functional.silu(self.conv_norm_out(x)))
