"""Writes made captions in the form of MLPerf's COCO 2014 subset, with noise and networks that score pictures.

The folder has the real layout (crowdperf/harness/datasets/coco2014.py). Captions come from templates; the "real"
pictures, whose statistics are written, are patches of colours; CLIP and Inception have random weights, of the
published sizes, or small ones (`tiny`). So scores only say whether pictures are those that the same networks gave
elsewhere. Seeded, one thread: the same library versions on the same kind of processor give the same files.
"""

import csv
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from crowdperf.benchmarks.initial_weights import draw_weights, random_pictures, seeded
from crowdperf.benchmarks.stable_diffusion_xl.clip_network import VIT_B_32, Clip
from crowdperf.benchmarks.stable_diffusion_xl.inception import Inception
from crowdperf.benchmarks.stable_diffusion_xl.pictures import statistics_of
from crowdperf.harness.datasets.coco2014 import COLUMNS, STATISTICS_FILE
from crowdperf.models.model_files import write_safetensors
from crowdperf.models.model_weights import calibrate_normalisation
from crowdperf.standins.dataset_program import Given, MadeSet, limited

THINGS = ("cup", "clock", "dog", "bus", "kite", "pizza", "bench", "vase", "boat", "sheep", "laptop", "surfboard")
COLOURS = ("red", "green", "blue", "yellow", "white", "black", "brown", "orange")
PLACES = ("on a table", "in a field", "by the sea", "on a street", "in a kitchen", "under a tree", "near a wall")
SMALL_CLIP = {"width": 64, "layers": 1, "patch": 8, "grid": 4, "embed": 32, "text_width": 64, "text_layers": 1,
              "vocabulary": 514, "positions": 77}  # fmt: skip
KINDS = {"tiny": (16, SMALL_CLIP, 16, 299, 192), "full": (128, VIT_B_32, 1, 299, 64)}
"""Places of a side of the noise, sizes of CLIP, divisor of Inception's channels, side and number of "real" pictures."""
LICENSE = "CC0-1.0"
NOTE = "synthetic captions, noise and scoring networks. Results with them are not MLPerf results"


def write_captions(path: Path, count: int, random: np.random.RandomState) -> None:
    """Write the table."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, delimiter="\t", lineterminator="\n")
        rows.writerow(COLUMNS)
        for number in range(count):
            colour, thing, place = (words[random.randint(len(words))] for words in (COLOURS, THINGS, PLACES))
            name = f"COCO_made_{number:012d}.jpg"
            rows.writerow((10 * number, number, f"A {colour} {thing} {place}.", 480, 640, name, f"made/{name}"))


def make_clip(sizes: dict[str, int], seed: int) -> Clip:
    """Return a CLIP whose pictures and texts lie near each other: a cosine far from 0, which varies little."""
    clip, generator = Clip(sizes), seeded(seed)
    draw_weights(clip, generator)
    with torch.no_grad():
        for norm in (clip.visual.ln_post, clip.ln_final):
            norm.bias.fill_(1.0)
        for vector in (clip.visual.class_embedding, clip.visual.positional_embedding, clip.positional_embedding):
            vector.normal_(0.0, 0.02, generator=generator)
        rows = min(len(clip.visual.proj), len(clip.text_projection))
        clip.visual.proj[:rows].copy_(clip.text_projection[:rows])
    return clip.eval()


def make_inception(thin: int, seed: int, pictures: torch.Tensor) -> Inception:
    """Return an Inception with random weights whose normalisations fit the pictures."""
    inception = Inception(thin)
    draw_weights(inception, seeded(seed))
    calibrate_normalisation(inception, (pictures[:8],))
    return inception.eval()


def make(given: Given) -> Mapping[str, Any]:
    """Write the captions, the noise and what scores pictures; return their facts."""
    torch.set_num_threads(1)
    side, sizes, thin, pixels, pictures_count = KINDS[given.kind]
    folder: Path = given.output_dir
    write_captions(folder / "captions" / "captions.tsv", given.count, np.random.RandomState(given.seed))
    for name in ("latents", "scoring"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    noise = np.random.RandomState(given.seed + 1).standard_normal((1, 4, side, side)).astype(np.float32)
    np.save(folder / "latents" / "latents.npy", noise)
    pictures = random_pictures(pictures_count, pixels, seeded(given.seed + 2))
    inception = make_inception(thin, given.seed + 3, pictures)
    with torch.inference_mode():
        features = np.concatenate([inception(part).double().numpy() for part in pictures.split(16)])  # type: ignore[no-untyped-call]
    mean, covariance = statistics_of(features)
    np.savez_compressed(folder / STATISTICS_FILE, mu=mean, sigma=covariance)
    write_safetensors(inception, folder / "scoring" / "inception.safetensors")
    write_safetensors(make_clip(sizes, given.seed + 4), folder / "scoring" / "clip.safetensors")
    return {"license": LICENSE, "note": NOTE}


MADE = MadeSet(
    name="coco2014",
    what="captions",
    make=make,
    options={"--kind": {"required": True, "choices": sorted(KINDS)}},
    count=limited(int, 2, 10**9),
    seed=limited(int, 0, 2**31 - 1),
)

if __name__ == "__main__":
    sys.exit(MADE.main(__doc__))
