"""The digits data set: 8x8 images of handwritten digits, as the recipe get-dataset-digits writes them.

Files read: `validation_images.npy` uint8[N, 8, 8] with values 0 to 16, and `validation_labels.npy` uint8[N] with
values 0 to 9; for calibration `train_images.npy` and `train_labels.npy`, images that are not measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.dataset import DatasetFacts, read_facts
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.tensors import Array

_HINT = "rebuild the data set: cm run script --tags=get,dataset,digits --renew"


@dataclass(frozen=True, slots=True, eq=False)
class DigitsDataset:
    """One part, in memory: uint8[N, 8, 8] and uint8[N]."""

    files: tuple[Path, ...]
    images: npt.NDArray[np.uint8]
    labels: npt.NDArray[np.uint8]
    facts: DatasetFacts

    @property
    def count(self) -> int:
        return len(self.images)

    def load(self, indices: Sequence[int]) -> Array:
        """Return uint8[len(indices), 8, 8], 0..16."""
        return self.images[np.asarray(indices, dtype=np.intp)]


def _read(path: Path, sample_shape: tuple[int, ...], highest: int) -> npt.NDArray[np.uint8]:
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise HarnessError(f"cannot read {path}: {error}", _HINT) from error
    if array.dtype != np.uint8 or array.shape[1:] != sample_shape or len(array) == 0:
        wanted = f"uint8[N{''.join(f', {size}' for size in sample_shape)}] with N >= 1"
        raise HarnessError(f"{path} contains {array.dtype}{list(array.shape)}, expected {wanted}", _HINT)
    if int(array.max()) > highest:
        raise HarnessError(f"{path} contains the value {int(array.max())}; allowed: 0 to {highest}", _HINT)
    checked: npt.NDArray[np.uint8] = array
    return checked


def _open(folder: Path, part: str) -> DigitsDataset:
    files = (folder / f"{part}_images.npy", folder / f"{part}_labels.npy")
    images, labels = _read(files[0], (8, 8), 16), _read(files[1], (), 9)
    if len(images) != len(labels):
        raise HarnessError(f"{folder} contains {len(images)} {part} images but {len(labels)} labels", _HINT)
    return DigitsDataset(files, images, labels, read_facts(folder))


def open_dataset(folder: Path) -> DigitsDataset:
    return _open(folder, "validation")


def open_calibration(folder: Path) -> DigitsDataset:
    """Return the training part, none of which is measured; raises HarnessError as `open_dataset`."""
    return _open(folder, "train")
