"""Fits the small 3D-UNet on the calibration cases of a synthetic KiTS19 set, and writes the model.

The cases go through the benchmark's own preprocessing. The measured cases are not seen by the fit; they give the
reference score in model.json. Seeded, one thread: the same library versions on the same kind of processor give the
same weights.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from harness.benchmarks.unet3d import model as unet3d
from harness.datasets import kits19
from harness.making.makemodel import FRAMEWORKS, ModelClaims, ModelRequest, build_modules, write_model
from torch.nn import functional

STEPS = 40
BATCH = 2
LEARNING_RATE = 0.02
CLASS_WEIGHTS = (0.4, 1.0, 3.0)  # background fills most of a window, and the tumour is small
LEAST_DICE = 0.6  # a fit below is not written: 0.85 and more were seen


def prepared_cases(dataset: kits19.Kits19Dataset, window: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the scan float32 and the labels uint8 of each case, as the benchmark prepares them."""
    return [
        (
            unet3d.prepare_scan(dataset.load([index])[0], window),
            unet3d.prepare_labels(dataset.labels(index), window),
        )
        for index in range(dataset.count)
    ]


def random_windows(
    random: np.random.Generator, cases: list[tuple[np.ndarray, np.ndarray]], window: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return BATCH windows: float32[batch, 1, W, W, W] and their labels int64[batch, W, W, W]."""
    scans, labels = [], []
    for number in random.integers(len(cases), size=BATCH):
        scan, label = cases[number]
        place = tuple(
            slice(start, start + window) for start in (random.integers(side - window + 1) for side in scan.shape)
        )
        scans.append(scan[place][None])
        labels.append(label[place])
    return torch.from_numpy(np.stack(scans)), torch.from_numpy(np.stack(labels).astype(np.int64))


def train(
    network: torch.nn.Module,
    batch: Callable[[], tuple[torch.Tensor, torch.Tensor]],
    class_weights: Sequence[float],
    steps: int,
) -> None:
    """Fit the network in place to the batches of volumes and labels int64[batch, ...] that `batch` gives."""
    network.train()
    weights = torch.tensor(class_weights)
    optimizer = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=LEARNING_RATE, total_steps=steps)
    for _ in range(steps):
        volumes, labels = batch()
        (scores,) = network(volumes)
        loss = functional.cross_entropy(scores, labels, weight=weights)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    network.eval()


def write_fitted(network: torch.nn.Module, request: ModelRequest, dice: float) -> None:
    """Write the model with its score; ends the program where the fit failed."""
    if dice < LEAST_DICE:
        raise SystemExit(
            f"the fitted {request.architecture} has a mean Dice of {dice:.3f}; it should reach {LEAST_DICE}"
        )
    facts = {"licence": "made by this project: Apache-2.0", "fitted_on": "calibration cases of a synthetic data set"}
    path = write_model({"model": network}, request, ModelClaims(reference={"DICE": dice}, facts=facts))
    print(f"fitted {request.architecture}: mean Dice {dice:.5f} on the measured cases -> {path}")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of both programs."""
    parser.add_argument("--dataset_dir", type=Path, required=True)
    parser.add_argument("--framework", choices=FRAMEWORKS, required=True)
    parser.add_argument("--output_dir", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)


def request_of(asked: argparse.Namespace, architecture: str) -> ModelRequest:
    """Return what model the options ask for."""
    return ModelRequest(
        architecture=architecture,
        config="tiny",
        framework=asked.framework,
        output_dir=asked.output_dir,
        seed=asked.seed,
    )


def measured_dice(network: torch.nn.Module, dataset: kits19.Kits19Dataset, window: int) -> float:
    """Return the benchmark's score of the network on the measured cases."""
    model = unet3d.Unet3d(window=window, classes=unet3d.CLASSES)

    def infer(inputs: dict) -> dict:
        with torch.no_grad():
            return {"output": network(torch.from_numpy(inputs["input"]))[0].numpy()}

    def responses() -> Iterator[tuple[int, bytes]]:
        for index in range(dataset.count):
            batch = model.collate(model.preprocess(dataset.load([index])))
            yield index, model.predict({"model": infer}, batch)[0].tobytes()

    return model.score(responses(), dataset).values["DICE"]


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    request = request_of(asked, "unet3d")
    window = request.values["window"]
    network = build_modules(request)["model"]
    cases = prepared_cases(kits19.open_calibration(asked.dataset_dir), window)
    random = np.random.default_rng(asked.seed)
    train(network, lambda: random_windows(random, cases, window), CLASS_WEIGHTS, STEPS)
    write_fitted(network, request, measured_dice(network, kits19.open_dataset(asked.dataset_dir), window))


if __name__ == "__main__":
    main()
