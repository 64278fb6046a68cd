"""SSD-MobileNet v1 (COCO 2017, 300 x 300): object detection; a benchmark until v2.0.

Sources, all in vision/classification_and_detection/python of mlcommons/inference: dataset.py
(pre_process_coco_pt_mobilenet, pre_process_coco_mobilenet), models/ssd_mobilenet_v1.py and models/utils.py (thresholds,
suppression), coco.py (PostProcessCoco). Response classes are COCO's category ids.

The published ONNX file (zenodo 3163026, 4735652) takes bytes, height x width x channels, and gives suppressed boxes.
The networks of network.py take -1..1, channels first, and give scores and box numbers of all
anchors.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.base.tensors import Array, NetworkSpec, Tensors, TensorSpec
from crowdperf.harness.detection.boxes import SSD_CODING, Detections, Floats, boxes_at
from crowdperf.harness.detection.detector import Detector, is_published, refuse_published_weights, resized, whole_number
from crowdperf.harness.detection.ssd import Limits, open_ssd

CODING = SSD_CODING
_LIMITS = Limits(
    score=0.3,  # score_threshold of models/ssd_mobilenet_v1.py
    overlap=0.6,  # nms_threshold
    epsilon=1e-5,  # box_iou in models/utils.py
)
_PUBLISHED_SIZE = 300


def _prepare(image: npt.NDArray[np.uint8], size: int) -> Array:
    """Return float32[3, size, size], RGB, -1..1."""
    centred = (resized(image, size) - np.float32(127.5)) / np.float32(127.5)
    return np.ascontiguousarray(centred.transpose(2, 0, 1))


def _prepare_published(image: npt.NDArray[np.uint8]) -> Array:
    """Return uint8[300, 300, 3], RGB, rounded down as the reference does."""
    return resized(image, _PUBLISHED_SIZE).astype(np.uint8)


def _find_published(outputs: Tensors) -> Detections:
    """Return the first num_detections of what the published file says; its boxes are ymin, xmin, ymax, xmax."""
    count = int(outputs["num_detections:0"])
    boxes = outputs["detection_boxes:0"][:count, [1, 0, 3, 2]].astype(np.float32)
    labels = outputs["detection_classes:0"][:count].astype(np.int64)
    return Detections(boxes, outputs["detection_scores:0"][:count].astype(np.float32), labels)


def _published() -> Detector:
    image = TensorSpec(name="image_tensor:0", dtype="uint8", shape=(_PUBLISHED_SIZE, _PUBLISHED_SIZE, 3))
    outputs = (
        TensorSpec(name="num_detections:0", dtype="float32", shape=()),
        TensorSpec(name="detection_boxes:0", dtype="float32", shape=("detections", 4)),
        TensorSpec(name="detection_scores:0", dtype="float32", shape=("detections",)),
        TensorSpec(name="detection_classes:0", dtype="float32", shape=("detections",)),
    )
    network = NetworkSpec(name="model", inputs=(image,), outputs=outputs)
    return Detector(network=network, prepare=_prepare_published, find=_find_published)


def _anchors(grids: Sequence[int]) -> Floats:
    """Return the anchors of SSD-MobileNet as centres, parts of the sides: row by row, three or six at each place.

    Source: create_ssd_anchors in models/anchor_generator.py of mlcommons/inference (from TensorFlow's object detection
    library): scales 0.2 to 0.95 in even steps, then 1; the first level has three boxes. With grids 19, 10, 5, 3, 2, 1
    these are 1,917.
    """
    count = len(grids)
    scales = [0.2 + (0.95 - 0.2) * level / (count - 1) for level in range(count)] + [1.0]
    levels = []
    for level, grid in enumerate(grids):
        scale = scales[level]
        if level == 0:
            shapes = [(0.1, 1.0), (scale, 2.0), (scale, 0.5)]
        else:
            shapes = [(scale, ratio) for ratio in (1.0, 2.0, 0.5, 3.0, 1 / 3)]
            shapes.append((math.sqrt(scale * scales[level + 1]), 1.0))
        sides = [(size * math.sqrt(ratio), size / math.sqrt(ratio)) for size, ratio in shapes]
        steps = (np.arange(grid) + 0.5) / grid
        y, x = (axis.ravel() for axis in np.meshgrid(steps, steps, indexing="ij"))
        levels.append(boxes_at(x, y, sides).reshape(-1, 4))
    return np.concatenate(levels)


def anchors_of(facts: ModelFacts) -> Floats:
    """Return the anchors of the configuration as centres, parts of the sides; raises HarnessError."""
    size = whole_number(facts, "image_size")
    return _anchors([-(-size // stride) for stride in (16, 32, 64, 128, 256, 512)])


def open_model(facts: ModelFacts) -> Detector:
    if is_published(facts):
        refuse_published_weights(facts, "ssd-mobilenet")
        return _published()
    return open_ssd(facts, anchors_of(facts), _LIMITS, _prepare)
