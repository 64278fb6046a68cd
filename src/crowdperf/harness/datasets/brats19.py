"""BraTS 2019: MRI volumes of brains with tumours, in the layout of the challenge's training data.

    HGG/BraTS19_2013_13_1/BraTS19_2013_13_1_t1.nii.gz      and _t1ce, _t2, _flair: the four scans, axes x, y, z
    HGG/BraTS19_2013_13_1/BraTS19_2013_13_1_seg.nii.gz     0 background, 1 necrosis, 2 oedema, 4 enhancing tumour

and the same below LGG. Real data: the 67 cases of fold 1, which the benchmark measured from v0.7 to v1.1. Synthetic
data: dataset.json lists `cases` and `calibration_cases`. Arrays here have the axes z, y, x, as SimpleITK reads them for
the reference, and labels in nnU-Net's numbers (Task043_BraTS_2019.py): 1 oedema, 2 necrosis, 3 enhancing tumour.
Reading needs the package nibabel.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.calibration_lists import official_list
from crowdperf.harness.base.dataset import DatasetFacts, ListedSamples, listed_cases, read_facts
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.media.nifti import VolumeCases, read_volume

MODALITIES = ("t1", "t1ce", "t2", "flair")  # in the order of the network's channels (Task043_BraTS_2019.py)
LABELS = {0: 0, 1: 2, 2: 1, 4: 3}
_HINT = "rebuild the data set: cm run script --tags=get,dataset,original,brats19 --renew"


def _cases(group: str, names: str) -> tuple[str, ...]:
    """Return `group`/BraTS19_NAME_1 for each name."""
    return tuple(f"{group}/BraTS19_{name}_1" for name in names.split())


# Source: folds/fold1_validation.txt of vision/medical_imaging/3d-unet-brats19, mlcommons/inference at tag v2.0.
INFERENCE_CASES = (
    *_cases("HGG", "2013_13 2013_19 2013_27"),
    *_cases("HGG", "CBICA_AAG CBICA_ALN CBICA_ANV CBICA_AOH CBICA_APK CBICA_APR CBICA_AQG CBICA_AQP CBICA_ARZ"),
    *_cases("HGG", "CBICA_ASF CBICA_ASG CBICA_ATP CBICA_ATX CBICA_AUA CBICA_AVJ CBICA_AVV CBICA_AWG CBICA_AXL"),
    *_cases("HGG", "CBICA_AXQ CBICA_BAN CBICA_BBG CBICA_BGE CBICA_BHQ CBICA_BIC CBICA_BNR TCIA01_131 TCIA01_147"),
    *_cases("HGG", "TCIA01_180 TCIA01_190 TCIA01_221 TCIA01_335 TCIA01_411 TCIA02_151 TCIA02_321 TCIA02_331"),
    *_cases("HGG", "TCIA02_368 TCIA02_471 TCIA03_257 TCIA03_474 TCIA04_111 TCIA04_328 TCIA04_343 TCIA05_277"),
    *_cases("HGG", "TCIA05_478 TCIA06_165 TCIA08_105 TCIA08_280 TMC_15477 TMC_21360 TMC_30014"),
    *_cases("LGG", "TCIA09_428 TCIA10_175 TCIA10_276 TCIA10_393 TCIA10_408 TCIA10_410 TCIA10_449 TCIA10_490"),
    *_cases("LGG", "TCIA10_625 TCIA10_637 TCIA12_249 TCIA12_466 TCIA13_615 TCIA13_630"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Scans:
    """One case: float32[4, z, y, x] in the order of MODALITIES."""

    case: str
    voxels: npt.NDArray[np.float32]


class Brats19Dataset(VolumeCases):
    """The cases of one part of BraTS 2019."""

    def case_files(self, case: str) -> tuple[Path, ...]:
        return tuple(self.path(case, name) for name in (*MODALITIES, "seg"))

    def path(self, case: str, name: str) -> Path:
        """Return the file of one of MODALITIES or of "seg"."""
        return self.folder / case / f"{case.rpartition('/')[2]}_{name}.nii.gz"

    def load(self, indices: Sequence[int]) -> list[Scans]:
        """Return the scans of `indices`; raises HarnessError where voxels are not cubes of 1 mm."""
        return [self._scans(self.cases[index]) for index in indices]

    def _scans(self, case: str) -> Scans:
        volumes = [read_volume(self.path(case, name), np.float32, _HINT) for name in MODALITIES]
        if any(abs(side - 1.0) > 1e-3 for volume in volumes for side in volume.spacing_mm):
            raise HarnessError(f"{self.folder / case} has voxels of {volumes[0].spacing_mm} mm; allowed: 1 mm", _HINT)
        return Scans(case, np.stack([volume.voxels.transpose(2, 1, 0) for volume in volumes]))

    def labels(self, index: int) -> npt.NDArray[np.uint8]:
        """Return uint8[z, y, x] in nnU-Net's numbers, 0 to 3; raises HarnessError for a label BraTS does not have."""
        path = self.path(self.cases[index], "seg")
        found = read_volume(path, np.uint8, _HINT).voxels.transpose(2, 1, 0)
        if not np.isin(found, list(LABELS)).all():
            raise HarnessError(f"{path} has the label {int(found.max())}; allowed: 0, 1, 2, 4", _HINT)
        table = np.zeros(5, dtype=np.uint8)
        table[list(LABELS)] = list(LABELS.values())
        return np.ascontiguousarray(table[found])


def _open(folder: Path, key: str, official: tuple[str, ...]) -> Brats19Dataset:
    facts = read_facts(folder)
    return _open_cases(folder, listed_cases(folder, key, _HINT) if facts.is_synthetic else official, facts)


def _open_cases(folder: Path, cases: tuple[str, ...], facts: DatasetFacts) -> Brats19Dataset:
    dataset = Brats19Dataset(folder=folder, cases=cases, facts=facts)
    dataset.require_whole("BraTS 2019", _HINT)
    return dataset


def open_dataset(folder: Path) -> Brats19Dataset:
    """Return the cases the benchmark measures; raises HarnessError naming every file that is missing or damaged."""
    return _open(folder, "cases", INFERENCE_CASES)


def open_calibration(folder: Path) -> Brats19Dataset:
    """Return the cases for calibration and for fitting a synthetic model; none of them is measured."""
    return _open(folder, "calibration_cases", _listed(official_list("brats19")[1]))


def listed_samples(folder: Path, entries: Sequence[str]) -> ListedSamples:
    """Return the cases that lines of a calibration list name, as in `HGG__BraTS19_2013_18_1`."""
    dataset = _open_cases(folder, _listed(entries), read_facts(folder))
    return ListedSamples(dataset=dataset, indices=range(dataset.count), is_measured=False)


def _listed(entries: Sequence[str]) -> tuple[str, ...]:
    return tuple(entry.replace("__", "/", 1) for entry in entries)
