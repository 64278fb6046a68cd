"""Finds the curves in a submission tree of MLPerf Endpoints: one result for each model of each system.

    <organization>/<submission>/results/<system>/<model>/r<N>/{point.yaml,result_summary.json,system_desc.json ...}

The figures are read from the client's result_summary.json; what its events would say is not looked at, because a tree
does not have them. A tree of several organizations, or a folder above, is read as well.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlperf_curves.clientfiles import SCORES, SUMMARY, Accuracy, Summary, read_accuracy, read_summary
from mlperf_curves.fields import ClientFileError, read_fields
from mlperf_curves.pointfiles import (
    POINT,
    PROVENANCE,
    SYSTEM,
    DeclaredPoint,
    Offline,
    Provenance,
    read_point,
    read_provenance,
)

from results_store import model
from results_store.curveresults import CurveFacts, result_of_curve
from results_store.keys import digest_of
from results_store.model import CurvePoint, File, NewResult
from results_store.resultfolders import LeftOut


@dataclass(frozen=True, slots=True)
class _Point:
    """A point of a tree, as its files have it. precision: as point.yaml says it."""

    folder: Path
    declared: DeclaredPoint
    precision: str
    summary: Summary
    accuracy: Accuracy | None


@dataclass(frozen=True, slots=True)
class _Curve:
    """A model's folder. organization, submission: "" where the folder that is imported lies below them."""

    folder: Path
    organization: str
    submission: str
    points: tuple[_Point, ...]
    system: Mapping[str, Any]
    provenance: Provenance | None


def _read_point(folder: Path) -> _Point:
    scores, path = folder / SCORES, folder / POINT
    return _Point(
        folder=folder,
        declared=read_point(path),
        precision=read_fields(path).text("model_precision"),
        summary=read_summary(folder / SUMMARY),
        accuracy=read_accuracy(scores) if scores.is_file() else None,
    )


def _read_curve(root: Path, folder: Path, points: Sequence[Path]) -> _Curve:
    parts = (root.name, *folder.relative_to(root).parts)
    place = max((number for number, part in enumerate(parts) if part == "results"), default=0)
    provenance = folder.parents[2] / PROVENANCE
    system = sorted(folder.glob(f"r*/{SYSTEM}"))
    return _Curve(
        folder=folder,
        organization=parts[place - 2] if place > 1 else "",
        submission=parts[place - 1] if place else "",
        points=tuple(sorted(map(_read_point, points), key=lambda point: point.declared.concurrency)),
        system=read_fields(system[0]).values if system else {},
        provenance=read_provenance(provenance) if provenance.is_file() else None,
    )


def _curve_points(curve: _Curve, notes: list[str]) -> Iterator[CurvePoint]:
    for point in curve.points:
        tps, per_user, ttft = point.summary.system_tps, point.summary.tps_per_user, point.summary.ttft_p90_ms
        if tps is None or per_user is None or ttft is None:
            notes.append(f"{point.folder.name}: its summary has no tokens per second, TPOT or TTFT")
            continue
        if point.summary.failed:
            notes.append(f"{point.folder.name}: {point.summary.failed} of {point.summary.issued} samples failed")
        yield CurvePoint(
            concurrency=point.declared.concurrency,
            region="offline" if point.declared.offline == Offline.DEDICATED.value else point.declared.region,
            system_tps=tps,
            tps_per_user=per_user,
            ttft_p90_ms=ttft,
            accuracy=point.accuracy.average if point.accuracy is not None else None,
        )


def _accuracy(curve: _Curve) -> Iterator[model.Accuracy]:
    for point in curve.points:
        for score in point.accuracy.runs if point.accuracy is not None else ():
            for name, value in score.values.items():
                words = " ".join(filter(None, (point.folder.name, score.dataset, name)))
                yield model.Accuracy(name=words, value=value, target=None, passed=None, basis="claimed")


def _files(curve: _Curve) -> Iterator[File]:
    for point in curve.points:
        for name in (POINT, SUMMARY, SCORES):
            path = point.folder / name
            if path.is_file():
                content = path.read_bytes()
                place = path.relative_to(curve.folder).as_posix()
                yield File(name=place, sha256=hashlib.sha256(content).hexdigest(), size_bytes=len(content), body=None)


def _result(curve: _Curve) -> NewResult | str:
    """The result of a curve, or why it has none."""
    notes: list[str] = []
    points = tuple(_curve_points(curve, notes))
    if not points:
        return f"none of {len(curve.points)} points has its figures"
    files, first = tuple(_files(curve)), curve.points[0]
    started = [one.started_utc for one in curve.provenance.points.values()] if curve.provenance is not None else []
    timed = [point for point in curve.points if point.declared.offline != Offline.DEDICATED.value]
    return result_of_curve(
        CurveFacts(
            name=curve.folder.name,
            identity=digest_of([file.sha256 for file in files if file.name.endswith(SUMMARY)]),
            organization=curve.organization,
            submission=curve.submission,
            division=first.declared.division,
            precision=first.precision,
            system=curve.system,
            label=curve.provenance.label if curve.provenance is not None else "",
            durations_s={point.declared.concurrency: point.summary.duration_s for point in timed},
            points=points,
            accuracy=tuple(_accuracy(curve)),
            files=files,
            notes=tuple(notes),
            made_utc=min(filter(None, started), default=""),
        )
    )


def curves_below(root: Path) -> Iterator[NewResult | LeftOut]:
    """Give each curve below a folder, and each that cannot be read, with why. Raises OSError."""
    found: dict[Path, list[Path]] = {}
    for path in sorted(root.rglob(POINT)):
        found.setdefault(path.parent.parent, []).append(path.parent)
    for folder, points in found.items():
        place = folder.relative_to(root).as_posix()
        try:
            result = _result(_read_curve(root, folder, points))
        except ClientFileError as error:
            result = str(error)
        yield LeftOut(place, result) if isinstance(result, str) else result
