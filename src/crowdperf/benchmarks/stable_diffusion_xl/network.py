"""Stable Diffusion XL base 1.0 as three networks: the texts, one step of the twenty, and the picture.

A step holds the scheduler, too: it scales the latent picture, asks the U-Net for the noise with and without the text,
and takes out what the guidance makes of the two. Steps and guidance: backend_pytorch.py in text_to_image of
mlcommons/inference, b66003e1 of 2026-08-20. With the weights of one model, pictures are those of
StableDiffusionXLPipeline (diffusers 0.42.1, PyPI) within 5e-7 (2026-11-23); "full" has its 2,567,463,684 parameters.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from crowdperf.benchmarks.stable_diffusion_xl.decoder import Decoder
from crowdperf.benchmarks.stable_diffusion_xl.schedule import euler_schedule
from crowdperf.benchmarks.stable_diffusion_xl.text import TextEncoder
from crowdperf.benchmarks.stable_diffusion_xl.unet import UNet
from crowdperf.harness.base.architecture import WithTables

CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "full": {
        "vocabulary": 49408,
        "positions": 77,
        "text": {"width": 768, "heads": 12, "layers": 12},
        "text_2": {"width": 1280, "heads": 20, "layers": 32},
        "pooled": 1280,
        "context": 2048,
        "channels": [320, 640, 1280],
        "heads": [5, 10, 20],
        "depths": [0, 2, 10],
        "layers": 2,
        "size_width": 256,
        "groups": 32,
        "image_channels": [128, 256, 512, 512],
        "image_layers": 3,
        "latent_scale": 0.13025,
        "latent_side": 128,
        "steps": 20,
        "guidance": 8.0,
    },
    "tiny": {
        "vocabulary": 514,
        "positions": 77,
        "text": {"width": 16, "heads": 2, "layers": 2},
        "text_2": {"width": 16, "heads": 2, "layers": 2},
        "pooled": 16,
        "context": 32,
        "channels": [8, 16, 16],
        "heads": [1, 2, 2],
        "depths": [0, 1, 1],
        "layers": 1,
        "size_width": 8,
        "groups": 4,
        "image_channels": [8, 8],
        "image_layers": 1,
        "latent_scale": 0.13025,
        "latent_side": 16,
        "steps": 4,
        "guidance": 8.0,
    },
}
"""depths: transformer layers at each size, 0 without attention. image_channels: one doubling of the sides fewer than
there are. latent_side: places of a side of the latent picture. tiny: pictures of 32 x 32."""


def image_side(config: Mapping[str, Any]) -> int:
    """Return the pixels of a picture's side."""
    return int(config["latent_side"]) << (len(config["image_channels"]) - 1)


class Texts(nn.Module):
    """tokens, tokens_2 int64[batch, 2, positions] (the negative prompt, the caption) to `context`
    [batch, 2, positions, channels] and `pooled` [batch, 2, channels]."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.text_encoder = TextEncoder(config, config["text"], is_whole=False)
        self.text_encoder_2 = TextEncoder(config, config["text_2"], is_whole=True)

    def forward(self, tokens: Tensor, tokens_2: Tensor) -> tuple[Tensor, Tensor]:
        """Return `context` and `pooled`."""
        first, _ = self.text_encoder(tokens.flatten(0, 1))
        second, pooled = self.text_encoder_2(tokens_2.flatten(0, 1))
        context = torch.cat((first, second), dim=-1)
        rows = tokens.shape[0]
        return context.reshape(rows, 2, *context.shape[1:]), pooled.reshape(rows, 2, -1)


class Step(WithTables):
    """One step: `latent` [batch, 4, side, side] and the step's number int64[batch] to the next `latent`.

    The scheduler's tables lie on the module's device, so that a step copies nothing there and can be captured as a CUDA
    graph (not run on hardware), and stay float32 in a module of another type.
    """

    times: Tensor
    sigmas: Tensor
    sizes: Tensor

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.unet = UNet(config)
        self.guidance = float(config["guidance"])
        times, sigmas = euler_schedule(int(config["steps"]))
        side = float(image_side(config))
        sizes = (side, side, 0.0, 0.0, side, side)
        for name, row in (("times", times), ("sigmas", sigmas), ("sizes", sizes)):
            self.register_buffer(name, torch.tensor(row), persistent=False)

    def forward(self, latent: Tensor, step: Tensor, context: Tensor, pooled: Tensor) -> Tensor:
        """Return the next `latent`."""
        sigma = self.sigmas[step].reshape(-1, 1, 1, 1)
        given = (latent / (sigma * sigma + 1.0).sqrt().to(latent.dtype)).repeat_interleave(2, dim=0)
        sizes = self.sizes.expand(given.shape[0], -1)
        time = self.times[step].repeat_interleave(2)
        noise = self.unet(given, time, context.flatten(0, 1), pooled.flatten(0, 1), sizes)
        noise = noise.reshape(latent.shape[0], 2, *latent.shape[1:])
        without, with_text = noise[:, 0], noise[:, 1]
        guided = without + self.guidance * (with_text - without)
        change = self.sigmas[step + 1].reshape(-1, 1, 1, 1) - sigma
        moved: Tensor = latent.float() + guided.float() * change
        return moved.to(latent.dtype)


def build(network: str, config: Mapping[str, Any]) -> nn.Module:
    """Return one of the networks "texts", "step" and "image" in eval mode."""
    made = {"texts": Texts, "step": Step, "image": Decoder}[network](config)
    return made.eval()


def example_inputs(
    network: str, config: Mapping[str, Any], count: int, generator: torch.Generator
) -> tuple[Tensor, ...]:
    """Return random tokens, a latent picture on its way, or one at the end."""
    side, rows = int(config["latent_side"]), int(config["positions"])
    if network == "texts":
        most = int(config["vocabulary"])
        return tuple(torch.randint(0, most, (count, 2, rows), generator=generator) for _ in range(2))
    latent = torch.randn((count, 4, side, side), generator=generator)
    if network == "image":
        return (latent * float(config["latent_scale"]),)
    context = torch.randn((count, 2, rows, int(config["context"])), generator=generator)
    pooled = torch.randn((count, 2, int(config["pooled"])), generator=generator)
    step = torch.arange(count, dtype=torch.int64) % int(config["steps"])
    return latent * 5.0, step, context, pooled


_FOLDERS = {"texts": ("text_encoder.", "text_encoder_2."), "step": ("unet.",), "image": ("vae.",)}


def convert_checkpoint(network: str, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors of the published folders that belong to a network, by its own names."""
    found = {name: value for name, value in state.items() if name.startswith(_FOLDERS[network])}
    if network == "image":
        of_decoder = ("vae.decoder.", "vae.post_quant_conv.")
        return {name.removeprefix("vae."): value for name, value in found.items() if name.startswith(of_decoder)}
    return found
