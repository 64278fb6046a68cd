"""Synthetic pictures for object detection: coloured rectangles and ellipses on noise, with the boxes they fill.

They stand in for photographs where none may be downloaded, and are easy enough that a small network fitted in seconds
finds most objects: a mean average precision that says whether the way from JPEG to score is right, and nothing about
a real network. A kind (0 to 5) is a colour, odd ones are ellipses; data sets give the kinds names from their own list
of classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crowdperf.harness.detection.boxes import Floats, Integers, overlaps

_COLOURS = ((225, 50, 45), (45, 200, 60), (50, 80, 235), (225, 210, 40), (210, 50, 205), (40, 205, 215))
KIND_COUNT = len(_COLOURS)
_SHADES = (0.75, 1.05)  # brightness of an object as a part of its colour
_BACKGROUND = (70.0, 180.0)  # grey of the background
_NOISE = 10.0  # standard deviation, of 255
_SIDES = (0.2, 0.55)  # an object's side as a part of the picture's
_LARGEST_OVERLAP = 0.05
_TRIES = 20


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """What a picture shows: corners float32[n, 4], parts of its sides, and the kind of each object."""

    boxes: Floats
    kinds: Integers


def random_scene(generator: np.random.Generator, least: int = 1, most: int = 4) -> Scene:
    """Return `least` to `most` objects that hardly overlap, fewer where no place is found for one."""
    boxes: Floats = np.zeros((0, 4), dtype=np.float32)
    for _ in range(int(generator.integers(least, most + 1))):
        for _ in range(_TRIES):
            sides = generator.uniform(*_SIDES, size=2)
            start = generator.uniform(0.01, 0.99 - sides)
            box = np.concatenate([start, start + sides]).astype(np.float32)[None]
            if not len(boxes) or overlaps(box, boxes).max() <= _LARGEST_OVERLAP:
                boxes = np.concatenate([boxes, box])
                break
    return Scene(boxes, generator.integers(0, KIND_COUNT, size=len(boxes)))


def draw(generator: np.random.Generator, scene: Scene, width: int, height: int) -> npt.NDArray[np.uint8]:
    """Return the picture uint8[height, width, 3], RGB; `generator` gives background, shades and noise."""
    picture = np.full((height, width, 3), generator.uniform(*_BACKGROUND), dtype=np.float32)
    x = ((np.arange(width) + 0.5) / width)[None, :]
    y = ((np.arange(height) + 0.5) / height)[:, None]
    for (left, top, right, bottom), kind in zip(scene.boxes.tolist(), scene.kinds.tolist(), strict=True):
        if kind % 2:
            across, down = (2 * x - left - right) / (right - left), (2 * y - top - bottom) / (bottom - top)
            inside = across**2 + down**2 <= 1.0
        else:
            inside = (x >= left) & (x <= right) & (y >= top) & (y <= bottom)
        picture[inside] = np.array(_COLOURS[kind]) * generator.uniform(*_SHADES)
    picture += generator.normal(0.0, _NOISE, size=picture.shape)
    return np.clip(picture, 0.0, 255.0).astype(np.uint8)
