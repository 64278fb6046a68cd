"""Downloads the validation images of OpenImages that show an object of MLPerf's classes, and writes their annotations.

    python3 fetch_images.py --boxes validation-annotations-bbox.csv --names class-descriptions-boxable.csv \
        --classes classes.txt --images_url URL --output_dir FOLDER

Writes validation/data/ID.jpg and annotations/openimages-mlperf.json as tools/openimages.py of mlcommons/inference
does: images in the order of their ids, categories numbered in the order of classes.txt, boxes in pixels of the image.
An image that is there whole is not fetched again, so that an interrupted run is resumed. No checksums of the images
are published: images.sha256 has the SHA-256 of each, and downloads.json that of this list, as download-file writes it.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import HarnessError
from harness.making.scene_dataset import read_classes
from harness.media import imaging
from harness.modelfacts import file_sha256

TRIES = 4
TIMEOUT_S = 60
FIRST_PAUSE_S = 2.0
ANNOTATIONS_FILE = "annotations/openimages-mlperf.json"
IMAGE_FOLDER = "validation/data"
PASSED_ON = ("IsOccluded", "IsInside", "IsDepiction", "IsTruncated", "IsGroupOf")
HINT = "run the recipe again: what is there is not fetched again"


@dataclass(frozen=True)
class Box:
    """A box of the CSV file: image, category and corners as parts of the sides; flags as the file has them."""

    image: str
    category: int
    corners: tuple[float, float, float, float]
    flags: Mapping[str, int]


def categories_of(names: Iterable[Sequence[str]], classes: Sequence[tuple[int, str]]) -> dict[str, int]:
    """The category number of each label ("/m/0jbk") of the wanted classes; raises HarnessError for a class without."""
    number_of = {name: number for number, name in classes}
    found = {row[0]: number_of[row[1]] for row in names if len(row) == 2 and row[1] in number_of}
    missing = sorted(set(number_of.values()) - set(found.values()))
    if missing:
        raise HarnessError(f"the file of class names lacks {len(missing)} classes, numbers {missing[:5]}", HINT)
    return found


def read_boxes(rows: Iterable[Mapping[str, str]], categories: Mapping[str, int]) -> list[Box]:
    """The boxes of the wanted categories, ordered by image; raises HarnessError for a file of another form."""
    try:
        boxes = [
            Box(
                image=row["ImageID"],
                category=categories[row["LabelName"]],
                corners=(float(row["XMin"]), float(row["YMin"]), float(row["XMax"]), float(row["YMax"])),
                flags={key: int(row[key]) for key in PASSED_ON},
            )
            for row in rows
            if row["LabelName"] in categories
        ]
    except (KeyError, ValueError, TypeError) as error:
        raise HarnessError(f"the file of boxes cannot be used: {error!r}", "get it again") from error
    return sorted(boxes, key=lambda box: box.image)


def fetch_image(url: str, path: Path) -> str:
    """Fetch one image unless it is there whole; an empty text, or what went wrong after all tries."""
    if path.is_file() and not imaging.image_problem(path):
        return ""
    unfinished = path.with_name(f"{path.name}.part")
    problem = ""
    for attempt in range(TRIES):
        if attempt:
            time.sleep(FIRST_PAUSE_S * 2 ** (attempt - 1))
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
                unfinished.write_bytes(answer.read())
        except urllib.error.HTTPError as error:
            problem = f"{url}: HTTP {error.code}"
            if error.code in (403, 404):
                return problem
            continue
        except (OSError, ValueError) as error:
            problem = f"{url}: {error}"
            continue
        problem = imaging.image_problem(unfinished)
        if not problem:
            os.replace(unfinished, path)
            return ""
        problem = f"{url}: {problem}"
    return problem


def fetch_all(names: Sequence[str], url: str, folder: Path, threads: int) -> None:
    """Fetch every image into `folder`; raises HarnessError that names the first that could not be had."""
    folder.mkdir(parents=True, exist_ok=True)
    base = url.rstrip("/")
    with ThreadPoolExecutor(max_workers=threads) as pool:
        results = pool.map(lambda name: fetch_image(f"{base}/{name}.jpg", folder / f"{name}.jpg"), names)
        problems = []
        for done, problem in enumerate(results, start=1):
            problems += [problem] if problem else []
            if done % 500 == 0 or done == len(names):
                print(f"openimages: {done} of {len(names)} images", file=sys.stderr, flush=True)
    if problems:
        raise HarnessError(f"{len(problems)} of {len(names)} images could not be had; first: {problems[0]}", HINT)


def record_images(url: str, names: Sequence[str], folder: Path, record_folder: Path) -> None:
    """Write images.sha256 (lines of sha256sum, by name) and its digest into downloads.json, beside what is there."""
    lines = "".join(f"{file_sha256(folder / f'{name}.jpg')}  {name}.jpg\n" for name in names)
    (record_folder / "images.sha256").write_text(lines, encoding="utf-8")
    target = record_folder / "downloads.json"
    content = json.loads(target.read_text(encoding="utf-8")) if target.is_file() else {"format": 1, "files": {}}
    content["files"]["images.sha256"] = {
        "url": url, "size_bytes": len(lines), "sha256": hashlib.sha256(lines.encode()).hexdigest(), "checked": "",
    }  # fmt: skip
    target.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def annotations_of(
    boxes: Sequence[Box], sizes: Mapping[str, tuple[int, int]], classes: Sequence[tuple[int, str]]
) -> dict[str, Any]:
    """The content of openimages-mlperf.json; `sizes` has width and height of every image, `boxes` are ordered."""
    number_of = {name: number for number, name in enumerate(sorted({box.image for box in boxes}), start=1)}
    images = []
    for name, number in number_of.items():
        width, height = sizes[name]
        images.append({"id": number, "file_name": f"{name}.jpg", "height": height, "width": width})
    rows = []
    for number, box in enumerate(boxes, start=1):
        width, height = sizes[box.image]
        left, top, right, bottom = box.corners
        bbox = [left * width, top * height, (right - left) * width, (bottom - top) * height]
        rows.append(
            {
                "id": number,
                "image_id": number_of[box.image],
                "category_id": box.category,
                "bbox": bbox,
                "area": bbox[2] * bbox[3],
                "iscrowd": box.flags["IsGroupOf"],
                **box.flags,
            }
        )
    return {
        "info": {"dataset": "openimages_mlperf", "version": "v6"},
        "licenses": [],
        "categories": [{"id": number, "name": name, "supercategory": None} for number, name in classes],
        "images": images,
        "annotations": rows,
    }


def image_size(path: Path) -> tuple[int, int]:
    """Width and height as decoded, that is after turning by EXIF, as the reference takes them."""
    height, width = imaging.read_image(path).shape[:2]
    return int(width), int(height)


def make_dataset(given: argparse.Namespace) -> int:
    """Fetch and write everything; gives the number of images. Raises HarnessError or OSError."""
    classes = read_classes(given.classes)
    with given.names.open(encoding="utf-8", newline="") as file:
        categories = categories_of(csv.reader(file), classes)
    with given.boxes.open(encoding="utf-8", newline="") as file:
        boxes = read_boxes(csv.DictReader(file), categories)
    names = sorted({box.image for box in boxes})
    folder = given.output_dir / IMAGE_FOLDER
    fetch_all(names, given.images_url, folder, given.threads)
    record_images(given.images_url, names, folder, Path.cwd())
    sizes = {name: image_size(folder / f"{name}.jpg") for name in names}
    target = given.output_dir / ANNOTATIONS_FILE
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f"{target.name}.part")
    unfinished.write_text(json.dumps(annotations_of(boxes, sizes, classes)), encoding="utf-8")
    os.replace(unfinished, target)
    return len(names)


def main(words: Sequence[str] | None = None) -> int:
    """Command line entry; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--boxes", required=True, type=Path)
    parser.add_argument("--names", required=True, type=Path)
    parser.add_argument("--classes", required=True, type=Path)
    parser.add_argument("--images_url", required=True)
    parser.add_argument("--threads", type=int, default=10)
    parser.add_argument("--output_dir", required=True, type=Path)
    try:
        count = make_dataset(parser.parse_args(words))
    except (HarnessError, OSError) as error:
        hint = getattr(error, "hint", "")
        print(f"fetch_images.py: {error}" + (f"\nhint: {hint}" if hint else ""), file=sys.stderr)
        return 1
    print(f"openimages: {count} images with annotations in {parser.parse_args(words).output_dir}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
