"""Reads the curves of a submission tree as the rules and a database of results see them.

    curves, findings = read_curves(Path("LabOrg/sub-0001"), read_edition())

What cannot be read is a finding (E0); the other points are there all the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlperf_results.privacy import NOTHING_KNOWN, Known
from mlperf_results.wholefile import read_object

from mlperf_curves.clientfiles import CONFIG, EVENTS, SCORES, SUMMARY, read_accuracy, read_config, read_summary
from mlperf_curves.edition import Edition
from mlperf_curves.events import CountTokens, derive
from mlperf_curves.fields import ClientFileError
from mlperf_curves.findings import TITLES, CurveView, Finding, PointView, Says
from mlperf_curves.pointfiles import POINT, PROVENANCE, SYSTEM, Provenance, read_point, read_provenance, read_system
from mlperf_curves.regions import RegionError, Regions, regions_of
from mlperf_curves.samples import SAMPLES, EventsError

TITLES["E0"] = "The files of a point can be read."
_POINT_FOLDER = re.compile(r"r(\d{1,9})")


CURVE, TREE = "curve.json", "tree"
"""In a curve's folder: the list of its points, and the tree of its submission."""


class NoTree(ValueError):
    """A folder holds no submission; the text says what was looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What is known besides a tree. events: events.jsonl by the name of the point's folder (r64).

    known: names of the person and the machine, of which no file may hold one (mlperf_results.privacy.known_here).
    """

    known: Known = NOTHING_KNOWN
    events: Mapping[str, Path] | None = None
    count_tokens: CountTokens | None = None


NOTHING_BESIDE = Beside()


def submissions_of(folder: Path) -> tuple[Path, ...]:
    """Return the submissions in a folder: itself, or an organization's; raises NoTree."""
    found = [one for one in (folder, *sorted(folder.glob("*"))) if (one / "results").is_dir()]
    if not found:
        raise NoTree(f"{folder.name or folder}: no submission: neither results/ nor */results/ is there")
    return tuple(found[:1] if found[0] == folder else found)


def tree_of_curve(folder: Path) -> tuple[Path, dict[str, Path]]:
    """Return the submission of a folder, and its points' samples by name (r64) where it is a curve's own folder.

    The samples are samples.csv, or events.jsonl where there is none. Raises NoTree.
    """
    if not (folder / TREE).is_dir():
        return submissions_of(folder)[0], {}
    found = sorted((folder / TREE).glob("*/*/results"))
    if not found:
        raise NoTree(f"{folder / TREE} has no submission; make the curve first: the same line as before")
    samples: dict[str, Path] = {}
    for row in (read_object(folder / CURVE) or {}).get("points", []):
        results = folder / "points" / str(row.get("id")) / "results"
        path = next((one for one in (results / SAMPLES, results / "run" / EVENTS) if one.is_file()), None)
        if path is not None:
            samples[f"r{_concurrency(row)}"] = path
    return found[-1].parent, samples


def _concurrency(row: Mapping[str, Any]) -> int:
    """The N of a point's folder in the tree: of a dedicated Offline run the samples that it sent at once."""
    outcome = row.get("outcome")
    sent = outcome.get("samples") if isinstance(outcome, Mapping) else None
    return int(row.get("concurrency") or sent or 0)


def read_curves(
    folder: Path, edition: Edition, beside: Beside = NOTHING_BESIDE
) -> tuple[tuple[CurveView, ...], tuple[Finding, ...]]:
    """Return the curves of a submission's or an organization's folder, and what cannot be read.

    Raises NoTree, OSError.
    """
    findings: list[Finding] = []
    curves = []
    for submission in submissions_of(folder):
        provenance = _provenance(folder, submission, findings)
        reader = _Reader(folder, edition, provenance, beside, findings)
        models = [
            one for one in sorted((submission / "results").glob("*/*")) if _is_folder(one.parent) and _is_folder(one)
        ]
        curves += [reader.curve(one) for one in models if any(map(_number_of, one.iterdir()))]
    return tuple(curves), tuple(findings)


def _number_of(folder: Path) -> int:
    """The N of a folder r<N>, 0 for any other."""
    match = _POINT_FOLDER.fullmatch(folder.name)
    return int(match[1]) if match and _is_folder(folder) else 0


def _is_folder(path: Path) -> bool:
    """A link is none: it may lead out of the tree."""
    return path.is_dir() and not path.is_symlink()


def _provenance(folder: Path, submission: Path, findings: list[Finding]) -> Provenance | None:
    path = submission / PROVENANCE
    if not path.exists():
        return None
    try:
        return read_provenance(path)
    except ClientFileError as error:
        findings.extend(_unreadable(folder, error))
        return None


def _unreadable(folder: Path, error: ClientFileError) -> Iterator[Finding]:
    says = Says("E0", error.path.relative_to(folder).as_posix())
    yield from (says.error(problem, "a file as the client and the rules have it") for problem in error.problems)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads one curve, and notes as findings what cannot be read."""

    folder: Path
    edition: Edition
    provenance: Provenance | None
    beside: Beside
    findings: list[Finding]

    def curve(self, model: Path) -> CurveView:
        folders = [(number, one) for one in model.iterdir() if (number := _number_of(one))]
        points = [self._point(number, one) for number, one in sorted(folders)]
        usable = tuple(one for one in points if one is not None)
        return CurveView(
            path=model.relative_to(self.folder).as_posix(),
            edition=self.edition,
            model=self.edition.models.get(model.name),
            regions=self._regions(model, usable),
            points=usable,
            provenance=self.provenance,
        )

    def _point(self, number: int, folder: Path) -> PointView | None:
        provenance = self.provenance.points.get(folder.name) if self.provenance else None
        events = (self.beside.events or {}).get(folder.name)
        scores = folder / SCORES
        try:
            return PointView(
                path=folder.relative_to(self.folder).as_posix(),
                number=number,
                config=read_config(folder / CONFIG),
                summary=read_summary(folder / SUMMARY),
                accuracy=read_accuracy(scores) if scores.is_file() else None,
                declared=read_point(folder / POINT),
                provenance=provenance,
                derived=derive(events, self.beside.count_tokens) if events else None,
            )
        except ClientFileError as error:
            self.findings.extend(_unreadable(self.folder, error))
        except EventsError as error:
            says = Says("E0", folder.relative_to(self.folder).as_posix())
            self.findings.append(says.error(str(error), "the client's events.jsonl of this point"))
        return None

    def _regions(self, model: Path, points: tuple[PointView, ...]) -> Regions | None:
        numbers = [one.declared.concurrency for one in points if not one.is_dedicated_offline]
        if not numbers:
            return None
        try:
            system = read_system(next(iter(sorted(model.glob(f"r*/{SYSTEM}")))))
        except StopIteration:
            return None
        except ClientFileError as error:
            self.findings.extend(_unreadable(self.folder, error))
            return None
        try:
            override = system.c_min_override
            return regions_of(system.c_max or 0, override or min(numbers), is_override=override is not None)
        except RegionError:
            return None  # the official checker refuses it (region-computation)
