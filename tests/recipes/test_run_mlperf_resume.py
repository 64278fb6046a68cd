"""--resume of run-mlperf-inference: what of an earlier call is kept, what is made again, and what a crash leaves."""

import functools
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from recipe_engine.rules.errors import ErrorText, ScriptFailed
from recipe_loader import RECIPES, load_module, load_recipe, recipe_meta
from test_run_mlperf_inference import FakeCM, config, result, score

from crowdperf.kit.file_locks import file_lock
from crowdperf.logs.layout import ResultsPaths

recipe = load_recipe("run-mlperf-inference")
basis = load_module("run-mlperf-inference", "basis")
matrix = load_module("run-mlperf-inference", "matrix")
outcome = load_module("run-mlperf-inference", "outcome")
resume = load_module("run-mlperf-inference", "resume")
session = load_module("run-mlperf-inference", "session")
sessionfile = load_module("run-mlperf-inference", "sessionfile")


@pytest.fixture(scope="module", autouse=True)
def recipes_are_read_once() -> Iterator[None]:
    """Each call of the hook reads the metadata of every recipe, for their names and tags."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "recipe_meta", functools.cache(session.recipe_meta))
        yield


FINISHED, FAILED, STARTED = resume.Progress.FINISHED, resume.Progress.FAILED, resume.Progress.STARTED
PERFORMANCE, ACCURACY = matrix.matrix(config(CM_MLPERF_LOADGEN_SCENARIO="offline"))


def finished(spec: Any, *, is_valid: bool = True, percent: float = 99.332) -> Any:
    accuracy = score(percent) if spec is ACCURACY else None
    return outcome.FinishedRun(spec=spec, folder="x", result=result(is_valid=is_valid), accuracy=accuracy)


# --- the rules, as tables ---


def former(spec: Any = PERFORMANCE, **left: Any) -> Any:
    """What is there of a run; with ``is_valid`` or ``percent`` one that has finished."""
    outcome = {name: left.pop(name) for name in ("is_valid", "percent") if name in left}
    run = finished(spec, **outcome) if outcome else None
    return resume.Candidate(spec=spec, **{"run": run, **left})


@pytest.mark.parametrize(
    ("candidate", "state"),
    [
        (former(), "unfinished"),
        (former(progress=STARTED), "unfinished"),
        (former(progress=STARTED, is_valid=True), "unfinished"),
        (former(progress=FAILED, error="it died"), "failed"),
        (former(progress=FINISHED), "unfinished"),
        (former(progress=FINISHED, is_valid=True), "passed"),
        (former(progress=FINISHED, is_valid=False), "failed"),
        (former(ACCURACY, progress=FINISHED, is_valid=True), "passed"),
        (former(ACCURACY, progress=FINISHED, percent=10.0), "failed"),
        (former(ACCURACY, progress=FINISHED, is_valid=False), "failed"),
    ],
)
def test_a_run_passed_when_it_finished_valid_and_met_its_accuracy(candidate: Any, state: str) -> None:
    making = [rule for rule in ("failed", "unfinished") if resume.choose([candidate], rule).make]
    assert making == ([] if state == "passed" else [state])


FORMER = {
    "passed": former(progress=FINISHED, is_valid=True),
    "invalid": former(progress=FINISHED, is_valid=False),
    "crashed": former(progress=FAILED, error="it died"),
    "broken off": former(progress=STARTED),
    "never begun": former(),
}


@pytest.mark.parametrize(
    ("mode", "name", "expected"),
    [
        *[("", name, "make") for name in FORMER],
        ("failed", "passed", "keep"), ("failed", "invalid", "make"), ("failed", "crashed", "make"),
        ("failed", "broken off", "leave"), ("failed", "never begun", "leave"),
        ("unfinished", "passed", "keep"), ("unfinished", "invalid", "keep"), ("unfinished", "crashed", "leave"),
        ("unfinished", "broken off", "make"), ("unfinished", "never begun", "make"),
        ("all", "passed", "keep"), ("all", "invalid", "make"), ("all", "crashed", "make"),
        ("all", "broken off", "make"), ("all", "never begun", "make"),
    ],
)  # fmt: skip
def test_what_is_made_kept_and_left(mode: str, name: str, expected: str) -> None:
    choice = resume.choose([FORMER[name]], mode)
    done = {"make": bool(choice.make), "keep": bool(choice.kept), "leave": bool(choice.missing)}
    assert done == {"make": False, "keep": False, "leave": False, expected: True}


def test_what_is_left_says_why_and_what_would_make_it() -> None:
    candidates = [FORMER["crashed"], former(ACCURACY, progress=STARTED)]
    assert resume.choose(candidates, "unfinished").missing == (
        "Offline performance is failed: it died (run it with --resume=failed)",
    )
    assert resume.choose(candidates, "failed").missing == (
        "Offline accuracy is unfinished (run it with --resume=unfinished)",
    )


@pytest.mark.parametrize(
    ("text", "expected"), [("", ""), ("failed", "failed"), ("ALL", "all"), ("True", "all"), ("no", "")]
)
def test_the_input_has_three_values(text: str, expected: str) -> None:
    assert config(CM_MLPERF_RESUME=text).resume == expected


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("CM_MLPERF_LOADGEN_SCENARIO", "offline"),
        ("CM_MLPERF_LOADGEN_MODE", "accuracy"),
        ("CM_MLPERF_BACKEND", "null"),
        ("CM_MLPERF_RUN_STYLE", "fast"),
        ("CM_MLPERF_LOADGEN_MAX_BATCHSIZE", "4"),
        ("CM_NUM_THREADS", "1"),
        ("CM_MLPERF_INSTANCES", "2"),
        ("CM_MLPERF_LOADGEN_BATCH_TIMEOUT_US", "50"),
        ("CM_MLPERF_MODEL_PRECISION", "int8"),
        ("CM_MLPERF_LOADGEN_TARGET_QPS", "9"),
    ],
)
def test_every_setting_that_decides_a_run_counts(key: str, value: str) -> None:
    assert basis.settings_record(config(**{key: value}), {}) != basis.settings_record(config(), {})
    assert basis.settings_record(config(), {"env": {"CM_A": "1"}}) != basis.settings_record(config(), {})


def test_where_results_go_and_whether_to_resume_do_not_count() -> None:
    other = config(CM_MLPERF_RESULTS_DIR="elsewhere", CM_MLPERF_RESUME="all")
    assert basis.settings_record(other, {}) == basis.settings_record(config(), {})


def test_recipes_that_changed_are_named_of_kept_runs_alone() -> None:
    before, now = {"recipes": {"a": "1", "b": "2", "gone": "3"}}, {"recipes": {"a": "1", "b": "x", "new": "4"}}
    kept = former(progress=FINISHED, is_valid=True, before=before, now=now)
    made = former(progress=FINISHED, is_valid=False, before={"recipes": {"c": "1"}})
    assert resume.choose([kept, made], "failed").changed == ("b", "gone", "new")


@pytest.mark.parametrize(
    ("candidate", "again"),
    [
        (former(ACCURACY, progress=FINISHED, percent=10.0), ""),
        (former(ACCURACY, progress=FINISHED, percent=10.0, before={"request": {"x": 1}}), "requested differently: x"),
        (former(progress=FINISHED, is_valid=False, before={"request": {"x": 1}}), "it was INVALID"),
    ],
)
def test_a_missed_accuracy_is_kept_in_a_shared_folder_unless_its_request_changed(candidate: Any, again: str) -> None:
    for rule, reason in (("run_id", again), ("rerun", again or "requested with --rerun")):
        texts = resume.choose([candidate], rule).again
        assert [text.partition(" is repeated: ")[2] for text in texts] == ([reason] if reason else [])


# --- session.json ---


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 9}', '{"format": 1, "settings": [], "runs": {}}'])
def test_a_session_file_that_cannot_be_used_is_no_session(tmp_path: Path, text: str) -> None:
    (tmp_path / "call").mkdir()
    (tmp_path / "call" / "session.json").write_text(text)
    settings = basis.settings_record(config(), {})
    assert sessionfile.find_former(tmp_path, settings) is None
    assert sessionfile.find_former(tmp_path / "none", settings) is None


# --- whole calls with made-up runs ---


class WritingCM(FakeCM):
    """A FakeCM whose runs leave the files that real ones leave; dies at the call of number ``dies_at``."""

    def __init__(self, dies_at: int = 0, **answers: dict[str, Any]) -> None:
        super().__init__(**answers)
        self.dies_at = dies_at

    def access(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["action"] == "record":
            return {"return": 0}
        if len(self.calls) + 1 == self.dies_at:
            raise KeyboardInterrupt
        folder = Path(request.get("output_dir") or request["result_dir"])
        folder.mkdir(parents=True, exist_ok=True)
        self.calls.append(request)
        for part, answer in self.answers.items():
            if part in request["tags"]:
                self._leave(folder, answer)
                return answer
        is_score = request["tags"] == "process,mlperf,accuracy"
        made = {"mlperf_accuracy": score()} if is_score else {"mlperf_run": result()}
        answer = {"return": 0, "new_state": made}
        self._leave(folder, answer)
        return answer

    def _leave(self, folder: Path, answer: dict[str, Any]) -> None:
        state = answer.get("new_state", {})
        for key, name in (("mlperf_run", "result.json"), ("mlperf_accuracy", "accuracy.json")):
            if key in state:
                (folder / name).write_text(json.dumps(state[key]))

    @property
    def made(self) -> list[str]:
        """The runs that were made: scenario and mode, as the query has them."""
        return [
            request["tags"].partition("_cpu,_")[2].replace(",_", " ")
            for request in self.calls
            if "_cpu" in request["tags"]
        ]


@pytest.fixture
def call(tmp_path, hook_input):
    """Calls the hook in one folder as often as wanted; gives its answer, and the folders of results."""

    def run(cm: FakeCM, hook: str = "preprocess", **env: str) -> tuple[dict, list[Path]]:
        i = hook_input(
            {
                "CM_MLPERF_LOADGEN_SCENARIO": "offline,server", **env,
                "CM_TMP_CURRENT_PATH": str(tmp_path), "CM_HOST_OS_TYPE": "linux",
                "CM_TMP_CURRENT_SCRIPT_PATH": str(RECIPES / "run-mlperf-inference"),
            },
            input={}, meta=recipe_meta("run-mlperf-inference"), automation=SimpleNamespace(cmind=cm),
        )  # fmt: skip
        answer = getattr(recipe, hook)(i)
        return answer, sorted(tmp_path.glob("results/*"))

    return run


def progress(folder: Path) -> dict[str, str]:
    runs = json.loads((folder / "session.json").read_text())["runs"]
    return {name: row["progress"] for name, row in runs.items()}


@pytest.mark.parametrize("dies_at", range(1, 7))
def test_a_call_that_was_killed_goes_on_where_it_stopped(
    call, dies_at: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(KeyboardInterrupt):
        call(WritingCM(dies_at=dies_at))
    cm = WritingCM()
    answer, folders = call(cm, CM_MLPERF_RESUME="unfinished")
    assert answer == {"return": 0}
    assert len(folders) == 1
    every = ["offline performance", "offline accuracy", "server performance", "server accuracy"]
    done_before = {1: 0, 2: 1, 3: 1, 4: 2, 5: 3, 6: 3}[dies_at]
    assert cm.made == every[done_before:]
    assert list(progress(folders[0]).values()) == ["finished"] * 4
    results = json.loads((folders[0] / "results.json").read_text())
    assert results["passed"] is True
    assert [row["scenario"] for row in results["scenarios"]] == ["Offline", "Server"]
    assert all(row["performance"] and row["accuracy"] for row in results["scenarios"])
    printed = capsys.readouterr().out
    assert f"resuming in {folders[0]}" in printed
    assert printed.count("  kept: ") == done_before


def test_a_call_that_failed_is_made_again_from_the_failed_run_on(call) -> None:
    answer, (folder,) = call(WritingCM(_server={"return": 2, "error": "the harness died\nbadly"}))
    assert answer["return"] == 2
    assert "--resume=all" in answer["error"]
    row = json.loads((folder / "session.json").read_text())["runs"]["digits/Server/performance/run_1"]
    failed = ("failed", "the run digits Server performance failed: the harness died")
    assert (row["progress"], row["error"]) == failed
    cm = WritingCM()
    answer, folders = call(cm, CM_MLPERF_RESUME="failed")
    assert (answer["return"], folders, cm.made) == (1, [folder], ["server performance"])
    assert "Server accuracy is unfinished (run it with --resume=unfinished)" in answer["error"]
    assert "Server accuracy is unfinished" in (folder / "summary.txt").read_text()
    cm = WritingCM()
    answer, folders = call(cm, CM_MLPERF_RESUME="all")
    assert (answer["return"], folders, cm.made) == (0, [folder], ["server accuracy"])


def test_an_invalid_run_is_kept_by_unfinished_and_made_again_by_failed(call) -> None:
    bad = {"return": 0, "new_state": {"mlperf_run": result(is_valid=False)}}
    answer, (folder,) = call(WritingCM(**{"_server,_performance": bad}))
    assert answer["return"] == 1
    cm = WritingCM()
    answer, _ = call(cm, CM_MLPERF_RESUME="unfinished")
    assert (answer["return"], cm.made) == (1, [])
    assert "Server performance is INVALID" in answer["error"]
    answer, _ = call(cm, CM_MLPERF_RESUME="failed")
    assert (answer["return"], cm.made) == (0, ["server performance"])
    assert json.loads((folder / "results.json").read_text())["passed"] is True


FOUND = {"target_qps": {"value": 8.25, "origin": "x"}}
SEARCH = {"return": 0, "new_state": {"mlperf_run": {**result(is_valid=False), "find": FOUND}}}
"""A finished search, whose run is never VALID."""


def test_a_finished_search_is_kept_and_the_one_that_failed_is_made_again(
    call, capsys: pytest.CaptureFixture[str]
) -> None:
    answer, folders = call(
        WritingCM(_offline=SEARCH, _server={"return": 2, "error": "no rate holds"}), CM_MLPERF_RUN_FIND="yes"
    )
    assert answer["return"] == 2
    cm = WritingCM()
    answer, _ = call(cm, CM_MLPERF_RUN_FIND="yes", CM_MLPERF_RESUME="unfinished")
    assert (answer["return"], cm.made) == (1, [])
    assert "Server performance is failed: " in answer["error"]
    cm = WritingCM(_server=SEARCH)
    answer, same = call(cm, CM_MLPERF_RUN_FIND="yes", CM_MLPERF_RESUME="all")
    assert (answer, same, cm.made) == ({"return": 0}, folders, ["server performance"])
    assert "kept: Offline performance (search finished)" in capsys.readouterr().out


@pytest.mark.parametrize("mode", ["failed", "unfinished", "all"])
def test_a_call_that_passed_is_kept_whole(call, mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, (folder,) = call(WritingCM())
    before = json.loads((folder / "results.json").read_text())
    cm = WritingCM()
    answer, folders = call(cm, CM_MLPERF_RESUME=mode)
    assert (answer, folders, cm.calls) == ({"return": 0}, [folder], [])
    assert json.loads((folder / "results.json").read_text()) == before
    assert "no LoadGen runs left" in capsys.readouterr().out


def test_without_resume_and_with_other_settings_a_call_starts_anew(call, capsys: pytest.CaptureFixture[str]) -> None:
    call(WritingCM())
    for number, env in enumerate([{}, {"CM_MLPERF_RESUME": "all", "CM_NUM_THREADS": "1"}], start=2):
        cm = WritingCM()
        answer, folders = call(cm, **env)
        assert (answer["return"], len(folders), len(cm.made)) == (0, number, 4)
    assert "has these settings, starting a new one" in capsys.readouterr().out


@pytest.mark.parametrize("gone", ["result.json", "accuracy.json"])
def test_a_run_whose_files_are_gone_or_damaged_is_made_again(call, gone: str) -> None:
    _, (folder,) = call(WritingCM())
    (folder / "digits/Offline/accuracy" / gone).write_text("{")
    cm = WritingCM()
    answer, _ = call(cm, CM_MLPERF_RESUME="unfinished")
    assert (answer["return"], cm.made) == (0, ["offline accuracy"])


def test_a_recipe_that_changed_between_the_runs_is_named_in_the_results(call) -> None:
    with pytest.raises(KeyboardInterrupt):
        call(WritingCM(dies_at=4))
    (path,) = _sessions(call)
    content = json.loads(path.read_text())
    content["runs"]["digits/Offline/performance/run_1"]["recipes"]["app-mlperf-inference"] = "another"
    path.write_text(json.dumps(content))
    _, (folder,) = call(WritingCM(), CM_MLPERF_RESUME="all")
    note = "kept runs used other versions of: app-mlperf-inference"
    assert note in json.loads((folder / "results.json").read_text())["notes"]
    assert note in (folder / "summary.txt").read_text()


def _sessions(call: Any) -> list[Path]:
    _, folders = call(WritingCM(), hook="plan")
    return [folder / "session.json" for folder in folders]


def test_two_calls_do_not_go_on_with_one_folder(call) -> None:
    with pytest.raises(KeyboardInterrupt):
        call(WritingCM(dies_at=4))
    (path,) = _sessions(call)
    with file_lock(path.parent):
        cm = WritingCM()
        answer, _ = call(cm, CM_MLPERF_RESUME="all")
    assert (answer["return"], cm.calls) == (1, [])
    assert f"another run is using {path.parent}" in answer["error"]


def test_a_plan_holds_the_runs_that_would_be_made_and_no_more(call) -> None:
    with pytest.raises(KeyboardInterrupt):
        call(WritingCM(dies_at=4))
    answer, (folder,) = call(WritingCM(), hook="plan", CM_MLPERF_RESUME="all")
    rows = answer["runs"]
    assert [row["tags"].rpartition("_cpu,_")[2] for row in rows] == [
        "server,_performance", "server,_accuracy", "process,mlperf,accuracy",
    ]  # fmt: skip
    assert rows[0]["output_dir"] == str(folder / "digits/Server/performance/run_1")
    anew, _ = call(WritingCM(), hook="plan")
    assert anew["runs"][0]["tags"].endswith("_offline,_performance")


def test_the_error_of_the_recipe_that_failed_goes_on_with_what_the_call_knows(call) -> None:
    origin = ScriptFailed("app: run.sh failed with exit code 3", hint="look", trace=("run", "app"))
    answer, (folder,) = call(WritingCM(_server={"return": 2, "error": ErrorText.of(origin)}))
    assert answer["return"] == 2
    assert answer["error"].origin is origin
    text = origin.describe()
    assert "  in: the run digits Server performance\n" in text
    assert f"finished runs are in {folder}\n" in text
    assert text.splitlines()[-1].startswith("  resume: cm run script") and text.endswith("--resume=all")
    assert text.count("hint:") == 1


def test_before_a_run_has_finished_no_finished_runs_are_named(call) -> None:
    origin = ScriptFailed("app: run.sh failed with exit code 3", hint="look", trace=("run", "app"))
    call(WritingCM(_offline={"return": 2, "error": ErrorText.of(origin)}))
    assert "  in: the run digits Offline performance\n" in origin.describe()
    assert "finished runs are in" not in origin.describe()


def test_no_secret_of_the_call_is_in_the_session_file(tmp_path: Path) -> None:
    passed_on = recipe.without_secret_flags({"env": {"CM_API_KEY": "hunter2", "CM_A": "1"}})
    settings = basis.settings_record(config(), passed_on)
    paths = ResultsPaths(tmp_path, "id")
    paths.folder.mkdir()
    around = sessionfile.Surroundings(
        config=config(), passed_on=passed_on, app_meta=recipe_meta("app-mlperf-inference"), recipes=[]
    )
    file = sessionfile.SessionFile(paths, around, settings)
    for spec, state in itertools.product(matrix.matrix(config()), resume.Progress):
        file.note(spec, state)
    assert "hunter2" not in paths.session_json.read_text()
    assert sessionfile.find_former(tmp_path, settings) == paths


def test_a_call_of_an_earlier_version_is_left_as_it_is_and_the_way_on_named(call) -> None:
    _, (folder,) = call(WritingCM())
    content = json.loads((folder / "session.json").read_text())
    old = json.dumps({**content, "format": 1, "recipes": {}, "runs": {"Offline performance": {"progress": "finished"}}})
    (folder / "session.json").write_text(old)
    for hook in ("plan", "preprocess"):
        cm = WritingCM()
        answer, folders = call(cm, hook=hook, CM_MLPERF_RESUME="all")
        assert (answer["return"], folders, cm.calls) == (1, [folder], [])
        assert "start a new run without --resume" in answer["error"]
    assert (folder / "session.json").read_text() == old
