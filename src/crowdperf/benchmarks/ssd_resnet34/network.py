"""SSD-ResNet34 for the 80 classes of COCO at 1200 x 1200.

Source of structure and parameter names: models/ssd_r34.py and base_model_r34.py in
vision/classification_and_detection/python of mlcommons/inference. Prediction heads step three places at a time. The
third stage of the backbone keeps the resolution of the second.

The network ends with scores and box numbers of all 15,130 default boxes; decoding and suppression follow in numpy
(crowdperf/benchmarks/ssd_resnet34/model.py).
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from crowdperf.benchmarks.initial_weights import draw_weights, init_identity, init_low_scores, random_pictures

CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "full": {
        "image_size": 1200,
        "class_count": 81,
        "blocks": [3, 4, 6],
        "stem_channels": 64,
        "channels": [256, 512, 512, 256, 256, 256],
        "middle_channels": [256, 256, 128, 128, 128],
        "extra_strides": [2, 2, 2, 2, 1],
        "extra_paddings": [1, 1, 1, 0, 0],
        "head_stride": 3,
    },
    "tiny": {
        "image_size": 96,
        "class_count": 7,
        "blocks": [1, 1, 1],
        "stem_channels": 16,
        "channels": [64, 64, 64, 32, 32, 32],
        "middle_channels": [32, 32, 32, 32, 32],
        "extra_strides": [2, 2, 2, 2, 1],
        "extra_paddings": [1, 1, 1, 1, 1],
        "head_stride": 1,
    },
}

_ANCHORS_PER_PLACE = (4, 6, 6, 6, 4, 4)
_STAGE_STRIDES = (1, 2, 1)


class _Block(nn.Module):
    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.downsample: nn.Module | None = None
        if stride != 1 or channels != out:
            self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: Tensor) -> Tensor:
        y = functional.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return functional.relu(y + (x if self.downsample is None else self.downsample(x)))


class _Backbone(nn.Module):
    """The first layers of ResNet34; `layer1` and `layer2` are cut as the reference cuts them."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        stem = channels = config["stem_channels"]
        stages = []
        for number, (count, stride) in enumerate(zip(config["blocks"], _STAGE_STRIDES, strict=True)):
            blocks = []
            for block in range(count):
                blocks.append(_Block(channels, stem * 2**number, stride if block == 0 else 1))
                channels = stem * 2**number
            stages.append(nn.Sequential(*blocks))
        first = nn.Conv2d(3, stem, 7, 2, 3, bias=False)
        self.layer1 = nn.Sequential(first, nn.BatchNorm2d(stem), nn.ReLU(), nn.MaxPool2d(3, 2, 1), *stages[:2])
        self.layer2 = nn.Sequential(stages[2])

    def forward(self, x: Tensor) -> Tensor:
        return self.layer2(self.layer1(x))


class SsdResnet34(nn.Module):
    """image float32[batch, 3, size, size], RGB, normalised, to scores and deltas of every default box."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.model = _Backbone(config)
        self._class_count: int = config["class_count"]
        channels, stride = config["channels"], config["head_stride"]
        plans = zip(
            channels[:-1], config["middle_channels"], channels[1:], config["extra_strides"], config["extra_paddings"],
            strict=True,
        )  # fmt: skip
        self.additional_blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(before, middle, 1), nn.ReLU(), nn.Conv2d(middle, after, 3, step, padding), nn.ReLU()
            )
            for before, middle, after, step, padding in plans
        )
        heads = tuple(zip(channels, _ANCHORS_PER_PLACE, strict=True))
        self.loc = nn.ModuleList(nn.Conv2d(count, anchors * 4, 3, stride, 1) for count, anchors in heads)
        self.conf = nn.ModuleList(
            nn.Conv2d(count, anchors * self._class_count, 3, stride, 1) for count, anchors in heads
        )

    def raw(self, image: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits [batch, boxes, classes] (0 is the background) and deltas [batch, boxes, 4], x first."""
        maps = [self.model(image)]
        for block in self.additional_blocks:
            maps.append(block(maps[-1]))
        logits, deltas = [], []
        for features, score, move, anchors in zip(maps, self.conf, self.loc, _ANCHORS_PER_PLACE, strict=True):
            # channels are numbered value * anchors + anchor
            logits.append(self._by_box(score(features), self._class_count, anchors))
            deltas.append(self._by_box(move(features), 4, anchors))
        return torch.cat(logits, dim=1), torch.cat(deltas, dim=1)

    @staticmethod
    def _by_box(answers: Tensor, values: int, anchors: int) -> Tensor:
        count = anchors * answers.shape[2] * answers.shape[3]
        return answers.reshape(-1, values, count).transpose(1, 2)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores 0..1 [batch, boxes, classes], which add up to 1 with the background, and deltas."""
        logits, deltas = self.raw(image)
        return torch.softmax(logits, dim=2), deltas


def build(network: str, config: Mapping[str, Any]) -> SsdResnet34:
    return SsdResnet34(config).eval()


def example_inputs(
    network: str, config: Mapping[str, Any], count: int, generator: torch.Generator
) -> tuple[Tensor, ...]:
    """Return random pictures at the scale of normalised photographs."""
    return ((random_pictures(count, config["image_size"], generator) - 0.45) / 0.225,)


def initialise(module: SsdResnet34, generator: torch.Generator) -> None:
    """Draw weights: layers that pass on what they get, last layers that call nearly everything background."""
    draw_weights(module, generator)
    init_identity(module)
    for layer, anchors in zip(module.conf, _ANCHORS_PER_PLACE, strict=True):
        init_low_scores(layer, generator, is_score=True)  # type: ignore[arg-type]
        with torch.no_grad():
            layer.bias[:anchors] = 0.0  # type: ignore[operator]  # the background's
    for layer in module.loc:
        init_low_scores(layer, generator, is_score=False)  # type: ignore[arg-type]


def convert_checkpoint(network: str, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the published state dict without what is no weight."""
    return {name: value for name, value in state.items() if not name.startswith("encoder.")}
