"""KiTS19: CT volumes of kidneys with tumours, in the layout of https://github.com/neheller/kits19.

    case_00000/imaging.nii.gz        the CT scan, Hounsfield units, axes slice, row, column
    case_00000/segmentation.nii.gz   0 background, 1 kidney, 2 tumour, of the same shape

either in the folder itself or in its subfolder `data`. Real data: the 43 cases of the benchmark and the 20 of the
official calibration list, others are not looked at. Synthetic data: dataset.json lists `cases` and `calibration_cases`.

Volumes are read when asked for; one may take 2 GB. Reading needs the package nibabel.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from crowdperf.harness.base.calibration_lists import official_list
from crowdperf.harness.base.dataset import DatasetFacts, ListedSamples, listed_cases, read_facts
from crowdperf.harness.media.nifti import Volume, VolumeCases, read_volume

_HINT = "rebuild the data set: cm run script --tags=get,dataset,original,kits19 --renew"
_IMAGE, _LABELS = "imaging.nii.gz", "segmentation.nii.gz"


def _case_names(numbers: Sequence[int]) -> tuple[str, ...]:
    return tuple(f"case_{number:05d}" for number in numbers)


# Source: mlcommons/inference, vision/medical_imaging/3d-unet-kits19/meta/inference_cases.json, in its order.
INFERENCE_CASES = _case_names(
    (0, 3, 5, 6, 12, 24, 34, 41, 44, 49, 52, 56, 61, 65, 66, 70, 76, 78, 80, 84, 86, 87, 92, 111, 112, 125, 128, 138,
     157, 160, 161, 162, 169, 171, 176, 185, 187, 189, 198, 203, 206, 207, 400)
)  # fmt: skip


class Kits19Dataset(VolumeCases):
    """The cases of one part of KiTS19."""

    def case_files(self, case: str) -> tuple[Path, ...]:
        return tuple(self.folder / case / name for name in (_IMAGE, _LABELS))

    def load(self, indices: Sequence[int]) -> list[Volume]:
        """Return the scans of `indices`, float32."""
        return [read_volume(self.folder / self.cases[index] / _IMAGE, np.float32, _HINT) for index in indices]

    def labels(self, index: int) -> Volume:
        """Return the segmentation of one case, uint8."""
        return read_volume(self.folder / self.cases[index] / _LABELS, np.uint8, _HINT)


def case_folder(folder: Path) -> Path:
    """Return where the cases lie: in the subfolder `data` of a clone of the repository, or in the folder itself."""
    return folder / "data" if (folder / "data").is_dir() else folder


def _open(folder: Path, key: str, official: tuple[str, ...]) -> Kits19Dataset:
    facts = read_facts(folder)
    return _open_cases(folder, listed_cases(folder, key, _HINT) if facts.is_synthetic else official, facts)


def _open_cases(folder: Path, cases: tuple[str, ...], facts: DatasetFacts) -> Kits19Dataset:
    place = case_folder(folder)
    dataset = Kits19Dataset(folder=place, cases=cases, facts=facts)
    dataset.require_whole("KiTS19", _HINT)
    return dataset


def open_dataset(folder: Path) -> Kits19Dataset:
    """Return the cases the benchmark measures; raises HarnessError naming every file that is missing or damaged."""
    return _open(folder, "cases", INFERENCE_CASES)


def open_calibration(folder: Path) -> Kits19Dataset:
    """Return the cases for calibration and for fitting a synthetic model; none of them is measured."""
    return _open(folder, "calibration_cases", official_list("kits19")[1])


def listed_samples(folder: Path, entries: Sequence[str]) -> ListedSamples:
    """Return the cases that lines of a calibration list name."""
    dataset = _open_cases(folder, tuple(entries), read_facts(folder))
    return ListedSamples(dataset=dataset, indices=range(dataset.count), is_measured=False)
