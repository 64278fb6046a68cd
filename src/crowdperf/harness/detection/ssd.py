"""The two SSDs: networks that give scores and box numbers of every anchor; suppression follows here."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.base.tensors import Array, NetworkSpec, Tensors, TensorSpec
from crowdperf.harness.detection.boxes import SSD_CODING, Detections, Floats, Integers, best_first, decode, suppress
from crowdperf.harness.detection.detector import Detector, whole_number


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What counts as found.

    score: is exceeded. overlap: the largest with a better box of the class. epsilon: added to the union of two boxes.
    most_of_class: candidates that come to suppression. most: what is left of all classes.
    """

    score: float
    overlap: float
    epsilon: float = 0.0
    most_of_class: int | None = None
    most: int | None = None


def first_of_each(labels: Integers, most: int) -> npt.NDArray[np.bool_]:
    """Return True for the first `most` of every label."""
    order = np.argsort(labels, kind="stable")
    grouped = labels[order]
    starts = np.searchsorted(grouped, grouped, side="left")
    is_early = np.empty(len(labels), dtype=np.bool_)
    is_early[order] = np.arange(len(labels)) - starts < most
    return is_early


@dataclass(frozen=True, slots=True, eq=False)
class _Finder:
    """Makes detections of what a network says about its anchors."""

    anchors: Floats
    limits: Limits

    def find(self, outputs: Tensors) -> Detections:
        """Return what one image's scores [anchors, classes] and deltas [anchors, 4] say; class 0 is the background."""
        limits, scores = self.limits, outputs["scores"].astype(np.float32)
        anchors, labels = np.nonzero(scores[:, 1:] > limits.score)
        labels += 1
        values = scores[anchors, labels]
        order = best_first(values)
        if limits.most_of_class is not None:
            order = order[first_of_each(labels[order], limits.most_of_class)]
        anchors, labels, values = anchors[order], labels[order], values[order]
        boxes = decode(outputs["deltas"][anchors].astype(np.float32), self.anchors[anchors], SSD_CODING)
        kept = suppress(boxes, labels, limit=limits.overlap, most=limits.most, epsilon=limits.epsilon)
        return Detections(boxes[kept], values[kept], labels[kept])


def open_ssd(
    facts: ModelFacts,
    anchors: Floats,
    limits: Limits,
    prepare: Callable[[npt.NDArray[np.uint8], int], Array],
    *,
    is_label_mapped: bool = False,
) -> Detector:
    """Return the model of a network of ours; `prepare` gets an image and the side of the network's input."""
    size, class_count = whole_number(facts, "image_size"), whole_number(facts, "class_count")
    network = NetworkSpec(
        name="model",
        inputs=(TensorSpec(name="image", dtype="float32", shape=(3, size, size)),),
        outputs=(
            TensorSpec(name="scores", dtype="float32", shape=(len(anchors), class_count)),
            TensorSpec(name="deltas", dtype="float32", shape=(len(anchors), 4)),
        ),
    )
    return Detector(
        network=network,
        prepare=lambda image: prepare(image, size),
        find=_Finder(anchors, limits).find,
        is_label_mapped=is_label_mapped,
    )
