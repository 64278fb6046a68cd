"""Makes MRI-like scans in BraTS 2019's layout: a brain with a tumour of three parts, in four modalities.

Not medical data: ellipsoids with noise, seeded. Files are those of the real data set (NIfTI, int16, axes x, y, z,
voxels of 1 mm, labels 0, 1, 2, 4; nothing but zeros outside the brain), so that everything from reading on is the real
path.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

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


def _ellipsoid(
    grid: list[npt.NDArray[np.float32]], centre: npt.NDArray[np.float64], radii: npt.NDArray[np.float64]
) -> npt.NDArray[np.bool_]:
    distance = sum(((axis - middle) / radius) ** 2 for axis, middle, radius in zip(grid, centre, radii, strict=True))
    inside: npt.NDArray[np.bool_] = np.asarray(distance) <= 1.0
    return inside


def make_case(
    random: np.random.Generator, shape: Shape
) -> tuple[dict[str, npt.NDArray[np.int16]], npt.NDArray[np.uint8]]:
    """Return the scans by modality, int16[x, y, z], and the labels uint8 of the same shape."""
    grid = list(
        np.meshgrid(*(np.linspace(0, 1, side, dtype=np.float32) for side in shape.sides), indexing="ij", sparse=True)
    )
    radii = random.uniform(*shape.radii)
    centre = np.array([0.5, 0.5, 0.5])
    brain = _ellipsoid(grid, centre, radii)
    labels = np.zeros(shape.sides, dtype=np.uint8)
    tumour = centre + random.uniform(-0.35, 0.35, 3) * radii
    for label, low, high in ((OEDEMA, 0.45, 0.55), (ENHANCING, 0.32, 0.4), (NECROSIS, 0.2, 0.26)):
        labels[_ellipsoid(grid, tumour, random.uniform(low, high, 3) * radii)] = label
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
        nibabel.save(nibabel.Nifti1Image(voxels, affine), folder / f"{folder.name}_{name}.nii.gz")


def make_dataset(folder: Path, *, size: str, count: int, calibration_count: int, seed: int) -> None:
    """Write the cases and dataset.json; a case depends on its number and the seed only, not on `count`."""
    cases = [f"HGG/BraTS19_SYN_{number:05d}_1" for number in range(count)]
    calibration = [f"LGG/BraTS19_SYN_{10_000 + number:05d}_1" for number in range(calibration_count)]
    for name in (*cases, *calibration):
        random = np.random.default_rng([seed, int(name.split("_")[2])])
        save_case(folder / name, *make_case(random, SHAPES[size]))
    facts = {
        "format": 1,
        "name": "brats19",
        "is_synthetic": True,
        "seed": seed,
        "count": count,
        "size": size,
        "licence": "made by this project: Apache-2.0",
        "cases": cases,
        "calibration_cases": calibration,
    }
    (folder / "dataset.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output_dir", type=Path, required=True)
    parser.add_argument("--size", choices=sorted(SHAPES), default="full")
    parser.add_argument("--count", type=int, default=16)
    parser.add_argument("--calibration_count", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    make_dataset(
        asked.output_dir,
        size=asked.size,
        count=asked.count,
        calibration_count=asked.calibration_count,
        seed=asked.seed,
    )


if __name__ == "__main__":
    main()
