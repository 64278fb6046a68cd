"""Fits the small 3D-UNet on the calibration cases of a synthetic KiTS19 set, and writes the model.

The cases go through the benchmark's own preprocessing. The measured cases are not seen by the fit; they give the
reference score.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from crowdperf.benchmarks.unet3d import model as unet3d
from crowdperf.harness.datasets import kits19
from crowdperf.models.make_model import ModelRequest, build_modules
from crowdperf.standins import fit_program

BATCH = 2
DESCENT = fit_program.Descent(steps=40, rate=0.02)
CLASS_WEIGHTS = (0.4, 1.0, 3.0)  # background fills most of a window, and the tumour is small
LEAST = {"DICE": 0.6}  # 0.85 and more were seen
FACTS = {"fitted_on": "calibration cases of a synthetic data set"}


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
    descent: fit_program.Descent,
) -> None:
    """Fit the network in place to the batches of volumes and labels int64[batch, ...] that `batch` gives."""
    weights = torch.tensor(class_weights)

    def loss() -> torch.Tensor:
        volumes, labels = batch()
        (scores,) = network(volumes)
        return functional.cross_entropy(scores, labels, weight=weights)

    fit_program.descend(network.train().parameters(), loss, descent)


def fit(request: ModelRequest, dataset_dir: Path) -> fit_program.Fitted:
    window = request.values["window"]
    modules = build_modules(request)
    cases = prepared_cases(kits19.open_calibration(dataset_dir), window)
    random = np.random.default_rng(request.seed)
    train(modules["model"], lambda: random_windows(random, cases, window), CLASS_WEIGHTS, DESCENT)
    model = unet3d.Unet3d(window=window, classes=unet3d.CLASSES)
    score = fit_program.score_of(model, modules, kits19.open_dataset(dataset_dir))
    return fit_program.Fitted(modules=modules, score=score, metrics=("DICE",), least=LEAST, facts=FACTS)


if __name__ == "__main__":
    sys.exit(fit_program.main(__doc__, fit, "unet3d"))
