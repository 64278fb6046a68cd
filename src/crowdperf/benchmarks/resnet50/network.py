"""ResNet-50 v1.5: residual blocks of three convolutions, the stride in the 3x3 one (that is what 1.5 stands for).

He et al. 2015, "Deep Residual Learning for Image Recognition", table 1. Parameters are called as in torchvision's
`resnet50`, whose published weights load as they are (25,557,032 parameters with 1000 classes):

    conv1 7x7/2 -> bn1 -> ReLU -> max 3x3/2 -> layer1 .. layer4 (a block may halve) -> mean of each map -> fc
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

CONFIGS: Mapping[str, Mapping[str, Any]] = {
    # Depths and width: table 1 of the paper, the 50-layer column.
    "full": {"depths": (3, 4, 6, 3), "width": 64, "classes": 1000},
    "tiny": {"depths": (1, 1, 1, 1), "width": 8, "classes": 1000, "side": 64},
}
EXPANSION = 4
"""A block of ResNet gives four times as many maps as its 3x3 convolution has."""


class Bottleneck(nn.Module):
    """1x1 narrows, 3x3 with the stride, 1x1 widens; added to the input or, for another shape, to its projection."""

    def __init__(self, inputs: int, middle: int, outputs: int, stride: int, groups: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, middle, kernel_size=1, bias=False)
        self.bn1 = nn.BatchNorm2d(middle)
        self.conv2 = nn.Conv2d(middle, middle, kernel_size=3, stride=stride, padding=1, groups=groups, bias=False)
        self.bn2 = nn.BatchNorm2d(middle)
        self.conv3 = nn.Conv2d(middle, outputs, kernel_size=1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample: nn.Sequential | None = None
        if stride != 1 or inputs != outputs:
            projection = nn.Conv2d(inputs, outputs, kernel_size=1, stride=stride, bias=False)
            self.downsample = nn.Sequential(projection, nn.BatchNorm2d(outputs))

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        kept = maps if self.downsample is None else self.downsample(maps)
        maps = self.relu(self.bn1(self.conv1(maps)))
        maps = self.relu(self.bn2(self.conv2(maps)))
        return self.relu(self.bn3(self.conv3(maps)) + kept)


class Body(nn.Module):
    """The layers up to the last map. ResNeXt's 3x3 convolutions are `width_factor` times as wide, in groups."""

    def __init__(self, depths: Sequence[int], width: int, width_factor: int = 1, groups: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        inputs = width
        for number, depth in enumerate(depths, start=1):
            middle, outputs = (width << (number - 1)) * width_factor, (width << (number - 1)) * EXPANSION
            blocks = []
            for place in range(depth):
                stride = 2 if number > 1 and place == 0 else 1
                blocks.append(Bottleneck(inputs, middle, outputs, stride, groups))
                inputs = outputs
            setattr(self, f"layer{number}", nn.Sequential(*blocks))
        self._layer_count = len(depths)

    def stages(self, image: torch.Tensor) -> list[torch.Tensor]:
        """Return the maps of each layer; the last has EXPANSION * width * 2 ** (layers - 1) channels."""
        maps = self.maxpool(self.relu(self.bn1(self.conv1(image))))
        found = []
        for number in range(1, self._layer_count + 1):
            maps = getattr(self, f"layer{number}")(maps)
            found.append(maps)
        return found


class ResNet(Body):
    """float32[batch, 3, side, side] to the scores (no softmax) float32[batch, classes]."""

    def __init__(self, depths: Sequence[int], width: int, classes: int) -> None:
        super().__init__(depths, width)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(EXPANSION * (width << (len(depths) - 1)), classes)

    def features(self, image: torch.Tensor) -> torch.Tensor:
        """Return what the last layer looks at: float32[batch, 4 * width * 2 ** (layers - 1)]."""
        return torch.flatten(self.avgpool(self.stages(image)[-1]), 1)

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor]:
        return (self.fc(self.features(image)),)


def build(network: str, config: Mapping[str, Any]) -> torch.nn.Module:
    return ResNet(tuple(config["depths"]), int(config["width"]), int(config["classes"])).eval()


def example_inputs(
    network: str, config: Mapping[str, Any], count: int, generator: torch.Generator
) -> tuple[torch.Tensor, ...]:
    """Return images of smooth noise with the range of real ones after mean subtraction (about -120 to 150)."""
    side = int(config.get("side", 224))
    coarse = torch.randn((count, 3, 14, 14), generator=generator)
    fine = torch.randn((count, 3, side, side), generator=generator)
    smooth = nn.functional.interpolate(coarse, size=(side, side), mode="bilinear", align_corners=False)
    return (60.0 * smooth + 15.0 * fine,)
