"""What calls and runs are made with: what must be equal for an earlier run to count as the requested one. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from crowdperf.rules.app_names import app_names
from crowdperf.rules.names import Mode

from .matrix import Config, RunSpec

APP_ALIAS = "app-mlperf-inference"
SCORING_ALIAS = "process-mlperf-accuracy"
TARGET_NAMES = ("target_qps", "target_latency_ms")


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


def recipes_that_matter(
    app_meta: Mapping[str, Any], records: Iterable[Mapping[str, Any]], spec: RunSpec
) -> dict[str, str]:
    """The digests, by alias, of the recipes that a run rests on: the app's, its direct dependencies', the scorer's.

    `records` describes all recipes with their tags. Recipes that only detect the machine do not matter.
    """
    words = [[word.strip() for word in tags.split(",")] for tags in dependencies_of(app_meta, spec)]
    queries = [{word for word in row if word and not word.startswith("_")} for row in words if "detect" not in row]
    own = {APP_ALIAS} | ({SCORING_ALIAS} if spec.mode is Mode.ACCURACY else set())
    return {
        row["alias"]: row["sha256"]
        for row in records
        if row["alias"] in own or any(query <= set(row["tags"]) for query in queries)
    }
