"""YOLO11: a backbone of cross-stage blocks, a pyramid that goes up and down again, a head without anchors.

Facts of the structure (channels, repeats, which layers are joined) and parameter names: ultralytics/ultralytics,
cfg/models/11/yolo11.yaml at 0a2ae50b and nn/modules/{block,head}.py at 00779d6a and 001ce22b, read on 2026-11-23; the
published checkpoint's tensors load by name. In its scale "l" (depth 1, width 1, at most 512 channels) every cross-stage
block has the deeper kind of bottleneck, and the network has 25,372,160 parameters, as the yaml file says.

The network ends before suppression: for each of its places a box in pixels of its input, its best class and that
class's score, as the reference takes one class a place (`predict` of the package). Threshold and suppression follow in
numpy (model.py).
"""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from crowdperf.benchmarks.initial_weights import draw_weights, init_identity, init_low_scores, random_pictures
from crowdperf.harness.base.architecture import WithTables

STRIDES = (8, 16, 32)
VIRTUAL_SIDES = (2.5, 2.5, 2.0)
"""Sides of the squares, in strides, that the fit of the tiny network takes for its places: our choice."""

CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "full": {
        "image_size": 640,
        "class_count": 80,
        "channels": [64, 128, 256, 512, 512],
        "repeats": 2,
        "head_width": 64,
    },
    "tiny": {
        "image_size": 96,
        "class_count": 6,
        "channels": [8, 16, 32, 48, 64],
        "repeats": 1,
        "head_width": 16,
    },
}
"""channels: after each halving of the picture. head_width: least channels of a branch for boxes."""

_BINS = 16
"""A side of a box is the mean of this many whole numbers of strides, 0 to 15, weighted by a softmax (reg_max)."""
_EPSILON = 1e-3
"""Of the batch normalisations, as the package sets it (initialize_weights)."""
_HEAD_CHANNELS = 64
"""Channels of one attention head."""


class _Conv(nn.Module):
    def __init__(self, channels: int, out: int, size: int = 1, stride: int = 1, groups: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, out, size, stride, size // 2, groups=groups, bias=False)
        self.bn = nn.BatchNorm2d(out, eps=_EPSILON)
        self.is_linear = False

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.bn(self.conv(x))
        return y if self.is_linear else functional.silu(y)


def _linear(channels: int, out: int, size: int = 1, groups: int = 1) -> _Conv:
    """Return a convolution with normalisation and without activation."""
    layer = _Conv(channels, out, size, groups=groups)
    layer.is_linear = True
    return layer


class _Bottleneck(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.cv1 = _Conv(channels, channels, 3)
        self.cv2 = _Conv(channels, channels, 3)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.cv2(self.cv1(x))
        return x + y


class _Deep(nn.Module):
    """Two bottlenecks beside a plain way (C3k)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        half = channels // 2
        self.cv1 = _Conv(channels, half)
        self.cv2 = _Conv(channels, half)
        self.cv3 = _Conv(2 * half, channels)
        self.m = nn.Sequential(_Bottleneck(half), _Bottleneck(half))

    def forward(self, x: Tensor) -> Tensor:
        return self.cv3(torch.cat((self.m(self.cv1(x)), self.cv2(x)), 1))


class _CrossStage(nn.Module):
    """All intermediate results of a row of blocks side by side (C3k2)."""

    def __init__(self, channels: int, out: int, repeats: int, part: float = 0.5) -> None:
        super().__init__()
        width = int(out * part)
        self.cv1 = _Conv(channels, 2 * width)
        self.cv2 = _Conv((2 + repeats) * width, out)
        self.m = nn.ModuleList(_Deep(width) for _ in range(repeats))

    def forward(self, x: Tensor) -> Tensor:
        parts = list(self.cv1(x).chunk(2, 1))
        for block in self.m:
            parts.append(block(parts[-1]))
        return self.cv2(torch.cat(parts, 1))


class _Pooling(nn.Module):
    """Three maxima over 5 x 5 places, one after the other (SPPF)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.cv1 = _Conv(channels, channels // 2)
        self.cv2 = _Conv(4 * (channels // 2), channels)

    def forward(self, x: Tensor) -> Tensor:
        parts = [self.cv1(x)]
        for _ in range(3):
            parts.append(functional.max_pool2d(parts[-1], 5, 1, 2))
        return self.cv2(torch.cat(parts, 1))


class _Attention(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.heads = max(1, channels // _HEAD_CHANNELS)
        self.width = channels // self.heads
        self.key = self.width // 2
        self.qkv = _linear(channels, channels + 2 * self.key * self.heads)
        self.proj = _linear(channels, channels)
        self.pe = _linear(channels, channels, 3, groups=channels)

    def forward(self, x: Tensor) -> Tensor:
        batch, channels, height, width = x.shape
        parts = self.qkv(x).reshape(batch, self.heads, 2 * self.key + self.width, height * width)
        query, key, value = parts.split([self.key, self.key, self.width], dim=2)
        shares = (query.transpose(-2, -1) @ key * self.key**-0.5).softmax(dim=-1)
        seen = (value @ shares.transpose(-2, -1)).reshape(batch, channels, height, width)
        return self.proj(seen + self.pe(value.reshape(batch, channels, height, width)))


class _AttentionBlock(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.attn = _Attention(channels)
        self.ffn = nn.Sequential(_Conv(channels, 2 * channels), _linear(2 * channels, channels))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(x)
        return x + self.ffn(x)


class _AttentionStage(nn.Module):
    """Attention over one half of the channels (C2PSA)."""

    def __init__(self, channels: int, repeats: int) -> None:
        super().__init__()
        self.width = channels // 2
        self.cv1 = _Conv(channels, 2 * self.width)
        self.cv2 = _Conv(2 * self.width, channels)
        self.m = nn.Sequential(*(_AttentionBlock(self.width) for _ in range(repeats)))

    def forward(self, x: Tensor) -> Tensor:
        kept, looked_at = self.cv1(x).split((self.width, self.width), 1)
        return self.cv2(torch.cat((kept, self.m(looked_at)), 1))


class _Bins(nn.Module):
    """The weights 0 to 15 of the sides' bins; the checkpoint has them as a convolution (DFL)."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(_BINS, 1, 1, bias=False).requires_grad_(False)
        self.set()

    def set(self) -> None:
        with torch.no_grad():
            self.conv.weight.copy_(torch.arange(_BINS, dtype=torch.float32).view(1, _BINS, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        """Return the distances [batch, 4, places] of left, top, right and bottom in strides."""
        shares = x.reshape(x.shape[0], 4, _BINS, -1).softmax(dim=2)
        return (shares * self.conv.weight.reshape(1, 1, _BINS, 1)).sum(dim=2)


class _Detect(nn.Module):
    def __init__(self, channels: list[int], config: Mapping[str, Any]) -> None:
        super().__init__()
        count = config["class_count"]
        box_width = max(config["head_width"], channels[0] // 4)
        score_width = max(channels[0], min(count, 100))
        self.cv2 = nn.ModuleList(
            nn.Sequential(_Conv(one, box_width, 3), _Conv(box_width, box_width, 3), nn.Conv2d(box_width, 4 * _BINS, 1))
            for one in channels
        )
        self.cv3 = nn.ModuleList(
            nn.Sequential(
                nn.Sequential(_Conv(one, one, 3, groups=one), _Conv(one, score_width)),
                nn.Sequential(_Conv(score_width, score_width, 3, groups=score_width), _Conv(score_width, score_width)),
                nn.Conv2d(score_width, count, 1),
            )
            for one in channels
        )
        self.dfl = _Bins()

    def forward(self, maps: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Return logits [batch, places, classes] and distances [batch, places, 4] in strides."""
        logits = torch.cat([layer(x).flatten(2) for layer, x in zip(self.cv3, maps, strict=True)], 2)
        distances = self.dfl(torch.cat([layer(x).flatten(2) for layer, x in zip(self.cv2, maps, strict=True)], 2))
        return logits.transpose(1, 2), distances.transpose(1, 2)


def _layers(config: Mapping[str, Any]) -> nn.ModuleList:
    """Return the layers by their numbers in the yaml file; those without parameters are Identity."""
    one, two, three, four, five = config["channels"]
    repeats = config["repeats"]
    layers: list[nn.Module] = [
        _Conv(3, one, 3, 2),
        _Conv(one, two, 3, 2),
        _CrossStage(two, three, repeats, 0.25),
        _Conv(three, three, 3, 2),
        _CrossStage(three, four, repeats, 0.25),
        _Conv(four, four, 3, 2),
        _CrossStage(four, four, repeats),
        _Conv(four, five, 3, 2),
        _CrossStage(five, five, repeats),
        _Pooling(five),
        _AttentionStage(five, repeats),
        nn.Identity(),
        nn.Identity(),
        _CrossStage(five + four, four, repeats),
        nn.Identity(),
        nn.Identity(),
        _CrossStage(four + four, three, repeats),
        _Conv(three, three, 3, 2),
        nn.Identity(),
        _CrossStage(three + four, four, repeats),
        _Conv(four, four, 3, 2),
        nn.Identity(),
        _CrossStage(four + five, five, repeats),
        _Detect([three, four, five], config),
    ]
    return nn.ModuleList(layers)


class Yolo(WithTables):
    """images float32[batch, 3, size, size] 0..1, RGB, to a box, a score and a class for every place.

    Boxes are float32 whatever the network computes in, as in the reference, which runs in float32 (yolo_loadgen.py at
    685a2901, read on 2026-11-28). The package would take the network's type for places, too (make_anchors of
    utils/tal.py at 002217d4): that moves corners by up to 0.5 pixels in float16 and 4 in bfloat16.
    """

    points: Tensor
    strides: Tensor

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.model = _layers(config)
        points, strides = _places(config["image_size"])
        self.register_buffer("points", points, persistent=False)
        self.register_buffer("strides", strides, persistent=False)

    @property
    def detect(self) -> _Detect:
        """The head."""
        head = self.model[23]
        if not isinstance(head, _Detect):
            raise TypeError("the last layer is not a head")
        return head

    def maps(self, images: Tensor) -> list[Tensor]:
        """Return the feature maps of strides 8, 16 and 32."""
        model = self.model
        x = model[2](model[1](model[0](images)))
        fine = model[4](model[3](x))
        middle = model[6](model[5](fine))
        coarse = model[10](model[9](model[8](model[7](middle))))
        up_middle = model[13](torch.cat((functional.interpolate(coarse, scale_factor=2.0), middle), 1))
        up_fine = model[16](torch.cat((functional.interpolate(up_middle, scale_factor=2.0), fine), 1))
        down_middle = model[19](torch.cat((model[17](up_fine), up_middle), 1))
        down_coarse = model[22](torch.cat((model[20](down_middle), coarse), 1))
        return [up_fine, down_middle, down_coarse]

    def _found(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits [batch, places, classes] and corners [batch, places, 4] in pixels."""
        logits, distances = self.detect(self.maps(images))
        corners = torch.cat((self.points - distances[..., :2], self.points + distances[..., 2:]), -1)
        return logits, corners * self.strides

    def raw(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits and, for fitting, the boxes as numbers beside virtual anchors (`anchors_of` of model.py)."""
        logits, corners = self._found(images)
        sides = self.strides * torch.tensor(_virtual_sides(self.strides), device=corners.device).unsqueeze(-1)
        sizes = (corners[..., 2:] - corners[..., :2]).clamp_min(1e-2)
        moves = ((corners[..., 2:] + corners[..., :2]) / 2 - self.points * self.strides) / sides
        return logits, torch.cat((moves, (sizes / sides).log()), -1)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return boxes [batch, places, 4] as corners in pixels, scores [batch, places] and classes int64."""
        logits, corners = self._found(images)
        best, classes = logits.max(dim=2)
        return corners, best.sigmoid(), classes


def _places(size: int) -> tuple[Tensor, Tensor]:
    """Return the middles [places, 2] of all places in strides, and the stride [places, 1] of each."""
    points, strides = [], []
    for stride in STRIDES:
        steps = torch.arange(size // stride, dtype=torch.float32) + 0.5
        y, x = torch.meshgrid(steps, steps, indexing="ij")
        points.append(torch.stack((x.flatten(), y.flatten()), 1))
        strides.append(torch.full((len(points[-1]), 1), float(stride)))
    return torch.cat(points), torch.cat(strides)


def _virtual_sides(strides: Tensor) -> list[float]:
    return [VIRTUAL_SIDES[STRIDES.index(int(stride))] for stride in strides.flatten().tolist()]


def build(network: str, config: Mapping[str, Any]) -> Yolo:
    return Yolo(config).eval()


def example_inputs(
    network: str, config: Mapping[str, Any], count: int, generator: torch.Generator
) -> tuple[Tensor, ...]:
    return (random_pictures(count, config["image_size"], generator),)


def initialise(module: Yolo, generator: torch.Generator) -> None:
    """Draw weights: layers that pass on what they get, last layers that claim one object in a hundred places."""
    draw_weights(module, generator)
    init_identity(module)
    module.detect.dfl.set()
    for scores, sides in zip(module.detect.cv3, module.detect.cv2, strict=True):
        if isinstance(scores, nn.Sequential) and isinstance(sides, nn.Sequential):
            _low(scores[-1], generator, is_score=True)
            _low(sides[-1], generator, is_score=False)


def _low(layer: nn.Module, generator: torch.Generator, is_score: bool) -> None:
    """Set a last layer; sides of boxes start short, one or two strides."""
    if not isinstance(layer, nn.Conv2d) or layer.bias is None:
        raise TypeError(f"{layer} is not a last layer of YOLO11")
    init_low_scores(layer, generator, is_score=is_score)
    if not is_score:
        with torch.no_grad():
            layer.bias.copy_((-math.log(2) / 2 * torch.arange(_BINS, dtype=torch.float32)).repeat(4))
