"""crowdperf.harness.runner.shapes: the shape that the first run of a scenario finds is that of the later ones, and of
no others."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from harness_support import need, request, run_harness
from test_harness_runs import Digits, digits  # noqa: F401 - a fixture

from crowdperf.harness.runner import run
from crowdperf.harness.runner.config import KnownNames, RunConfig, parse_run_config
from crowdperf.harness.runner.settings import Origin, Setting
from crowdperf.harness.runner.shape_search import Layout
from crowdperf.harness.runner.shapes import FILE, FORMAT, purpose, read_shape, shape_file

need("mlperf_loadgen", "onnxruntime")

KNOWN = KnownNames(models=("digits",), backends=("null",))


def config(folder: str, **changes: object) -> RunConfig:
    return parse_run_config(json.dumps(request(output_dir=folder, **changes)), "run.json", KNOWN)


@pytest.mark.parametrize(
    ("folder", "found"),
    [
        ("r/1/digits/Offline/performance/run_1", "r/1/digits/Offline"),
        ("r/1/digits/Offline/accuracy", "r/1/digits/Offline"),
        ("r/1/digits/Offline/TEST01/performance/run_1", "r/1/digits/Offline"),
        ("r/1/digits/Server/accuracy", None),  # not the scenario of the run
        ("out", None),
        ("Offline", None),
    ],
)
def test_the_file_is_in_the_folder_of_the_scenario(folder: str, found: str | None) -> None:
    assert shape_file(config(folder)) == (None if found is None else Path(found) / FILE)


def test_the_runs_of_a_scenario_work_in_the_shape_of_the_first(digits: Digits, tmp_path: Path) -> None:  # noqa: F811
    folder = tmp_path / "digits" / "Offline"
    short = {"min_duration_ms": 100, "backend": "onnxruntime"}
    first = run_harness(
        tmp_path, {**digits.request(tmp_path, **short), "output_dir": str(folder / "performance" / "run_1")}
    )
    assert first.code == 0, first.stderr
    assert first.result["shape_found_utc"] is None
    assert first.result["shape_candidates"]
    kept = json.loads((folder / FILE).read_text())
    assert kept["candidates"] == first.result["shape_candidates"]
    kept["shape"] = {"instances": 1, "threads": 1, "is_spinning": False, "batch_size": 5}  # one that nobody would find
    (folder / FILE).write_text(json.dumps(kept))
    second = run_harness(
        tmp_path, {**digits.request(tmp_path, mode="accuracy", **short), "output_dir": str(folder / "accuracy")}
    )
    assert second.code == 0, second.stderr
    run = second.result["run"]
    assert (run["instances"]["value"], run["threads"]["value"], run["batch_size"]["value"]) == (1, 1, 5)
    assert "shape.json" in run["instances"]["origin"]
    assert second.result["shape_found_utc"] == kept["found_utc"]
    assert len(second.result["shape_candidates"]) == 1


def test_a_compliance_run_leaves_the_shape_of_the_runs_as_it_is(digits: Digits, tmp_path: Path) -> None:  # noqa: F811
    folder = tmp_path / "digits" / "Offline"
    folder.mkdir(parents=True)
    (folder / FILE).write_text("what the runs found")
    given = {"compliance_test": "TEST04", "instances": 1, "threads": 1, "batch_size": 5, "min_duration_ms": 50}
    output = str(folder / "TEST04" / "performance" / "run_1")
    done = run_harness(tmp_path, {**digits.request(tmp_path, backend="onnxruntime", **given), "output_dir": output})
    assert done.code == 0, done.stderr
    assert (folder / FILE).read_text() == "what the runs found"


@pytest.mark.parametrize(
    "change", [{"backend": "null"}, {"precision": "int8"}, {"execution_mode": "fast"}, {"batch_size": 3}]
)
def test_a_shape_of_something_else_is_not_used(tmp_path: Path, change: dict[str, object]) -> None:
    here = replace(config("x/Offline/accuracy"), backend="onnxruntime")
    shape = {"instances": 2, "threads": 1, "is_spinning": False, "batch_size": 5}
    content = {
        "format": FORMAT,
        "found_utc": "2026-11-22",
        "for": purpose(here, {"model": "ab"}, (0, 1), 15.0),
        "shape": shape,
    }
    path = tmp_path / FILE
    path.write_text(json.dumps(content))
    assert read_shape(path, purpose(here, {"model": "ab"}, (0, 1), 15.0)).batch_size == 5
    other = config("x/Offline/accuracy", **change) if "backend" not in change else config("x/Offline/accuracy")
    other = other if "backend" in change else replace(other, backend="onnxruntime")
    assert read_shape(path, purpose(other, {"model": "ab"}, (0, 1), 15.0)) is None
    assert read_shape(path, purpose(here, {"model": "cd"}, (0, 1), 15.0)) is None
    assert read_shape(path, purpose(here, {"model": "ab"}, (0,), 15.0)) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 2}', '{"format": FORMAT, "for": {}}'])
def test_a_damaged_file_is_not_used(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    assert read_shape(tmp_path / FILE, {}) is None


def test_a_shape_that_a_search_of_the_first_format_found_is_not_used(tmp_path: Path) -> None:
    """Its clock counted the opening of the network, so that a GPU was left with the batch that suits a processor."""
    wanted = purpose(replace(config("x/Offline/accuracy"), device="cuda", gpus=(0,)), {"model": "ab"}, (0, 1), 15.0)
    shape = {"instances": 1, "threads": 1, "is_spinning": False, "batch_size": 4}
    content = {"found_utc": "2026-11-22", "for": wanted, "shape": shape}
    for number, is_used in ((1, False), (FORMAT, True)):
        (tmp_path / FILE).write_text(json.dumps({**content, "format": number}))
        assert (read_shape(tmp_path / FILE, wanted) is not None) is is_used


def test_the_shape_of_a_model_to_compare_with_is_used_by_any_model_that_can_have_its_batches(
    digits: Digits,  # noqa: F811
    tmp_path: Path,
) -> None:
    here = replace(config("x/Offline/accuracy"), backend="onnxruntime")
    shape = {"instances": 1, "threads": 1, "is_spinning": False, "batch_size": 5}
    content = {"format": FORMAT, "found_utc": "2026-11-22", "shape": shape,
               "for": {**purpose(here, {"model": "ab"}, (0, 1), 15.0), "model_sha256": None}}  # fmt: skip
    (tmp_path / FILE).write_text(json.dumps(content))
    kept = read_shape(tmp_path / FILE, purpose(here, {"model": "cd"}, (0, 1), 15.0))
    assert kept is not None and (kept.batch_size, kept.is_of_any) == (5, True)
    assert read_shape(tmp_path / FILE, purpose(here, {"model": "cd"}, (0,), 15.0)) is None
    folder = tmp_path / "digits" / "Offline"
    output = str(folder / "performance" / "run_1")
    asked = {**digits.request(tmp_path, backend="onnxruntime", min_duration_ms=50), "output_dir": output}
    assert run_harness(tmp_path, asked).code == 0
    found = json.loads((folder / FILE).read_text())
    size_of_all = found["shape"]["batch_size"]
    for size, origin in ((size_of_all, "found by an earlier run, shape.json"), (size_of_all + 1, "warm-up estimate")):
        other = {**found, "for": {**found["for"], "model_sha256": None}, "shape": {**shape, "batch_size": size}}
        (folder / FILE).write_text(json.dumps(other))
        shutil.rmtree(folder / "performance")
        done = run_harness(tmp_path, asked)
        assert done.code == 0, done.stderr
        assert done.result["run"]["instances"]["origin"] == origin


@pytest.mark.parametrize(
    ("layouts", "has_batch_search", "kept", "instances", "batch_size"),
    [
        (1, False, None, Origin.DEFAULT, Origin.DEFAULT), (1, True, None, Origin.DEFAULT, Origin.ESTIMATE),
        (2, False, None, Origin.ESTIMATE, Origin.DEFAULT), (2, True, "kept", Origin.KEPT, Origin.KEPT),
    ],
)  # fmt: skip
def test_only_what_was_looked_for_is_an_estimate(
    layouts: int, has_batch_search: bool, kept: str | None, instances: Origin, batch_size: Origin
) -> None:
    config = SimpleNamespace(batch_size=None, instances=None, threads=3, batch_timeout_us=2500)
    search = SimpleNamespace(layouts=(Layout(2, 3),) * layouts, has_batch_search=has_batch_search)
    found = run._shape(config, search, SimpleNamespace(batch_size=8, layout=Layout(2, 3, is_spinning=True)), kept)  # type: ignore[arg-type]
    assert (found.instances, found.batch_size) == (Setting(2, instances), Setting(8, batch_size))
    assert (found.threads, found.is_spinning, found.wait_s) == (Setting(3, Origin.USER), True, 0.0025)
