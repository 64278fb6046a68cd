"""The captions of Stable Diffusion XL: 5,000 of COCO 2014's validation set, one for each picture, and what scores.

    captions/captions.tsv       id, image_id, caption, height, width, file_name, coco_url, separated by tabs; the
                                index of a sample is its row (captions_source.tsv, where that is missing)
    latents/latents.npy         float32[1, 4, 128, 128], the noise that every picture starts from (or latents.pt)
    scoring/val2014.npz         `mu` and `sigma` of the real pictures, as Inception sees them
    scoring/inception.pth       its weights (pt_inception-2015-12-05-6726825d.pth), or *.safetensors
    scoring/clip.safetensors    weights of CLIP ViT-B/32, with the names of open_clip

Source: coco.py and tools/ in text_to_image of mlcommons/inference, b66003e1 of 2026-08-20. The folder scoring/ is this
project's: the official script has the first file beside itself and downloads the other two.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.dataset import DatasetFacts, read_facts
from crowdperf.harness.base.errors import HarnessError

CAPTION_FILES = ("captions/captions.tsv", "captions/captions_source.tsv")
LATENT_FILES = ("latents/latents.npy", "latents/latents.pt")
STATISTICS_FILE = "scoring/val2014.npz"
INCEPTION_FILES = ("scoring/inception.pth", "scoring/inception.safetensors")
CLIP_FILES = ("scoring/clip.safetensors", "scoring/clip.bin")
SCORING_FILES = ((STATISTICS_FILE,), INCEPTION_FILES, CLIP_FILES)
COLUMNS = ("id", "image_id", "caption", "height", "width", "file_name", "coco_url")
_HINT = "the README of get,dataset,coco2014 lists the files, and _tiny generates a small set"
FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A caption and the noise that its picture starts from, float32[4, side, side], which all prompts share."""

    caption: str
    latent: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class CaptionSet:
    """The captions in the order of the file."""

    folder: Path
    captions: tuple[str, ...]
    latent: FloatArray
    files: tuple[Path, ...]
    facts: DatasetFacts

    @property
    def count(self) -> int:
        return len(self.captions)

    def load(self, indices: Sequence[int]) -> list[Prompt]:
        return [Prompt(self.captions[index], self.latent) for index in indices]

    def scoring_file(self, names: Sequence[str]) -> Path:
        """Return the first of `names` that is there; raises HarnessError."""
        found = _first(self.folder, names)
        if found is None:
            raise HarnessError(f"{self.folder} has no {' or '.join(names)}: pictures cannot be scored", _HINT)
        return found


def _first(folder: Path, names: Sequence[str]) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _captions(path: Path) -> tuple[str, ...]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file, delimiter="\t")
            if "caption" not in (rows.fieldnames or ()):
                raise HarnessError(f"{path} has no column caption, only: {', '.join(rows.fieldnames or ())}", _HINT)
            captions = tuple(str(row["caption"] or "") for row in rows)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise HarnessError(f"cannot read {path}: {error}", _HINT) from error
    empty = [number for number, caption in enumerate(captions, start=2) if not caption.strip()]
    if empty or not captions:
        where = f"no caption in line {empty[0]}" if empty else "no caption"
        raise HarnessError(f"{path} has {where}", _HINT)
    return captions


def _latent(path: Path) -> FloatArray:
    try:
        if path.suffix == ".npy":
            values = np.load(path, allow_pickle=False)
        else:
            import torch

            values = torch.load(path, map_location="cpu", weights_only=True).float().numpy()
    except (OSError, ValueError, EOFError, RuntimeError, AttributeError) as error:
        raise HarnessError(f"cannot read {path}: {error}", _HINT) from error
    if values.ndim != 4 or values.shape[:2] != (1, 4) or values.shape[2] != values.shape[3]:
        raise HarnessError(f"{path} has the shape {list(values.shape)}, expected [1, 4, side, side]", _HINT)
    latent: FloatArray = np.ascontiguousarray(values[0], dtype=np.float32)
    return latent


def open_dataset(folder: Path) -> CaptionSet:
    """Return the captions; raises HarnessError naming what is missing or damaged. The files for scoring may be
    missing."""
    captions, latent = _first(folder, CAPTION_FILES), _first(folder, LATENT_FILES)
    if captions is None or latent is None:
        missing = [names[0] for names, path in ((CAPTION_FILES, captions), (LATENT_FILES, latent)) if path is None]
        raise HarnessError(f"{folder} has no {' and no '.join(missing)}", _HINT)
    scoring = (_first(folder, names) for names in SCORING_FILES)
    files = (captions, latent, *(path for path in scoring if path is not None))
    return CaptionSet(folder, _captions(captions), _latent(latent), files, read_facts(folder))
