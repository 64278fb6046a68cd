"""Lays recorded runs out as a submission tree of MLPerf Endpoints v1.0, whole or not at all.

    <organization>/<submission>/src/<implementation>/README.md    docs/provenance.json
        results/<system>/[system_power.json]
            <model>/r<N>/{point.yaml,config.yaml,result_summary.json,accuracy_results.json,system_desc.json}

The summaries and scores are the client's bytes. In config.yaml, where the client writes paths and addresses of the
machine, these are cut to the last part of the path and to the port. docs/ is the submitter's own: provenance.json says
there what cannot be seen from the other files (when a point began, which client, what its events say).
"""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from crowdperf.endpoints.clientfiles import CONFIG, SCORES, SUMMARY, RecordedRun, in_folder
from crowdperf.endpoints.edition import SeedSet, read_edition
from crowdperf.endpoints.pointfiles import POINT, PROVENANCE, PROVENANCE_FORMAT, SYSTEM, Offline
from crowdperf.endpoints.regions import RegionError, Regions, regions_of
from crowdperf.endpoints.samples import Derived, differences
from crowdperf.endpoints.steady import SteadyState, steady_state
from crowdperf.endpoints.trends import TooLong
from crowdperf.kit.text_documents import Json, yaml_mapping
from crowdperf.kit.whole_file import file_sha256

NO_WARMUP: Mapping[str, Json] = {
    "duration_s": 0,
    "requests_issued": 0,
    "requests_completed": 0,
    "data_source": "none: no warm-up",
    "concurrency": 0,
    "initialization_steps": [],
    "logs_retained": False,
}
MASKED_HOST = "endpoint"


class TreeError(ValueError):
    """These runs make no curve; the text has all reasons."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveFacts:
    """What is known of a curve without its submitter. model: the folder's name, by the edition.

    label: why this is no result of the model, empty for a real one. served_model: what the server calls it; empty where
    that is its own name, or not known.
    """

    model: str
    division: str
    c_max: int
    c_min: int | None = None
    offline: Offline
    seed_set: SeedSet
    target_cohort: str
    dataset_samples: int | None
    label: str = ""
    served_model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration(CurveFacts):
    """What the submitter says of the whole curve.

    system: system_desc.json without division, C_max and tps_utilization, which are filled in. disclosure: of point.yaml
    model_precision, link_to_model, dataset_name, dataset_type, dataset_link, and what else is the same at all points.
    """

    organization: str
    submission: str
    implementation: str
    readme: str
    system_id: str
    system: Mapping[str, Json]
    power: Mapping[str, Json] | None = None
    disclosure: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPoint:
    """One run of the client with what is known of it besides its files. started_utc: ISO 8601, empty if unknown."""

    run: RecordedRun
    derived: Derived | None
    started_utc: str = ""
    client_commit: str = ""

    @property
    def is_dedicated_offline(self) -> bool:
        """True for a run that sent everything at once."""
        return self.run.config.load_pattern == "max_throughput"

    @property
    def concurrency(self) -> int:
        """The N of r<N>: the fixed concurrency; of a dedicated Offline run the samples that were sent at once."""
        return self.run.summary.issued if self.is_dedicated_offline else self.run.config.concurrency


@dataclass(frozen=True, slots=True)
class _Curve:
    """What follows from all points together. steady: of each point, by concurrency."""

    regions: Regions
    greatest_tps: float
    steady: Mapping[int, SteadyState | None]


def _problems(declared: Declaration, points: Sequence[MeasuredPoint]) -> list[str]:
    problems = []
    numbers = [one.concurrency for one in points]
    fixed = [one.concurrency for one in points if not one.is_dedicated_offline]
    problems += [f"two runs for r{number}" for number in sorted({one for one in numbers if numbers.count(one) > 1})]
    problems += [f"{one.run.folder.name}: no concurrency" for one in points if not one.concurrency]
    if not fixed:
        return [*problems, "no run with a fixed concurrency"]
    try:
        regions = regions_of(declared.c_max, declared.c_min or min(fixed), is_override=declared.c_min is not None)
        problems += [f"r{one} is above {regions.margin.end}" for one in fixed if regions.region_of(one) is None]
    except RegionError as error:
        problems.append(str(error))
    dedicated = len(points) - len(fixed)
    if declared.offline is Offline.ELECTED and declared.c_max not in fixed:
        problems.append(f"offline=elected needs the point at C_max, r{declared.c_max}")
    if dedicated != (1 if declared.offline is Offline.DEDICATED else 0):
        problems.append(f"offline={declared.offline.value}, but {dedicated} runs with load pattern max_throughput")
    if declared.target_cohort not in map(str, declared.seed_set.cohorts):
        cohorts = ", ".join(map(str, declared.seed_set.cohorts))
        problems.append(f"seed set {declared.seed_set.id} is for {cohorts}, not {declared.target_cohort!r}")
    return problems


def _offline_of(declared: Declaration, point: MeasuredPoint) -> Offline:
    if point.is_dedicated_offline:
        return Offline.DEDICATED
    is_elected = declared.offline is Offline.ELECTED and point.concurrency == declared.c_max
    return Offline.ELECTED if is_elected else Offline.NONE


def steady_state_of(declared: Declaration, point: MeasuredPoint) -> SteadyState | None:
    """Return the steady state of a point at a fixed concurrency; None where it cannot be derived."""
    if point.derived is None or not declared.dataset_samples or point.run.config.load_pattern != "concurrency":
        return None
    edition = read_edition()
    model = edition.models.get(declared.model)
    floor_s = edition.floor_s(point.concurrency, is_agentic=model is not None and model.is_agentic)
    try:
        return steady_state(point.derived.timings, declared.dataset_samples, floor_s)
    except TooLong:
        return None


def _steady_fields(curve: _Curve, point: MeasuredPoint) -> dict[str, Json]:
    steady = curve.steady.get(point.concurrency)
    return {} if steady is None else {"steady_state": steady.fields()}


def _point_fields(declared: Declaration, point: MeasuredPoint, curve: _Curve) -> dict[str, Json]:
    """point.yaml; a dedicated Offline run has no region."""
    config, seeds = point.run.config, declared.seed_set
    dataset = config.performance_dataset
    region = None if point.is_dedicated_offline else curve.regions.region_of(point.concurrency)
    fields: dict[str, Json] = {
        "concurrency": point.concurrency,
        "dataset": dataset.name if dataset else "",
        "division": declared.division,
        "max_supported_concurrency": declared.c_max,
        "model_name": declared.model,
        **declared.disclosure,
        "shared_src": f"src/{declared.implementation}",
        "shared_docs": "docs",
        "seed_set": seeds.id,
        "target_cohort": declared.target_cohort,
        "offline": _offline_of(declared, point).value,
        "runtime_settings": {
            "load_pattern": config.load_pattern,
            "min_duration_ms": config.min_duration_ms,
            "stream_all_chunks": config.stream_all_chunks,
            "runtime": {
                "scheduler_rng_seed": config.scheduler_seed,
                "sample_index_rng_seed": config.sample_seed,
                "model_seed": seeds.model,
            },
        },
        "warmup": dict(NO_WARMUP),
        **_steady_fields(curve, point),
    }
    return fields if region is None else {**fields, "region": region.value}


def system_fields(declared: Declaration, point: MeasuredPoint, greatest_tps: float) -> dict[str, Json]:
    """Return system_desc.json of a point; tps_utilization is its share of the curve's greatest throughput."""
    override: dict[str, Json] = {} if declared.c_min is None else {"c_min_override": declared.c_min}
    return {
        "division": declared.division,
        "max_supported_concurrency": declared.c_max,
        **override,
        **declared.system,
        "tps_utilization": round((point.run.summary.system_tps or 0.0) / greatest_tps, 6) if greatest_tps else 0.0,
    }


def masked_config(text: str) -> dict[str, Json]:
    """Return the client's config.yaml without paths, addresses and keys of the machine; raises ValueError."""
    config = dict(yaml_mapping(text))
    for holder, key in ((config, "report_dir"), (config.get("model_params"), "tokenizer_name")):
        if isinstance(holder, dict) and isinstance(value := holder.get(key), str) and _is_path(value):
            holder[key] = Path(value).name
    datasets = config.get("datasets")
    for dataset in datasets if isinstance(datasets, list) else []:
        if isinstance(dataset, dict) and isinstance(path := dataset.get("path"), str):
            dataset["path"] = Path(path).name
    endpoint = config.get("endpoint_config")
    if isinstance(endpoint, dict):
        endpoint.pop("api_key", None)
        addresses = endpoint.get("endpoints")
        if isinstance(addresses, list):
            endpoint["endpoints"] = [_masked_address(str(one)) for one in addresses]
    return config


def _is_path(value: str) -> bool:
    """A name such as openai/gpt-oss-120b is one of a model hub, not a path."""
    return value.startswith(("/", ".", "~")) or "\\" in value


def _masked_address(address: str) -> str:
    try:
        parts = urlsplit(address)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:  # a port that is none, an IPv6 address without its bracket
        return f"http://{MASKED_HOST}"
    return f"{parts.scheme}://{MASKED_HOST}{port}{parts.path}"


def _provenance_of(point: MeasuredPoint, curve: _Curve) -> dict[str, Json]:
    fields: dict[str, Json] = {"started_utc": point.started_utc, "client_commit": point.client_commit}
    if point.run.events and point.derived:
        fields |= {
            "events_sha256": file_sha256(point.run.events),
            "greatest_in_flight": point.derived.greatest_in_flight,
            "issue_span_s": point.derived.issue_span_s(),
            "echoed": point.derived.echoed,
            "differences": list(differences(point.run.summary, point.derived)),
            **_steady_fields(curve, point),
        }
    return fields


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _as_json(fields: Mapping[str, Json]) -> str:
    return json.dumps(fields, indent=2, ensure_ascii=False) + "\n"


def _write_point(folder: Path, declared: Declaration, point: MeasuredPoint, curve: _Curve) -> None:
    _write(folder / POINT, yaml.safe_dump(_point_fields(declared, point, curve), sort_keys=False))
    config = masked_config((point.run.folder / CONFIG).read_text(encoding="utf-8"))
    _write(folder / CONFIG, yaml.safe_dump(config, sort_keys=False))
    _write(folder / SYSTEM, _as_json(system_fields(declared, point, curve.greatest_tps)))
    for name in (SUMMARY, SCORES):
        if (source := in_folder(point.run.folder, name)).is_file():
            shutil.copyfile(source, folder / name)


def _fill(submission: Path, declared: Declaration, points: Sequence[MeasuredPoint], curve: _Curve) -> None:
    system = submission / "results" / declared.system_id
    for point in points:
        _write_point(system / declared.model / f"r{point.concurrency}", declared, point, curve)
    if declared.power is not None:
        _write(system / "system_power.json", _as_json(declared.power))
    _write(submission / "src" / declared.implementation / "README.md", declared.readme)
    provenance: dict[str, Json] = {
        "format": PROVENANCE_FORMAT,
        "label": declared.label,
        **({"served_model": declared.served_model} if declared.served_model else {}),
        "dataset_samples": declared.dataset_samples,
        "points": {f"r{one.concurrency}": _provenance_of(one, curve) for one in points},
    }
    _write(submission / PROVENANCE, _as_json(provenance))


def write_tree(target: Path, declared: Declaration, points: Sequence[MeasuredPoint]) -> Path:
    """Write the tree below `target` and return the submission's folder; raises TreeError, OSError.

    An earlier tree of the same submission is replaced when the new one is complete.
    """
    if problems := _problems(declared, points):
        raise TreeError("; ".join(problems))
    fixed = [one.concurrency for one in points if not one.is_dedicated_offline]
    regions = regions_of(declared.c_max, declared.c_min or min(fixed), is_override=declared.c_min is not None)
    steady = {one.concurrency: steady_state_of(declared, one) for one in points}
    curve = _Curve(regions, max(one.run.summary.system_tps or 0.0 for one in points), steady)
    submission = target / declared.organization / declared.submission
    unfinished = submission.with_name(f".{submission.name}.{os.getpid()}.part")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        _fill(unfinished, declared, points, curve)
        if submission.is_dir():
            former = submission.with_name(f".{submission.name}.{os.getpid()}.former")
            os.replace(submission, former)
            os.replace(unfinished, submission)
            shutil.rmtree(former)
        else:
            os.replace(unfinished, submission)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return submission
