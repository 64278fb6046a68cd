"""Makes a small detection model that finds something: `python3 -m harness.making.fit_detection --help`.

    python3 -m harness.making.fit_detection --architecture retinanet --framework onnx \\
        --dataset_dir DIR --output_dir FOLDER

The `tiny` network of an architecture is fitted for some ten seconds on synthetic pictures (scenes.py) drawn here,
from other seeds than any data set's, and scored on the data set in --dataset_dir (what coco or openimages `_tiny`
made). The score goes into model.json as the model's reference. Seeded and on one thread: the same library versions on
the same kind of processor give the same weights, and both frameworks get the same.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from harness import registry
from harness.benchmarks.architecture import architecture_of
from harness.decoding.detection import Coding, Floats, Integers, encode, overlaps, to_corners
from harness.decoding.detector import Detector
from harness.errors import HarnessError
from harness.making.makemodel import FRAMEWORKS, ModelClaims, ModelRequest, build_modules, write_model
from harness.making.scenes import draw, random_scene
from harness.metrics.score import Score
from harness.modelfacts import ModelFacts
from harness.tensors import Array, Tensors

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


def fit_of(architecture: str) -> Fit:
    """Return how an architecture is fitted; raises HarnessError for one that is not fitted here."""
    values = getattr(architecture_of(architecture), "FIT", None)
    if values is None:
        raise HarnessError(f"{architecture} is not fitted here: its network.py has no FIT")
    return Fit(**values)


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


def assign(grid: Grid, boxes: Floats, classes: Integers, fitting: Fit) -> tuple[Integers, Floats]:
    """Return for each anchor the class it should find and the deltas of its object's box."""
    found: Integers = np.full(len(grid.anchors), _BACKGROUND, dtype=np.int64)
    if not len(boxes):
        return found, np.zeros((len(found), 4), dtype=np.float32)
    shares = overlaps(to_corners(grid.anchors), boxes)
    nearest, best = shares.argmax(axis=1), shares.max(axis=1)
    found[best >= fitting.ignore] = _IGNORED
    is_object = best >= fitting.match
    closest = shares.argmax(axis=0)
    is_object[closest], nearest[closest] = True, np.arange(len(boxes))  # each object has an anchor at least
    found[is_object] = classes[nearest[is_object]]
    return found, encode(boxes[nearest], grid.anchors, grid.coding)


def make_batch(
    model: Detector, grid: Grid, size: int, fitting: Fit, generator: np.random.Generator
) -> tuple[Tensor, Targets]:
    """Return fresh pictures, prepared as the model prepares them, and what should be found in them."""
    images, classes, deltas = [], [], []
    for _ in range(fitting.batch):
        scene = random_scene(generator)
        images.append(model.prepare(draw(generator, scene, size, size)))
        found, moves = assign(grid, scene.boxes, scene.kinds + fitting.first_label, fitting)
        classes.append(found)
        deltas.append(moves)
    targets = Targets(torch.from_numpy(np.stack(classes)), torch.from_numpy(np.stack(deltas)))
    return torch.from_numpy(np.stack(images)), targets


def loss_of(logits: Tensor, deltas: Tensor, targets: Targets, fitting: Fit) -> Tensor:
    """Return the loss of a batch per object: focal loss or cross entropy with the hardest background, and smooth L1."""
    is_object = targets.classes >= 0
    count = is_object.sum().clamp(min=1)
    boxes = functional.smooth_l1_loss(deltas[is_object], targets.deltas[is_object], reduction="sum", beta=0.1)
    if fitting.is_softmax:
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
    return (classes + fitting.box_weight * boxes) / count


def _focal_loss(logits: Tensor, wanted: Tensor) -> Tensor:
    """Return the summed focal loss (arXiv 1708.02002), with alpha 0.5 and gamma 1.5 for quick learning."""
    each = functional.binary_cross_entropy_with_logits(logits, wanted, reduction="none")
    chance = torch.sigmoid(logits)
    miss = chance + wanted - 2 * chance * wanted
    return (0.5 * miss**1.5 * each).sum()


def fit(module: nn.Module, model: Detector, grid: Grid, fitting: Fit, seed: int) -> None:
    """Fit `module` in place; it is left in eval mode."""
    size = model.network.inputs[0].fixed_shape[1]
    generator = np.random.default_rng(_TRAINING_SEED + seed)
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    optimiser = torch.optim.AdamW(parameters, lr=fitting.rate, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, max_lr=fitting.rate, total_steps=fitting.steps, pct_start=0.1
    )
    module.train()
    for _ in range(fitting.steps):
        images, targets = make_batch(model, grid, size, fitting, generator)
        logits, deltas = module.raw(images)  # type: ignore[operator]  # every detection network has it
        loss = loss_of(logits, deltas, targets, fitting)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(parameters, 5.0)
        optimiser.step()
        schedule.step()
    module.eval()
    for parameter in module.parameters():
        parameter.requires_grad_(False)


def measure(module: nn.Module, model: Detector, dataset: Any) -> Score:
    """Return the score of the network on the data set, by the same code that scores a benchmark run."""

    def infer(inputs: Tensors) -> Mapping[str, Array]:
        with torch.inference_mode():
            answers = module(*(torch.from_numpy(array) for array in inputs.values()))
        names = (spec.name for spec in model.network.outputs)
        return {name: answer.numpy() for name, answer in zip(names, answers, strict=True)}

    responses: list[tuple[int, bytes]] = []
    for start in range(0, dataset.count, _SCORED_BATCH):
        indices = range(start, min(start + _SCORED_BATCH, dataset.count))
        rows = model.predict({"model": infer}, model.preprocess(dataset.load(indices)))
        responses += [(index, np.ascontiguousarray(row).tobytes()) for index, row in zip(indices, rows, strict=True)]
    return model.score(responses, dataset)


def make_fitted_model(request: ModelRequest, dataset_dir: Path) -> Score:
    """Fit, score and write the requested model; return its score. Raises HarnessError."""
    file = importlib.import_module(f"harness.benchmarks.{request.architecture}.model")
    facts = ModelFacts(config=request.values, is_synthetic=True)
    model: Detector = file.open_model(facts)
    dataset = registry.load_dataset_of(request.architecture).open_dataset(dataset_dir)
    fitting = fit_of(request.architecture)
    torch.set_num_threads(1)
    torch.manual_seed(request.seed)
    modules = build_modules(request)
    anchors = file.anchors_of(facts) / np.float32(file.anchor_unit(facts))
    fit(modules["model"], model, Grid(anchors, file.CODING), fitting, request.seed)
    score = measure(modules["model"], model, dataset)
    facts_for_people = {
        "source": "fitted on synthetic pictures by harness.making.fit_detection",
        "licence": "Apache-2.0",
        "fit": {"steps": fitting.steps, "batch": fitting.batch},
    }
    write_model(modules, request, ModelClaims(reference=score.values, is_synthetic=True, facts=facts_for_people))
    return score


def main(words: Sequence[str] | None = None) -> int:
    """Command line entry; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python3 -m harness.making.fit_detection", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--architecture", required=True, help="folder in harness/benchmarks whose network.py has FIT")
    parser.add_argument("--framework", default="onnx", choices=FRAMEWORKS)
    parser.add_argument("--dataset_dir", required=True, type=Path, help="data set that the reference is measured on")
    parser.add_argument("--output_dir", required=True, type=Path)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(words)
    request = ModelRequest(
        architecture=given.architecture,
        config="tiny",
        framework=given.framework,
        output_dir=given.output_dir,
        seed=given.seed,
    )
    try:
        score = make_fitted_model(request, given.dataset_dir)
    except HarnessError as error:
        print(f"fit_detection: {error}" + (f"\nhint: {error.hint}" if error.hint else ""), file=sys.stderr)
        return error.exit_code
    print(f"{given.architecture}: {score.line} on {given.dataset_dir}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
