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

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.base.tensors import Array, NetworkSpec, Tensors, TensorSpec
from crowdperf.harness.detection.boxes import SSD_CODING, Detections, Floats, boxes_at
from crowdperf.harness.detection.detector import (
    Detector,
    is_published,
    refuse_published_weights,
    resized,
    whole_number,
    whole_numbers,
)
from crowdperf.harness.detection.ssd import Limits, open_ssd

CODING = SSD_CODING
_LIMITS = Limits(
    score=0.05,  # decode_single in models/ssd_r34.py
    overlap=float(np.nextafter(np.float32(0.5), np.float32(0))),  # boxes stay below 0.5, not at it
    most_of_class=200,  # max_num
    most=200,  # max_output
)
_PUBLISHED_SIZE = 1200
_PUBLISHED_SCORE_LIMIT = 0.5  # PostProcessCocoOnnx
_MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32)
_DEVIATION = np.array([0.229, 0.224, 0.225], dtype=np.float32)


def _prepare(image: npt.NDArray[np.uint8], size: int) -> Array:
    """Return float32[3, size, size], RGB, normalised."""
    normalised = (resized(image, size) / np.float32(255.0) - _MEAN) / _DEVIATION
    return np.ascontiguousarray(normalised.transpose(2, 0, 1))


def _find_published(outputs: Tensors) -> Detections:
    """Return what bboxes [1, n, 4] (corners, 0..1), labels [1, n] and scores [1, n] of the published file say."""
    scores = outputs["scores"][0].astype(np.float32)
    low = np.flatnonzero(scores < _PUBLISHED_SCORE_LIMIT)
    count = int(low[0]) if len(low) else len(scores)  # the reference stops at the first low one
    boxes = outputs["bboxes"][0, :count].astype(np.float32)
    return Detections(boxes, scores[:count], outputs["labels"][0, :count].astype(np.int64))


def _published() -> Detector:
    image = TensorSpec(name="image", dtype="float32", shape=(3, _PUBLISHED_SIZE, _PUBLISHED_SIZE))
    outputs = (
        TensorSpec(name="bboxes", dtype="float32", shape=("detections", 4)),
        TensorSpec(name="labels", dtype="int64", shape=("detections",)),
        TensorSpec(name="scores", dtype="float32", shape=("detections",)),
    )
    return Detector(
        network=NetworkSpec(name="model", inputs=(image,), outputs=outputs),
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
        raise HarnessError(f"model.json: config extra_paddings is {paddings!r}", "rebuild the model")
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


def open_model(facts: ModelFacts) -> Detector:
    if is_published(facts):
        refuse_published_weights(facts, "ssd-resnet34")
        return _published()
    return open_ssd(facts, anchors_of(facts), _LIMITS, _prepare, is_label_mapped=True)
