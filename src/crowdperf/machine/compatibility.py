"""What goes with what: CUDA and driver (``drivers.csv``), cuDNN and TensorRT and CUDA (``libraries.csv``).

``drivers.csv``: NVIDIA, CUDA Toolkit release notes 13.2 Update 2, table 2 (minimum driver for minor version
compatibility; 11.x by its footnote, 12.x with the third number of the cuDNN support matrix 9.5.1) and table 3 (the
driver that the first release of a toolkit came with), for Linux and for Windows, whose driver WSL uses. Read in
November 2026.
``libraries.csv`` has a source and date in each row.
"""

import csv
import re
from pathlib import Path
from typing import Literal, NamedTuple

from crowdperf.machine import versions

Verdict = Literal["runs", "minor", "too-old", "unknown"]
FOLDER = Path(__file__).resolve().parent
SOURCE = "NVIDIA CUDA release notes 13.2 Update 2, tables 2 and 3, read 21 November 2026"


class DriverRow(NamedTuple):
    """What a CUDA release asks of the driver: at least ``minimum_*``; with ``toolkit_*`` all of its features work."""

    release: str
    minimum_linux: str
    toolkit_linux: str
    minimum_windows: str
    toolkit_windows: str


class LibraryRow(NamedTuple):
    """For which major versions of CUDA the versions ``first`` to ``last`` of a library are made."""

    library: str
    first: str
    last: str
    cuda_majors: tuple[str, ...]


def driver_rows() -> tuple[DriverRow, ...]:
    """The table of drivers, newest CUDA first."""
    return tuple(DriverRow(**row) for row in _rows("drivers.csv"))


def library_rows() -> tuple[LibraryRow, ...]:
    """The table of libraries."""
    return tuple(
        LibraryRow(row["library"], row["first"], row["last"], tuple(row["cuda_majors"].split()))
        for row in _rows("libraries.csv")
    )


def minimum_driver(release: str, *, is_windows: bool = False) -> str:
    """The oldest driver that runs programs of a CUDA release, empty when the table does not have it."""
    row = next((row for row in driver_rows() if row.release == release), None)
    return "" if row is None else row.minimum_windows if is_windows else row.minimum_linux


def driver_verdict(release: str, driver: str, *, is_windows: bool = False) -> Verdict:
    """How a driver goes with a CUDA release: all of it runs, by minor version compatibility only, not at all."""
    row = next((row for row in driver_rows() if row.release == release), None)
    if row is None or not driver:
        return "unknown"
    minimum = row.minimum_windows if is_windows else row.minimum_linux
    full = row.toolkit_windows if is_windows else row.toolkit_linux
    if not minimum:
        return "unknown"
    if full and versions.is_within(driver, full):
        return "runs"
    return "minor" if versions.is_within(driver, minimum) else "too-old"


def cuda_majors_of(library: str, version: str, *, with_newer: bool = False) -> tuple[str, ...]:
    """The CUDA major versions that a cuDNN or TensorRT is made for; () when the table does not have it.

    Of a version that is written in part (8) the newest counts. with_newer: one that is newer than the table, but of a
    major version that it has, counts as the newest in it.
    """
    wanted = _numbers(version)
    rows = [row for row in library_rows() if row.library == library and wanted >= _numbers(row.first)[: len(wanted)]]
    if not rows:
        return ()
    row = max(rows, key=lambda row: _numbers(row.first))
    is_newer = with_newer and wanted[0] == _numbers(row.last)[0]
    return row.cuda_majors if is_newer or versions.is_within(version, "", row.last) else ()


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def _rows(name: str) -> list[dict[str, str]]:
    with open(FOLDER / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


LAST_RELEASES = {"onnxruntime-gpu": {12: "1.26.0"}, "torch": {12: "2.10.0"}}
"""The last release on PyPI whose wheels are made for a major version of CUDA, by what they require of NVIDIA's packages
(metadata of 1.26.0 and 1.27.0, 2.10.0 and 2.11.0; read 2026-11-28)."""


def last_release(package: str, cuda_version: str) -> str:
    """The newest release of a package that a driver runs whose newest CUDA is ``cuda_version``; empty: any, or unknown.

    A driver runs programs of its own major version and of older ones, not of newer ones.
    """
    major = cuda_version.partition(".")[0]
    rows = LAST_RELEASES.get(package, {})
    fitting = [last for last in rows if major.isdigit() and int(major) <= last]
    return rows[min(fitting)] if fitting else ""
