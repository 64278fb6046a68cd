"""Which runs of a folder with a fixed name are kept, and why others are made again. Pure.

With `--run_id` several calls work in the same folder: one adds the accuracy runs, the next the performance runs, and
each scenario stays where it is. `session.json` then holds a record of every run (`fixedfolder.py`):

    {"format": 2, "runs": {"resnet50/Offline/performance/run_1": {"progress": "finished", "error": "",
     "request": {...}, "recipes": {"app-mlperf-inference": "<sha256>", ...}, "files": {"model_path": "<sha256>", ...}}}}

A run is kept when it is finished and VALID, was made with the same request by the same recipes, and the files of model
and data set that it read are still the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlperf_results.appnames import app_names
from mlperf_results.names import Mode

from .matrix import Config, RunSpec
from .outcome import FinishedRun
from .resume import Choice, Progress, run_name

FORMAT = 2
APP_ALIAS = "app-mlperf-inference"
SCORING_ALIAS = "process-mlperf-accuracy"
TARGET_NAMES = ("target_qps", "target_latency_ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """What `session.json` says of one run.

    `recipes`: digests of those that matter for it; `files`: digests of the names, sizes and times of what it read.
    """

    progress: str
    error: str
    request: Mapping[str, Any]
    recipes: Mapping[str, str]
    files: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A run that is asked for, and what the folder has of it: `run` is None where its files are gone or damaged.

    `request`, `recipes` and `files` are those of a run made now; `files` of the paths that the earlier run read.
    """

    spec: RunSpec
    folder: str
    record: RunRecord | None
    run: FinishedRun | None
    request: Mapping[str, Any]
    recipes: Mapping[str, str]
    files: Mapping[str, str]


def request_of(spec: RunSpec, config: Config, passed_on: Mapping[str, Any]) -> dict[str, Any]:
    """All of a request that decides its result. A target that is only a plan (`target_origin`) is no part of it."""
    targets = {} if spec.scenario in config.target_origin else {name: getattr(spec, name) for name in TARGET_NAMES}
    return {
        **spec.as_texts(),
        "scenario": spec.scenario.value,
        "mode": spec.mode.value,
        "options": dict(sorted(spec.options.items())),
        "targets": {name: value for name, value in targets.items() if value is not None},
        "passed_on": dict(passed_on),
    }


def why_again(candidate: Candidate) -> str:
    """Why the run is to be made; empty when it can be kept."""
    record, run = candidate.record, candidate.run
    if record is None:
        return "new"
    if record.progress == Progress.FAILED.value:
        return f"it failed: {record.error}" if record.error else "it failed"
    if record.progress != Progress.FINISHED.value or run is None:
        return "it was not finished"
    if not run.result["valid"] and not run.result.get("find"):  # a finished search is never VALID
        return "it was INVALID"
    others = _differing(record.request, candidate.request)
    if others:
        return f"asked for differently: {', '.join(others)}"
    changed = _differing(record.recipes, candidate.recipes)
    if changed:
        return f"changed recipes: {', '.join(changed)}"
    moved = _differing(record.files, candidate.files)
    return f"changed files: {', '.join(moved)}" if moved else ""


def _differing(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    return sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))


def choose(candidates: Sequence[Candidate], *, is_rerun: bool) -> tuple[Choice, tuple[str, ...]]:
    """What a call makes and keeps, and a line for the user about each run that the folder already has."""
    make, kept, lines = [], [], []
    for candidate in candidates:
        reason = why_again(candidate)
        if not reason and is_rerun:
            reason = "asked for with --rerun"
        if reason or candidate.run is None:
            make.append(candidate.spec)
            lines += [] if reason == "new" else [f"{run_name(candidate.spec)} is made again: {reason}"]
        else:
            kept.append(candidate.run)
            lines.append(f"{run_name(candidate.spec)}: Run files exist, skipping run... ({candidate.folder})")
    return Choice(make=tuple(make), kept=tuple(kept)), tuple(lines)


def dependencies_of(app_meta: Mapping[str, Any], spec: RunSpec) -> tuple[str, ...]:
    """The tags of each dependency of the app recipe that such a run has, with the variations that others add."""
    backend = app_names(app_meta).backend_variations[spec.backend]
    chosen = {spec.model, backend, spec.device, spec.precision, spec.source}
    variations: Mapping[str, Mapping[str, Any]] = app_meta["variations"]
    blocks = [app_meta]
    pending = [name for name in variations if set(name.split(",")) <= chosen]
    while pending:
        block = variations[pending.pop()]
        blocks.append(block)
        pending += list(block.get("base") or ())
    changes = [pair for block in blocks for pair in (block.get("adr") or {}).items()]
    extra = [(name, row["tags"]) for name, row in changes if "tags" in row]
    found = []
    for row in (dependency for block in blocks for dependency in block.get("deps") or ()):
        added = [tags for name, tags in extra if name in (row.get("names") or ())]
        conditions: Mapping[str, Any] = row.get("enable_if_env") or {}
        facts = {"CM_MLPERF_BACKEND": spec.backend, "CM_MLPERF_MODEL_PRECISION": spec.precision}
        if all(facts.get(key) in values for key, values in conditions.items()):
            found.append(",".join([str(row["tags"]), *added]))
    return tuple(found)


def queries_of(app_meta: Mapping[str, Any], spec: RunSpec) -> tuple[frozenset[str], ...]:
    """The same as sets, variations left out."""
    words = [[word.strip() for word in tags.split(",")] for tags in dependencies_of(app_meta, spec)]
    return tuple(frozenset(word for word in row if word and not word.startswith("_")) for row in words)


def recipes_that_matter(
    app_meta: Mapping[str, Any], records: Iterable[Mapping[str, Any]], spec: RunSpec
) -> dict[str, str]:
    """The digests, by alias, of the recipes that a run rests on: the app's, its direct dependencies', the scorer's.

    `records` describes all recipes with their tags. Recipes that only detect the machine do not matter.
    """
    queries = [query for query in queries_of(app_meta, spec) if "detect" not in query]
    own = {APP_ALIAS} | ({SCORING_ALIAS} if spec.mode is Mode.ACCURACY else set())
    return {
        row["alias"]: row["sha256"]
        for row in records
        if row["alias"] in own or any(query <= set(row["tags"]) for query in queries)
    }
