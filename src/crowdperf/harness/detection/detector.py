"""What the detection models have in common: images with their index in, one block of response rows for each image out.

A response says which sample it belongs to, so `preprocess` carries each image's index beside it in a tensor of its own,
`image_index`, which no network takes. Two kinds of network answer: those of this project (network.py), which end
before suppression and take batches, and published files with suppression inside.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.base.score import Score
from crowdperf.harness.base.tensors import Array, Infer, NetworkSpec, Tensors, TensorSpec
from crowdperf.harness.datasets.images import AnnotatedImages, ImageFile
from crowdperf.harness.detection.boxes import Detections, Floats, response_rows

INDEX_TENSOR = "image_index"
SIDES_TENSOR = "image_sides"
"""Height and width, for models whose input the image does not fill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detector:
    """A detection model.

    prepare: the network's input of one image uint8[height, width, 3], RGB, without batch axis. find: what the outputs
    say about one image (without batch axis where `is_batched`, else as the network gave them for that image alone).
    is_label_mapped: response classes are 1..n in the order of the annotations' categories, not category ids.
    unpad: makes boxes that are parts of the network's input, with the image's height and width, parts of the image;
    None: the image fills the input.
    """

    network: NetworkSpec
    prepare: Callable[[npt.NDArray[np.uint8]], Array]
    find: Callable[[Tensors], Detections]
    is_batched: bool = True
    is_label_mapped: bool = False
    unpad: Callable[[Floats, int, int], Floats] | None = None
    response: TensorSpec | None = None
    is_ragged: bool = False

    @property
    def networks(self) -> tuple[NetworkSpec, ...]:
        return (self.network,)

    def preprocess(self, raw: Sequence[ImageFile]) -> Tensors:
        """Return the network's input of the images and `image_index` int64[batch]; decoding and resizing are untimed
        by the rules."""
        from crowdperf.harness.media import image_files

        sides = np.empty((len(raw), 2), dtype=np.int64)
        images: Array | None = None
        for position, image in enumerate(raw):
            picture = image_files.read_image(image.path)
            sides[position] = picture.shape[:2]
            prepared = self.prepare(picture)
            if images is None:  # large: not kept twice, as stacking would
                images = np.empty((len(raw), *prepared.shape), dtype=prepared.dtype)
            images[position] = prepared
        if images is None:
            raise ValueError("no image to prepare")
        indices = np.array([image.index for image in raw], dtype=np.int64)
        inputs = {self.network.inputs[0].name: images, INDEX_TENSOR: indices}
        return inputs if self.unpad is None else {**inputs, SIDES_TENSOR: sides}

    def predict(self, networks: Mapping[str, Infer], inputs: Tensors) -> Sequence[Array]:
        """Return the response float32[n, 7] of each image; n may be 0."""
        infer, name = networks[self.network.name], self.network.inputs[0].name
        indices, images = inputs[INDEX_TENSOR].tolist(), inputs[name]
        if not self.is_batched:
            single = (infer({name: images[row : row + 1]}) for row in range(len(images)))
            return [response_rows(index, self.find(found)) for index, found in zip(indices, single, strict=True)]
        outputs = infer({name: images})
        found = [self.find({key: outputs[key][row] for key in outputs}) for row in range(len(indices))]
        if self.unpad is not None:
            sides = inputs[SIDES_TENSOR].tolist()
            found = [replace(one, boxes=self.unpad(one.boxes, *size)) for one, size in zip(found, sides, strict=True)]
        return [response_rows(index, one) for index, one in zip(indices, found, strict=True)]

    def score(self, responses: Iterable[tuple[int, bytes]], dataset: AnnotatedImages) -> Score:
        """Return the mean average precision "mAP" over overlaps of 0.5 to 0.95, in percent."""
        from crowdperf.harness.metrics import coco

        return coco.score(responses, dataset.annotations_path, is_label_mapped=self.is_label_mapped)


def is_published(facts: ModelFacts) -> bool:
    """Return whether the file is a published one with suppression inside: its model.json has no `config` for an
    architecture of ours, or it has no model.json at all."""
    return "image_size" not in facts.config


def whole_number(facts: ModelFacts, key: str) -> int:
    """Return `key` of the configuration; raises HarnessError when it is missing or not positive."""
    value: Any = facts.config.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise HarnessError(f"model.json: config {key} is {value!r}; allowed: whole numbers from 1", "rebuild the model")
    return value


def whole_numbers(facts: ModelFacts, key: str) -> tuple[int, ...]:
    """Return the list `key` of the configuration; raises HarnessError when it is none of positive whole numbers."""
    values: Any = facts.config.get(key)
    if not isinstance(values, list) or not all(isinstance(value, int) and value > 0 for value in values):
        raise HarnessError(f"model.json: config {key} is {values!r}; allowed: a list of numbers", "rebuild the model")
    return tuple(values)


def refuse_published_weights(facts: ModelFacts, name: str) -> None:
    """Raise HarnessError for weights without a configuration: only an ONNX file can stand alone."""
    if facts.framework == "pytorch":
        raise HarnessError(
            f"the PyTorch files of {name} come without a configuration, so that no network can be built for them",
            "use the model.json that the model's recipe writes",
        )


def resized(image: npt.NDArray[np.uint8], size: int) -> Floats:
    """Return the image as float32[size, size, 3], 0..255, bilinear; the reference too makes floats before it resizes
    (maybe_resize in vision/classification_and_detection/python/dataset.py of mlcommons/inference)."""
    from crowdperf.harness.media import image_files

    return image_files.resize_bilinear(image.astype(np.float32), size, size).astype(np.float32, copy=False)
