"""Cases of the detection scorer. truth: the content of the annotation file."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scores.case import Case, Responses

from crowdperf.harness.base.score import Score
from crowdperf.harness.metrics import coco

_CATEGORY_IDS = [1, 2, 3, 5, 8, 13, 90, 264]
_FILE_ORDER = [3, 1, 264, 2, 5, 90, 13, 8]  # the official label map follows the file, not the numbers


def make_truth(seed: int, image_count: int = 24, *, empty_count: int = 3) -> dict[str, Any]:
    """Return annotations in COCO's form: image ids out of order, crowds, small boxes, images without a box."""
    random = np.random.RandomState(seed)
    ids = (random.permutation(image_count) * 7 + 139).tolist()
    images = [
        {"id": image, "width": int(random.randint(40, 700)), "height": int(random.randint(40, 700)),
         "file_name": f"{image:012d}.jpg", "coco_url": f"http://images/{image}"}
        for image in ids
    ]  # fmt: skip
    annotations: list[dict[str, Any]] = []
    for image in images[: image_count - empty_count]:
        for _ in range(random.randint(1, 9)):
            width, height = (round(float(random.rand() * image[side]), 2) for side in ("width", "height"))
            x, y = round(image["width"] - width, 2) * random.rand(), round(image["height"] - height, 2) * random.rand()
            category = _CATEGORY_IDS[random.randint(len(_CATEGORY_IDS))]
            annotations.append({
                "id": len(annotations) + 1, "image_id": image["id"], "category_id": category,
                "bbox": [round(float(x), 2), round(float(y), 2), width, height], "area": width * height,
                "iscrowd": int(random.rand() < 0.08), "segmentation": [],
            })  # fmt: skip
    categories = [{"id": category, "name": f"c{category}"} for category in _FILE_ORDER]
    return {"info": {}, "images": images, "annotations": annotations, "categories": categories}


def _detections(random: np.random.RandomState, truth: dict[str, Any], index: int) -> np.ndarray:
    """Boxes near the true ones, some with a wrong label, and a few out of nowhere."""
    image = truth["images"][index]
    size = np.array([image["height"], image["width"], image["height"], image["width"]], dtype=np.float64)
    rows = []
    for annotation in truth["annotations"]:
        if annotation["image_id"] != image["id"] or random.rand() < 0.2:
            continue
        x, y, width, height = annotation["bbox"]
        box = (np.array([y, x, y + height, x + width]) + random.standard_normal(4) * 4) / size
        label = annotation["category_id"] if random.rand() < 0.85 else _CATEGORY_IDS[random.randint(8)]
        rows.append([index, *box, random.rand(), label])
        if random.rand() < 0.3:
            rows.append([index, *(box + 0.01), random.rand(), label])
    for _ in range(random.randint(0, 4)):
        low, high = np.sort(random.rand(2, 2), axis=0)
        rows.append([index, *low, *high, random.rand() * 0.6, _CATEGORY_IDS[random.randint(8)]])
    return np.array(rows, dtype=np.float32).reshape(-1, 7)


def _case(
    seed: int, change: Callable[[Any, np.ndarray], np.ndarray] = lambda random, rows: rows, **options: Any
) -> Case:
    truth, random = make_truth(seed), np.random.RandomState(seed + 100)
    responses: Responses = [
        (index, change(random, _detections(random, truth, index)).astype(np.float32).tobytes())
        for index in range(len(truth["images"]))
    ]
    return Case([responses[i] for i in random.permutation(len(responses))], truth, options)


def _tied(random: np.random.RandomState, rows: np.ndarray) -> np.ndarray:
    rows[:, 5] = np.round(rows[:, 5], 1)
    return np.repeat(rows, 2, axis=0)


def _many(random: np.random.RandomState, rows: np.ndarray) -> np.ndarray:
    """More than 100 boxes of one category in each image."""
    copies = np.repeat(rows, 60, axis=0)
    copies[:, 1:5] += random.standard_normal((len(copies), 4)) * 0.02
    copies[:, 5] = random.rand(len(copies))
    copies[:, 6] = 3
    return copies


def _mapped(random: np.random.RandomState, rows: np.ndarray) -> np.ndarray:
    rows[:, 6] = [_FILE_ORDER.index(int(label)) + 1 for label in rows[:, 6]]
    return rows


def _duplicates() -> Case:
    case, other = _case(5), _case(5, lambda random, rows: rows[: len(rows) // 2])
    return Case([*case.responses, *other.responses[:9]], case.truth)


def _changed(seed: int, column: int, value: float) -> Case:
    def change(random: np.random.RandomState, rows: np.ndarray) -> np.ndarray:
        rows[:1, column] = value
        return rows

    return _case(seed, change)


CASES: dict[str, Callable[[], Case]] = {
    "real format": lambda: _case(1),
    "openimages": lambda: _case(2),
    "ties and doubles": lambda: _case(3, _tied),
    "over 100 of one category": lambda: _case(4, _many),
    "duplicated indices": _duplicates,
    "label map": lambda: _case(7, _mapped, is_label_mapped=True),
    "half of the images": lambda: Case(_case(8).responses[:12], _case(8).truth),
    "some images without detection": lambda: _case(9, lambda random, rows: rows[: random.randint(2) * 9]),
    "a few stray floats": lambda: _case(10, lambda random, rows: rows if len(rows) > 4 else rows.reshape(-1)[:3]),
    "boxes outside, inside out and empty": lambda: _case(
        11, lambda random, rows: np.concatenate([rows, rows[:, [0, 3, 4, 1, 2, 5, 6]], rows * [1, 2, 2, 2, 2, 1, 1]])
    ),
    "unknown category": lambda: _case(12, lambda random, rows: rows + np.array([0, 0, 0, 0, 0, 0, 1])),
    "another index in the rows": lambda: _changed(13, 0, 3.0),
    "images without boxes only": lambda: Case(
        [(i, np.array([i, 0.1, 0.1, 0.5, 0.5, 0.9, 1], np.float32).tobytes()) for i in (21, 22)], make_truth(14)
    ),
    "no detection at all": lambda: Case([(i, b"") for i in range(24)], make_truth(15)),
    "cut off": lambda: Case([(0, b"\0" * 40)], make_truth(16)),
    "NaN score": lambda: _changed(17, 5, float("nan")),
    "label beyond the map": lambda: _case(
        18, lambda random, rows: rows + np.array([0, 0, 0, 0, 0, 0, 300]), is_label_mapped=True
    ),
}


def ours(case: Case, folder: Path) -> Score:
    """Return the score of this project's scorer; the annotations are written into `folder`."""
    path = folder / "annotations.json"
    path.write_text(json.dumps(case.truth))
    return coco.score(case.responses, path, **case.options)
