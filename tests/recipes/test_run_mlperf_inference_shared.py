"""run-mlperf-inference with --run_id: several calls in one folder, what is kept and why other runs are made again."""

import dataclasses
import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from recipe_loader import RECIPES, input_values, load_module, load_recipe, recipe_meta

from crowdperf.logs.layout import RunPaths
from crowdperf.rules.app_names import APP_RECIPE, app_names

recipe = load_recipe("run-mlperf-inference")
confwords = load_module("run-mlperf-inference", "confwords")
basis = load_module("run-mlperf-inference", "basis")
matrix = load_module("run-mlperf-inference", "matrix")
session = load_module("run-mlperf-inference", "session")
sessionfile = load_module("run-mlperf-inference", "sessionfile")
work = load_module("run-mlperf-inference", "work")

META = recipe_meta("run-mlperf-inference")
APP_META = recipe_meta(APP_RECIPE)
BASE = {
    "CM_MLPERF_RUN_ID": "sut-1", "CM_MLPERF_LOADGEN_SCENARIO": "Offline", "CM_MLPERF_LOADGEN_MODE": "performance",
}  # fmt: skip


class Runs:
    """Answers cm.access as the recipes below would, and leaves the files that they leave."""

    def __init__(self, dataset: Path) -> None:
        self.dataset = dataset
        self.made: list[str] = []
        self.requests: list[dict[str, Any]] = []
        self.is_valid = True
        self.dies = False
        self.fails = ""

    def access(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["action"] == "record":
            return {"return": 0}
        if request["tags"].startswith("process"):
            score = {"metrics": [], "passed": True}
            paths = RunPaths(Path(request["result_dir"]))
            paths.accuracy_json.write_text(json.dumps(score))
            paths.accuracy_text.write_text("accuracy=84.375%, good=27, total=32\n")
            return {"return": 0, "new_state": {"mlperf_accuracy": score}}
        paths = RunPaths(Path(request["output_dir"]))
        paths.folder.mkdir(parents=True, exist_ok=True)
        for path in paths.made_by_a_run:
            path.unlink(missing_ok=True)
        self.requests.append(request)
        if self.fails:
            return {"return": 1, "error": self.fails}
        if self.dies:
            raise KeyboardInterrupt
        self.made.append(
            "/".join(paths.folder.parts[-3:] if "run_1" in paths.folder.parts else paths.folder.parts[-2:])
        )
        result = self._result(request)
        paths.run_json.write_text(json.dumps({"dataset_path": str(self.dataset), "model_path": None}))
        paths.user_conf.write_text("# head\ndigits.Offline.min_duration = 2000\ndigits.Offline.target_qps = 5.0\n")
        paths.summary_log.write_text("MLPerf Results Summary\n")
        paths.result_json.write_text(json.dumps(result))
        return {"return": 0, "new_state": {"mlperf_run": {"output_dir": str(paths.folder), **result}}}

    def _result(self, request: dict[str, Any]) -> dict[str, Any]:
        is_performance = request["tags"].endswith("_performance")
        given = {"value": 5.0, "origin": "user"}
        result = {
            "valid": self.is_valid, "invalid_reasons": [] if self.is_valid else ["too slow"], "errors": 0,
            "metric": {"name": "throughput", "value": 7.5, "unit": "samples/s"} if is_performance else None,
            "label": "test run", "is_synthetic": {"model": False, "dataset": False}, "duration_s": 2.0,
            "query_count": 1, "latency": None, "started_utc": "2026-11-21T01:02:03+00:00", "versions": {"python": "3"},
            "run": {"target_qps": given, "min_duration_ms": {"value": 2000, "origin": "rule"}},
            "loadgen_version": "6.0.17", "seeds": {"qsl": 1}, "model_sha256": {"model": "ab"}, "command": ["x"],
        }  # fmt: skip
        if request.get("find"):
            result |= {"valid": False, "find": {"target_qps": {"value": 8.25, "origin": "1.1 times 7.5"}}}
            log = RunPaths(Path(request["output_dir"]) / "probes" / "01").summary_log
            log.parent.mkdir(parents=True)
            log.write_text("target_qps : 5.5\n")
        return result


@pytest.fixture
def runs(tmp_path) -> Runs:
    dataset = tmp_path / "data"
    dataset.mkdir()
    (dataset / "a.npy").write_text("one")
    return Runs(dataset)


@pytest.fixture(scope="module")
def facts() -> list[dict[str, Any]]:
    return session.recipe_facts(RECIPES, APP_META, [])


@pytest.fixture
def call(tmp_path, hook_input, runs, facts, monkeypatch):
    """Calls the hook; gives its answer and state. The recipes are read once: they may be worked on meanwhile."""
    monkeypatch.setattr(session, "recipe_facts", lambda *given: facts)

    def run(inputs: dict[str, Any] | None = None, hook: str = "preprocess", **env: str) -> tuple[dict, dict]:
        fixed = {"CM_TMP_CURRENT_PATH": str(tmp_path)}
        fixed["CM_TMP_CURRENT_SCRIPT_PATH"] = str(RECIPES / "run-mlperf-inference")
        i = hook_input(
            {**fixed, **BASE, **env}, input=inputs or {}, meta=META,
            automation=SimpleNamespace(cmind=runs),
        )  # fmt: skip
        return getattr(recipe, hook)(i), i["state"]

    return run


def test_calls_add_to_one_folder_and_make_no_run_twice(call, runs, tmp_path, capsys):
    assert call()[0] == {"return": 0}
    assert call(CM_MLPERF_LOADGEN_MODE="all", CM_MLPERF_LOADGEN_SCENARIO="Offline,Server")[0] == {"return": 0}
    assert runs.made == ["Offline/performance/run_1", "Offline/accuracy", "Server/performance/run_1", "Server/accuracy"]
    told = capsys.readouterr().out
    folder = tmp_path / "results" / "sut-1" / "digits" / "Offline" / "performance" / "run_1"
    assert f"Offline performance: Run files exist, skipping run... ({folder})" in told
    assert "Running loadgen scenario: Server and mode: accuracy" in told
    assert f"Output Dir: '{folder}'" in told
    assert "MLPerf Results Summary" in told
    assert "accuracy=84.375%" in told
    answer, state = call(CM_MLPERF_LOADGEN_MODE="all", CM_MLPERF_LOADGEN_SCENARIO="Offline,Server")
    assert (answer, len(runs.made), len(state["mlperf_results"]["scenarios"])) == ({"return": 0}, 4, 2)
    environment = json.loads((tmp_path / "results" / "sut-1" / "environment.json").read_text())
    assert "get,dataset,digits" in environment["runs"][0]["dependencies"]


@pytest.mark.parametrize("name", ["repeat-1", "try-12"])
def test_repeats_and_tries_of_another_call_do_not_print_loadgens_summaries(call, capsys, name):
    assert call(CM_MLPERF_RUN_ID=name)[0] == {"return": 0}
    told = capsys.readouterr().out
    assert "MLPerf Results Summary" not in told and "Output Dir" not in told and "user.conf" not in told


@pytest.mark.parametrize(
    ("env", "inputs", "reason"),
    [
        ({"CM_MLPERF_RUN_STYLE": "fast"}, {}, "requested differently: execution_mode"),
        ({"CM_MLPERF_LOADGEN_TARGET_QPS": "9"}, {}, "requested differently: targets"),
        ({"CM_NUM_THREADS": "1"}, {}, "requested differently: options"),
        ({}, {"adr": {"python": {"name": "other"}}}, "requested differently: passed_on"),
        ({"CM_RERUN": "yes"}, {}, "requested with --rerun"),
    ],
)
def test_a_run_with_other_inputs_is_made_again_and_the_reason_told(call, runs, capsys, env, inputs, reason):
    call()
    call(inputs, **env)
    assert len(runs.made) == 2
    assert f"Offline performance is repeated: {reason}" in capsys.readouterr().out


def test_a_target_that_was_only_planned_decides_nothing(call, runs, capsys):
    found = {"CM_MLPERF_LOADGEN_TARGET_ORIGIN": "Offline: found 2026-11-21"}
    call(CM_MLPERF_LOADGEN_TARGET_QPS="5", **found)
    assert "digits.Offline.target_qps = 5.0  # found 2026-11-21" in capsys.readouterr().out
    call(CM_MLPERF_LOADGEN_TARGET_QPS="6", **found)
    call()
    assert len(runs.made) == 1


def test_changed_files_lost_files_and_invalid_results_are_made_again(call, runs, tmp_path, capsys):
    call()
    (runs.dataset / "a.npy").write_text("two!")
    call()
    assert "repeated: changed files: dataset_path" in capsys.readouterr().out
    (tmp_path / "results/sut-1/digits/Offline/performance/run_1/result.json").unlink()
    runs.is_valid = False
    assert call()[0]["return"] == 1
    assert "repeated: it did not finish" in capsys.readouterr().out
    assert call(CM_MLPERF_RUN_CHECK="no")[0] == {"return": 0}
    assert "repeated: it was INVALID" in capsys.readouterr().out
    assert len(runs.made) == 4


def test_a_call_that_was_killed_or_failed_goes_on(call, runs, capsys):
    call()
    runs.dies = True
    with pytest.raises(KeyboardInterrupt):
        call(CM_MLPERF_LOADGEN_MODE="all")
    runs.dies, runs.fails = False, "no memory"
    assert call(CM_MLPERF_LOADGEN_MODE="all")[0]["return"] == 1
    assert "Offline accuracy is repeated: it did not finish" in capsys.readouterr().out
    runs.fails = ""
    assert call(CM_MLPERF_LOADGEN_MODE="all")[0] == {"return": 0}
    assert "Offline accuracy is repeated: it failed: the run digits Offline accuracy failed: no memory" in (
        capsys.readouterr().out
    )
    assert runs.made == ["Offline/performance/run_1", "Offline/accuracy"]


def test_a_changed_recipe_is_named(call, runs, tmp_path, capsys):
    call()
    path = tmp_path / "results" / "sut-1" / "session.json"
    content = json.loads(path.read_text())
    (row,) = content["runs"].values()
    assert {"app-mlperf-inference", "get-dataset-digits", "get-mlperf-loadgen"} <= row["recipes"].keys()
    assert not row["recipes"].keys() & {"detect-os", "get-dataset-coco", "process-mlperf-accuracy"}
    row["recipes"]["app-mlperf-inference"] = "other"
    path.write_text(json.dumps(content))
    call()
    assert "repeated: changed recipes: app-mlperf-inference" in capsys.readouterr().out


def test_a_session_file_of_the_format_before_is_read(call, runs, tmp_path):
    call()
    path = tmp_path / "results" / "sut-1" / "session.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 2}))
    assert call(CM_MLPERF_LOADGEN_MODE="all")[0] == {"return": 0}
    assert runs.made == ["Offline/performance/run_1", "Offline/accuracy"]


def test_a_search_is_no_result_and_is_kept(call, runs, tmp_path, capsys):
    answer, state = call(CM_MLPERF_RUN_FIND="yes")
    found = {"settings": {"target_qps": {"value": 8.25, "origin": "1.1 times 7.5"}}, "measured": 7.5}
    assert (answer, state["mlperf_found"]) == ({"return": 0}, {"Offline": found})
    assert "In find performance mode: using 5.5 as target_qps" in capsys.readouterr().out
    assert not (tmp_path / "results" / "sut-1" / "results.json").exists()
    assert call(CM_MLPERF_RUN_FIND="yes")[1]["mlperf_found"] == {"Offline": found}
    assert len(runs.made) == 1
    assert runs.requests[0]["find"] == "yes"


def test_a_plan_holds_what_is_missing_and_makes_nothing(call, tmp_path):
    assert len(call(hook="plan", CM_MLPERF_LOADGEN_MODE="all")[0]["runs"]) == 3
    assert not (tmp_path / "results").exists()
    call()
    assert len(call(hook="plan", CM_MLPERF_LOADGEN_MODE="all")[0]["runs"]) == 2


def test_the_folder_of_an_ordinary_call_is_never_taken(call, tmp_path):
    folder = tmp_path / "results" / "sut-1"
    folder.mkdir(parents=True)
    (folder / "session.json").write_text('{"format": 1}')
    answer, _ = call()
    assert answer["return"] == 1
    assert "a run without --run_id" in answer["error"]
    assert (folder / "session.json").read_text() == '{"format": 1}'


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"CM_MLPERF_RUN_ID": "../x"}, "--run_id: found '../x'"),
        ({"CM_MLPERF_RESUME": "failed"}, "--resume: found 'failed', but runs with --run_id resume automatically"),
        ({"CM_MLPERF_RUN_ID": "", "CM_RERUN": "yes"}, "--rerun: only allowed with --run_id"),
        ({"CM_MLPERF_LOADGEN_TARGET_ORIGIN": "Nowhere: x"}, "--target_origin: unknown scenario"),
    ],
)
def test_what_makes_no_sense_is_refused(call, runs, env, words):
    answer, _ = call(**env)
    assert answer["return"] == 1
    assert words in answer["error"]
    assert not runs.made


def test_what_resume_adds_to_a_call_with_a_run_id_changes_nothing(call, runs):
    first, _ = call()
    made = len(runs.made)
    again, _ = call(CM_MLPERF_RESUME="all")
    assert (first["return"], again["return"]) == (0, 0)
    assert len(runs.made) == made > 0


def test_a_fingerprint_sees_names_sizes_and_times(tmp_path):
    folder = tmp_path / "d"
    assert sessionfile.fingerprint(folder) == "gone"
    folder.mkdir()
    seen = {sessionfile.fingerprint(folder)}
    (folder / "a").write_text("1")
    seen.add(sessionfile.fingerprint(folder))
    (folder / "a").rename(folder / "b")
    seen.add(sessionfile.fingerprint(folder))
    (folder / "b").write_text("22")
    seen.add(sessionfile.fingerprint(folder))
    assert len(seen) == 4
    assert sessionfile.fingerprint(folder) in seen


def test_dependencies_are_those_of_the_chosen_variations_with_what_others_add():
    known = app_names(APP_META)
    env = {"CM_MLPERF_MODEL": "resnet50", "CM_MLPERF_SOURCE": "tiny"}
    env["CM_MLPERF_LOADGEN_SCENARIO"] = "Offline"
    config = matrix.parse_config(input_values("run-mlperf-inference", env), known)
    spec = matrix.matrix(config)[0]
    tags = basis.dependencies_of(APP_META, spec)
    assert "get,dataset,imagenet,original,_tiny" in tags
    assert not any("quantize" in row for row in tags)
    quantized = dataclasses.replace(spec, precision="int8")
    assert any("quantize" in row for row in basis.dependencies_of(APP_META, quantized))


def test_an_edit_of_a_backend_changes_what_its_own_runs_are_made_with_alone(tmp_path):
    root = tmp_path / "checkout"
    for name in ("script", "src"):
        shutil.copytree(RECIPES.parent / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(RECIPES.parent / "cmr.yaml", root)
    known = app_names(APP_META)
    specs = {}
    for backend in ("onnxruntime", "openvino"):
        env = {"CM_MLPERF_MODEL": "resnet50", "CM_MLPERF_BACKEND": backend}
        config = matrix.parse_config(input_values("run-mlperf-inference", env), known)
        specs[backend] = [spec for spec in matrix.matrix(config) if spec.mode.value == "performance"][:1]

    def made_with():
        facts = {backend: session.recipe_facts(root / "script", APP_META, rows) for backend, rows in specs.items()}
        assert all("library_sha256" in row for rows in facts.values() for row in rows if row["alias"] == APP_RECIPE)
        return {
            backend: basis.recipes_that_matter(APP_META, rows, specs[backend][0]) for backend, rows in facts.items()
        }

    before = made_with()
    with (root / "src/crowdperf/harness/backends/openvino/backend.py").open("a") as file:
        file.write("# a comment\n")
    after = made_with()
    assert after["onnxruntime"] == before["onnxruntime"]
    changed = [name for name, digest in after["openvino"].items() if digest != before["openvino"][name]]
    assert changed == [APP_RECIPE]


def test_origins_of_lines_are_those_of_the_run():
    result = {"run": {"target_latency_ms": {"value": 2.0, "origin": "warm-up estimate"}}}
    text = "# head\nm.Server.max_duration = 3\nm.SingleStream.target_latency = 2.0\n"
    assert confwords.conf_lines(text, result, "found") == (
        "m.Server.max_duration = 3  # user", "m.SingleStream.target_latency = 2.0  # warm-up estimate",
    )  # fmt: skip


def test_a_search_ends_with_a_table_and_the_command_that_uses_its_target(call, runs, capsys):
    assert call(CM_MLPERF_RUN_FIND="yes", CM_MLPERF_RUN_ID=None)[0] == {"return": 0}
    printed = capsys.readouterr().out
    table, following = printed.split("Scenario", 1)[1].split("Next:\n")
    assert [line.split() for line in table.splitlines()[1:2]] == [["Offline", "7.5", "samples/s", "8.25", "target_qps"]]
    assert following.startswith("cm run script --tags=run,mlperf,inference ")
    assert "--offline_target_qps=8.25" in following and "--find" not in following
