"""Writes a synthetic data set for object detection: coloured rectangles and ellipses on noise, with their boxes.

They stand in for photographs where none may be downloaded, and are easy enough that a small network fitted in seconds
finds most objects: a mean average precision that says whether the way from JPEG to score is right, and nothing about
a real network. A kind (0 to 5) is a colour, odd ones are ellipses.

The folder has the layout of the real data set (crowdperf/harness/datasets/coco.py, openimages.py): JPEG files and
annotations in COCO's format with every category of the real list; the pictures show objects of the first six. The same
seed gives the same pictures whatever their number.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.commands.listed_images import read_classes
from crowdperf.harness.detection.boxes import Floats, Integers, overlaps
from crowdperf.kit.whole_file import write_json
from crowdperf.standins.dataset_program import Given, MadeSet

_JPEG_QUALITY = 92
_COLOURS = ((225, 50, 45), (45, 200, 60), (50, 80, 235), (225, 210, 40), (210, 50, 205), (40, 205, 215))
KIND_COUNT = len(_COLOURS)
_SHADES = (0.75, 1.05)  # brightness of an object as a part of its colour
_BACKGROUND = (70.0, 180.0)  # grey of the background
_NOISE = 10.0  # standard deviation, of 255
_SIDES = (0.2, 0.55)  # an object's side as a part of the picture's
_LARGEST_OVERLAP = 0.05
_TRIES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where the files of a data set lie. empty_every: of so many pictures one shows no object (0: each shows some).

    sizes: width and height of pictures as large as the real ones, and of small ones.
    """

    annotations: str
    images: str
    file_name: str
    empty_every: int
    real_sizes: tuple[tuple[int, int], ...]


LAYOUTS = {
    "coco": Layout(
        annotations="annotations/instances_val2017.json",
        images="val2017",
        file_name="{number:012d}.jpg",
        empty_every=12,  # 48 of the real 5,000 images show no object
        real_sizes=((640, 480), (480, 640), (640, 427), (500, 375)),
    ),
    "openimages": Layout(
        annotations="annotations/openimages-mlperf.json",
        images="validation/data",
        file_name="{number:016x}.jpg",
        empty_every=0,
        real_sizes=((1024, 683), (683, 1024), (1024, 768), (1024, 1024)),
    ),
}
_SMALL_SIZES = ((200, 150), (150, 200), (192, 128), (160, 160))


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


def _annotations_of(
    scene: Scene, size: tuple[int, int], image_id: int, classes: Sequence[tuple[int, str]]
) -> list[dict[str, Any]]:
    """Return the boxes as x, y, width, height in pixels."""
    scale = np.array([*size, *size], dtype=np.float64)
    rows = []
    for corners, kind in zip(scene.boxes.astype(np.float64) * scale, scene.kinds.tolist(), strict=True):
        left, top, right, bottom = (round(float(value), 2) for value in corners)
        width, height = round(right - left, 2), round(bottom - top, 2)
        rows.append(
            {
                "image_id": image_id,
                "category_id": classes[kind][0],
                "bbox": [left, top, width, height],
                "area": round(width * height, 2),
                "iscrowd": 0,
            }
        )
    return rows


def make(given: Given) -> Mapping[str, Any]:
    """Write pictures and annotations; return their facts. Raises HarnessError."""
    import cv2

    layout, classes = LAYOUTS[given.layout], read_classes(given.classes)
    sizes = _SMALL_SIZES if given.pictures == "small" else layout.real_sizes
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    (given.output_dir / layout.images).mkdir(parents=True, exist_ok=True)
    for number in range(1, given.count + 1):
        generator = np.random.default_rng((given.seed, number))
        is_empty = layout.empty_every > 0 and number % layout.empty_every == 0
        scene = random_scene(generator, *((0, 0) if is_empty else (1, 4)))
        width, height = sizes[(number - 1) % len(sizes)]
        name = layout.file_name.format(number=number)
        path = given.output_dir / layout.images / name
        picture = draw(generator, scene, width, height)
        if not cv2.imwrite(str(path), picture[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY]):
            raise HarnessError(f"cannot write {path}", "free space, or use another folder")
        images.append({"id": number, "file_name": name, "width": width, "height": height})
        annotations += _annotations_of(scene, (width, height), number, classes)
    content = {
        "info": {"description": "synthetic pictures for tests, made by crowdperf"},
        "licenses": [],
        "images": images,
        "annotations": [{"id": number, **row} for number, row in enumerate(annotations, start=1)],
        "categories": [{"id": number, "name": name, "supercategory": ""} for number, name in classes],
    }
    path = given.output_dir / layout.annotations
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, content, indent=None)
    return {"name": given.layout, "pictures": given.pictures, "license": "Apache-2.0"}


MADE = MadeSet(
    name="scenes",
    what="pictures",
    make=make,
    options={
        "--layout": {"required": True, "choices": sorted(LAYOUTS)},
        "--classes": {"required": True, "type": Path, "help": "the real list of classes, lines: id name"},
        "--pictures": {"default": "real", "choices": ("real", "small"), "help": "sizes as the real ones, or small"},
    },
)

if __name__ == "__main__":
    sys.exit(MADE.main(__doc__))
