"""The published JSON Schemas accept recorded files of runs, sweeps and bundles, and refuse damaged ones.

Files that the tests make themselves are held against them where they are made (`result_schemas.problems_below`).
"""

import copy
import json
from pathlib import Path
from typing import Any

import make_result_schemas
import pytest
from jsonschema import Draft202012Validator
from result_schemas import SCHEMAS, problems_of, schema_for

RECORDED = Path(__file__).parent / "result_files"
"""Of a sweep of the null backend, an accuracy run, a search and a bundle, 2026-11-28; lists are cut to two items."""
NAMES = sorted(path.name.removesuffix(".schema.json") + ".json" for path in SCHEMAS.glob("*.schema.json"))


def recorded(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((RECORDED / name).read_text(encoding="utf-8"))
    return content


def test_the_committed_files_are_what_the_tool_makes() -> None:
    stale = [path.name for path, text in make_result_schemas.made_files().items() if path.read_text("utf-8") != text]
    assert stale == []


@pytest.mark.parametrize("name", NAMES)
def test_each_is_a_schema_with_help_for_readers(name: str) -> None:
    Draft202012Validator.check_schema(schema_for(name).schema)
    assert schema_for(name).schema["description"]


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*.json")), ids=lambda path: path.name)
def test_a_recorded_file_is_accepted(path: Path) -> None:
    assert problems_of(path.name, recorded(path.name)) == []


GONE = object()
DAMAGED: list[tuple[str, str, Any]] = [
    ("results.json", "format", 99),
    ("results.json", "run_id", GONE),
    ("results.json", "verdict", "valid"),
    ("results.json", "passed", "yes"),
    ("results.json", "notes", "none"),
    ("results.json", "scenarios.0.scenario", "offline"),
    ("results.json", "scenarios.0.performance.metric.value", "fast"),
    ("results.json", "scenarios.0.performance.metric.unit", GONE),
    ("results.json", "scenarios.0.performance.errors", -1),
    ("results.json", "scenarios.0.performance.latency.p99_ns", 1.5),
    ("results.json", "execution_mode", "quick"),
    ("repeats.json", "metrics.0.median", "fast"),
    ("environment.json", "crowdperf.is_modified", "no"),
    ("environment.json", "recipes.0.sha256", GONE),
    ("environment.json", "runs.0.seeds.qsl", "1"),
    ("session.json", "format", 1),
    ("run.json", "scenario", "Batch"),
    ("run.json", "device", "gpu"),
    ("run.json", "batch_size", 1.5),
    ("result.json", "valid", "VALID"),
    ("result.json", "started_utc", "yesterday"),
    ("result.json", "versions", ["6.0.17"]),
    ("accuracy.json", "log_sha256", "ABC"),
    ("accuracy.json", "metrics.0.passed", "yes"),
    ("load.json", "columns", [1, 2]),
    ("find.json", "probes.0.verdict", "PASS"),
    ("find.json", "is_finished", GONE),
    ("shape.json", "shape.instances", 0.5),
    ("metadata.json", "test_mode", "FindPeakPerformance"),
    ("sweep.json", "totals.done", "4"),
    ("sweep.json", "points.0.state", GONE),
    ("done.json", "files.0.sha256", "0" * 63),
    ("done.json", "duration_s", "14 s"),
    ("state.json", "begin_utc", "15:03"),
    ("plan.json", "n_points", -1),
    ("point.json", "argv", "cm run script"),
    ("manifest.json", "public_key", GONE),
    ("manifest.json", "surprise", "a key that it does not have"),
    ("manifest.json", "files.0.bytes", "12"),
]


@pytest.mark.parametrize(("name", "place", "value"), DAMAGED, ids=[f"{name} {place}" for name, place, _ in DAMAGED])
def test_a_damaged_file_is_refused_at_its_place(name: str, place: str, value: Any) -> None:
    content = copy.deepcopy(recorded(name))
    *way, last = [int(word) if word.isdigit() else word for word in place.split(".")]
    inner: Any = content
    for word in way:
        inner = inner[word]
    if value is GONE:
        del inner[last]
    else:
        inner[last] = value
    assert problems_of(name, content) != []


def test_every_kind_of_file_is_recorded_or_made_by_another_test() -> None:
    made_by_tests_of_curves = {"outcome.json", "ended.json", "calibration.json"}
    assert set(NAMES) - {path.name for path in RECORDED.glob("*.json")} == made_by_tests_of_curves
