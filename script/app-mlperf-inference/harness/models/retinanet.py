"""RetinaNet (ResNeXt50-32x4d, 264 classes of OpenImages, 800 x 800): object detection.

Untimed: decoding, bilinear resize, division by 255, channels first. Timed: the network (which normalises), the choice
of candidates, decoding of boxes, suppression. Sources, all in mlcommons/inference unless said otherwise: dataset.py
(pre_process_openimages_retinanet) and openimages.py (PostProcessOpenImagesRetinanet) of
vision/classification_and_detection/python; thresholds from RetinaNet in single_stage_detector/ssd/model/retinanet.py of
mlcommons/training.

The published ONNX file (zenodo 6617879) takes one image and gives boxes in pixels of the 800 x 800 input, labels and
scores, suppressed already. The networks of harness/networks/retinanet.py give candidates, from which the same is made
here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from mlperf_results.benchmarks import BENCHMARKS

from harness.decoding.detection import (
    RETINANET_CODING,
    Detections,
    Floats,
    best_first,
    decode,
    retinanet_anchors,
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
from harness.modelfacts import ModelFacts
from harness.models.base import ModelRules, official_rules
from harness.tensors import Array, NetworkSpec, Tensors, TensorSpec

DATASET = "openimages"
CODING = RETINANET_CODING
_SCORE_LIMIT = 0.05  # score_thresh of the network, and the score at which the reference stops reading
_OVERLAP_LIMIT = 0.5  # nms_thresh
_MOST_DETECTIONS = 300  # detections_per_img
_ANCHORS_PER_PLACE = 9  # three sizes of three ratios
_PUBLISHED_SIZE = 800


def _prepare(image: npt.NDArray[np.uint8], size: int) -> Array:
    """Return float32[3, size, size], RGB, 0..1."""
    return np.ascontiguousarray((resized(image, size) / np.float32(255.0)).transpose(2, 0, 1))


@dataclass(frozen=True, slots=True, eq=False)
class _Candidates:
    """Makes detections of the candidates that a network of harness/networks gives."""

    anchors: Floats
    image_size: int
    class_count: int

    def find(self, outputs: Tensors) -> Detections:
        """Return what one image's logits [n], places int64 [n] and deltas [n, 4] say."""
        scores = np.float32(1.0) / (np.float32(1.0) + np.exp(-outputs["logits"].astype(np.float32)))
        order = best_first(scores)
        order = order[: np.count_nonzero(scores > _SCORE_LIMIT)]
        anchors, labels = np.divmod(outputs["places"][order].astype(np.int64), self.class_count)
        deltas = outputs["deltas"][order].astype(np.float32)
        boxes = np.clip(decode(deltas, self.anchors[anchors], CODING), 0.0, self.image_size)
        kept = suppress(boxes, labels, limit=_OVERLAP_LIMIT, most=_MOST_DETECTIONS)
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


def anchors_of(facts: ModelFacts) -> Floats:
    """Return the anchors of the configuration as centres in pixels; raises HarnessError."""
    size = whole_number(facts, "image_size")
    return retinanet_anchors(size, _grids(size), whole_numbers(facts, "anchor_sizes"))


def anchor_unit(facts: ModelFacts) -> int:
    """Return what the anchors are divided by to be parts of the image's sides."""
    return whole_number(facts, "image_size")


def open_model(facts: ModelFacts) -> Detector:
    """Return the model; raises HarnessError when model.json does not describe a retinanet."""
    if is_published(facts):
        refuse_published_weights(facts, "retinanet")
        return _published()
    size, class_count = whole_number(facts, "image_size"), whole_number(facts, "class_count")
    most, grids = whole_number(facts, "candidates_per_level"), _grids(size)
    anchors = anchors_of(facts)
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


def rules(name: str) -> ModelRules:
    """Return the rules of retinanet. Batches: our choice, two images to start with and at most 32: a batch of 32 is
    245 MB of pixels."""
    return official_rules(BENCHMARKS[name], dataset=DATASET, batch_size=2, largest_batch_size=32)
