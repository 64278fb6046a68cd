"""Boxes: anchors, decoding, non-maximum suppression and the rows that detection responses consist of.

Plain numpy, used by the model files for what is timed and by the architectures' fits. Boxes are float32[n, 4] as left,
top, right, bottom ("corners") or centre x, centre y, width, height ("centres"); x and width come first. The unit is the
caller's: pixels of the network's input for retinanet, parts of the image's sides for the SSDs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.tensors import Array

_BLOCK = 64  # boxes that suppression takes at once: of 64 to 1,024 the quickest for retinanet's 5,000 (Xeon, one core)

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]

ROW_LENGTH = 7
"""A response row: qsl index, ymin, xmin, ymax, xmax (0..1), score, class. Source: accuracy-coco.py and
accuracy-openimages.py of mlcommons/inference, vision/classification_and_detection/tools."""


@dataclass(frozen=True, slots=True, eq=False)
class Detections:
    """What was found in one image: corners float32[n, 4], parts of the image's sides; score and class of each."""

    boxes: Floats
    scores: Floats
    labels: Integers


@dataclass(frozen=True, slots=True, kw_only=True)
class Coding:
    """How a network says a box by four numbers beside an anchor (dx, dy, dw, dh).

    scales: what each number is multiplied with. largest_log: dw and dh are cut there before exp, None: not at all.
    """

    scales: tuple[float, float, float, float]
    largest_log: float | None = None


SSD_CODING = Coding(scales=(0.1, 0.1, 0.2, 0.2))
"""Source: dboxes_R34_coco (scale_xy, scale_wh) in models/ssd_r34.py; coder_weights 10, 10, 5, 5 in
models/ssd_mobilenet_v1.py of mlcommons/inference, which are the same numbers as divisors."""


def to_centres(corners: Floats) -> Floats:
    sizes = corners[:, 2:] - corners[:, :2]
    return np.concatenate([corners[:, :2] + np.float32(0.5) * sizes, sizes], axis=1)


def to_corners(centres: Floats) -> Floats:
    half = np.float32(0.5) * centres[:, 2:]
    return np.concatenate([centres[:, :2] - half, centres[:, :2] + half], axis=1)


def decode(deltas: Floats, anchors: Floats, coding: Coding) -> Floats:
    """Return the corners that `deltas` float32[n, 4] say beside `anchors` (centres)."""
    scaled = deltas * np.array(coding.scales, dtype=np.float32)
    logs = scaled[:, 2:] if coding.largest_log is None else np.minimum(scaled[:, 2:], np.float32(coding.largest_log))
    centres = scaled[:, :2] * anchors[:, 2:] + anchors[:, :2]
    return to_corners(np.concatenate([centres, np.exp(logs) * anchors[:, 2:]], axis=1))


def encode(corners: Floats, anchors: Floats, coding: Coding) -> Floats:
    """Return the deltas from which `decode` makes `corners` again; for fitting."""
    centres = to_centres(corners)
    moves = (centres[:, :2] - anchors[:, :2]) / anchors[:, 2:]
    logs = np.log(centres[:, 2:] / anchors[:, 2:])
    encoded = np.concatenate([moves, logs], axis=1) / np.array(coding.scales, dtype=np.float32)
    return encoded.astype(np.float32)


def overlaps(corners: Floats, others: Floats, epsilon: float = 0.0) -> Floats:
    """Return intersection over union float32[n, m] of every box with every other; `epsilon` is added to the union."""
    columns, rows = np.ascontiguousarray(others.T), corners.T[:, :, None]  # a coordinate at a time: quicker than pairs

    def side(axis: int) -> Floats:
        shared: Floats = np.minimum(rows[axis + 2], columns[axis + 2]) - np.maximum(rows[axis], columns[axis])
        np.maximum(shared, np.float32(0.0), out=shared)
        return shared

    common = side(0) * side(1)
    union = _areas(corners)[:, None] + _areas(others) - common + np.float32(epsilon)
    result: Floats = common / union
    return result


def _areas(corners: Floats) -> Floats:
    sides: Floats = np.maximum(corners[:, 2:] - corners[:, :2], np.float32(0.0))
    areas: Floats = sides[:, 0] * sides[:, 1]
    return areas


def suppress(
    corners: Floats, labels: Integers, *, limit: float, most: int | None = None, epsilon: float = 0.0
) -> npt.NDArray[np.intp]:
    """Return the positions that survive non-maximum suppression, in order; the boxes come best score first.

    A box falls when it overlaps a surviving one of its own class by more than `limit`. It ends with `most` survivors:
    that they are found best first makes them the same as the best `most` of all survivors. Boxes are taken in blocks,
    each compared first with the survivors so far and then within itself: few steps of Python for many boxes.
    """

    def rivals(some: npt.NDArray[np.intp], others: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
        with np.errstate(divide="ignore", invalid="ignore"):  # two boxes without area: 0 / 0, which is not above
            too_near = overlaps(corners[some], corners[others], epsilon) > np.float32(limit)
        fallen: npt.NDArray[np.bool_] = too_near & (labels[some][:, None] == labels[others])
        return fallen

    kept = np.zeros(0, dtype=np.intp)
    for start in range(0, len(corners), _BLOCK):
        if most is not None and len(kept) >= most:
            break
        block = np.arange(start, min(start + _BLOCK, len(corners)), dtype=np.intp)
        block = block[~rivals(block, kept).any(axis=1)]
        felled = np.triu(rivals(block, block), k=1)  # row: a better box; column: a worse one
        has_fallen = np.zeros(len(block), dtype=np.bool_)
        for row in np.flatnonzero(felled.any(axis=1)).tolist():
            if not has_fallen[row]:
                has_fallen |= felled[row]
        kept = np.concatenate([kept, block[~has_fallen]])
    return kept[:most]


def response_rows(image_index: int, found: Detections) -> Floats:
    """Return the response float32[n, 7] of one image; n may be 0."""
    rows = np.empty((len(found.scores), ROW_LENGTH), dtype=np.float32)
    rows[:, 0] = image_index
    rows[:, 1:5] = found.boxes[:, [1, 0, 3, 2]]
    rows[:, 5] = found.scores
    rows[:, 6] = found.labels
    return rows


def best_first(scores: Floats) -> npt.NDArray[np.intp]:
    """Return the order that puts the highest score first; equal ones stay in order."""
    order: npt.NDArray[np.intp] = np.argsort(-scores, kind="stable")
    return order


def boxes_at(x: Array, y: Array, sides: Sequence[tuple[float, float]]) -> Floats:
    """Return centres float32[places, shapes, 4]."""
    shapes = np.array(sides)
    boxes = np.empty((len(x), len(shapes), 4), dtype=np.float32)
    boxes[..., 0], boxes[..., 1] = x[:, None], y[:, None]
    boxes[..., 2:] = shapes
    return boxes
