"""YOLO11l (80 classes of COCO, 640 x 640): object detection.

Untimed: decoding, resizing to at most 640 pixels a side, grey bars up to the square, division by 255, channels first.
Timed: the network, the threshold, suppression, and the way back to the image without bars. Sources:
vision/classification_and_detection/yolo/yolo_loadgen.py of mlcommons/inference (threshold 0.001, responses in
COCO's category ids) and what `predict` of ultralytics/ultralytics does unless told otherwise (suppression of boxes that
overlap by more than 0.7, within a class; at most 300).

The reference pads each image by itself to a multiple of 32 pixels; here all are squares, as they have to be for
batches.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crowdperf.benchmarks.yolo.record import RECORD
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.base.tensors import Array, NetworkSpec, Tensors, TensorSpec
from crowdperf.harness.detection.boxes import Coding, Detections, Floats, best_first, suppress
from crowdperf.harness.detection.detector import Detector, whole_number

CODING = Coding(scales=(1.0, 1.0, 1.0, 1.0))
"""How the fit of the tiny network says a box beside a virtual anchor."""
_STRIDES = (8, 16, 32)
_VIRTUAL_SIDES = (2.5, 2.5, 2.0)
_SCORE_LIMIT = 0.001
_OVERLAP_LIMIT = 0.7
_MAX_DETECTIONS = 300
_GREY = 114  # of the bars: LetterBox of ultralytics/ultralytics
_NOT_USED = frozenset({12, 26, 29, 30, 45, 66, 68, 69, 71, 83})
CATEGORIES = np.array([number for number in range(1, 91) if number not in _NOT_USED], dtype=np.int64)
"""COCO's category id of each of the network's 80 classes: COCO_80_TO_91 of yolo_loadgen.py."""


@dataclass(frozen=True, slots=True)
class _Fitting:
    """Where an image lies in the square: its size there, and the bars on the left and above."""

    width: int
    height: int
    left: int
    top: int


def _fitting(height: int, width: int, size: int) -> _Fitting:
    part = min(size / height, size / width)
    new_width, new_height = (max(1, min(size, round(side * part))) for side in (width, height))
    left, top = (round((size - side) / 2 - 0.1) for side in (new_width, new_height))
    return _Fitting(new_width, new_height, left, top)


def _prepare(image: npt.NDArray[np.uint8], size: int) -> Array:
    """Return float32[3, size, size], RGB, 0..1."""
    from crowdperf.harness.media import image_files

    height, width = image.shape[:2]
    fitting = _fitting(height, width, size)
    square = np.full((size, size, 3), _GREY, dtype=np.uint8)
    shown: Array = image
    if image.shape[:2] != (fitting.height, fitting.width):
        shown = image_files.resize_bilinear(image, fitting.width, fitting.height)
    square[fitting.top : fitting.top + fitting.height, fitting.left : fitting.left + fitting.width] = shown
    return np.ascontiguousarray(square.transpose(2, 0, 1)).astype(np.float32) / np.float32(255)


@dataclass(frozen=True, slots=True, eq=False)
class _Places:
    """Makes detections of what the network says about each of its places."""

    image_size: int

    def find(self, outputs: Tensors) -> Detections:
        """Return what one image's boxes [n, 4], scores [n] and classes int64 [n] say, in parts of the square."""
        scores = outputs["scores"].astype(np.float32)
        order = best_first(scores)
        order = order[: np.count_nonzero(scores > np.float32(_SCORE_LIMIT))]
        boxes, classes = outputs["boxes"][order].astype(np.float32), outputs["classes"][order].astype(np.int64)
        kept = suppress(boxes, classes, limit=_OVERLAP_LIMIT, most=_MAX_DETECTIONS)
        return Detections(boxes[kept] / np.float32(self.image_size), scores[order][kept], CATEGORIES[classes[kept]])

    def unpad(self, boxes: Floats, height: int, width: int) -> Floats:
        """Return boxes in parts of the square as parts of an image of this size."""
        fitting = _fitting(height, width, self.image_size)
        start = np.array([fitting.left, fitting.top] * 2, dtype=np.float32)
        sides = np.array([fitting.width, fitting.height] * 2, dtype=np.float32)
        parts: Floats = (boxes * np.float32(self.image_size) - start) / sides
        return parts.clip(0.0, 1.0)


def anchors_of(facts: ModelFacts) -> Floats:
    """Return the squares, as centres in parts of the sides, that the fit takes for the network's places; raises
    HarnessError."""
    size = whole_number(facts, "image_size")
    levels = []
    for stride, side in zip(_STRIDES, _VIRTUAL_SIDES, strict=True):
        steps = (np.arange(size // stride, dtype=np.float32) + np.float32(0.5)) * np.float32(stride)
        y, x = (axis.ravel() for axis in np.meshgrid(steps, steps, indexing="ij"))
        sides = np.full_like(x, side * stride)
        levels.append(np.stack((x, y, sides, sides), axis=1))
    return np.concatenate(levels) / np.float32(size)


def open_model(facts: ModelFacts) -> Detector:
    if "image_size" not in facts.config:
        raise HarnessError(
            "the model has no model.json with the configuration of a network",
            f"cm run script --tags={RECORD.recipes.model} --path=yolo11l.pt makes one of the published weights",
        )
    size, class_count = whole_number(facts, "image_size"), whole_number(facts, "class_count")
    if class_count > len(CATEGORIES) or size % max(_STRIDES):
        raise HarnessError(
            f"model.json: config class_count is {class_count}, image_size {size}; allowed: up to {len(CATEGORIES)} "
            f"classes, a multiple of {max(_STRIDES)} pixels",
            "rebuild the model",
        )
    places = _Places(size)
    count = sum((size // stride) ** 2 for stride in _STRIDES)
    outputs = (
        TensorSpec(name="boxes", dtype="float32", shape=(count, 4)),
        TensorSpec(name="scores", dtype="float32", shape=(count,)),
        TensorSpec(name="classes", dtype="int64", shape=(count,)),
    )
    images = TensorSpec(name="images", dtype="float32", shape=(3, size, size))
    return Detector(
        network=NetworkSpec(name="model", inputs=(images,), outputs=outputs),
        prepare=lambda image: _prepare(image, size),
        find=places.find,
        unpad=places.unpad,
    )
