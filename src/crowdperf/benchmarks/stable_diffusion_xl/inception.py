"""Inception v3 as the Frechet distance of pictures uses it, with the parameter names of torchvision.

Source of the structure: torchvision 0.28.0 (PyPI), models/inception.py, with the changes of inception.py in
text_to_image/tools/fid of mlcommons/inference (b66003e1 of 2026-08-20): averages that leave the padding out, a maximum
in the last block, no branch for training. Pictures are made 299 x 299, -1..1.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

FEATURES = 2048
_SIDE = 299


class _Unit(nn.Module):
    def __init__(self, given: int, made: int, size: int | tuple[int, int], stride: int = 1) -> None:
        super().__init__()
        sizes = (size, size) if isinstance(size, int) else size
        padding = (0, 0) if isinstance(size, int) else (sizes[0] // 2, sizes[1] // 2)
        self.conv = nn.Conv2d(given, made, sizes, stride=stride, padding=padding, bias=False)
        self.bn = nn.BatchNorm2d(made, eps=0.001)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.bn(self.conv(x)))


def _average(x: Tensor) -> Tensor:
    return functional.avg_pool2d(x, 3, stride=1, padding=1, count_include_pad=False)


def _largest(x: Tensor) -> Tensor:
    return functional.max_pool2d(x, 3, stride=1, padding=1)


class _A(nn.Module):
    def __init__(self, given: int, pooled: int, thin: int) -> None:
        super().__init__()
        self.branch1x1 = _Unit(given, 64 // thin, 1)
        self.branch5x5_1, self.branch5x5_2 = _Unit(given, 48 // thin, 1), _Unit(48 // thin, 64 // thin, (5, 5))
        self.branch3x3dbl_1 = _Unit(given, 64 // thin, 1)
        self.branch3x3dbl_2 = _Unit(64 // thin, 96 // thin, (3, 3))
        self.branch3x3dbl_3 = _Unit(96 // thin, 96 // thin, (3, 3))
        self.branch_pool = _Unit(given, pooled // thin, 1)

    def forward(self, x: Tensor) -> Tensor:
        double = self.branch3x3dbl_3(self.branch3x3dbl_2(self.branch3x3dbl_1(x)))
        wide = self.branch5x5_2(self.branch5x5_1(x))
        return torch.cat((self.branch1x1(x), wide, double, self.branch_pool(_average(x))), dim=1)


class _B(nn.Module):
    def __init__(self, given: int, thin: int) -> None:
        super().__init__()
        self.branch3x3 = _Unit(given, 384 // thin, 3, stride=2)
        self.branch3x3dbl_1 = _Unit(given, 64 // thin, 1)
        self.branch3x3dbl_2 = _Unit(64 // thin, 96 // thin, (3, 3))
        self.branch3x3dbl_3 = _Unit(96 // thin, 96 // thin, 3, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        double = self.branch3x3dbl_3(self.branch3x3dbl_2(self.branch3x3dbl_1(x)))
        return torch.cat((self.branch3x3(x), double, functional.max_pool2d(x, 3, stride=2)), dim=1)


class _C(nn.Module):
    def __init__(self, given: int, narrow: int, thin: int) -> None:
        super().__init__()
        made, inner = 192 // thin, narrow // thin
        self.branch1x1 = _Unit(given, made, 1)
        self.branch7x7_1 = _Unit(given, inner, 1)
        self.branch7x7_2 = _Unit(inner, inner, (1, 7))
        self.branch7x7_3 = _Unit(inner, made, (7, 1))
        self.branch7x7dbl_1 = _Unit(given, inner, 1)
        self.branch7x7dbl_2 = _Unit(inner, inner, (7, 1))
        self.branch7x7dbl_3 = _Unit(inner, inner, (1, 7))
        self.branch7x7dbl_4 = _Unit(inner, inner, (7, 1))
        self.branch7x7dbl_5 = _Unit(inner, made, (1, 7))
        self.branch_pool = _Unit(given, made, 1)

    def forward(self, x: Tensor) -> Tensor:
        single = self.branch7x7_3(self.branch7x7_2(self.branch7x7_1(x)))
        double = self.branch7x7dbl_3(self.branch7x7dbl_2(self.branch7x7dbl_1(x)))
        double = self.branch7x7dbl_5(self.branch7x7dbl_4(double))
        return torch.cat((self.branch1x1(x), single, double, self.branch_pool(_average(x))), dim=1)


class _D(nn.Module):
    def __init__(self, given: int, thin: int) -> None:
        super().__init__()
        made = 192 // thin
        self.branch3x3_1, self.branch3x3_2 = _Unit(given, made, 1), _Unit(made, 320 // thin, 3, stride=2)
        self.branch7x7x3_1 = _Unit(given, made, 1)
        self.branch7x7x3_2 = _Unit(made, made, (1, 7))
        self.branch7x7x3_3 = _Unit(made, made, (7, 1))
        self.branch7x7x3_4 = _Unit(made, made, 3, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        other = self.branch7x7x3_4(self.branch7x7x3_3(self.branch7x7x3_2(self.branch7x7x3_1(x))))
        return torch.cat((self.branch3x3_2(self.branch3x3_1(x)), other, functional.max_pool2d(x, 3, stride=2)), dim=1)


class _E(nn.Module):
    def __init__(self, given: int, thin: int, is_last: bool) -> None:
        super().__init__()
        self.is_last, made = is_last, 384 // thin
        self.branch1x1 = _Unit(given, 320 // thin, 1)
        self.branch3x3_1 = _Unit(given, made, 1)
        self.branch3x3_2a, self.branch3x3_2b = _Unit(made, made, (1, 3)), _Unit(made, made, (3, 1))
        self.branch3x3dbl_1 = _Unit(given, 448 // thin, 1)
        self.branch3x3dbl_2 = _Unit(448 // thin, made, (3, 3))
        self.branch3x3dbl_3a, self.branch3x3dbl_3b = _Unit(made, made, (1, 3)), _Unit(made, made, (3, 1))
        self.branch_pool = _Unit(given, 192 // thin, 1)

    def forward(self, x: Tensor) -> Tensor:
        single = self.branch3x3_1(x)
        double = self.branch3x3dbl_2(self.branch3x3dbl_1(x))
        pooled = self.branch_pool(_largest(x) if self.is_last else _average(x))
        parts = (self.branch3x3_2a(single), self.branch3x3_2b(single))
        others = (self.branch3x3dbl_3a(double), self.branch3x3dbl_3b(double))
        return torch.cat((self.branch1x1(x), *parts, *others, pooled), dim=1)


class Inception(nn.Module):
    """Pictures float32[batch, 3, height, width], 0..1, to features [batch, 2048 / thin]. thin: 1 as published."""

    def __init__(self, thin: int = 1) -> None:
        super().__init__()
        self.Conv2d_1a_3x3 = _Unit(3, 32 // thin, 3, stride=2)
        self.Conv2d_2a_3x3 = _Unit(32 // thin, 32 // thin, 3)
        self.Conv2d_2b_3x3 = _Unit(32 // thin, 64 // thin, (3, 3))
        self.Conv2d_3b_1x1 = _Unit(64 // thin, 80 // thin, 1)
        self.Conv2d_4a_3x3 = _Unit(80 // thin, 192 // thin, 3)
        self.Mixed_5b = _A(192 // thin, 32, thin)
        self.Mixed_5c = _A(256 // thin, 64, thin)
        self.Mixed_5d = _A(288 // thin, 64, thin)
        self.Mixed_6a = _B(288 // thin, thin)
        for name, narrow in (("6b", 128), ("6c", 160), ("6d", 160), ("6e", 192)):
            self.add_module(f"Mixed_{name}", _C(768 // thin, narrow, thin))
        self.Mixed_7a = _D(768 // thin, thin)
        self.Mixed_7b = _E(1280 // thin, thin, is_last=False)
        self.Mixed_7c = _E(2048 // thin, thin, is_last=True)

    def forward(self, pictures: Tensor) -> Tensor:
        """Return the features before the last layer."""
        x = functional.interpolate(pictures, size=(_SIDE, _SIDE), mode="bilinear", align_corners=False) * 2 - 1
        for name, part in self.named_children():
            x = part(x)
            if name in ("Conv2d_2b_3x3", "Conv2d_4a_3x3"):
                x = functional.max_pool2d(x, 3, stride=2)
        return x.mean(dim=(2, 3))
