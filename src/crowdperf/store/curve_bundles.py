"""The bundle of a curve of MLPerf Endpoints: what goes of its submission tree, and what is derived of it again.

    manifest.json   manifest.sig                 as of any bundle; its format says that it is a curve's
    docs/provenance.json
    results/SYSTEM/MODEL/r4/point.json           point.yaml and config.yaml as JSON, so that a collector reads no YAML
    results/SYSTEM/MODEL/r4/{config,result_summary,accuracy_results,system_desc}.json
    results/SYSTEM/MODEL/r4/samples.csv          only with events: times and tokens of each sample, no text

The client's events.jsonl holds all prompts and answers, and is gigabytes long for a real run. What every figure follows
from is in samples.csv (crowdperf.endpoints.samples), which a curve keeps beside its points. Of events.jsonl
the SHA-256 goes.
"""

import dataclasses
import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from crowdperf.endpoints.clientfiles import CONFIG, SUMMARY
from crowdperf.endpoints.edition import read_edition
from crowdperf.endpoints.events import read_samples
from crowdperf.endpoints.fields import ClientFileError, HeldFile, Source
from crowdperf.endpoints.findings import CurveView, Finding, Severity, grouped
from crowdperf.endpoints.pointfiles import POINT, PROVENANCE
from crowdperf.endpoints.pointrules import point_findings
from crowdperf.endpoints.readtree import NoTree, curves_of, files_of, tree_of_curve
from crowdperf.endpoints.samples import SAMPLES, EventsError, csv_of
from crowdperf.kit.text_documents import json_object, yaml_mapping
from crowdperf.store.endpoints_trees import CurveFiles, result_of_files
from crowdperf.store.model import File, NewResult, Problem
from crowdperf.store.redaction import Sender, as_file, mask_whole
from crowdperf.store.refusal import BundleRefused, refused

_AS_JSON = {POINT: "point.json", CONFIG: "config.json"}
_POINT_FILES = ("point.json", "config.json", SUMMARY, "accuracy_results.json", "system_desc.json", SAMPLES)
_NAME = re.compile(r"results/[^/]+/[^/]+/r\d{1,9}/([a-z_]+\.(?:json|csv))")
_MINUTE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")
CONTRADICTIONS = frozenset(("E0", "E1", "E2", "E3", "E7", "E8", "E10", "E11", "E14", "E19"))
"""What cannot be so refuses a bundle; what is merely no good submission is noted: short runs, failed requests ..."""
_MAX_NOTES = 20
_MAX_SAMPLES = 400_000
"""Of all points: what is checked in seconds. A run of 1,200 s has them at 48 samples/s in each of seven points."""


class NoCurve(ValueError):
    """A folder has no curve that can be shared; the text says why."""


def is_allowed(name: str) -> bool:
    """Whether a curve's bundle may have a member of this name."""
    match = _NAME.fullmatch(name)
    return name == PROVENANCE or (match is not None and match[1] in _POINT_FILES)


Member = tuple[str, bytes, tuple[str, ...]]
"""A file of a bundle: its name, its content, and where something was taken out of it."""


def members_of(folder: Path, sender: Sender, *, with_events: bool) -> Iterator[Member]:
    """Give what goes of a curve's folder, or of a submission tree. Raises NoCurve, OSError."""
    try:
        submission, samples = tree_of_curve(folder)
    except NoTree as error:
        raise NoCurve(str(error)) from None
    names, files = set[str](), files_of(submission)
    if not any(place.startswith("results/") for place in files):
        raise NoCurve(f"{folder} has no point of a curve: no results/SYSTEM/MODEL/r<N> is there")
    for place, source in files.items():
        yield _member(place, source, sender)
        names.add(place.rpartition("/")[0])
    if not with_events:
        return
    found = [(place, path) for place in sorted(names) if (path := samples.get(place.rpartition("/")[2])) is not None]
    if not found:
        raise NoCurve(
            f"--with_events: {folder} has no samples next to its points\n"
            "hint: use the output folder of run,mlperf,curve (a tree of --from_recorded has no samples)"
        )
    for place, path in found:
        try:
            content = csv_of(read_samples(path)).encode()
        except EventsError as error:
            raise NoCurve(f"{path}: {error}\nhint: rerun the point") from None
        yield f"{place}/{SAMPLES}", content, ()


def started_of(members: Mapping[str, bytes]) -> str:
    """Return when the first point began, to the minute as manifests have it; "" where it is not known."""
    points = json_object(members.get(PROVENANCE, b"{}").decode()).get("points")
    rows = points.values() if isinstance(points, dict) else ()
    found = [str(one.get("started_utc")) for one in rows if isinstance(one, dict)]
    return min((f"{one[:16]}Z" for one in found if _MINUTE.match(one)), default="")


def _member(place: str, source: Source, sender: Sender) -> Member:
    folder, _, name = place.rpartition("/")
    try:
        with source.open("rb") as stream:
            text = stream.read().decode("utf-8")
        value = yaml_mapping(text) if name in _AS_JSON else json_object(text)
        masked = mask_whole(value, sender)
    except (OSError, ValueError, RecursionError) as error:
        raise NoCurve(f"{place} cannot be sent ({error})\nhint: rebuild the tree") from None
    as_sent = text.encode() if name not in _AS_JSON and not masked.where else as_file(masked.value)
    return f"{folder}/{_AS_JSON.get(name, name)}", as_sent, masked.where


def _checked(files: Mapping[str, Source]) -> tuple[CurveView, list[Finding]]:
    """The one curve of a bundle, and what its rules find. Raises BundleRefused for what cannot be so."""
    read, unreadable = curves_of(files, read_edition())
    curves = [_by_its_own_name(curve) for curve in read]
    findings = [*unreadable, *(finding for curve in curves for finding in point_findings(curve))]
    wrong = [one for one in findings if one.severity is Severity.ERROR and one.rule in CONTRADICTIONS]
    if wrong:
        raise BundleRefused(
            *(Problem(rule=one.rule, file=one.path, found=one.found, expected=one.allowed) for one in wrong[:50])
        )
    if len(curves) != 1 or not curves[0].points:
        raise refused("FORM", "", f"{len(curves)} curves", "one curve with at least one point")
    return curves[0], findings


def _by_its_own_name(curve: CurveView) -> CurveView:
    """The curve as if the server called the model by its own name, where its sender says by which it does."""
    served = curve.provenance.served_model if curve.provenance else ""
    points = [
        dataclasses.replace(point, config=dataclasses.replace(point.config, model=point.declared.model))
        if served and point.config.model == served
        else point
        for point in curve.points
    ]
    return dataclasses.replace(curve, points=tuple(points))


def _notes(curve: CurveView, findings: list[Finding]) -> Iterator[str]:
    claimed = [f"r{point.number}" for point in curve.points if point.derived is None]
    if claimed:
        yield f"claimed, because there are no samples: the results of {', '.join(claimed)}"
    counted = [f"r{point.number}" for point in curve.points if point.derived is not None]
    if counted:
        yield f"recomputed from the times of each sample, with the sender's token counts: {', '.join(counted)}"
    if curve.provenance and curve.provenance.served_model:
        yield f"claimed: the server's {curve.provenance.served_model!r} is {curve.points[0].declared.model}"
    told = grouped([one for one in findings if one.severity is Severity.ERROR])
    yield from (f"no valid submission: {line}" for line in told[:_MAX_NOTES])


def result_of_members(members: Mapping[str, bytes]) -> NewResult:
    """Return the result of a curve's bundle; every figure is derived again where samples came. Raises BundleRefused."""
    rows = sum(content.count(b"\n") for name, content in members.items() if name.endswith(SAMPLES))
    if rows > _MAX_SAMPLES:
        raise refused("LIMIT", SAMPLES, f"{rows} samples in all", f"at most {_MAX_SAMPLES}")
    files: dict[str, Source] = {name: HeldFile(name, content) for name, content in members.items()}
    curve, findings = _checked(files)
    start = f"{curve.path}/"
    own = {name[len(start) :]: source for name, source in files.items() if name.startswith(start)}
    facts = CurveFiles(
        name=curve.path.rpartition("/")[2],
        organization="",
        submission="",
        files=own,
        points=curve.points,
        provenance=curve.provenance,
        point=_AS_JSON[POINT],
        is_echo=any(point.is_echo for point in curve.points),
    )
    try:
        result = result_of_files(facts)
    except ClientFileError as error:
        raise refused("FORM", error.path.name, "; ".join(error.problems), "a file as the client writes it") from None
    if isinstance(result, str):
        raise refused("FORM", curve.path, result, "points with tokens per second, TPOT and TTFT")
    shown = {f"{start}{file.name}" for file in result.files}
    kept = [
        File(
            name=name,
            sha256=hashlib.sha256(content).hexdigest(),
            size_bytes=len(content),
            body=content if name in shown else None,
        )
        for name, content in members.items()
    ]
    is_derived = all(point.derived is not None for point in curve.points)
    return dataclasses.replace(
        result,
        kind="crowd",
        verification="logs consistent" if is_derived else "summary",
        files=tuple(kept),
        notes=(*result.notes, *_notes(curve, findings)),
    )
