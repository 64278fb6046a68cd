"""Makes CT-like volumes in KiTS19's layout: a body, two kidneys in it, and a tumour at one of them.

Not medical data: ellipsoids with noise, in Hounsfield units, seeded. Files are those of the real data set (NIfTI,
int16 scans, uint8 labels, axes slice, row, column, the same orientation), so that everything from reading on is the
real path. Volumes are smaller than real ones (slices of 512 x 512): README.md says why.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from crowdperf.standins.dataset_program import is_inside_ellipsoid, made_cases

AIR_HU, BODY_HU, KIDNEY_HU, TUMOUR_HU, NOISE_HU = -1000.0, 20.0, 150.0, 260.0, 12.0
KIDNEY, TUMOUR = 1, 2
NOISE_GRAIN = 4  # noise is rounded to multiples of this, so that files stay small


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What volumes of one kind look like: lowest and highest number of slices and of rows (and columns), spacing."""

    slices: tuple[int, int]
    rows: tuple[int, int]
    slice_mm: tuple[float, float]
    row_mm: tuple[float, float]


SHAPES = {
    # After resampling to 1.6, 1.2, 1.2 mm: sides of 128 to 192, that is 1 to 8 windows of 128 voxels.
    "full": Shape(slices=(72, 96), rows=(224, 256), slice_mm=(2.5, 3.2), row_mm=(0.7, 0.9)),
    # Sides of 32 to 48, that is 1 to 8 windows of 32 voxels, the window of the tiny model.
    "tiny": Shape(slices=(16, 24), rows=(26, 38), slice_mm=(3.0, 3.4), row_mm=(1.4, 1.6)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A scan int16[slices, rows, columns], its labels uint8 of the same shape, and the voxels' size."""

    scan: npt.NDArray[np.int16]
    labels: npt.NDArray[np.uint8]
    spacing_mm: tuple[float, float, float]


def make_case(random: np.random.Generator, shape: Shape) -> Case:
    """Return one case drawn from `random`."""
    rows = int(random.integers(shape.rows[0], shape.rows[1] + 1))
    sides = (int(random.integers(shape.slices[0], shape.slices[1] + 1)), rows, rows)
    row_mm = float(random.uniform(*shape.row_mm))
    grid = np.meshgrid(*(np.linspace(0, 1, side, dtype=np.float32) for side in sides), indexing="ij", sparse=True)
    body = is_inside_ellipsoid(tuple(grid), np.array([0.5, 0.5, 0.5]), np.array([9.0, 0.45, 0.48]))
    values = np.where(body, BODY_HU, AIR_HU).astype(np.float32)
    labels = np.zeros(sides, dtype=np.uint8)
    tumour_side = int(random.integers(2))
    for number, column in enumerate((0.3, 0.7)):
        centre = np.array([0.5, 0.55, column]) + random.uniform(-0.06, 0.06, 3)
        radii = random.uniform((0.22, 0.12, 0.1), (0.3, 0.18, 0.14))
        labels[is_inside_ellipsoid(tuple(grid), centre, radii)] = KIDNEY
        if number == tumour_side:
            offset = random.uniform(-0.5, 0.5, 3) * radii
            labels[is_inside_ellipsoid(tuple(grid), centre + offset, random.uniform(0.1, 0.14, 3))] = TUMOUR
    values[labels == KIDNEY] = KIDNEY_HU
    values[labels == TUMOUR] = TUMOUR_HU
    noise = random.standard_normal(sides, dtype=np.float32) * np.float32(NOISE_HU / NOISE_GRAIN)
    values += np.rint(noise) * NOISE_GRAIN
    spacing = (float(random.uniform(*shape.slice_mm)), row_mm, row_mm)
    return Case(scan=np.rint(values).astype(np.int16), labels=labels, spacing_mm=spacing)


def save_case(folder: Path, case: Case) -> None:
    """Write a case's two files; the affine has KiTS19's orientation (slices downwards, columns to the left)."""
    import nibabel

    folder.mkdir(parents=True, exist_ok=True)
    slice_mm, row_mm, column_mm = case.spacing_mm
    affine = np.array([[0, 0, -column_mm, 0], [0, -row_mm, 0, 0], [-slice_mm, 0, 0, 0], [0, 0, 0, 1]], dtype=np.float64)
    for name, voxels in (("imaging", case.scan), ("segmentation", case.labels)):
        nibabel.save(nibabel.Nifti1Image(voxels, affine), folder / f"{name}.nii.gz")  # type: ignore[no-untyped-call]


def write_case(folder: Path, name: str, size: str, seed: list[int]) -> None:
    save_case(folder / "data" / name, make_case(np.random.default_rng(seed), SHAPES[size]))


MADE = made_cases("kits19", SHAPES, write_case, "case_{:05d}")

if __name__ == "__main__":
    sys.exit(MADE.main(__doc__))
