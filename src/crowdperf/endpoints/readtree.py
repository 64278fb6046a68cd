"""Reads the curves of a submission tree as the rules and a database of results see them.

    curves, findings = read_curves(Path("LabOrg/sub-0001"), read_edition())

What cannot be read is a finding (E0); the other points are there all the same.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from crowdperf.endpoints.clientfiles import CONFIG, EVENTS, SCORES, SUMMARY, read_accuracy, read_config, read_summary
from crowdperf.endpoints.edition import Edition
from crowdperf.endpoints.events import CountTokens, derive
from crowdperf.endpoints.fields import ClientFileError, HeldFile, Source
from crowdperf.endpoints.findings import TITLES, CurveView, Finding, PointView, Says
from crowdperf.endpoints.pointfiles import (
    POINT,
    PROVENANCE,
    SYSTEM,
    Provenance,
    read_point,
    read_provenance,
    read_system,
)
from crowdperf.endpoints.regions import RegionError, Regions, regions_of
from crowdperf.endpoints.samples import SAMPLES, Derived, EventsError, derived_of, samples_of
from crowdperf.kit.privacy import NOTHING_KNOWN, PrivateNames
from crowdperf.kit.records import Record
from crowdperf.kit.whole_file import read_object

TITLES["E0"] = "The files of a point can be read."
_POINT_FOLDER = re.compile(r"r(\d{1,9})")
_PLACE = re.compile(r"(results/[^/]+/[^/]+)/r(\d{1,9})/[^/]+")
_NEEDED = (CONFIG, SUMMARY, POINT)


CURVE, TREE = "curve.json", "tree"
"""In a curve's folder: the list of its points, and the tree of its submission."""


class NoTree(ValueError):
    """A folder holds no submission; the text says what was looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What is known besides a tree. events: events.jsonl by the name of the point's folder (r64).

    known: names of the person and the machine, of which no file may hold one (crowdperf.kit.privacy.known_here).
    """

    known: PrivateNames = NOTHING_KNOWN
    events: Mapping[str, Path] | None = None
    count_tokens: CountTokens | None = None


NOTHING_BESIDE = Beside()


def submissions_of(folder: Path) -> tuple[Path, ...]:
    """Return the submissions in a folder: itself, or an organization's; raises NoTree."""
    found = [one for one in (folder, *sorted(folder.glob("*"))) if (one / "results").is_dir()]
    if not found:
        raise NoTree(f"{folder.name or folder}: not a submission: it has no results/ and no */results/")
    return tuple(found[:1] if found[0] == folder else found)


def tree_of_curve(folder: Path) -> tuple[Path, dict[str, Path]]:
    """Return the submission of a folder, and its points' samples by name (r64) where it is a curve's own folder.

    The samples are samples.csv, or events.jsonl where there is none. Raises NoTree.
    """
    if not (folder / TREE).is_dir():
        return submissions_of(folder)[0], {}
    found = sorted((folder / TREE).glob("*/*/results"))
    if not found:
        raise NoTree(f"{folder / TREE} has no submission. First rerun the command to finish the curve")
    samples: dict[str, Path] = {}
    for row in Record(read_object(folder / CURVE) or {}).each("points"):
        results = folder / "points" / row.text("id") / "results"
        path = next((one for one in (results / SAMPLES, results / "run" / EVENTS) if one.is_file()), None)
        if path is not None:
            samples[f"r{_concurrency(row)}"] = path
    return found[-1].parent, samples


def _concurrency(row: Record) -> int:
    """The N of a point's folder in the tree: of a dedicated Offline run the samples that it sent at once."""
    return row.whole("concurrency") or row.within("outcome").whole("samples") or 0


def read_curves(
    folder: Path, edition: Edition, beside: Beside = NOTHING_BESIDE
) -> tuple[tuple[CurveView, ...], tuple[Finding, ...]]:
    """Return the curves of a submission's or an organization's folder, and what cannot be read.

    Raises NoTree, OSError.
    """
    curves: list[CurveView] = []
    findings: list[Finding] = []
    for submission in submissions_of(folder):
        below = submission.relative_to(folder).as_posix()
        read = curves_of(files_of(submission), edition, beside, "" if below == "." else f"{below}/")
        curves += read[0]
        findings += read[1]
    return tuple(curves), tuple(findings)


def files_of(submission: Path) -> dict[str, Source]:
    """Return the files of a submission's points by their place in it, also those that are missing; links are left out.

    A link may lead out of the tree. Raises OSError.
    """
    found: dict[str, Source] = {}
    for system in filter(_is_folder, sorted((submission / "results").glob("*"))):
        for model in filter(_is_folder, sorted(system.iterdir())):
            points = [one for one in sorted(model.iterdir()) if _number_of(one.name) and _is_folder(one)]
            paths = [one / name for one in points for name in (*_NEEDED, SCORES, SYSTEM)]
            found |= {
                one.relative_to(submission).as_posix(): one for one in paths if one.name in _NEEDED or one.is_file()
            }
    if (submission / PROVENANCE).exists():
        found[PROVENANCE] = submission / PROVENANCE
    return found


def _number_of(name: str) -> int:
    """The N of a folder r<N>, 0 for any other."""
    match = _POINT_FOLDER.fullmatch(name)
    return int(match[1]) if match else 0


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def curves_of(
    files: Mapping[str, Source], edition: Edition, beside: Beside = NOTHING_BESIDE, prefix: str = ""
) -> tuple[tuple[CurveView, ...], tuple[Finding, ...]]:
    """Return the curves in the files of one submission by their places, and what cannot be read.

    prefix: what stands before the places in findings. A point's samples.csv is read where it is in the files.
    """
    findings: list[Finding] = []
    provenance: Provenance | None = None
    if PROVENANCE in files:
        try:
            provenance = read_provenance(files[PROVENANCE])
        except ClientFileError as error:
            findings += _unreadable(f"{prefix}{PROVENANCE}", error)
    points: dict[str, dict[str, int]] = {}
    for place in files:
        match = _PLACE.fullmatch(place)
        if match:
            points.setdefault(match[1], {})[f"{match[1]}/r{match[2]}"] = int(match[2])
    reader = _Reader(files, edition, provenance, beside, prefix, findings)
    return tuple(reader.curve(model, points[model]) for model in sorted(points)), tuple(findings)


def _unreadable(place: str, error: ClientFileError) -> Iterator[Finding]:
    says = Says("E0", place)
    yield from (says.error(problem, "a file as the client and the rules have it") for problem in error.problems)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the curves of a submission, and notes as findings what cannot be read."""

    files: Mapping[str, Source]
    edition: Edition
    provenance: Provenance | None
    beside: Beside
    prefix: str
    findings: list[Finding]

    def curve(self, model: str, folders: Mapping[str, int]) -> CurveView:
        """The curve of a model's folder, with the N of each point's folder."""
        ordered = sorted(folders.items(), key=lambda one: one[1])
        points = [self._point(number, place) for place, number in ordered]
        usable = tuple(one for one in points if one is not None)
        return CurveView(
            path=f"{self.prefix}{model}",
            edition=self.edition,
            model=self.edition.models.get(model.rpartition("/")[2]),
            regions=self._regions(model, usable),
            points=usable,
            provenance=self.provenance,
        )

    def _file(self, place: str) -> Source:
        """A file as it is in the submission: as JSON where it is sent so, and one that is missing where it is not."""
        as_json = f"{place.removesuffix('.yaml')}.json"
        return self.files.get(place) or self.files.get(as_json) or HeldFile(place, None)

    def _derived(self, place: str, name: str) -> Derived | None:
        held, path = self.files.get(f"{place}/{SAMPLES}"), (self.beside.events or {}).get(name)
        if isinstance(held, HeldFile):
            return derived_of(samples_of((held.content or b"").decode("ascii", "replace")))
        return derive(path, self.beside.count_tokens) if path else None

    def _point(self, number: int, place: str) -> PointView | None:
        name = place.rpartition("/")[2]
        scores = self.files.get(f"{place}/{SCORES}")
        try:
            return PointView(
                path=f"{self.prefix}{place}",
                number=number,
                config=read_config(self._file(f"{place}/{CONFIG}")),
                summary=read_summary(self._file(f"{place}/{SUMMARY}")),
                accuracy=read_accuracy(scores) if scores is not None else None,
                declared=read_point(self._file(f"{place}/{POINT}")),
                provenance=self.provenance.points.get(name) if self.provenance else None,
                derived=self._derived(place, name),
            )
        except ClientFileError as error:
            self.findings.extend(_unreadable(f"{self.prefix}{place}/{error.path.name}", error))
        except EventsError as error:
            says = Says("E0", f"{self.prefix}{place}")
            self.findings.append(says.error(str(error), "the client's events.jsonl of this point"))
        return None

    def _regions(self, model: str, points: tuple[PointView, ...]) -> Regions | None:
        numbers = [one.declared.concurrency for one in points if not one.is_dedicated_offline]
        described = sorted(place for place in self.files if place.startswith(f"{model}/r") and place.endswith(SYSTEM))
        if not numbers or not described:
            return None
        try:
            system = read_system(self.files[described[0]])
        except ClientFileError as error:
            self.findings.extend(_unreadable(f"{self.prefix}{described[0]}", error))
            return None
        try:
            override = system.c_min_override
            return regions_of(system.c_max or 0, override or min(numbers), is_override=override is not None)
        except RegionError:
            return None  # the official checker refuses it (region-computation)
