"""SSD-MobileNet v1 for the 90 category ids of COCO at 300 x 300.

Source of structure and parameter names: models/ssd_mobilenet_v1.py and utils.py in
vision/classification_and_detection/python of mlcommons/inference, which took them, with the weights, from TensorFlow's
object detection library (ssd_mobilenet_v1_coco_2018_01_28). Batch normalisation is folded: what is left of it is
`scale` and `bias` behind depthwise layers and `bias` behind the others.

The network ends with scores and box numbers of all 1,917 anchors; decoding and suppression follow in numpy
(crowdperf/benchmarks/ssd_mobilenet/model.py).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from crowdperf.benchmarks.initial_weights import (
    draw_weights,
    init_identity,
    init_low_scores,
    normalise,
    random_pictures,
)

CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "full": {"image_size": 300, "class_count": 91, "channels": 32},
    "tiny": {"image_size": 128, "class_count": 7, "channels": 8},
}

_WIDTHS = (1, 2, 4, 4, 8, 8, 16, 16, 16, 16, 16, 16, 32, 32)
"""Channels of the backbone's layers as multiples of the first's."""
_STRIDES = (2, 1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1)
_TAKEN = (11, 13)
"""Layers whose output has prediction heads."""
_EXTRA_WIDTHS = ((8, 16), (4, 8), (4, 8), (2, 4))
_ANCHORS_PER_PLACE = (3, 6, 6, 6, 6, 6)
_X_FIRST = (1, 0, 3, 2)
"""The weights give dy, dx, dh, dw."""
_PICTURE_SIZE = 96
"""Size of the random pictures that fresh layers are scaled for; any does."""


class _SameConv(nn.Conv2d):
    """A convolution padded as TensorFlow's "SAME": an odd row or column of padding goes below and to the right."""

    def forward(self, input: Tensor) -> Tensor:
        height, width = (self._padding_of(int(input.shape[axis]), axis - 2) for axis in (2, 3))
        padded = functional.pad(input, [width // 2, width - width // 2, height // 2, height - height // 2])
        return functional.conv2d(padded, self.weight, self.bias, self.stride, 0, 1, self.groups)

    def _padding_of(self, size: int, axis: int) -> int:
        stride, kernel = self.stride[axis], self.kernel_size[axis]
        return max(0, (-(-size // stride) - 1) * stride + kernel - size)


class _Affine(nn.Module):
    """What a folded batch normalisation leaves: a factor and an offset for each channel."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale.view(1, -1, 1, 1) + self.bias.view(1, -1, 1, 1)


class _Offset(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.bias.view(1, -1, 1, 1)


def _named(layers: Sequence[tuple[str, nn.Module]]) -> nn.Sequential:
    """Return a Sequential with these names; they are TensorFlow's and hold slashes."""
    sequence = nn.Sequential()
    for name, layer in layers:
        sequence.add_module(name, layer)
    return sequence


def _first_layer(out: int) -> nn.Sequential:
    conv = _SameConv(3, out, 3, 2, bias=False)
    return _named([("0", conv), ("0/BatchNorm", _Offset(out)), ("0/ReLU", nn.ReLU6())])


def _separable(channels: int, out: int, stride: int) -> nn.Sequential:
    return _named(
        [
            ("depthwise", _SameConv(channels, channels, 3, stride, groups=channels, bias=False)),
            ("depthwise/BatchNorm", _Affine(channels)),
            ("depthwise/ReLU", nn.ReLU6()),
            ("pointwise", nn.Conv2d(channels, out, 1, bias=False)),
            ("pointwise/BatchNorm", _Offset(out)),
            ("pointwise/ReLU", nn.ReLU6()),
        ]
    )


def _extra(channels: int, middle: int, out: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(channels, middle, 1), nn.ReLU6(), _SameConv(middle, out, 3, 2), nn.ReLU6())


class _Head(nn.Module):
    def __init__(self, channels: int, anchors: int, class_count: int) -> None:
        super().__init__()
        self.classification = nn.Conv2d(channels, class_count * anchors, 1)
        self.regression = nn.Conv2d(channels, anchors * 4, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits [batch, height * width * anchors * classes] and deltas [batch, .. * 4], the last fastest."""
        return tuple(layer(x).permute(0, 2, 3, 1).flatten(1) for layer in (self.classification, self.regression))


class SsdMobilenet(nn.Module):
    """image float32[batch, 3, size, size], RGB, -1..1, to scores and deltas of every anchor."""

    order: Tensor

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        base, self._class_count = config["channels"], config["class_count"]
        widths = [base * factor for factor in _WIDTHS]
        pairs = zip(widths[:-1], widths[1:], _STRIDES[1:], strict=True)
        self.backbone = nn.ModuleList([_first_layer(base), *(_separable(*pair) for pair in pairs)])
        extras, channels = [], widths[-1]
        for middle, out in _EXTRA_WIDTHS:
            extras.append(_extra(channels, base * middle, base * out))
            channels = base * out
        self.extras = nn.ModuleList(extras)
        ends = [widths[layer] for layer in _TAKEN] + [base * out for _, out in _EXTRA_WIDTHS]
        self.predictors = nn.ModuleList(
            _Head(end, anchors, self._class_count) for end, anchors in zip(ends, _ANCHORS_PER_PLACE, strict=True)
        )
        self.register_buffer("order", torch.tensor(_X_FIRST), persistent=False)

    def raw(self, image: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits [batch, anchors, classes] (0 is the background) and deltas [batch, anchors, 4], x first."""
        x, maps = image, []
        for number, layer in enumerate(self.backbone):
            x = layer(x)
            if number in _TAKEN:
                maps.append(x)
        for extra in self.extras:
            x = extra(x)
            maps.append(x)
        answers = [head(features) for head, features in zip(self.predictors, maps, strict=True)]
        logits = torch.cat([logits for logits, _ in answers], dim=1)
        deltas = torch.cat([deltas for _, deltas in answers], dim=1)
        count = logits.shape[1] // self._class_count
        return (
            logits.reshape(-1, count, self._class_count),
            deltas.reshape(-1, count, 4).index_select(2, self.order),
        )

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores 0..1 [batch, anchors, classes] and deltas [batch, anchors, 4], x first."""
        logits, deltas = self.raw(image)
        return torch.sigmoid(logits), deltas


def build(network: str, config: Mapping[str, Any]) -> SsdMobilenet:
    return SsdMobilenet(config).eval()


def example_inputs(
    network: str, config: Mapping[str, Any], count: int, generator: torch.Generator
) -> tuple[Tensor, ...]:
    return (random_pictures(count, config["image_size"], generator) * 2 - 1,)


def initialise(module: SsdMobilenet, generator: torch.Generator) -> None:
    """Draw weights: layers that pass on what they get, scaled to mean 0 and deviation 1 for random pictures, because
    there is no batch normalisation; last layers that claim few objects."""
    draw_weights(module, generator)
    for layer in module.modules():
        if isinstance(layer, _Affine):
            nn.init.ones_(layer.scale)
    init_identity(module)
    with torch.no_grad():
        colours = torch.rand((8, 3, 6, 6), generator=generator) * 2 - 1
        x = functional.interpolate(colours, size=_PICTURE_SIZE, mode="bilinear")
        for layers in (*module.backbone, *module.extras):
            x = normalise(layers, x)
    for head in module.predictors:
        init_low_scores(head.classification, generator, is_score=True)  # type: ignore[arg-type]
        init_low_scores(head.regression, generator, is_score=False)  # type: ignore[arg-type]
