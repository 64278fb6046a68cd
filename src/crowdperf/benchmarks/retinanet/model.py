"""RetinaNet (ResNeXt50-32x4d, 264 classes of OpenImages, 800 x 800): object detection.

Untimed: decoding, bilinear resize, division by 255, channels first. Timed: the network (which normalises), the choice
of candidates, decoding of boxes, suppression. Sources, all in mlcommons/inference unless said otherwise: dataset.py
(pre_process_openimages_retinanet) and openimages.py (PostProcessOpenImagesRetinanet) of
vision/classification_and_detection/python; thresholds from RetinaNet in single_stage_detector/ssd/model/retinanet.py of
mlcommons/training.

The published ONNX file (zenodo 6617879) takes one image and gives boxes in pixels of the 800 x 800 input, labels and
scores, suppressed already. The networks of network.py give candidates, from which the same is made
here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.base.tensors import Array, NetworkSpec, Tensors, TensorSpec
from crowdperf.harness.detection.boxes import Coding, Detections, Floats, best_first, decode, suppress, to_centres
from crowdperf.harness.detection.detector import (
    Detector,
    is_published,
    refuse_published_weights,
    resized,
    whole_number,
    whole_numbers,
)

CODING = Coding(scales=(1.0, 1.0, 1.0, 1.0), largest_log=math.log(1000.0 / 16))
"""Source: class BoxCoder, mlcommons/training single_stage_detector/ssd/model/utils.py."""
_SCORE_LIMIT = 0.05  # score_thresh of the network, and the score at which the reference stops reading
_OVERLAP_LIMIT = 0.5  # nms_thresh
_MAX_DETECTIONS = 300  # detections_per_img
_ANCHORS_PER_PLACE = 9  # three sizes of three ratios
_PUBLISHED_SIZE = 800


def _prepare(image: npt.NDArray[np.uint8], size: int) -> Array:
    """Return float32[3, size, size], RGB, 0..1."""
    return np.ascontiguousarray((resized(image, size) / np.float32(255.0)).transpose(2, 0, 1))


@dataclass(frozen=True, slots=True, eq=False)
class _Candidates:
    """Makes detections of the candidates that the network of this folder gives."""

    anchors: Floats
    image_size: int
    class_count: int

    def find(self, outputs: Tensors) -> Detections:
        """Return what one image's logits [n], places int64 [n] and deltas [n, 4] say."""
        scores = np.float32(1.0) / (np.float32(1.0) + np.exp(-outputs["logits"].astype(np.float32)))
        order = np.flatnonzero(scores > _SCORE_LIMIT)
        order = order[best_first(scores[order])]
        anchors, labels = np.divmod(outputs["places"][order].astype(np.int64), self.class_count)
        deltas = outputs["deltas"][order].astype(np.float32)
        boxes = np.clip(decode(deltas, self.anchors[anchors], CODING), 0.0, self.image_size)
        kept = suppress(boxes, labels, limit=_OVERLAP_LIMIT, most=_MAX_DETECTIONS)
        return Detections(boxes[kept] / np.float32(self.image_size), scores[order][kept], labels[kept])


def _find_published(outputs: Tensors) -> Detections:
    """Return what boxes [n, 4], labels [n] and scores [n] of the published file say, best first."""
    scores = outputs["scores"].astype(np.float32)
    low = np.flatnonzero(scores < _SCORE_LIMIT)
    count = int(low[0]) if len(low) else len(scores)  # the reference stops at the first low one
    boxes = outputs["boxes"][:count].astype(np.float32) / np.float32(_PUBLISHED_SIZE)
    return Detections(boxes, scores[:count], outputs["labels"][:count].astype(np.int64))


def _network(size: int, outputs: tuple[TensorSpec, ...]) -> NetworkSpec:
    images = TensorSpec(name="images", dtype="float32", shape=(3, size, size))
    return NetworkSpec(name="model", inputs=(images,), outputs=outputs)


def _published() -> Detector:
    outputs = (
        TensorSpec(name="boxes", dtype="float32", shape=(4,)),
        TensorSpec(name="labels", dtype="int64", shape=()),
        TensorSpec(name="scores", dtype="float32", shape=()),
    )  # the first axis counts detections, not images
    return Detector(
        network=_network(_PUBLISHED_SIZE, outputs),
        prepare=lambda image: _prepare(image, _PUBLISHED_SIZE),
        find=_find_published,
        is_batched=False,
    )


def _grids(size: int) -> tuple[int, ...]:
    """Return the places along a side of the pyramid's five levels, from stride 8 to stride 128, rounded up."""
    return tuple(-(-size // stride) for stride in (8, 16, 32, 64, 128))


def _anchors(image_size: int, grids: Sequence[int], sizes: Sequence[float]) -> Floats:
    """Return the anchors of retinanet as centres in pixels: level by level, row by row, nine at each place.

    grids: places along a side for each level; sizes: the smallest anchor's side of each level. The nine are three
    ratios (height : width 0.5, 1, 2) of three sizes (1, 2^1/3, 2^2/3 of the level's, rounded down), with corners
    rounded to whole pixels. Source: RetinaNet in single_stage_detector/ssd/model/retinanet.py of mlcommons/training
    and AnchorGenerator of torchvision, whose step is the image size divided by the grid, rounded down (61 and 114 for
    grids 13 and 7).
    """
    levels = []
    for grid, size in zip(grids, sizes, strict=True):
        sides = np.array([size, int(size * 2 ** (1 / 3)), int(size * 2 ** (2 / 3))], dtype=np.float32)
        tall = np.sqrt(np.array([0.5, 1.0, 2.0], dtype=np.float32))
        widths, heights = (np.outer(1 / tall, sides).ravel(), np.outer(tall, sides).ravel())
        shapes = np.round(np.stack([-widths, -heights, widths, heights], axis=1) / 2)
        steps = np.arange(grid, dtype=np.float32) * (image_size // grid)
        y, x = (axis.ravel() for axis in np.meshgrid(steps, steps, indexing="ij"))
        places = np.stack([x, y, x, y], axis=1)
        levels.append((places[:, None] + shapes[None]).reshape(-1, 4).astype(np.float32))
    return to_centres(np.concatenate(levels))


def anchors_of(facts: ModelFacts) -> Floats:
    """Return the anchors of the configuration as centres, parts of the sides; raises HarnessError."""
    size = whole_number(facts, "image_size")
    return _anchors(size, _grids(size), whole_numbers(facts, "anchor_sizes")) / np.float32(size)


def open_model(facts: ModelFacts) -> Detector:
    if is_published(facts):
        refuse_published_weights(facts, "retinanet")
        return _published()
    size, class_count = whole_number(facts, "image_size"), whole_number(facts, "class_count")
    most, grids = whole_number(facts, "candidates_per_level"), _grids(size)
    anchors = _anchors(size, grids, whole_numbers(facts, "anchor_sizes"))
    count = sum(min(most, grid * grid * _ANCHORS_PER_PLACE * class_count) for grid in grids)
    outputs = (
        TensorSpec(name="logits", dtype="float32", shape=(count,)),
        TensorSpec(name="places", dtype="int64", shape=(count,)),
        TensorSpec(name="deltas", dtype="float32", shape=(count, 4)),
    )
    return Detector(
        network=_network(size, outputs),
        prepare=lambda image: _prepare(image, size),
        find=_Candidates(anchors, size, class_count).find,
    )
