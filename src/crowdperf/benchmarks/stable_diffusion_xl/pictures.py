"""CLIP score and Frechet distance (FID) of generated pictures, as accuracy_coco.py of mlcommons/inference gives them:
`Accuracy Results: {'FID_SCORE': '23.48', 'CLIP_SCORE': '31.75'}`.

CLIP score: 100 times the cosine between a picture and its caption, the mean of all. FID: between the normal
distributions of Inception's features of the made pictures and of the real ones, whose mean and covariance are given.
Source: text_to_image/tools at b66003e1 of 2026-08-20. One picture at a time is in memory.
"""

import shutil
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from crowdperf.benchmarks.stable_diffusion_xl.clip_network import Clip, sizes_of
from crowdperf.benchmarks.stable_diffusion_xl.inception import FEATURES, Inception
from crowdperf.harness.base.checkpoints import read_checkpoint
from crowdperf.harness.base.cores import available_cores
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.libraries import import_library
from crowdperf.harness.base.score import Score
from crowdperf.harness.datasets.coco2014 import CLIP_FILES, INCEPTION_FILES, STATISTICS_FILE, CaptionSet
from crowdperf.harness.media.clip_tokens import ClipTokenizer

_MEAN = (0.48145466, 0.4578275, 0.40821073)  # OPENAI_DATASET_MEAN and _STD: open_clip_torch 2.26.1, constants.py
_DEVIATION = (0.26862954, 0.26130258, 0.27577711)
_EPS = 1e-6
_MAX_IMAGINARY = 1e-3
_HINT = "the README of get,dataset,coco2014 lists the files needed to score pictures"
Matrix = npt.NDArray[np.float64]
Picture = npt.NDArray[np.uint8]


def open_scorer(path: Path, kind: type[Clip] | type[Inception]) -> nn.Module:
    """Return the network with the weights of `path`; raises HarnessError for a file that is none of it."""
    state = read_checkpoint(path)
    try:
        if kind is Clip:
            module: nn.Module = Clip(sizes_of(state))
        else:
            module = Inception(32 // len(state["Conv2d_1a_3x3.conv.weight"]))
        unwanted = module.load_state_dict({name: value.float() for name, value in state.items()}, strict=False)
    except (KeyError, RuntimeError, ZeroDivisionError) as error:
        raise HarnessError(f"{path} contains no weights of {kind.__name__}: {error}", _HINT) from error
    if unwanted.missing_keys:
        raise HarnessError(f"{path} is missing {unwanted.missing_keys[0]} of {kind.__name__}", _HINT)
    return module.eval().requires_grad_(False)


def clip_input(picture: Picture, side: int) -> torch.Tensor:
    """Return float32[1, 3, side, side] of uint8[height, width, 3]: the shorter side made `side`, the middle cut out."""
    image = import_library("PIL.Image", "pillow")
    height, width = picture.shape[:2]
    shorter = min(height, width)
    sizes = (int(side * width / shorter), int(side * height / shorter))
    resized = image.fromarray(picture).resize(sizes, image.Resampling.BICUBIC)
    left, top = round((sizes[0] - side) / 2), round((sizes[1] - side) / 2)
    values = torch.from_numpy(np.array(resized.crop((left, top, left + side, top + side)))).permute(2, 0, 1)
    mean, deviation = (torch.tensor(row).reshape(3, 1, 1) for row in (_MEAN, _DEVIATION))
    return ((values.float() / 255 - mean) / deviation)[None]


def inception_input(picture: Picture) -> torch.Tensor:
    """Return float32[1, 3, height, width], 0..1."""
    return (torch.from_numpy(picture.copy()).permute(2, 0, 1).float() / 255)[None]


def statistics_of(features: Matrix) -> tuple[Matrix, Matrix]:
    """Return mean and covariance of features [pictures, channels]; two pictures are the least."""
    return features.mean(axis=0), np.cov(features, rowvar=False)


def frechet_distance(one: tuple[Matrix, Matrix], other: tuple[Matrix, Matrix]) -> float:
    """Return the squared distance of two normal distributions, each mean and covariance.

    Where the root of the covariances' product is not finite, 1e-6 is added to their diagonals, as the official script
    does. Raises HarnessError for a root that is not real, or for means of other lengths.
    """
    linalg = import_library("scipy.linalg", "scipy")
    (mean, covariance), (other_mean, other_covariance) = one, other
    if mean.shape != other_mean.shape:
        raise HarnessError(f"features of {len(mean)} and of {len(other_mean)} channels do not compare", _HINT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", linalg.LinAlgWarning)  # of fewer pictures than channels
        root = linalg.sqrtm(covariance @ other_covariance)
    if not np.isfinite(root).all():
        offset = np.eye(len(mean)) * _EPS
        root = linalg.sqrtm((covariance + offset) @ (other_covariance + offset))
    if np.iscomplexobj(root):
        if not np.allclose(np.diagonal(root).imag, 0, atol=_MAX_IMAGINARY):
            raise HarnessError("the root of the covariances is not real: too few pictures, or all alike")
        root = root.real
    difference = mean - other_mean
    return float(difference @ difference + np.trace(covariance) + np.trace(other_covariance) - 2 * np.trace(root))


def _real_statistics(path: Path) -> tuple[Matrix, Matrix]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return file["mu"][:], file["sigma"][:]
    except (OSError, ValueError, KeyError) as error:
        raise HarnessError(f"{path} contains no mu and sigma: {error}", _HINT) from error


def write(folder: Path, answers: Mapping[int, bytes], dataset: CaptionSet, shape: tuple[int, ...]) -> None:
    """Write `<index>.png` of each answer and captions.txt, as accuracy_coco.py does; what was there goes."""
    image = import_library("PIL.Image", "pillow")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for index in sorted(answers):
        image.fromarray(np.frombuffer(answers[index], np.uint8).reshape(shape)).save(folder / f"{index}.png")
    lines = [f"{index}  {dataset.captions[index]}\n" for index in sorted(answers)]
    (folder / "captions.txt").write_text("".join(lines), encoding="utf-8")


def score(
    responses: Iterable[tuple[int, bytes]], dataset: CaptionSet, tokenizer: ClipTokenizer, shape: tuple[int, ...]
) -> Score:
    """Return CLIP_SCORE and FID_SCORE. A response is uint8 of `shape`, height, width, 3. Raises HarnessError."""
    clip, inception = (
        open_scorer(dataset.scoring_file(names), kind)
        for names, kind in ((CLIP_FILES, Clip), (INCEPTION_FILES, Inception))
    )
    assert isinstance(clip, Clip)
    real = _real_statistics(dataset.scoring_file((STATISTICS_FILE,)))
    torch.set_num_threads(
        len(available_cores()) if len(real[0]) == FEATURES else 1
    )  # small networks only wait for each other
    clip_scores: list[float] = []
    features: list[Matrix] = []
    with torch.inference_mode():
        for index, data in responses:
            if len(data) != np.prod(shape):
                wanted = " x ".join(map(str, shape))
                raise HarnessError(f"the picture of sample {index} has {len(data)} bytes, expected {wanted}")
            picture = np.frombuffer(data, dtype=np.uint8).reshape(shape)
            tokens = torch.from_numpy(tokenizer.scorers([dataset.captions[index]], clip.positions))
            cosine = clip.pictures(clip_input(picture, clip.side)) @ clip.texts(tokens).T
            clip_scores.append(100 * float(cosine.item()))
            features.append(inception(inception_input(picture))[0].double().numpy())
    if len(features) < 2:
        raise HarnessError(f"{len(features)} pictures have no covariance", "score the log of an accuracy run")
    distance, mean = frechet_distance(real, statistics_of(np.stack(features))), float(np.mean(clip_scores))
    return Score(
        values={"CLIP_SCORE": mean, "FID_SCORE": distance},
        line=f"Accuracy Results: {{'FID_SCORE': '{distance}', 'CLIP_SCORE': '{mean}'}}",
    )
