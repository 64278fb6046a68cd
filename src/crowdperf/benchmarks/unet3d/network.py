"""The 3D-UNet of the KiTS19 benchmark: a U-shaped network that says for each voxel what it belongs to.

Blocks, sizes and parameter names are those of the published checkpoint (mlcommons/inference,
vision/medical_imaging/3d-unet-kits19/pytorch_checkpoint_SUT.py; checkpoint key `best_model_state_dict`), whose network
comes from mlcommons/training/image_segmentation. 31 million parameters at full size.

    input_block -> downsample[0] -> ... -> bottleneck -> upsample[0] -> ... -> output
        |              |                                    |
        +--------------+----------- skip connections -------+
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import torch
from torch import nn

CONFIGS: Mapping[str, Mapping[str, Any]] = {
    # Filters: the reference's. Window: ROI_SHAPE of its global_vars.py.
    "full": {"filters": (32, 64, 128, 256, 320), "classes": 3, "window": 128},
    "tiny": {"filters": (8, 16), "classes": 3, "window": 32},
}


def _block(inputs: int, outputs: int, stride: int = 1) -> nn.Sequential:
    """Return convolution, instance norm and ReLU, as one entry of the checkpoint names them: 0, 1 and 2."""
    return nn.Sequential(
        nn.Conv3d(inputs, outputs, kernel_size=3, stride=stride, padding=1, bias=False),
        nn.InstanceNorm3d(outputs, affine=True),
        nn.ReLU(),
    )


class _Pair(nn.Module):
    """Two blocks; the first may halve the volume."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = _block(inputs, outputs, stride)
        self.conv2 = _block(outputs, outputs)

    def forward(self, volume: torch.Tensor) -> torch.Tensor:
        return self.conv2(self.conv1(volume))


class _Up(nn.Module):
    """Doubles the volume, joins it with the skip connection, and two blocks."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.upsample_conv = nn.Sequential(nn.ConvTranspose3d(inputs, outputs, kernel_size=2, stride=2))
        self.conv1 = _block(2 * outputs, outputs)
        self.conv2 = _block(outputs, outputs)

    def forward(self, volume: torch.Tensor, skip: torch.Tensor) -> torch.Tensor:
        joined = torch.cat((self.upsample_conv(volume), skip), dim=1)
        return self.conv2(self.conv1(joined))


class _Output(nn.Module):
    """The score of each class for each voxel."""

    def __init__(self, inputs: int, classes: int) -> None:
        super().__init__()
        self.conv = nn.Sequential(nn.Conv3d(inputs, classes, kernel_size=1))

    def forward(self, volume: torch.Tensor) -> torch.Tensor:
        return self.conv(volume)


class Unet3d(nn.Module):
    """float32[batch, 1, W, W, W] to the scores float32[batch, classes, W, W, W]; W divides by 2 ** len(filters)."""

    def __init__(self, filters: tuple[int, ...], classes: int) -> None:
        super().__init__()
        pairs = tuple(pairwise(filters))
        self.input_block = _Pair(1, filters[0])
        self.downsample = nn.ModuleList(_Pair(inputs, outputs, stride=2) for inputs, outputs in pairs)
        self.bottleneck = _Pair(filters[-1], filters[-1], stride=2)
        up = ((filters[-1], filters[-1]), *((outputs, inputs) for inputs, outputs in reversed(pairs)))
        self.upsample = nn.ModuleList(_Up(inputs, outputs) for inputs, outputs in up)
        self.output = _Output(filters[0], classes)

    def forward(self, volume: torch.Tensor) -> tuple[torch.Tensor]:
        skips = [self.input_block(volume)]
        for down in self.downsample:
            skips.append(down(skips[-1]))
        joined = self.bottleneck(skips[-1])
        for up, skip in zip(self.upsample, reversed(skips), strict=True):
            joined = up(joined, skip)
        return (self.output(joined),)


def example_inputs(
    network: str, config: Mapping[str, Any], count: int, generator: torch.Generator
) -> tuple[torch.Tensor]:
    """Return one window whatever `count`: the network's activations take a gigabyte for each."""
    return (torch.randn((1, 1, *[config["window"]] * 3), generator=generator),)


def build(network: str, config: Mapping[str, Any]) -> torch.nn.Module:
    return Unet3d(tuple(config["filters"]), int(config["classes"])).eval()
