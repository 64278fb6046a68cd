"""What calls and runs are made with: the inputs of their recipe calls, and what must be equal for an earlier run to
count as the requested one. Pure."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from crowdperf.logs.layout import ResultsPaths
from crowdperf.rules.app_names import APP_RECIPE, app_names
from crowdperf.rules.benchmarks import accuracy_tags
from crowdperf.rules.names import Mode

from .matrix import Config, RunSpec

SCORING_ALIAS = "process-mlperf-accuracy"
TARGET_NAMES = ("target_qps", "target_latency_ms")


class FolderInUse(Exception):
    """The folder belongs to something else; the text says what to do."""


def app_inputs(spec: RunSpec, folder: Path) -> dict[str, Any]:
    """The inputs of the recipe call that makes one LoadGen run."""
    return {"tags": spec.tags, **spec.inputs, "output_dir": str(folder)}


def accuracy_inputs(spec: RunSpec, folder: Path) -> dict[str, Any]:
    """The inputs of the recipe call that scores the accuracy run in ``folder``."""
    return {"tags": accuracy_tags(spec.model), "result_dir": str(folder)}


def planned_inputs(specs: Iterable[RunSpec], paths: ResultsPaths, passed_on: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The inputs of all recipe calls that a call with these ``specs`` makes, in order."""
    rows: list[dict[str, Any]] = []
    for spec in specs:
        folder = paths.run(spec.model, spec.scenario, spec.mode).folder
        rows.append({**passed_on, **app_inputs(spec, folder), "quiet": True})
        if spec.mode is Mode.ACCURACY:
            rows.append({**passed_on, **accuracy_inputs(spec, folder), "quiet": True})
    return rows


def settings_record(config: Config, passed_on: Mapping[str, Any]) -> dict[str, Any]:
    """What two calls must have in common, so that the one can resume the other: all that decides their runs."""
    return _as_in_a_file(
        {
            **config.as_texts(),
            "scenarios": [scenario.value for scenario in config.scenarios],
            "modes": [mode.value for mode in config.modes],
            "options": dict(sorted(config.options.items())),
            "targets": dict(sorted(config.targets.items())),
            "passed_on": passed_on,
        }
    )


def request_of(spec: RunSpec, config: Config, passed_on: Mapping[str, Any]) -> dict[str, Any]:
    """All of a request that decides its result. A target that is only a plan (`target_origin`) is no part of it."""
    targets = {} if spec.scenario in config.target_origin else {name: getattr(spec, name) for name in TARGET_NAMES}
    return _as_in_a_file(
        {
            **spec.as_texts(),
            "scenario": spec.scenario.value,
            "mode": spec.mode.value,
            "options": dict(sorted(spec.options.items())),
            "targets": {name: value for name, value in targets.items() if value is not None},
            "passed_on": passed_on,
        }
    )


def _as_in_a_file(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content through JSON, so that it can be compared with what a file says."""
    loaded: dict[str, Any] = json.loads(json.dumps(content))
    return loaded


def app_variations(app_meta: Mapping[str, Any], spec: RunSpec) -> tuple[str, ...]:
    """The variations of the app recipe that decide what such a run is made with."""
    backend = app_names(app_meta).backend_variations[spec.backend]
    return spec.model, backend, spec.device, spec.precision, spec.source


def dependencies_of(app_meta: Mapping[str, Any], spec: RunSpec) -> tuple[str, ...]:
    """The tags of each dependency of the app recipe that such a run has, with the variations that others add."""
    chosen = set(app_variations(app_meta, spec))
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


def recipes_asked_for(
    app_meta: Mapping[str, Any], records: Iterable[Mapping[str, Any]], spec: RunSpec
) -> dict[str, list[str]]:
    """The variations asked for, by alias, of the recipes that a run rests on: the app, its direct dependencies, the
    scorer.

    `records` describes all recipes with their tags. Recipes that only detect the machine do not matter.
    """
    words = [[word.strip() for word in tags.split(",")] for tags in dependencies_of(app_meta, spec)]
    queries = [(set(filter(_is_tag, row)), row) for row in words if "detect" not in row]
    found = {APP_RECIPE: list(app_variations(app_meta, spec))}
    found |= {SCORING_ALIAS: []} if spec.mode is Mode.ACCURACY else {}
    for record in records:
        rows = [row for tags, row in queries if tags <= set(record["tags"])]
        if rows:
            found.setdefault(record["alias"], [word[1:] for row in rows for word in row if word.startswith("_")])
    return found


def _is_tag(word: str) -> bool:
    return bool(word) and not word.startswith("_")


def recipes_that_matter(
    app_meta: Mapping[str, Any], records: Iterable[Mapping[str, Any]], spec: RunSpec
) -> dict[str, str]:
    """The digests, by alias, of the recipes that a run rests on, with what they use of the packages."""
    rows = list(records)
    wanted = recipes_asked_for(app_meta, rows, spec)
    return {
        row["alias"]: "+".join([row["sha256"], *filter(None, [row.get("library_sha256")])])
        for row in rows
        if row["alias"] in wanted
    }
