"""Reads what the submitter adds to a point: point.yaml, system_desc.json, and docs/provenance.json of this project.

Formats: submission_checker/models/file/{point_config,system,steady_state}.py of endpoints-submission-cli 1.5.3.0 (read
2026-11-23). Only what the rules compare is read here; whether a file is complete is the official checker's question.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from crowdperf.endpoints.fields import Source, checked, read_fields
from crowdperf.endpoints.steady import PLATEAU, SteadyState
from crowdperf.kit.records import Record

POINT, SYSTEM = "point.yaml", "system_desc.json"
PROVENANCE = "docs/provenance.json"
PROVENANCE_FORMAT = 1


class Offline(str, Enum):
    """How a curve has its Offline result: the point at C_max, a run of its own, or not at all (agentic models)."""

    ELECTED = "elected"
    DEDICATED = "dedicated"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredPoint:
    """point.yaml. Texts are empty and numbers None where the file has none."""

    concurrency: int
    region: str
    dataset: str
    model: str
    precision: str
    division: str
    c_max: int | None
    offline: str
    seed_set: str
    target_cohort: str
    load_pattern: str
    scheduler_seed: int | None
    sample_seed: int | None
    model_seed: int | None
    steady: SteadyState | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredSystem:
    """What the rules need of system_desc.json."""

    name: str
    c_max: int | None
    c_min_override: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PointProvenance:
    """How one point was measured, from what is not in the tree. echoed: answers that are their prompt."""

    started_utc: str
    client_commit: str
    events_sha256: str
    greatest_in_flight: int | None
    issue_span_s: float | None
    echoed: int
    differences: tuple[str, ...]
    steady: SteadyState | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """docs/provenance.json. label: why the figures are no result of the model (`synthetic`, `test run`), or empty.

    served_model: what the server calls the model; empty where that is its own name, or not known.
    """

    dataset_samples: int | None
    label: str
    served_model: str
    points: Mapping[str, PointProvenance]


def _steady(fields: Record) -> SteadyState | None:
    """The block steady_state, None where there is none."""
    if not fields.values.get("steady_state"):
        return None
    block = fields.within("steady_state")
    window, inner = block.within("window"), block.within("state")
    states = {metric: inner.text(metric) for metric in inner.values}
    return SteadyState(
        status=block.text("status"),
        verdict=block.text("verdict"),
        first_pass=window.whole("super_pass_start"),
        last_pass=window.whole("super_pass_end"),
        pass_size=window.whole("super_pass_size"),
        samples=window.whole("n_samples"),
        duration_s=window.number("duration_s"),
        states=states,
        far=frozenset(metric for metric, state in states.items() if state != PLATEAU),
    )


def read_point(path: Source) -> DeclaredPoint:
    """Return what point.yaml holds; raises ClientFileError."""
    fields = read_fields(path)
    settings = fields.within("runtime_settings")
    runtime = settings.within("runtime")
    point = DeclaredPoint(
        concurrency=fields.count("concurrency"),
        region=fields.text("region"),
        dataset=fields.text("dataset"),
        model=fields.text("model_name"),
        precision=fields.text("model_precision"),
        division=fields.text("division"),
        c_max=fields.whole("max_supported_concurrency"),
        offline=fields.text("offline", Offline.NONE.value),
        seed_set=fields.text("seed_set"),
        target_cohort=fields.text("target_cohort"),
        load_pattern=settings.text("load_pattern", "concurrency"),
        scheduler_seed=runtime.whole("scheduler_rng_seed"),
        sample_seed=runtime.whole("sample_index_rng_seed"),
        model_seed=runtime.whole("model_seed"),
        steady=_steady(fields),
    )
    return checked(fields, path, point)


def read_system(path: Source) -> DeclaredSystem:
    """Return what system_desc.json holds; raises ClientFileError."""
    fields = read_fields(path)
    system = DeclaredSystem(
        name=fields.text("system_name"),
        c_max=fields.whole("max_supported_concurrency"),
        c_min_override=fields.whole("c_min_override"),
    )
    return checked(fields, path, system)


def _point_provenance(fields: Record) -> PointProvenance:
    return PointProvenance(
        started_utc=fields.text("started_utc"),
        client_commit=fields.text("client_commit"),
        events_sha256=fields.text("events_sha256"),
        greatest_in_flight=fields.whole("greatest_in_flight"),
        issue_span_s=fields.number("issue_span_s"),
        echoed=fields.whole("echoed") or 0,
        differences=fields.texts("differences") or (),
        steady=_steady(fields),
    )


def read_provenance(path: Source) -> Provenance:
    """Return what docs/provenance.json holds; raises ClientFileError."""
    fields = read_fields(path)
    if fields.whole("format") != PROVENANCE_FORMAT:
        fields.refuse("format", str(PROVENANCE_FORMAT))
    points = fields.within("points")
    provenance = Provenance(
        dataset_samples=fields.whole("dataset_samples"),
        label=fields.text("label"),
        served_model=fields.text("served_model"),
        points={name: _point_provenance(points.within(name)) for name in points.values},
    )
    return checked(fields, path, provenance)
