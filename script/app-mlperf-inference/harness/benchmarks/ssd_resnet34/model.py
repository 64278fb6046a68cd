"""SSD-ResNet34 (COCO 2017, 1200 x 1200): object detection; a benchmark until v2.0.

Sources, all in vision/classification_and_detection/python of mlcommons/inference: dataset.py
(pre_process_coco_resnet34), models/ssd_r34.py (Encoder: thresholds, suppression), coco.py (PostProcessCocoPt,
PostProcessCocoOnnx). Response classes are 1 to 80 in the order of COCO's categories, which official scoring takes
with --use-inv-map. All 5,000 images are samples, as in the reference's ONNX and TensorFlow paths; its PyTorch path
leaves out the 48 without objects.

The reference's calc_iou_tensor means to cut negative sides of an intersection to 0 but changes a copy (since the
operation was rewritten for export), so that boxes which lie diagonally apart count as overlapping. Here they do not.

The published ONNX file (zenodo 3228411) takes one image and gives suppressed boxes, labels 1 to 80 and scores. The
networks of network.py give scores and box numbers of all default boxes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.decoding.detection import (
    SSD_CODING,
    Detections,
    Floats,
    Integers,
    best_first,
    boxes_at,
    decode,
    suppress,
)
from harness.decoding.detector import (
    Detector,
    is_published,
    refuse_published_weights,
    resized,
    whole_number,
    whole_numbers,
)
from harness.errors import HarnessError
from harness.modelfacts import ModelFacts
from harness.tensors import Array, NetworkSpec, Tensors, TensorSpec

CODING = SSD_CODING
_SCORE_LIMIT = 0.05  # decode_single in models/ssd_r34.py
_OVERLAP_LIMIT = float(np.nextafter(np.float32(0.5), np.float32(0)))  # boxes stay below 0.5, not at it
_MOST_OF_CLASS = 200  # max_num: candidates of one class
_MOST_DETECTIONS = 200  # max_output
_PUBLISHED_SIZE = 1200
_PUBLISHED_SCORE_LIMIT = 0.5  # PostProcessCocoOnnx
_MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32)
_DEVIATION = np.array([0.229, 0.224, 0.225], dtype=np.float32)


def _prepare(image: npt.NDArray[np.uint8], size: int) -> Array:
    """Return float32[3, size, size], RGB, normalised."""
    normalised = (resized(image, size) / np.float32(255.0) - _MEAN) / _DEVIATION
    return np.ascontiguousarray(normalised.transpose(2, 0, 1))


def first_of_each(labels: Integers, most: int) -> npt.NDArray[np.bool_]:
    """Return True for the first `most` of every label."""
    order = np.argsort(labels, kind="stable")
    grouped = labels[order]
    starts = np.searchsorted(grouped, grouped, side="left")
    is_early = np.empty(len(labels), dtype=np.bool_)
    is_early[order] = np.arange(len(labels)) - starts < most
    return is_early


@dataclass(frozen=True, slots=True, eq=False)
class _Boxed:
    """Makes detections of what the network of this folder says about its default boxes."""

    anchors: Floats

    def find(self, outputs: Tensors) -> Detections:
        """Return what one image's scores [boxes, classes] and deltas [boxes, 4] say; class 0 is the background."""
        scores = outputs["scores"].astype(np.float32)
        anchors, labels = np.nonzero(scores[:, 1:] > _SCORE_LIMIT)
        labels += 1
        values = scores[anchors, labels]
        order = best_first(values)
        order = order[first_of_each(labels[order], _MOST_OF_CLASS)]
        anchors, labels, values = anchors[order], labels[order], values[order]
        boxes = decode(outputs["deltas"][anchors].astype(np.float32), self.anchors[anchors], CODING)
        kept = suppress(boxes, labels, limit=_OVERLAP_LIMIT, most=_MOST_DETECTIONS)
        return Detections(boxes[kept], values[kept], labels[kept])


def _find_published(outputs: Tensors) -> Detections:
    """Return what bboxes [1, n, 4] (corners, 0..1), labels [1, n] and scores [1, n] of the published file say."""
    scores = outputs["scores"][0].astype(np.float32)
    low = np.flatnonzero(scores < _PUBLISHED_SCORE_LIMIT)
    count = int(low[0]) if len(low) else len(scores)  # the reference stops at the first low one
    boxes = outputs["bboxes"][0, :count].astype(np.float32)
    return Detections(boxes, scores[:count], outputs["labels"][0, :count].astype(np.int64))


def _image(size: int) -> tuple[TensorSpec, ...]:
    return (TensorSpec(name="image", dtype="float32", shape=(3, size, size)),)


def _published() -> Detector:
    outputs = (
        TensorSpec(name="bboxes", dtype="float32", shape=("detections", 4)),
        TensorSpec(name="labels", dtype="int64", shape=("detections",)),
        TensorSpec(name="scores", dtype="float32", shape=("detections",)),
    )
    return Detector(
        network=NetworkSpec(name="model", inputs=_image(_PUBLISHED_SIZE), outputs=outputs),
        prepare=lambda image: _prepare(image, _PUBLISHED_SIZE),
        find=_find_published,
        is_batched=False,
        is_label_mapped=True,
    )


def _grids(facts: ModelFacts, size: int) -> tuple[int, ...]:
    """Return the places along a side of each level: 50, 25, 13, 7, 3, 3 for the full network."""
    strides, stride = whole_numbers(facts, "extra_strides"), whole_number(facts, "head_stride")
    paddings = facts.config.get("extra_paddings")
    if not isinstance(paddings, list) or len(paddings) != len(strides):
        raise HarnessError(f"model.json: config extra_paddings is {paddings!r}", "make the model again")
    sides = [-(-size // 8)]  # two halvings and one of the second stage
    for step, padding in zip(strides, paddings, strict=True):
        sides.append((sides[-1] + 2 * int(padding) - 3) // step + 1)
    return tuple((side - 1) // stride + 1 for side in sides)


def _anchors(image_size: int, grids: Sequence[int]) -> Floats:
    """Return the default boxes of SSD-ResNet34 as centres, parts of the sides: shape by shape, each row by row.

    Source: dboxes_R34_coco and DefaultBoxes in models/ssd_r34.py of mlcommons/inference: scales 21 to 315 of 300,
    extra ratios 2 or 2 and 3, everything cut to 0..1. With 1,200 pixels and grids 50, 25, 13, 7, 3, 3 these are 15,130.
    """
    scales = [int(scale * image_size / 300) / image_size for scale in (21, 45, 99, 153, 207, 261, 315)]
    levels = []
    for level, grid in enumerate(grids):
        scale, between = scales[level], math.sqrt(scales[level] * scales[level + 1])
        sides = [(scale, scale), (between, between)]
        for ratio in (2,) if level in (0, 4, 5) else (2, 3):
            wide = (scale * math.sqrt(ratio), scale / math.sqrt(ratio))
            sides += [wide, wide[::-1]]
        places = image_size // (image_size // grid)  # DefaultBoxes divides by this, not by the grid itself
        steps = (np.arange(grid) + 0.5) / places
        y, x = (axis.ravel() for axis in np.meshgrid(steps, steps, indexing="ij"))
        levels.append(boxes_at(x, y, sides).swapaxes(0, 1).reshape(-1, 4))
    return np.clip(np.concatenate(levels), 0.0, 1.0)


def anchors_of(facts: ModelFacts) -> Floats:
    """Return the default boxes of the configuration as centres, parts of the sides; raises HarnessError."""
    size = whole_number(facts, "image_size")
    return _anchors(size, _grids(facts, size))


def anchor_unit(facts: ModelFacts) -> int:
    """Return what the default boxes are divided by to be parts of the image's sides."""
    return 1


def open_model(facts: ModelFacts) -> Detector:
    """Return the model; raises HarnessError when model.json does not describe an SSD-ResNet34."""
    if is_published(facts):
        refuse_published_weights(facts, "ssd-resnet34")
        return _published()
    size, class_count, anchors = (
        whole_number(facts, "image_size"),
        whole_number(facts, "class_count"),
        anchors_of(facts),
    )
    outputs = (
        TensorSpec(name="scores", dtype="float32", shape=(len(anchors), class_count)),
        TensorSpec(name="deltas", dtype="float32", shape=(len(anchors), 4)),
    )
    return Detector(
        network=NetworkSpec(name="model", inputs=_image(size), outputs=outputs),
        prepare=lambda image: _prepare(image, size),
        find=_Boxed(anchors).find,
        is_label_mapped=True,
    )
