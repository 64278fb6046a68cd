"""Random weights of sane size, and some with which a deep network learns in few steps.

Weights are drawn so that activations neither vanish nor explode: He's normal distribution for convolutions, Glorot's
for matrices, 0.02 for embeddings (the deviation BERT and GPT start from). An architecture may bring
`initialise(module, generator)` of its own.

`init_identity`: a convolution that keeps the number of channels starts as the identity with some noise, so that
gradients reach the first layer of a deep stack at once. With weights as random as usual the small detection networks of
this project need some five times as many steps (measured with retinanet, November 2026).
"""

import math

import torch
from torch import Tensor, nn

_NOISE = 0.3  # part of the usual random weights that stays
_MIN_DEVIATION = 1e-2
_PRIOR = 0.01
_CONVOLUTIONS = (
    nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d,
)  # fmt: skip


def seeded(seed: int) -> torch.Generator:
    """Return a generator whose numbers depend on `seed` alone."""
    return torch.Generator().manual_seed(seed)


def draw_weights(module: nn.Module, generator: torch.Generator) -> None:
    """Set every parameter of `module` in place; buffers stay, so calibrate batch normalisation afterwards."""
    with torch.no_grad():
        for part in module.modules():
            _draw_part(part, generator)


def _draw_part(part: nn.Module, generator: torch.Generator) -> None:
    own = dict(part.named_parameters(recurse=False))
    if isinstance(part, nn.RNNBase):
        bound = part.hidden_size**-0.5
        for parameter in own.values():
            parameter.uniform_(-bound, bound, generator=generator)
        return
    is_norm = hasattr(part, "running_mean") or isinstance(part, nn.LayerNorm | nn.GroupNorm)
    for name, parameter in own.items():
        if parameter.dim() < 2:
            parameter.fill_(1.0 if is_norm and name == "weight" else 0.0)
        elif isinstance(part, _CONVOLUTIONS):
            nn.init.kaiming_normal_(parameter, nonlinearity="relu", generator=generator)
        elif isinstance(part, nn.Embedding | nn.EmbeddingBag):
            parameter.normal_(0.0, 0.02, generator=generator)
        else:
            nn.init.xavier_normal_(parameter, generator=generator)


def random_pictures(count: int, size: int, generator: torch.Generator) -> Tensor:
    """Return float32[count, 3, size, size], 0..1: patches of random colours that run into each other, and some noise.

    Pure noise would not do to measure what a network's layers do with photographs: it is averaged away.
    """
    colours = torch.rand((count, 3, 6, 6), generator=generator)
    smooth = nn.functional.interpolate(colours, size=size, mode="bilinear")
    return (smooth + 0.04 * torch.randn(smooth.shape, generator=generator)).clamp(0.0, 1.0)


def init_identity(module: nn.Module) -> None:
    """Add the identity to a part of the drawn weights of every convolution that keeps channels and size."""
    with torch.no_grad():
        for part in module.modules():
            if not isinstance(part, nn.Conv2d) or part.in_channels != part.out_channels:
                continue
            if part.groups == part.in_channels:
                part.weight.mul_(_NOISE)
                part.weight[:, :, part.kernel_size[0] // 2, part.kernel_size[1] // 2] += 1.0
            elif part.groups == 1 and part.stride == (1, 1):
                drawn = part.weight * _NOISE
                nn.init.dirac_(part.weight)
                part.weight.add_(drawn)


def init_low_scores(layer: nn.Conv2d, generator: torch.Generator, is_score: bool) -> None:
    """Set a last layer: deviation 0.01, and for scores the bias of one object in a hundred places.

    Source: RetinaNetHead in single_stage_detector/ssd/model/retinanet.py of mlcommons/training.
    """
    with torch.no_grad():
        layer.weight.normal_(0.0, 0.01, generator=generator)
        if layer.bias is not None:
            layer.bias.fill_(-math.log((1 - _PRIOR) / _PRIOR) if is_score else 0.0)


def normalise(layers: nn.Sequential, x: Tensor) -> Tensor:
    """Scale each convolution so that its outputs for `x` have mean 0 and deviation 1 in every channel; return the
    output of the whole. A convolution without bias is followed by a layer that has one."""
    shift: Tensor | None = None
    for layer in layers:
        if isinstance(layer, nn.Conv2d):
            values = layer(x).transpose(0, 1).flatten(1)
            deviation = values.std(dim=1, correction=0).clamp_min(_MIN_DEVIATION)
            layer.weight.div_(deviation.view(-1, 1, 1, 1))
            shift = -values.mean(dim=1) / deviation
            if layer.bias is not None:
                layer.bias.div_(deviation).add_(shift)
                shift = None
        elif shift is not None and isinstance(getattr(layer, "bias", None), Tensor):
            layer.bias.copy_(shift)  # type: ignore[operator]
            shift = None
        x = layer(x)
    return x
