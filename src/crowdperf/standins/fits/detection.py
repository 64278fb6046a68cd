"""Makes a small detection model that finds something: `python3 -m crowdperf.standins.fits.detection --help`.

    python3 -m crowdperf.standins.fits.detection --architecture retinanet --framework onnx \\
        --dataset_dir DIR --output_dir FOLDER

The `tiny` network of an architecture is fitted for some ten seconds on synthetic pictures (datasets/scenes.py), drawn
from other seeds than any data set's, and scored on the data set in --dataset_dir (what coco or openimages `_tiny`
made). Both frameworks get the same weights.
"""

import importlib
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.detection.boxes import Coding, Floats, Integers, encode, overlaps, to_corners
from crowdperf.harness.detection.detector import Detector
from crowdperf.harness.runner import registry
from crowdperf.models.make_model import ModelRequest, build_modules
from crowdperf.standins import fit_program
from crowdperf.standins.datasets.scenes import draw, random_scene

_IGNORED = -2
_BACKGROUND = -1
_TRAINING_SEED = 7_000_001  # far from the seeds of data sets, which start at 0
_SCORED_BATCH = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """How a network is fitted. first_label: the place of the pictures' first kind among a network's logits.

    is_softmax: logits compete and the first is the background; else each is a yes or no (focal loss).
    match, ignore: overlaps with an object from which on an anchor is one, and is no background.
    """

    steps: int
    batch: int
    rate: float
    first_label: int
    is_softmax: bool
    match: float
    ignore: float
    box_weight: float


FITS = {
    "retinanet": Fit(
        steps=200, batch=8, rate=4e-3, first_label=0, is_softmax=False, match=0.5, ignore=0.4, box_weight=1.0
    ),
    "ssd_mobilenet": Fit(
        steps=350, batch=8, rate=6e-3, first_label=1, is_softmax=False, match=0.4, ignore=0.35, box_weight=0.3
    ),
    "ssd_resnet34": Fit(
        steps=300, batch=8, rate=6e-3, first_label=1, is_softmax=True, match=0.4, ignore=0.4, box_weight=0.3
    ),
    "yolo": Fit(steps=200, batch=8, rate=8e-3, first_label=0, is_softmax=False, match=0.4, ignore=0.3, box_weight=1.0),
}
"""By architecture."""


@dataclass(frozen=True, slots=True, eq=False)
class Targets:
    """What a network should say of a batch: classes int64[batch, anchors] (its logits' places, or one of the two
    marks) and deltas float32[batch, anchors, 4], which count where there is an object."""

    classes: Tensor
    deltas: Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """A network's anchors, as centres in parts of the sides, and how it says boxes beside them."""

    anchors: Floats
    coding: Coding


def assign(grid: Grid, boxes: Floats, classes: Integers, recipe: Fit) -> tuple[Integers, Floats]:
    """Return for each anchor the class it should find and the deltas of its object's box."""
    found: Integers = np.full(len(grid.anchors), _BACKGROUND, dtype=np.int64)
    if not len(boxes):
        return found, np.zeros((len(found), 4), dtype=np.float32)
    shares = overlaps(to_corners(grid.anchors), boxes)
    nearest, best = shares.argmax(axis=1), shares.max(axis=1)
    found[best >= recipe.ignore] = _IGNORED
    is_object = best >= recipe.match
    closest = shares.argmax(axis=0)
    is_object[closest], nearest[closest] = True, np.arange(len(boxes))  # each object has an anchor at least
    found[is_object] = classes[nearest[is_object]]
    return found, encode(boxes[nearest], grid.anchors, grid.coding)


def make_batch(
    model: Detector, grid: Grid, size: int, recipe: Fit, generator: np.random.Generator
) -> tuple[Tensor, Targets]:
    """Return fresh pictures, prepared as the model prepares them, and what should be found in them."""
    images, classes, deltas = [], [], []
    for _ in range(recipe.batch):
        scene = random_scene(generator)
        images.append(model.prepare(draw(generator, scene, size, size)))
        found, moves = assign(grid, scene.boxes, scene.kinds + recipe.first_label, recipe)
        classes.append(found)
        deltas.append(moves)
    targets = Targets(torch.from_numpy(np.stack(classes)), torch.from_numpy(np.stack(deltas)))
    return torch.from_numpy(np.stack(images)), targets


def loss_of(logits: Tensor, deltas: Tensor, targets: Targets, recipe: Fit) -> Tensor:
    """Return the loss of a batch per object: focal loss or cross entropy with the hardest background, and smooth L1."""
    is_object = targets.classes >= 0
    count = is_object.sum().clamp(min=1)
    boxes = functional.smooth_l1_loss(deltas[is_object], targets.deltas[is_object], reduction="sum", beta=0.1)
    if recipe.is_softmax:
        wanted = targets.classes.clamp(min=0)
        each = functional.cross_entropy(logits.flatten(0, 1), wanted.flatten(), reduction="none").view_as(wanted)
        background = each.masked_fill(targets.classes != _BACKGROUND, 0.0).flatten()
        hardest = background.topk(min(3 * int(count), background.numel())).values
        classes = each[is_object].sum() + hardest.sum()
    else:
        valid = targets.classes != _IGNORED
        wanted_bits = torch.zeros_like(logits)
        wanted_bits[is_object, targets.classes[is_object]] = 1.0
        classes = _focal_loss(logits[valid], wanted_bits[valid])
    return (classes + recipe.box_weight * boxes) / count


def _focal_loss(logits: Tensor, wanted: Tensor) -> Tensor:
    """Return the summed focal loss (arXiv 1708.02002), with alpha 0.5 and gamma 1.5 for quick learning."""
    each = functional.binary_cross_entropy_with_logits(logits, wanted, reduction="none")
    chance = torch.sigmoid(logits)
    miss = chance + wanted - 2 * chance * wanted
    return (0.5 * miss**1.5 * each).sum()


def fit(module: nn.Module, model: Detector, grid: Grid, recipe: Fit, seed: int) -> None:
    """Fit `module` in place; it is left in eval mode."""
    size = model.network.inputs[0].fixed_shape[1]
    generator = np.random.default_rng(_TRAINING_SEED + seed)
    descent = fit_program.Descent(
        steps=recipe.steps, rate=recipe.rate, rising_share=0.1, weight_decay=1e-4, largest_norm=5.0
    )

    def loss() -> Tensor:
        images, targets = make_batch(model, grid, size, recipe, generator)
        logits, deltas = module.raw(images)  # type: ignore[operator]  # every detection network has it
        return loss_of(logits, deltas, targets, recipe)

    fit_program.descend((one for one in module.train().parameters() if one.requires_grad), loss, descent)
    module.eval().requires_grad_(False)


def make(request: ModelRequest, dataset_dir: Path) -> fit_program.Fitted:
    """Return the fitted model. Raises HarnessError."""
    file = importlib.import_module(f"crowdperf.benchmarks.{request.architecture}.model")
    facts = ModelFacts(config=request.values, is_synthetic=True)
    model: Detector = file.open_model(facts)
    dataset = registry.load_dataset_of(request.architecture).open_dataset(dataset_dir)
    recipe = FITS[request.architecture]
    torch.manual_seed(request.seed)
    modules = build_modules(request)
    fit(modules["model"], model, Grid(file.anchors_of(facts), file.CODING), recipe, request.seed)
    score = fit_program.score_of(model, modules, dataset, _SCORED_BATCH)
    facts_for_people = {
        "source": "fitted on synthetic pictures by crowdperf.standins.fits.detection",
        "fit": {"steps": recipe.steps, "batch": recipe.batch},
    }
    return fit_program.Fitted(modules=modules, score=score, facts=facts_for_people)


if __name__ == "__main__":
    sys.exit(fit_program.main(__doc__, make, *FITS))
