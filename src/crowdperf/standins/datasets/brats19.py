"""Makes MRI-like scans in BraTS 2019's layout: a brain with a tumour of three parts, in four modalities.

Not medical data: ellipsoids with noise, seeded. Files are those of the real data set (NIfTI, int16, axes x, y, z,
voxels of 1 mm, labels 0, 1, 2, 4; nothing but zeros outside the brain), so that everything from reading on is the real
path.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from crowdperf.standins.dataset_program import is_inside_ellipsoid, made_cases

MODALITIES = ("t1", "t1ce", "t2", "flair")
NECROSIS, OEDEMA, ENHANCING = 1, 2, 4
# Brightness of brain and parts in each modality: what shows where is roughly as in real scans.
BRIGHTNESS = {
    "t1": {0: 400, NECROSIS: 250, OEDEMA: 320, ENHANCING: 360},
    "t1ce": {0: 400, NECROSIS: 260, OEDEMA: 330, ENHANCING: 900},
    "t2": {0: 300, NECROSIS: 800, OEDEMA: 650, ENHANCING: 450},
    "flair": {0: 300, NECROSIS: 350, OEDEMA: 800, ENHANCING: 550},
}
NOISE, GRAIN = 30.0, 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Sides of a scan (x, y, z), and lowest and highest radii of the brain as parts of them."""

    sides: tuple[int, int, int]
    radii: tuple[tuple[float, float, float], tuple[float, float, float]]


SHAPES = {
    # The real scans' sides; the brain then has at most 156, 209 and 146 voxels: it fits 160 x 224 x 224.
    "full": Shape(sides=(240, 240, 155), radii=((0.26, 0.34, 0.4), (0.32, 0.43, 0.47))),
    # For the tiny model's volume of 24 x 32 x 32 (x, y, z).
    "tiny": Shape(sides=(26, 34, 34), radii=((0.34, 0.38, 0.36), (0.44, 0.46, 0.45))),
}


def make_case(
    random: np.random.Generator, shape: Shape
) -> tuple[dict[str, npt.NDArray[np.int16]], npt.NDArray[np.uint8]]:
    """Return the scans by modality, int16[x, y, z], and the labels uint8 of the same shape."""
    grid = list(
        np.meshgrid(*(np.linspace(0, 1, side, dtype=np.float32) for side in shape.sides), indexing="ij", sparse=True)
    )
    radii = random.uniform(*shape.radii)
    centre = np.array([0.5, 0.5, 0.5])
    brain = is_inside_ellipsoid(grid, centre, radii)
    labels = np.zeros(shape.sides, dtype=np.uint8)
    tumour = centre + random.uniform(-0.35, 0.35, 3) * radii
    for label, low, high in ((OEDEMA, 0.45, 0.55), (ENHANCING, 0.32, 0.4), (NECROSIS, 0.2, 0.26)):
        labels[is_inside_ellipsoid(grid, tumour, random.uniform(low, high, 3) * radii)] = label
    labels[~brain] = 0
    scans = {}
    for modality in MODALITIES:
        table = np.zeros(5, dtype=np.float32)
        table[list(BRIGHTNESS[modality])] = list(BRIGHTNESS[modality].values())
        noise = np.rint(random.standard_normal(shape.sides, dtype=np.float32) * np.float32(NOISE / GRAIN)) * GRAIN
        values = np.maximum(table[labels] * np.float32(random.uniform(0.8, 1.2)) + noise, 1.0)
        scans[modality] = np.where(brain, np.rint(values), 0).astype(np.int16)
    return scans, labels


def save_case(folder: Path, scans: dict[str, npt.NDArray[np.int16]], labels: npt.NDArray[np.uint8]) -> None:
    """Write a case's five files."""
    import nibabel

    folder.mkdir(parents=True, exist_ok=True)
    affine = np.diag([-1.0, -1.0, 1.0, 1.0])
    for name, voxels in (*scans.items(), ("seg", labels)):
        nibabel.save(nibabel.Nifti1Image(voxels, affine), folder / f"{folder.name}_{name}.nii.gz")  # type: ignore[no-untyped-call]


def write_case(folder: Path, name: str, size: str, seed: list[int]) -> None:
    save_case(folder / name, *make_case(np.random.default_rng(seed), SHAPES[size]))


MADE = made_cases("brats19", SHAPES, write_case, "HGG/BraTS19_SYN_{:05d}_1", "LGG/BraTS19_SYN_{:05d}_1")

if __name__ == "__main__":
    sys.exit(MADE.main(__doc__))
