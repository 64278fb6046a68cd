"""Stable Diffusion XL base 1.0, text to image: twenty Euler steps with guidance 8, all timed.

Only the captions' tokens are made before. Every picture starts from the same given noise, as the rules ask. Response of
a sample: the picture, uint8[height, width, 3]. Source: backend_pytorch.py and coco.py in text_to_image of
mlcommons/inference (b66003e1 of 2026-08-20).
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from crowdperf.benchmarks.stable_diffusion_xl.schedule import first_scale
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import ModelFacts, required_config
from crowdperf.harness.base.score import Score
from crowdperf.harness.base.tensors import Array, Infer, NetworkSpec, Samples, Tensors, TensorSpec
from crowdperf.harness.datasets.coco2014 import CaptionSet, Prompt
from crowdperf.harness.media.clip_tokens import ClipTokenizer, open_clip_tokenizer

NEGATIVE_PROMPT = "normal quality, low quality, worst quality, low res, blurry, nsfw, nude"
_SIZES = ("positions", "pooled", "context", "latent_side", "image_channels", "steps")
_FULL = {"positions": 77, "pooled": 1280, "context": 2048, "latent_side": 128, "image_channels": (128, 256, 512, 512),
         "steps": 20}  # fmt: skip


def _networks(config: Mapping[str, Any]) -> tuple[NetworkSpec, ...]:
    rows, side = int(config["positions"]), int(config["latent_side"])
    pixels = side << (len(config["image_channels"]) - 1)
    latent = TensorSpec(name="latent", dtype="float32", shape=(4, side, side), is_state=True)
    texts = (
        TensorSpec(name="context", dtype="float32", shape=(2, rows, int(config["context"])), is_state=True),
        TensorSpec(name="pooled", dtype="float32", shape=(2, int(config["pooled"])), is_state=True),
    )
    tokens = tuple(TensorSpec(name=name, dtype="int64", shape=(2, rows)) for name in ("tokens", "tokens_2"))
    next_latent = TensorSpec(name="next_latent", dtype="float32", shape=latent.shape, is_state=True)
    return (
        NetworkSpec(name="texts", inputs=tokens, outputs=texts),
        NetworkSpec(
            name="step",
            inputs=(latent, TensorSpec(name="step", dtype="int64", shape=()), *texts),
            outputs=(next_latent,),
        ),
        NetworkSpec(
            name="image",
            inputs=(latent,),
            outputs=(TensorSpec(name="image", dtype="float32", shape=(3, pixels, pixels)),),
            overflows_in_fp16=True,  # black pictures: diffusers casts this decoder to fp32 too (`force_upcast`)
        ),
    )


class StableDiffusionXl:
    """A sample is `tokens` and `tokens_2` int64[2, 77] (the negative prompt, the caption) and `latent` float32[4, side,
    side], which all samples share."""

    is_ragged = True
    is_storable = False

    def __init__(self, config: Mapping[str, Any], facts: ModelFacts) -> None:
        self.networks = _networks(config)
        self._facts = facts
        self._positions, self._side = int(config["positions"]), int(config["latent_side"])
        self._steps = int(config["steps"])
        self._scale = np.float32(first_scale(self._steps))
        pixels = self.networks[2].outputs[0].fixed_shape[1]
        self.response = TensorSpec(name="picture", dtype="uint8", shape=(pixels, pixels, 3))

    @cached_property
    def _tokenizer(self) -> ClipTokenizer:
        return open_clip_tokenizer(self._facts.folder)

    def preprocess(self, raw: Sequence[Prompt]) -> Samples:
        """Return the tokens of captions and negative prompt, and the noise; raises HarnessError for noise of another
        size than the model's."""
        tokenizer, texts = self._tokenizer, [NEGATIVE_PROMPT, *(prompt.caption for prompt in raw)]
        first, second = tokenizer.first(texts, self._positions), tokenizer.second(texts, self._positions)
        samples: list[Tensors] = []
        for number, prompt in enumerate(raw, start=1):
            if prompt.latent.shape[1] != self._side:
                raise HarnessError(
                    f"the noise has {prompt.latent.shape[1]} places a side, but the model needs {self._side}",
                    "use model and data of the same kind: both _tiny, or both full size",
                )
            rows = [0, number]
            samples.append({"tokens": first[rows], "tokens_2": second[rows], "latent": prompt.latent})
        return samples

    def length(self, sample: Tensors) -> int:
        """Return the same for all: each picture takes as many steps."""
        return 1

    def collate(self, samples: Sequence[Tensors]) -> Tensors:
        return {name: np.stack([one[name] for one in samples]) for name in ("tokens", "tokens_2", "latent")}

    def predict(self, networks: Mapping[str, Infer], inputs: Tensors) -> Array:
        """Return the pictures, uint8[batch, height, width, 3]."""
        texts = networks["texts"]({"tokens": inputs["tokens"], "tokens_2": inputs["tokens_2"]})
        latent: Any = np.asarray(inputs["latent"], np.float32) * self._scale
        count = len(latent)
        for number in range(self._steps):
            step = np.full(count, number, np.int64)
            latent = networks["step"]({"latent": latent, "step": step, **texts})["next_latent"]
        values = np.asarray(networks["image"]({"latent": latent})["image"])
        pictures: Array = (np.clip(values / 2 + 0.5, 0.0, 1.0) * 255).round().astype(np.uint8).transpose(0, 2, 3, 1)
        return np.ascontiguousarray(pictures)

    def score(self, responses: Iterable[tuple[int, bytes]], dataset: CaptionSet) -> Score:
        """Return CLIP_SCORE and FID_SCORE as the official script's."""
        from crowdperf.benchmarks.stable_diffusion_xl import pictures

        return pictures.score(responses, dataset, self._tokenizer, self.response.fixed_shape)

    def write_pictures(self, folder: Path, answers: Mapping[int, bytes], dataset: CaptionSet) -> None:
        """Write the pictures of some samples, and what each shows, as reviewers of a submission want to see them."""
        from crowdperf.benchmarks.stable_diffusion_xl import pictures

        pictures.write(folder, answers, dataset, self.response.fixed_shape)


def memory_bytes(facts: ModelFacts) -> int:
    """Return how much memory the weights take: 13.7 GB at full size."""
    if not facts.config or int(facts.config.get("latent_side", 128)) >= int(_FULL["latent_side"]):  # type: ignore[call-overload]
        return 4 * (810_630_912 + 2_567_463_684 + 49_490_199)
    return 64 * 2**20


def open_model(facts: ModelFacts) -> StableDiffusionXl:
    return StableDiffusionXl(required_config(facts, _SIZES, "stable-diffusion-xl", _FULL), facts)
