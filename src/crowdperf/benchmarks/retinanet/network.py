"""RetinaNet with a ResNeXt50-32x4d backbone and a feature pyramid, for 264 classes of OpenImages at 800 x 800.

Source of structure and parameter names: single_stage_detector/ssd/model of mlcommons/training (torchvision's
RetinaNet), whose checkpoint retinanet_model_10.pth (zenodo 6605272) is MLPerf's.

The network ends where the sizes of its outputs are still fixed: it chooses the 1,000 best scores of each pyramid
level, as the reference does before decoding, and hands out their logits, where they are, and the four numbers of
their anchors' boxes. Threshold, decoding and suppression follow in numpy (model.py). So 5,000
candidates leave the device instead of 31.7 million scores, batches work in every framework, and boxes stay float32 in
low precision.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from crowdperf.benchmarks.initial_weights import draw_weights, init_identity, init_low_scores, random_pictures
from crowdperf.benchmarks.resnet50.network import EXPANSION, Body

CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "full": {
        "image_size": 800,
        "class_count": 264,
        "blocks": [3, 4, 6, 3],
        "stem_channels": 64,
        "group_count": 32,
        "width_factor": 2,
        "pyramid_channels": 256,
        "anchor_sizes": [32, 64, 128, 256, 512],
        "candidates_per_level": 1000,
    },
    "tiny": {
        "image_size": 96,
        "class_count": 6,
        "blocks": [1, 1, 1, 1],
        "stem_channels": 16,
        "group_count": 4,
        "width_factor": 1,
        "pyramid_channels": 32,
        "anchor_sizes": [16, 28, 44, 60, 80],
        "candidates_per_level": 200,
    },
}

_ANCHORS_PER_PLACE = 9
_HEAD_DEPTH = 4
_IMAGE_MEAN = (0.485, 0.456, 0.406)
_IMAGE_DEVIATION = (0.229, 0.224, 0.225)
"""Normalisation is a part of the network. Source: RetinaNet in model/retinanet.py."""


class _ExtraLevels(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.p6 = nn.Conv2d(channels, channels, 3, 2, 1)
        self.p7 = nn.Conv2d(channels, channels, 3, 2, 1)

    def forward(self, p5: Tensor) -> list[Tensor]:
        p6 = self.p6(p5)
        return [p6, self.p7(functional.relu(p6))]


class _Pyramid(nn.Module):
    def __init__(self, channels: list[int], out: int) -> None:
        super().__init__()
        self.inner_blocks = nn.ModuleList(nn.Conv2d(count, out, 1) for count in channels)
        self.layer_blocks = nn.ModuleList(nn.Conv2d(out, out, 3, padding=1) for _ in channels)
        self.extra_blocks = _ExtraLevels(out)

    def forward(self, maps: list[Tensor]) -> list[Tensor]:
        merged = self.inner_blocks[-1](maps[-1])
        levels = [self.layer_blocks[-1](merged)]
        for position in range(len(maps) - 2, -1, -1):
            lateral = self.inner_blocks[position](maps[position])
            merged = lateral + functional.interpolate(merged, size=lateral.shape[-2:], mode="nearest")
            levels.insert(0, self.layer_blocks[position](merged))
        return levels + list(self.extra_blocks(levels[-1]))


class _Backbone(nn.Module):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.body = Body(config["blocks"], config["stem_channels"], config["width_factor"], config["group_count"])
        channels = [config["stem_channels"] * EXPANSION * 2**stage for stage in (1, 2, 3)]
        self.fpn = _Pyramid(channels, config["pyramid_channels"])

    def forward(self, x: Tensor) -> list[Tensor]:
        return self.fpn(self.body.stages(x)[1:])  # strides 8, 16, 32


def _tower(channels: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for _ in range(_HEAD_DEPTH):
        layers += [nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*layers)


class _ClassificationHead(nn.Module):
    def __init__(self, channels: int, class_count: int) -> None:
        super().__init__()
        self.conv = _tower(channels)
        self.cls_logits = nn.Conv2d(channels, _ANCHORS_PER_PLACE * class_count, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.cls_logits(self.conv(x))


class _RegressionHead(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = _tower(channels)
        self.bbox_reg = nn.Conv2d(channels, _ANCHORS_PER_PLACE * 4, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.bbox_reg(self.conv(x))


class _Head(nn.Module):
    def __init__(self, channels: int, class_count: int) -> None:
        super().__init__()
        self.classification_head = _ClassificationHead(channels, class_count)
        self.regression_head = _RegressionHead(channels)


class RetinaNet(nn.Module):
    """images float32[batch, 3, size, size] 0..1, RGB, to the best candidates of each level, best first."""

    image_mean: Tensor
    image_deviation: Tensor

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.backbone = _Backbone(config)
        self.head = _Head(config["pyramid_channels"], config["class_count"])
        self._class_count: int = config["class_count"]
        self._most: int = config["candidates_per_level"]
        self.register_buffer("image_mean", torch.tensor(_IMAGE_MEAN).view(3, 1, 1), persistent=False)
        self.register_buffer("image_deviation", torch.tensor(_IMAGE_DEVIATION).view(3, 1, 1), persistent=False)

    def levels(self, images: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return of each level the logits [batch, anchors * classes], class fastest, and deltas [batch, anchors, 4]."""
        maps = self.backbone((images - self.image_mean) / self.image_deviation)
        answers = []
        for features in maps:
            anchors = features.shape[2] * features.shape[3] * _ANCHORS_PER_PLACE
            logits = self.head.classification_head(features).permute(0, 2, 3, 1).flatten(1)
            deltas = self.head.regression_head(features).permute(0, 2, 3, 1).reshape(-1, anchors, 4)
            answers.append((logits, deltas))
        return answers

    def raw(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits [batch, anchors, classes] and deltas [batch, anchors, 4] of all levels; for fitting."""
        levels = self.levels(images)
        logits = torch.cat([logits for logits, _ in levels], dim=1)
        return logits.reshape(len(images), -1, self._class_count), torch.cat([deltas for _, deltas in levels], dim=1)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return logits [batch, candidates], their places int64 (anchor * classes + class) and deltas [.., 4]."""
        chosen_logits, chosen_places, chosen_deltas = [], [], []
        start = 0
        for logits, deltas in self.levels(images):
            best, places = logits.topk(min(self._most, logits.shape[1]), dim=1)
            anchors = torch.div(places, self._class_count, rounding_mode="floor")
            chosen_logits.append(best)
            chosen_places.append(places + start)
            chosen_deltas.append(deltas.gather(1, anchors.unsqueeze(-1).expand(-1, -1, 4)))
            start += logits.shape[1]
        return torch.cat(chosen_logits, 1), torch.cat(chosen_places, 1), torch.cat(chosen_deltas, 1)


def build(network: str, config: Mapping[str, Any]) -> RetinaNet:
    return RetinaNet(config).eval()


def example_inputs(
    network: str, config: Mapping[str, Any], count: int, generator: torch.Generator
) -> tuple[Tensor, ...]:
    return (random_pictures(count, config["image_size"], generator),)


def initialise(module: RetinaNet, generator: torch.Generator) -> None:
    """Draw weights: layers that pass on what they get, last layers that claim few objects."""
    draw_weights(module, generator)
    init_identity(module)
    init_low_scores(module.head.classification_head.cls_logits, generator, is_score=True)
    init_low_scores(module.head.regression_head.bbox_reg, generator, is_score=False)
