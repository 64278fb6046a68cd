"""Fits the small 3D-UNet for BraTS on the calibration cases of a synthetic set, and writes the model.

As `fit_model.py`, whose training loop it uses: the benchmark's own preprocessing, nothing of the measured cases seen,
seeded, one thread.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from fit_model import add_options, request_of, train, write_fitted
from harness.benchmarks.unet3d_brats import model as unet3d_brats
from harness.datasets import brats19
from harness.making.makemodel import build_modules

STEPS = 70
CLASS_WEIGHTS = (0.5, 1.0, 2.0, 1.5)  # nnU-Net's numbers: background, oedema, necrosis, enhancing tumour


def padded_labels(dataset: brats19.Brats19Dataset, index: int, volume: tuple[int, int, int]) -> np.ndarray:
    """Return the labels of the voxels of the network's input, uint8[volume]."""
    case = unet3d_brats.truth_of(dataset, index)
    box = tuple(slice(start, start + size) for start, size in zip(case.crop_start, case.cropped_size, strict=True))
    missing = [side - size for side, size in zip(volume, case.cropped_size, strict=True)]
    return np.pad(case.segmentation[box], [(side // 2, side - side // 2) for side in missing])


def measured_dice(network: torch.nn.Module, dataset: brats19.Brats19Dataset, model: unet3d_brats.UnetBrats) -> float:
    """Return the benchmark's score of the network on the measured cases."""

    def infer(inputs: dict) -> dict:
        with torch.no_grad():
            return {"output": network(torch.from_numpy(inputs["input"]))[0].numpy()}

    def responses() -> Iterator[tuple[int, bytes]]:
        for index in range(dataset.count):
            inputs = model.preprocess(dataset.load([index]))
            yield index, model.predict({"model": infer}, inputs)[0].tobytes()

    return model.score(responses(), dataset).values["DICE"]


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    request = request_of(asked, "unet3d_brats")
    volume = tuple(request.values["volume"])
    network = build_modules(request)["model"]
    model = unet3d_brats.UnetBrats(volume)
    training = brats19.open_calibration(asked.dataset_dir)
    scans = model.preprocess(training.load(range(training.count)))["input"]
    labels = np.stack([padded_labels(training, index, volume) for index in range(training.count)]).astype(np.int64)
    random = np.random.default_rng(asked.seed)

    def batch() -> tuple[torch.Tensor, torch.Tensor]:
        chosen = random.integers(len(scans), size=2)
        return torch.from_numpy(scans[chosen]), torch.from_numpy(labels[chosen])

    train(network, batch, CLASS_WEIGHTS, STEPS)
    write_fitted(network, request, measured_dice(network, brats19.open_dataset(Path(asked.dataset_dir)), model))


if __name__ == "__main__":
    main()
