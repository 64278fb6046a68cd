"""What programs that make a data set have in common: the command line, dataset.json, and cases of volumes.

    MADE = MadeSet(name="igbh", what="papers", make=make, options={"--kind": {"required": True, "choices": KINDS}})

    if __name__ == "__main__":
        sys.exit(MADE.main(__doc__))

Needs the standard library alone, so that a program does where its recipe has no more. What is made follows from the
options: the same library versions give the same files.
"""

import argparse
import json
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crowdperf.harness.base.dataset import FACTS_FILE
from crowdperf.harness.base.errors import HarnessError

NOTE = "synthetic: results with it are not MLPerf results"
FIRST_CALIBRATION_NUMBER = 10_000

Given = argparse.Namespace
"""What the command line gave: output_dir, count, seed and the program's own options."""
Array = Any
"""A numpy array."""


def limited(kind: Callable[[str], float], least: float, most: float) -> Callable[[str], float]:
    """Return the `type` of an option: a number of a kind (int or float) from `least` to `most`."""

    def parse(text: str) -> float:
        value = kind(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text}; allowed: {least} to {most}")
        return value

    return parse


_SOME = limited(int, 1, 10**9)


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeSet:
    """A data set that is made here.

    what: what is counted. make: writes the files into `output_dir`, which is there, and returns the facts of
    dataset.json behind the usual ones; None where it has written that file itself. options: its own options, as
    argparse takes them. count, seed: read these two.
    """

    name: str
    what: str
    make: Callable[[Given], Mapping[str, Any] | None]
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    count: Callable[[str], float] = _SOME
    seed: Callable[[str], float] = int

    def main(self, description: str | None, words: Sequence[str] | None = None) -> int:
        """Command line entry: make what is asked for, dataset.json last; return the exit code."""
        parser = argparse.ArgumentParser(description=(description or "").split("\n")[0])
        parser.add_argument("--output_dir", type=Path, required=True)
        parser.add_argument("--count", type=self.count, required=True, help=self.what)
        parser.add_argument("--seed", type=self.seed, default=0)
        for flag, option in self.options.items():
            parser.add_argument(flag, **option)
        given = parser.parse_args(words)
        try:
            given.output_dir.mkdir(parents=True, exist_ok=True)
            self.write(given)
        except (HarnessError, OSError) as error:
            message = error.with_hint if isinstance(error, HarnessError) else f"cannot write the data set: {error}"
            print(f"{self.name}: {message}", file=sys.stderr)
            return 1
        print(f"{self.name} (synthetic): {given.count} {self.what} in {given.output_dir}")
        return 0

    def write(self, given: Given) -> None:
        """Write the files and, last, dataset.json."""
        facts = self.make(given)
        if facts is not None:
            usual = {"format": 1, "name": self.name, "is_synthetic": True, "seed": given.seed, "count": given.count}
            text = json.dumps({**usual, **facts}, indent=2) + "\n"
            (given.output_dir / FACTS_FILE).write_text(text, encoding="utf-8")


def made_cases(
    name: str,
    sizes: Collection[str],
    write: Callable[[Path, str, str, list[int]], None],
    case: str,
    calibration_case: str | None = None,
) -> MadeSet:
    """Return a set of volumes. A case depends on its number and the seed only, not on how many there are.

    write: makes one in the data set's folder, by name and size, from the numbers that its random generator begins with.
    case, calibration_case: names with a place for the number. Calibration cases, on which a tiny model is fitted, are
    numbered from 10,000 and not measured.
    """

    def make(given: Given) -> Mapping[str, Any]:
        later = range(FIRST_CALIBRATION_NUMBER, FIRST_CALIBRATION_NUMBER + given.calibration_count)
        measured = {case.format(number): number for number in range(given.count)}
        calibration = {(calibration_case or case).format(number): number for number in later}
        for one, number in {**measured, **calibration}.items():
            write(given.output_dir, one, given.size, [given.seed, number])
        return {
            "size": given.size,
            "license": "made by this project: Apache-2.0",
            "cases": list(measured),
            "calibration_cases": list(calibration),
        }

    options: dict[str, dict[str, Any]] = {
        "--size": {"choices": sorted(sizes), "default": "full"},
        "--calibration_count": {"type": int, "default": 4},
    }
    return MadeSet(name=name, what="cases", make=make, options=options)


def is_inside_ellipsoid(grid: Iterable[Array], centre: Array, radii: Array) -> Array:
    """Return which voxels lie inside, bool of the grid's shape; all in parts of the volume's sides."""
    return sum(((axis - middle) / radius) ** 2 for axis, middle, radius in zip(grid, centre, radii, strict=True)) <= 1.0
