"""ResNet-50 v1.5 on ImageNet: the image classification benchmark of MLPerf Inference.

The network's files differ; model.json's `config` says how, every key being optional:

    classes          1000, or 1001 where class 0 is "background", as in the published ONNX and TensorFlow files
    preprocessing    "vgg" (default; subtracts means from 0..255) or "pytorch" (torchvision's weights)
    input_name       "image"; the published resnet50_v1.onnx calls it "input_tensor:0"
    output           "scores" (default) float32[batch, classes], softmax or not; or "label" int64[batch], their argmax
    output_name      what `output` says; the published file has "softmax_tensor:0" and "ArgMax:0"
    side             pixels of an image's side, 224 in the benchmark; the tiny network takes smaller ones

Preprocessed samples are called "image" or, prepared for torchvision's weights, "normalised_image", whatever the network
calls its input: so a store of samples prepared the other way is refused.

The response of a sample is one float32, the label 0 to 999, as the reference implementation gives it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.base.score import Score
from crowdperf.harness.base.tensors import Array, Infer, NetworkSpec, Tensors, TensorSpec
from crowdperf.harness.datasets.imagenet import CLASS_COUNT, ImagenetDataset
from crowdperf.harness.media.image_files import CHANNEL_MEANS_RGB, Image, center_crop, resize_area, short_side_size
from crowdperf.harness.metrics import top1

SIDE = 224
_SIDES = (32, 1024)
"""Least and greatest side that a configuration may ask for: our choice."""
# torchvision's normalisation of 0..1, reference dataset.py, pre_process_imagenet_pytorch
_PYTORCH_MEANS = (0.485, 0.456, 0.406)
_PYTORCH_DEVIATIONS = (0.229, 0.224, 0.225)
_SAMPLE_NAMES = {"vgg": "image", "pytorch": "normalised_image"}
_OUTPUTS = ("scores", "label")
_RESPONSE = TensorSpec(name="label", dtype="float32", shape=())
FloatImage = npt.NDArray[np.float32]


def resized_side(side: int) -> int:
    """Return the short side before the crop: int(100 * 224 / 87.5) = 256 (reference dataset.py,
    resize_with_aspectratio)."""
    return int(100.0 * side / 87.5)


def preprocess_vgg(image: Image, side: int = SIDE) -> FloatImage:
    """Return float32[3, side, side], the channel means subtracted from 0..255 (reference: pre_process_vgg)."""
    height, width = image.shape[:2]
    resized = resize_area(image, *short_side_size(width, height, resized_side(side)))
    pixels = center_crop(resized, side).astype(np.float32) - np.array(CHANNEL_MEANS_RGB, dtype=np.float32)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))


def preprocess_pytorch(image: Image, side: int = SIDE) -> FloatImage:
    """Return float32[3, side, side], normalised as torchvision's weights want it (pre_process_imagenet_pytorch).

    Pillow's bilinear resize smooths, OpenCV's does not; the crop is rounded, not cut: (267 - 224) / 2 starts at 22.
    """
    from PIL import Image as PillowImage

    height, width = image.shape[:2]
    new_width, new_height = short_side_size(width, height, resized_side(side))
    picture = PillowImage.fromarray(image)
    if min(width, height) != resized_side(side):
        picture = picture.resize((new_width, new_height), PillowImage.Resampling.BILINEAR)
    width, height = picture.size
    top, left = round((height - side) / 2.0), round((width - side) / 2.0)
    pixels = np.asarray(picture.crop((left, top, left + side, top + side))).astype(np.float32) / np.float32(255)
    means, deviations = (np.array(values, dtype=np.float32) for values in (_PYTORCH_MEANS, _PYTORCH_DEVIATIONS))
    return np.ascontiguousarray(((pixels - means) / deviations).transpose(2, 0, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Config:
    classes: int
    preprocessing: str
    input_name: str
    output_name: str
    output: str
    side: int


def _checked(config: Mapping[str, Any]) -> _Config:
    output = str(config.get("output", "scores"))
    found = _Config(
        classes=int(config.get("classes", CLASS_COUNT)),
        preprocessing=str(config.get("preprocessing", "vgg")),
        input_name=str(config.get("input_name", "image")),
        output_name=str(config.get("output_name", output)),
        output=output,
        side=int(config.get("side", SIDE)),
    )
    if not _SIDES[0] <= found.side <= _SIDES[1]:
        allowed_sides = f"{_SIDES[0]} to {_SIDES[1]}"
        raise HarnessError(f"model.json: config side of resnet50 is {found.side}; allowed: {allowed_sides}")
    allowed = {
        "classes": (found.classes, (CLASS_COUNT, CLASS_COUNT + 1)),
        "preprocessing": (found.preprocessing, tuple(_SAMPLE_NAMES)),
        "output": (found.output, _OUTPUTS),
    }
    for key, (value, values) in allowed.items():
        if value not in values:
            known = ", ".join(str(one) for one in values)
            raise HarnessError(f"model.json: config {key} of resnet50 is {value!r}; allowed: {known}")
    return found


class Resnet50:
    """One network, fixed shapes; the response of a sample is its label."""

    response = _RESPONSE
    is_ragged = False

    def __init__(self, config: _Config) -> None:
        self._config = config
        self._sample_name = _SAMPLE_NAMES[config.preprocessing]
        # class 0 of 1001 is "background" (reference: offset -1 of the ONNX and TensorFlow profiles)
        self._first_class = config.classes - CLASS_COUNT
        is_label = config.output == "label"
        output = TensorSpec(
            name=config.output_name,
            dtype="int64" if is_label else "float32",
            shape=() if is_label else (config.classes,),
        )
        image = TensorSpec(name=config.input_name, dtype="float32", shape=(3, config.side, config.side))
        self.networks = (NetworkSpec(name="model", inputs=(image,), outputs=(output,)),)

    def preprocess(self, raw: Sequence[Image]) -> Tensors:
        """Return the images as float32[batch, 3, side, side]. Untimed by the rules: resize, crop, mean, layout."""
        prepare = preprocess_vgg if self._config.preprocessing == "vgg" else preprocess_pytorch
        side = self._config.side
        images = np.empty((len(raw), 3, side, side), dtype=np.float32)
        for row, image in enumerate(raw):
            images[row] = prepare(image, side)
        return {self._sample_name: images}

    def predict(self, networks: Mapping[str, Infer], inputs: Tensors) -> Array:
        """Return the labels, float32[batch]; the least one where scores are equal."""
        return self._labels(np.asarray(self._outputs(networks, inputs))).astype(np.float32)

    def device_post(self, networks: Mapping[str, Infer], inputs: Tensors, to_device: Callable[[str, Any], Any]) -> Any:
        """Return the same as a torch tensor."""
        return self._labels(self._outputs(networks, inputs)).float()

    def _labels(self, outputs: Any) -> Any:
        """Return the labels that an array or a tensor says. torch's argmax takes the first of equal scores too."""
        return (outputs if self._config.output == "label" else outputs.argmax(axis=1)) - self._first_class

    def _outputs(self, networks: Mapping[str, Infer], inputs: Tensors) -> Any:
        try:
            images = inputs[self._sample_name]
        except KeyError as error:
            raise HarnessError(
                f"the preprocessed samples contain {', '.join(sorted(inputs))}, but this model's files need "
                f"{error.args[0]}",
                "preprocess the data set with --model_info and the model.json of this model",
            ) from error
        return networks["model"]({self._config.input_name: images})[self._config.output_name]

    def score(self, responses: Iterable[tuple[int, bytes]], dataset: ImagenetDataset) -> Score:
        """Return the share of responses that are the image's label, in percent (accuracy-imagenet.py, float32)."""
        return top1.score(
            responses,
            dataset.labels,
            response_bytes=_RESPONSE.size_bytes,
            label_of=lambda data: int(np.frombuffer(data, dtype=np.float32)[0]),
        )


def open_model(facts: ModelFacts) -> Resnet50:
    return Resnet50(_checked(facts.config))
