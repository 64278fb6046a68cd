"""Fits the small 3D-UNet for BraTS on the calibration cases of a synthetic set, and writes the model.

As `unet3d`, whose training loop it uses: the benchmark's own preprocessing, nothing of the measured cases seen.
"""

import sys
from pathlib import Path

import numpy as np
import torch

from crowdperf.benchmarks.unet3d_brats import model as unet3d_brats
from crowdperf.harness.datasets import brats19
from crowdperf.models.make_model import ModelRequest, build_modules
from crowdperf.standins import fit_program
from crowdperf.standins.fits.unet3d import BATCH, FACTS, LEAST, train

DESCENT = fit_program.Descent(steps=70, rate=0.02)
CLASS_WEIGHTS = (0.5, 1.0, 2.0, 1.5)  # nnU-Net's numbers: background, oedema, necrosis, enhancing tumour


def padded_labels(dataset: brats19.Brats19Dataset, index: int, volume: tuple[int, int, int]) -> np.ndarray:
    """Return the labels of the voxels of the network's input, uint8[volume]."""
    case = unet3d_brats.truth_of(dataset, index)
    box = tuple(slice(start, start + size) for start, size in zip(case.crop_start, case.cropped_size, strict=True))
    missing = [side - size for side, size in zip(volume, case.cropped_size, strict=True)]
    return np.pad(case.segmentation[box], [(side // 2, side - side // 2) for side in missing])


def fit(request: ModelRequest, dataset_dir: Path) -> fit_program.Fitted:
    volume = tuple(request.values["volume"])
    modules = build_modules(request)
    model = unet3d_brats.UnetBrats(volume)
    training = brats19.open_calibration(dataset_dir)
    scans = model.preprocess(training.load(range(training.count)))["input"]
    labels = np.stack([padded_labels(training, index, volume) for index in range(training.count)]).astype(np.int64)
    random = np.random.default_rng(request.seed)

    def batch() -> tuple[torch.Tensor, torch.Tensor]:
        chosen = random.integers(len(scans), size=BATCH)
        return torch.from_numpy(scans[chosen]), torch.from_numpy(labels[chosen])

    train(modules["model"], batch, CLASS_WEIGHTS, DESCENT)
    score = fit_program.score_of(model, modules, brats19.open_dataset(dataset_dir))
    return fit_program.Fitted(modules=modules, score=score, metrics=("DICE",), least=LEAST, facts=FACTS)


if __name__ == "__main__":
    sys.exit(fit_program.main(__doc__, fit, "unet3d_brats"))
