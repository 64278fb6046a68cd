"""Downloads the validation images of OpenImages that show an object of MLPerf's classes, and writes their annotations.

    python3 fetch_images.py --boxes validation-annotations-bbox.csv --names class-descriptions-boxable.csv \
        --classes classes.txt --images_url URL --output_dir FOLDER

Writes validation/data/ID.jpg and annotations/openimages-mlperf.json as tools/openimages.py of mlcommons/inference
does: images in the order of their ids, categories numbered in the order of classes.txt, boxes in pixels of the image.
The images are fetched and their SHA-256 written down (images.sha256, downloads.json) by `listed_images` of the harness.
"""

import argparse
import csv
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.commands.listed_images import HINT, fetch_all, read_classes, record_images
from crowdperf.harness.media import image_files
from crowdperf.kit.whole_file import write_json

ANNOTATIONS_FILE = "annotations/openimages-mlperf.json"
IMAGE_FOLDER = "validation/data"
PASSED_ON = ("IsOccluded", "IsInside", "IsDepiction", "IsTruncated", "IsGroupOf")


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
        raise HarnessError(f"the file of class names is missing {len(missing)} classes, numbers {missing[:5]}", HINT)
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
    height, width = image_files.read_image(path).shape[:2]
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
    files = [f"{name}.jpg" for name in names]
    fetch_all(files, given.images_url, folder, given.threads)
    record_images(given.images_url, files, folder, Path("images.sha256"))
    sizes = {name: image_size(folder / f"{name}.jpg") for name in names}
    write_json(given.output_dir / ANNOTATIONS_FILE, annotations_of(boxes, sizes, classes), indent=None)
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
    print(f"openimages: {count:,} images with annotations in {parser.parse_args(words).output_dir}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
