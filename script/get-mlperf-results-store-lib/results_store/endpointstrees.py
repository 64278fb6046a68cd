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
from mlperf_curves.edition import read_edition
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

from results_store import model, published
from results_store.facts import UNOFFICIAL, memory_gib
from results_store.keys import digest_of
from results_store.model import Configuration, CurvePoint, File, NewResult, System
from results_store.resultfolders import LeftOut

METRIC = "greatest system tokens per second"
SCENARIO = "Curve"
_FAST_S = 60.0
_NODE_FACTS = ("inference_backend", "driver", "operating_system", "cooling", "host_networking", "other_software_stack")
_SYSTEM_FACTS = ("system_name", "shortened_system_name", "system_availability_status", "system_size")
_LABELS = ("synthetic", "test run")


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


def _nodes(system: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = system.get("node_types")
    return [node for node in found if isinstance(node, dict)] if isinstance(found, list) else []


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else 0


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _accelerators(nodes: Sequence[Mapping[str, Any]]) -> tuple[str, int]:
    names, count = [], 0
    for node in nodes:
        found = node.get("accelerator_info")
        for one in found if isinstance(found, list) else []:
            if isinstance(one, dict) and _text(one.get("accelerator_model_name")):
                names.append(_text(one["accelerator_model_name"]))
                count += _whole(one.get("accelerators_per_node")) * max(_whole(node.get("number_of_nodes")), 1)
    return " + ".join(dict.fromkeys(names)), count


def _facts(system: Mapping[str, Any], nodes: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    for name in _SYSTEM_FACTS:
        yield name, _text(system.get(name))
    for name in _NODE_FACTS:
        yield name, " + ".join(dict.fromkeys(filter(None, (_text(node.get(name)) for node in nodes))))


def _system(system: Mapping[str, Any]) -> System:
    nodes = _nodes(system)
    accelerator, count = _accelerators(nodes)
    first = nodes[0] if nodes else {}
    memory = _text(first.get("host_memory_capacity")) or _text(first.get("host_memory_configuration"))
    return System(
        accelerator=accelerator,
        accelerator_count=count,
        nodes=sum(max(_whole(node.get("number_of_nodes")), 1) for node in nodes),
        cpu=_text(first.get("host_processor_model_name")),
        sockets=_whole(first.get("host_processors_per_node")),
        cores=_whole(first.get("host_processor_core_count")) or _whole(first.get("host_processor_vcpu_count")),
        memory_gib=memory_gib(memory),
        facts={name: value for name, value in _facts(system, nodes) if value},
    )


def run_class(points: Sequence[_Point], model_name: str) -> str:
    """`valid` where each point of a fixed concurrency lasts as long as the rules want, else `fast` (60 s) or `test`."""
    edition = read_edition()
    known = edition.models.get(model_name)
    is_agentic = known.is_agentic if known is not None else False
    timed = [point for point in points if point.declared.offline != Offline.DEDICATED.value]
    lasting = [(p.summary.duration_s, edition.floor_s(p.declared.concurrency, is_agentic=is_agentic)) for p in timed]
    if lasting and all(duration >= floor for duration, floor in lasting):
        return "valid"
    return "fast" if lasting and all(duration >= _FAST_S for duration, _ in lasting) else "test"


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


def _configuration(curve: _Curve, labels: Sequence[str]) -> Configuration:
    system, division = _system(curve.system), curve.points[0].declared.division
    name, own = curve.folder.name, f"{curve.organization}/{curve.submission}/{curve.folder.name}"
    backend = str(system.facts.get("inference_backend", ""))
    return Configuration(
        suite="endpoints",
        benchmark=name,
        round="",
        division=division.casefold(),
        category="",
        scenario=SCENARIO,
        precision=published.precision_of(curve.points[0].precision)[0],
        tier="",
        stack=published.stack_of(backend),
        device=published.device_of(system.accelerator),
        data_kind="synthetic" if "synthetic" in labels else "real",
        run_class="test" if "test run" in labels else run_class(curve.points, name),
        model_digest=f"endpoints:{name}" if division == "Standardized" else f"endpoints:{own}",
        settings={},
        system=system,
    )


def _result(curve: _Curve) -> NewResult | str:
    """The result of a curve, or why it has none."""
    notes: list[str] = []
    points = tuple(_curve_points(curve, notes))
    if not points:
        return f"none of {len(curve.points)} points has its figures"
    said = curve.provenance.label if curve.provenance is not None else ""
    labels = [label for label in _LABELS if label in said]
    configuration = _configuration(curve, labels)
    if configuration.run_class == "test":
        labels.append("test run")
    files = tuple(_files(curve))
    summaries = [file.sha256 for file in files if file.name.endswith(SUMMARY)]
    started = [one.started_utc for one in curve.provenance.points.values()] if curve.provenance is not None else []
    return NewResult(
        run_id=f"{curve.folder.name} {digest_of(summaries)}",
        kind="own",
        configuration=configuration,
        labels=tuple(dict.fromkeys((UNOFFICIAL, *labels))),
        made_utc=min(filter(None, started), default=""),
        stack_version=str(configuration.system.facts.get("inference_backend", "")),
        metric=METRIC,
        value=max(point.system_tps for point in points),
        unit="tokens/s",
        higher_is_better=True,
        valid=None,
        verification="summary",
        command="",
        figures=(),
        accuracy=tuple(_accuracy(curve)),
        files=files,
        curve=points,
        notes=tuple(notes),
        raw={"system": dict(curve.system), "label": said},
        submitter=curve.organization,
        system_name=_text(curve.system.get("system_name")),
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
