"""Programs that make volumes in the layout of a medical data set: their command line, dataset.json and the numbering.

A case depends on its number and the seed only, not on how many there are. Calibration cases (also what a tiny model is
fitted on) are numbered from 10,000. What a case looks like is the program's own affair.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.data.answers import DATASET_FACTS_FILE

FIRST_CALIBRATION_NUMBER = 10_000

Array = Any
"""A numpy array; this package works without numpy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeCases:
    """name: of the data set. count: how many cases by default. sizes: the kinds of volumes.

    case, calibration_case: the name of a case by its number. write: makes one in a folder, by name and size, from the
    numbers that its random generator begins with.
    """

    name: str
    count: int
    sizes: Collection[str]
    case: Callable[[int], str]
    calibration_case: Callable[[int], str]
    write: Callable[[Path, str, str, list[int]], None]

    def make(self, folder: Path, *, size: str, count: int, calibration_count: int, seed: int) -> None:
        """Write the cases and dataset.json."""
        numbers = {self.case(number): number for number in range(count)}
        later = range(FIRST_CALIBRATION_NUMBER, FIRST_CALIBRATION_NUMBER + calibration_count)
        calibration = {self.calibration_case(number): number for number in later}
        for name, number in {**numbers, **calibration}.items():
            self.write(folder, name, size, [seed, number])
        facts = {
            "format": 1,
            "name": self.name,
            "is_synthetic": True,
            "seed": seed,
            "count": count,
            "size": size,
            "licence": "made by this project: Apache-2.0",
            "cases": list(numbers),
            "calibration_cases": list(calibration),
        }
        (folder / DATASET_FACTS_FILE).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")

    def main(self, description: str | None) -> None:
        """Read the command line and make what it asks for."""
        parser = argparse.ArgumentParser(description=description)
        parser.add_argument("--output_dir", type=Path, required=True)
        parser.add_argument("--size", choices=sorted(self.sizes), default="full")
        parser.add_argument("--count", type=int, default=self.count)
        parser.add_argument("--calibration_count", type=int, default=4)
        parser.add_argument("--seed", type=int, default=0)
        asked = parser.parse_args()
        self.make(
            asked.output_dir,
            size=asked.size,
            count=asked.count,
            calibration_count=asked.calibration_count,
            seed=asked.seed,
        )


def is_inside_ellipsoid(grid: Iterable[Array], centre: Array, radii: Array) -> Array:
    """Return which voxels lie inside, bool of the grid's shape; all in parts of the volume's sides."""
    return sum(((axis - middle) / radius) ** 2 for axis, middle, radius in zip(grid, centre, radii, strict=True)) <= 1.0
