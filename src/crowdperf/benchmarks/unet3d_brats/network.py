"""The 3D-UNet of the BraTS19 benchmark (v0.7 to v1.1): nnU-Net's network for volumes, without its training outputs.

Structure and parameter names are those of Generic_UNet in nnU-Net version 1 (nnunet/network_architecture/
generic_UNet.py) with transposed convolutions, instance norm and leaky ReLU, as nnUNetTrainerV2 builds it for 3D full
resolution: five halvings, 30 filters at first, doubled up to 320. The published checkpoint has four more outputs for
training (`seg_outputs.0` to 3), of which inference uses the last one only, `seg_outputs.4`.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

CONFIGS: Mapping[str, Mapping[str, Any]] = {
    # Volume: what the reference pads every case to (README.md of 3d-unet-brats19).
    "full": {"filters": (30, 60, 120, 240, 320, 320), "classes": 4, "volume": (224, 224, 160)},
    "tiny": {"filters": (6, 12, 24), "classes": 4, "volume": (32, 32, 24)},
}
_MODALITIES = 4


class _Block(nn.Module):
    """Convolution, instance norm, leaky ReLU."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv = nn.Conv3d(inputs, outputs, kernel_size=3, stride=stride, padding=1)
        self.instnorm = nn.InstanceNorm3d(outputs, eps=1e-5, affine=True)
        self.lrelu = nn.LeakyReLU(negative_slope=1e-2)

    def forward(self, volume: torch.Tensor) -> torch.Tensor:
        return self.lrelu(self.instnorm(self.conv(volume)))


class _Stack(nn.Module):
    """One or two blocks; the first may halve the volume."""

    def __init__(self, inputs: int, outputs: int, count: int, stride: int = 1) -> None:
        super().__init__()
        blocks = [_Block(inputs, outputs, stride), *(_Block(outputs, outputs, 1) for _ in range(count - 1))]
        self.blocks = nn.Sequential(*blocks)

    def forward(self, volume: torch.Tensor) -> torch.Tensor:
        return self.blocks(volume)


class UnetBrats(nn.Module):
    """float32[batch, 4, *volume] to the scores float32[batch, classes, *volume]; sides divide by 2 ** halvings."""

    def __init__(self, filters: tuple[int, ...], classes: int) -> None:
        super().__init__()
        halvings = len(filters) - 1
        down: list[nn.Module] = [_Stack(_MODALITIES, filters[0], 2)]
        down += [_Stack(filters[level - 1], filters[level], 2, stride=2) for level in range(1, halvings)]
        bottom = nn.Sequential(_Stack(filters[-2], filters[-1], 1, stride=2), _Stack(filters[-1], filters[-1], 1))
        self.conv_blocks_context = nn.ModuleList([*down, bottom])
        up = list(reversed(range(halvings)))
        self.conv_blocks_localization = nn.ModuleList(
            nn.Sequential(_Stack(2 * filters[level], filters[level], 1), _Stack(filters[level], filters[level], 1))
            for level in up
        )
        self.tu = nn.ModuleList(
            nn.ConvTranspose3d(filters[level + 1], filters[level], kernel_size=2, stride=2, bias=False) for level in up
        )
        self.seg_outputs = nn.ModuleDict({str(halvings - 1): nn.Conv3d(filters[0], classes, kernel_size=1, bias=False)})

    def forward(self, volume: torch.Tensor) -> tuple[torch.Tensor]:
        skips = []
        for part in self.conv_blocks_context:
            volume = part(volume)
            skips.append(volume)
        levels = zip(self.tu, self.conv_blocks_localization, reversed(skips[:-1]), strict=True)
        for enlarge, part, skip in levels:
            volume = part(torch.cat((enlarge(volume), skip), dim=1))
        (output,) = self.seg_outputs.values()
        return (output(volume),)


def example_inputs(
    network: str, config: Mapping[str, Any], count: int, generator: torch.Generator
) -> tuple[torch.Tensor]:
    """Return one volume whatever `count`: at full size it is 128 MB, and the network's activations are gigabytes."""
    return (torch.randn((1, _MODALITIES, *config["volume"]), generator=generator),)


def build(network: str, config: Mapping[str, Any]) -> torch.nn.Module:
    return UnetBrats(tuple(config["filters"]), int(config["classes"])).eval()
