"""Makes a ResNet-50 with random weights whose last layer is fitted to the synthetic pictures, and measures it.

The convolutions keep their random weights; batch normalisation is measured on the training pictures; the last layer is
a ridge regression on what they give for 400 pictures that are drawn like those of the validation set, with other seeds.
Labels without a picture get a score below all others. The reference in model.json is the share of the given validation
set that the fp32 network reads. It is there so that a change (a number format, a backend) shows in a number that means
something; it is no accuracy on ImageNet.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from crowdperf.benchmarks.resnet50.model import SIDE, open_model, preprocess_vgg
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.datasets.imagenet import CLASS_COUNT, ImagenetDataset, open_dataset
from crowdperf.models.make_model import ModelRequest, build_modules
from crowdperf.models.model_weights import calibrate_normalisation
from crowdperf.standins import fit_program
from crowdperf.standins.datasets import imagenet

TRAINING_COUNT = 400
CALIBRATION_COUNT = 64
BATCH = 32
# Chosen on 2026-11-21 with the tiny network, 300 training and 200 other pictures: 0.3 as the weight of each block's own
# path reads 85 % where the full weight reads 80 %; the regularisation is a tenth of the mean eigenvalue.
BLOCK_WEIGHT = 0.3
REGULARISATION = 0.1
LOWEST_SCORE = -1.0
"""Score of the labels that no picture has; the others' scores lie around 0."""


@dataclass(frozen=True)
class Pictures:
    """Preprocessed pictures, float32[n, 3, side, side], with labels int64[n], 0..999."""

    images: np.ndarray
    labels: np.ndarray


def training_pictures(seed: int, side: int) -> Pictures:
    """Pictures with the training part's seeds."""
    images = np.empty((TRAINING_COUNT, 3, side, side), dtype=np.float32)
    for index in range(TRAINING_COUNT):
        picture = imagenet.drawn(seed, imagenet.TRAINING, index, imagenet.SMALL_SIZES)
        images[index] = preprocess_vgg(picture, side)
    return Pictures(images, np.array([imagenet.label_of(index) for index in range(TRAINING_COUNT)]))


def validation_set(folder: Path) -> ImagenetDataset:
    """The whole data set in `folder`. Raises HarnessError, also when it is no synthetic one."""
    dataset = open_dataset(folder)
    if not dataset.facts.is_synthetic:
        raise HarnessError(
            f"{folder} contains no synthetic pictures", "cm run script --tags=get,dataset,imagenet,_tiny"
        )
    return dataset


def in_batches(function: Callable[[torch.Tensor], torch.Tensor], images: np.ndarray) -> np.ndarray:
    """What a torch function gives for the images, row by row."""
    with torch.inference_mode():
        parts = [function(torch.from_numpy(images[i : i + BATCH])).numpy() for i in range(0, len(images), BATCH)]
    return np.concatenate(parts)


def ridge(features: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights [CLASS_COUNT, k] and bias [CLASS_COUNT] of the last layer for `features [n, k]`, in float64."""
    mean, deviation = features.mean(axis=0), features.std(axis=0)
    deviation = deviation + 1e-3 * features.std()  # a feature that hardly changes gets no large weight
    scaled = (features - mean) / deviation
    kinds = np.unique(labels)
    wanted = (labels[:, None] == kinds) - 1.0 / len(kinds)
    products = scaled @ scaled.T
    penalty = REGULARISATION * np.trace(products) / len(products) * np.eye(len(products))
    own = (scaled.T @ np.linalg.solve(products + penalty, wanted)).T / deviation
    weights = np.zeros((CLASS_COUNT, features.shape[1]))
    bias = np.full(CLASS_COUNT, LOWEST_SCORE)
    weights[kinds] = own
    bias[kinds] = -own @ mean
    return weights, bias


def train(module: Any, training: Pictures) -> None:
    """Sets block weights, batch normalisation and the last layer of `module`."""
    for name, parameter in module.named_parameters():
        if name.endswith(".bn3.weight"):
            parameter.data.fill_(BLOCK_WEIGHT)
    calibrate_normalisation(module, (torch.from_numpy(training.images[:CALIBRATION_COUNT]),))
    weights, bias = ridge(in_batches(module.features, training.images).astype(np.float64), training.labels)
    module.fc.weight.data.copy_(torch.from_numpy(weights))
    module.fc.bias.data.copy_(torch.from_numpy(bias))


def fit(request: ModelRequest, dataset_dir: Path) -> fit_program.Fitted:
    """Gives the fitted model. Raises HarnessError."""
    dataset = validation_set(dataset_dir)
    modules = build_modules(request)
    train(modules["model"], training_pictures(request.seed, int(request.values.get("side", SIDE))))
    score = fit_program.score_of(open_model(ModelFacts(config=request.values)), modules, dataset, BATCH)
    facts = {"training": {"pictures": TRAINING_COUNT, "fitted": "last layer, ridge regression"}}
    return fit_program.Fitted(modules=modules, score=score, facts=facts)


if __name__ == "__main__":
    sys.exit(fit_program.main(__doc__, fit, "resnet50", configs=("tiny", "full")))
