"""Writes a synthetic data set for object detection: `python3 -m crowdperf.standins.scene_dataset --help`.

    python3 -m crowdperf.standins.scene_dataset --layout coco --classes classes.txt --count 64 \\
        --pictures small --output_dir FOLDER

The folder has the layout of the real data set (crowdperf/harness/datasets/coco.py, openimages.py): JPEG files and
annotations in COCO's format with every category of the real list; the pictures (scenes.py) show objects of the first
six. dataset.json says that the data is synthetic. The same seed gives the same pictures whatever their number.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crowdperf.harness.base.errors import HarnessError, program
from crowdperf.models.listed_images import read_classes
from crowdperf.standins.scenes import Scene, draw, random_scene

_JPEG_QUALITY = 92


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


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetRequest:
    """What to make. classes: id and name of every category, in the request of the list."""

    layout: str
    classes: tuple[tuple[int, str], ...]
    count: int
    seed: int
    is_small: bool
    output_dir: Path


def _annotations_of(
    scene: Scene, size: tuple[int, int], image_id: int, request: DatasetRequest
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
                "category_id": request.classes[kind][0],
                "bbox": [left, top, width, height],
                "area": round(width * height, 2),
                "iscrowd": 0,
            }
        )
    return rows


def make_dataset(request: DatasetRequest) -> None:
    """Write pictures, annotations and, last, dataset.json; raises HarnessError."""
    import cv2

    layout = LAYOUTS[request.layout]
    sizes = _SMALL_SIZES if request.is_small else layout.real_sizes
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    (request.output_dir / layout.images).mkdir(parents=True, exist_ok=True)
    for number in range(1, request.count + 1):
        generator = np.random.default_rng((request.seed, number))
        is_empty = layout.empty_every > 0 and number % layout.empty_every == 0
        scene = random_scene(generator, *((0, 0) if is_empty else (1, 4)))
        width, height = sizes[(number - 1) % len(sizes)]
        name = layout.file_name.format(number=number)
        path = request.output_dir / layout.images / name
        picture = draw(generator, scene, width, height)
        if not cv2.imwrite(str(path), picture[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY]):
            raise HarnessError(f"cannot write {path}", "make room, or take another folder")
        images.append({"id": number, "file_name": name, "width": width, "height": height})
        annotations += _annotations_of(scene, (width, height), number, request)
    content = {
        "info": {"description": "synthetic pictures for tests, made by crowdperf"},
        "licenses": [],
        "images": images,
        "annotations": [{"id": number, **row} for number, row in enumerate(annotations, start=1)],
        "categories": [{"id": number, "name": name, "supercategory": ""} for number, name in request.classes],
    }
    path = request.output_dir / layout.annotations
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content) + "\n", encoding="utf-8")
    facts = {
        "format": 1,
        "name": request.layout,
        "is_synthetic": True,
        "seed": request.seed,
        "count": request.count,
        "pictures": "small" if request.is_small else "real",
        "licence": "Apache-2.0",
    }
    (request.output_dir / "dataset.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")


@program("scene_dataset")
def main(words: Sequence[str] | None) -> None:
    """Command line entry."""
    parser = argparse.ArgumentParser(
        prog="python3 -m crowdperf.standins.scene_dataset", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--layout", required=True, choices=sorted(LAYOUTS))
    parser.add_argument("--classes", required=True, type=Path, help="the real list of classes, lines: id name")
    parser.add_argument("--count", required=True, type=int)
    parser.add_argument(
        "--pictures", default="real", choices=("real", "small"), help="sizes as the real ones, or small"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output_dir", required=True, type=Path)
    given = parser.parse_args(words)
    try:
        make_dataset(
            DatasetRequest(
                layout=given.layout,
                classes=read_classes(given.classes),
                count=given.count,
                seed=given.seed,
                is_small=given.pictures == "small",
                output_dir=given.output_dir,
            )
        )
    except OSError as error:
        raise HarnessError(str(error)) from error
    print(f"{given.layout}: {given.count} synthetic pictures in {given.output_dir}")


if __name__ == "__main__":
    sys.exit(main())
