"""Finds the curves in a submission tree of MLPerf Endpoints: one result for each model of each system.

    <organization>/<submission>/results/<system>/<model>/r<N>/{point.yaml,result_summary.json,system_desc.json ...}

The figures are read from the client's result_summary.json; what its events would say is not looked at, because a tree
does not have them. A tree of several organizations, or a folder above, is read as well.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.endpoints.clientfiles import SCORES, SUMMARY, read_accuracy, read_summary
from crowdperf.endpoints.fields import ClientFileError, Source, read_fields
from crowdperf.endpoints.findings import PointFigures
from crowdperf.endpoints.pointfiles import POINT, PROVENANCE, SYSTEM, Provenance, read_point, read_provenance
from crowdperf.store import model
from crowdperf.store.curve_results import CurveFacts, result_of_curve
from crowdperf.store.keys import digest_of
from crowdperf.store.model import CurvePoint, File, NewResult
from crowdperf.store.result_folders import LeftOut

_KEPT = (SUMMARY, SCORES)


@dataclass(frozen=True, slots=True)
class CurveFiles:
    """The files of a model's folder by their place in it (r4/point.yaml), and its points as they were read.

    organization, submission: "" where they are not known. point: point.yaml, or .json in a bundle. is_echo: by what
    comes beside the files, answers are their prompts.
    """

    name: str
    organization: str
    submission: str
    files: Mapping[str, Source]
    points: tuple[PointFigures, ...]
    provenance: Provenance | None
    point: str = POINT
    is_echo: bool = False


def _curve_points(points: Sequence[PointFigures], notes: list[str]) -> Iterator[CurvePoint]:
    for point in points:
        tps, per_user, ttft = point.summary.system_tps, point.summary.tps_per_user, point.summary.ttft_p90_ms
        if tps is None or per_user is None or ttft is None:
            notes.append(f"{point.name}: its summary has no tokens per second, TPOT or TTFT")
            continue
        if point.summary.failed:
            notes.append(f"{point.name}: {point.summary.failed} of {point.summary.issued} samples failed")
        yield CurvePoint(
            concurrency=point.declared.concurrency,
            region="offline" if point.is_dedicated_offline else point.declared.region,
            system_tps=tps,
            tps_per_user=per_user,
            ttft_p90_ms=ttft,
            accuracy=point.accuracy.average if point.accuracy is not None else None,
        )


def _accuracy(points: Sequence[PointFigures]) -> Iterator[model.Accuracy]:
    for point in points:
        for score in point.accuracy.runs if point.accuracy is not None else ():
            for name, value in score.values.items():
                words = " ".join(filter(None, (point.name, score.dataset, name)))
                yield model.Accuracy(name=words, value=value, target=None, passed=None, basis="claimed")


def _files(curve: CurveFiles, points: Sequence[PointFigures]) -> Iterator[File]:
    for point in points:
        for name in (curve.point, *_KEPT):
            place = f"{point.name}/{name}"
            if place in curve.files:
                with curve.files[place].open("rb") as stream:
                    content = stream.read()
                yield File(name=place, sha256=hashlib.sha256(content).hexdigest(), size_bytes=len(content), body=None)


def _system(curve: CurveFiles, points: Sequence[PointFigures]) -> Mapping[str, Any]:
    for point in points:
        if (system := curve.files.get(f"{point.name}/{SYSTEM}")) is not None:
            return read_fields(system).values
    return {}


def result_of_files(curve: CurveFiles) -> NewResult | str:
    """Return the result of a curve, or why it has none. Raises ClientFileError, OSError."""
    points, provenance = sorted(curve.points, key=lambda point: point.declared.concurrency), curve.provenance
    notes: list[str] = []
    shown = tuple(_curve_points(points, notes))
    if not shown:
        return f"none of {len(points)} points has its results"
    files, first = tuple(_files(curve, points)), points[0]
    known = provenance.points if provenance is not None else {}
    echoes = [one for one in points if one.name in known and 2 * known[one.name].echoed >= one.summary.issued > 0]
    timed = [point for point in points if not point.is_dedicated_offline]
    return result_of_curve(
        CurveFacts(
            name=curve.name,
            identity=digest_of([file.sha256 for file in files if file.name.endswith(SUMMARY)]),
            organization=curve.organization,
            submission=curve.submission,
            division=first.declared.division,
            precision=first.declared.precision,
            system=_system(curve, points),
            label=provenance.label if provenance is not None else "",
            is_echo=curve.is_echo or bool(echoes),
            durations_s={point.declared.concurrency: point.summary.duration_s for point in timed},
            points=shown,
            accuracy=tuple(_accuracy(points)),
            files=files,
            notes=tuple(notes),
            made_utc=min(filter(None, (one.started_utc for one in known.values())), default=""),
        )
    )


def _figures(folder: Path) -> PointFigures:
    scores = folder / SCORES
    return PointFigures(
        path=folder.name,
        declared=read_point(folder / POINT),
        summary=read_summary(folder / SUMMARY),
        accuracy=read_accuracy(scores) if scores.is_file() else None,
    )


def _curve_files(root: Path, folder: Path, points: Sequence[Path]) -> CurveFiles:
    parts = (root.name, *folder.relative_to(root).parts)
    place = max((number for number, part in enumerate(parts) if part == "results"), default=0)
    provenance = folder.parents[2] / PROVENANCE
    paths = [one / name for one in points for name in (POINT, SUMMARY, SCORES, SYSTEM)]
    return CurveFiles(
        name=folder.name,
        organization=parts[place - 2] if place > 1 else "",
        submission=parts[place - 1] if place else "",
        files={path.relative_to(folder).as_posix(): path for path in paths if path.is_file()},
        points=tuple(map(_figures, points)),
        provenance=read_provenance(provenance) if provenance.is_file() else None,
    )


def curves_below(root: Path) -> Iterator[NewResult | LeftOut]:
    """Give each curve below a folder, and each that cannot be read, with why. Raises OSError."""
    found: dict[Path, list[Path]] = {}
    for path in sorted(root.rglob(POINT)):
        found.setdefault(path.parent.parent, []).append(path.parent)
    for folder, points in found.items():
        place = folder.relative_to(root).as_posix()
        try:
            result = result_of_files(_curve_files(root, folder, points))
        except ClientFileError as error:
            result = str(error)
        yield LeftOut(place, result) if isinstance(result, str) else result
