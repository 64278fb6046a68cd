"""run-mlperf-inference: `--repeats` and `--baseline`, with made-up runs below them."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from made_records import row
from recipe_engine.provenance.record import sealed
from recipe_loader import RECIPES, load_recipe, recipe_meta

recipe = load_recipe("run-mlperf-inference")
META = recipe_meta("run-mlperf-inference")
OFFLINE = {"CM_MLPERF_LOADGEN_SCENARIO": "offline", "CM_MLPERF_LOADGEN_MODE": "performance"}
NAME = "digits/Offline/performance"
SHAPE = "digits/Offline/shape.json"


def write_record(folder: Path, speed: float, name: str = NAME) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    within = {"throughput": {"value": speed, "unit": "samples/s", "higher_is_better": True}}
    outcome = {"exact": {"valid": True}, "within": within}
    (folder / "record.json").write_text(json.dumps(sealed(row(name=name, outcome=outcome))))
    return folder


class Repeats:
    """Answers each repeat with a record of the next speed, or a failure where there is none left."""

    def __init__(self, *speeds: float) -> None:
        self.speeds = list(speeds)
        self.calls: list[dict[str, Any]] = []
        self.searches: list[str] = []

    def search(self, shape: Path, conditions: str) -> None:
        """As the harness: a shape that was found for the same conditions is used."""
        found = json.loads(shape.read_text())["for"] if shape.is_file() else {}
        assert found.get("model_sha256", None) is None, "the shape is for any model"
        if found.get("threads") != conditions:
            self.searches.append(str(shape.parents[2].name))
            shape.parent.mkdir(parents=True, exist_ok=True)
            content = {"for": {"threads": conditions, "model_sha256": {"x": "ab"}}, "found_by": len(self.calls)}
            shape.write_text(json.dumps(content))

    def access(self, request: dict[str, Any]) -> dict[str, Any]:
        self.calls.append(request)
        if len(self.calls) > len(self.speeds):
            return {"return": 1, "error": "a result is INVALID"}
        folder = write_record(Path(request["results_dir"]) / request["run_id"], self.speeds[len(self.calls) - 1])
        self.search(folder / SHAPE, str(request.get("threads")))
        return {"return": 0, "new_state": {"mlperf_results": {"number": len(self.calls)}}}


@pytest.fixture
def call(tmp_path, hook_input):
    """Calls the hook; gives its answer, the state and the dict that it got."""

    def run(cm: Any, hook: str = "preprocess", inputs: dict[str, Any] | None = None, **env: str) -> Any:
        folder = RECIPES / "run-mlperf-inference"
        env |= {"CM_TMP_CURRENT_PATH": str(tmp_path), "CM_HOST_OS_TYPE": "linux",
                "CM_TMP_CURRENT_SCRIPT_PATH": str(folder), **OFFLINE}  # fmt: skip
        i = hook_input(env, input=inputs or {}, meta=META, automation=SimpleNamespace(cmind=cm))
        return getattr(recipe, hook)(i), i["state"]

    return run


@pytest.fixture
def baseline(tmp_path: Path) -> Path:
    for number, speed in enumerate((100.0, 101.0, 99.0)):
        write_record(tmp_path / "base" / f"repeat-{number}", speed)
    return tmp_path / "base"


def test_repeats_are_calls_of_their_own_and_the_table_has_median_and_spread(call, tmp_path, capsys):
    cm = Repeats(90.0, 110.0, 100.0)
    inputs = {"model": "digits", "results_dir": "elsewhere", "repeats": "3", "resume": "yes", "quiet": True,
              "check": False}  # fmt: skip
    answer, state = call(cm, inputs=inputs, CM_MLPERF_RUN_REPEATS="3", CM_MLPERF_RUN_ID="mine")
    assert answer["return"] == 0
    folder = tmp_path / "elsewhere" / "mine"
    assert [(one["run_id"], one["results_dir"]) for one in cm.calls] == [
        (f"repeat-{number}", str(folder)) for number in (1, 2, 3)
    ]
    assert all(one["model"] == "digits" and one["check"] is False for one in cm.calls)
    assert not any({"repeats", "resume", "out_dir"} & one.keys() for one in cm.calls)
    text = capsys.readouterr().out
    assert "100" in text and "±10.0 %" in text
    (metric,) = json.loads((folder / "repeats.json").read_text())["metrics"]
    assert (metric["median"], metric["spread_percent"], metric["values"]) == (100.0, 10.0, [90.0, 110.0, 100.0])
    assert state["mlperf_results"] == {"number": 3}
    page = (folder / "results.html").read_text()
    assert "mine: 3 repeats" in page and "±10.0 %" in page and "--repeats=3" in page
    assert f"Page:    {folder / 'results.html'}" in text and str(Path.home()) not in page


def test_a_repeat_that_fails_ends_it(call):
    cm = Repeats(90.0)
    answer, _ = call(cm, CM_MLPERF_RUN_REPEATS="3")
    assert (answer["return"], len(cm.calls)) == (1, 2)
    assert answer["error"] == "repeat 2 of 3: a result is INVALID"


@pytest.mark.parametrize(
    ("speeds", "code", "words"),
    [
        ((100.0, 101.0, 99.0), 0, "B is not slower than A by more than 5 %"),
        ((80.0, 81.0, 79.0), 1, ""),
    ],
)
def test_repeats_are_judged_against_a_baseline(call, tmp_path, baseline, capsys, speeds, code, words):
    files = {"CM_MLPERF_RUN_JUNIT": str(tmp_path / "j.xml"), "CM_MLPERF_RUN_MARKDOWN": str(tmp_path / "m.md")}
    given = {"CM_MLPERF_RUN_BASELINE": str(baseline), **files}
    answer, state = call(Repeats(*speeds), CM_MLPERF_RUN_REPEATS="3", **given)
    assert answer["return"] == code == state["mlperf_comparison"]["return"]
    assert words in capsys.readouterr().out
    assert (tmp_path / "j.xml").is_file() and (tmp_path / "m.md").is_file()
    if code:
        assert "B is worse than A by more than 5 %" in answer["error"]
        new = Path(state["mlperf_comparison"]["error"].split()[-2])
        assert f"make B the new baseline: rm -rf -- {baseline} && cp -r -- {new} {baseline}" in answer["error"]
        assert new.parent == tmp_path / "results"


def test_what_cannot_be_judged_is_compared_again(call, baseline):
    answer, _ = call(Repeats(94.5, 60.0, 55.0), CM_MLPERF_RUN_BASELINE=str(baseline), CM_MLPERF_RUN_REPEATS="3")
    assert answer["return"] == 2 and "cannot be judged: far worse than 5 %" in answer["error"]
    assert f"--repeats=6 on a quieter machine\nhint: compare them again: cm diff script {baseline} " in answer["error"]


def test_the_limit_is_the_users(call, baseline):
    given = {"CM_MLPERF_RUN_BASELINE": str(baseline), "CM_MLPERF_RUN_MAX_SLOWDOWN": "25"}
    assert call(Repeats(80.0, 81.0, 79.0), CM_MLPERF_RUN_REPEATS="3", **given)[0]["return"] == 0


@pytest.mark.parametrize("hook", ["plan", "preprocess"])
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"BASELINE": "none"}, "--baseline: "),
        ({"BASELINE_WITH": "threads"}, "--baseline_with: found 'threads'"),
        ({"BASELINE": "base", "JUNIT": "none/j.xml"}, "--junit: found "),
        ({"BASELINE_WITH": "threads=1", "JUNIT": "none/j.xml"}, "--junit: found "),
    ],
)
def test_what_cannot_be_compared_is_refused_before_anything_runs(call, tmp_path, baseline, hook, changes, words):
    given = {f"CM_MLPERF_RUN_{name}": value if name == "BASELINE_WITH" else str(tmp_path / value)
             for name, value in changes.items()}  # fmt: skip
    cm = Repeats()
    answer, _ = call(cm, hook, CM_MLPERF_RUN_REPEATS="3", **given)
    assert answer["return"] == 1 and words in answer["error"], answer
    assert cm.calls == [] and not (tmp_path / "results").exists()


def test_a_plan_has_the_runs_of_all_repeats(call):
    one, three = (call(Repeats(), "plan", CM_MLPERF_RUN_REPEATS=count)[0]["runs"] for count in ("1", "3"))
    assert len(three) == 3 * len(one)
    assert len({json.dumps(run, sort_keys=True) for run in three}) == 3


OTHER = {"CM_MLPERF_RUN_BASELINE_WITH": "batch_size=2,threads=1", "CM_MLPERF_RUN_REPEATS": "3"}


@pytest.mark.parametrize(
    ("speeds", "code"),
    [((100, 100, 101, 101, 99, 99), 0), ((100, 80, 81, 101, 99, 79), 1), ((80, 100, 101, 81, 79, 99), 0)],
)
def test_repeats_with_other_inputs_run_in_turn_and_are_the_baseline(call, tmp_path, capsys, speeds, code):
    cm = Repeats(*map(float, speeds))
    given = {"model": "digits", "threads": "2", "repeats": "3", "baseline_with": "batch_size=2,threads=1"}
    answer, state = call(cm, inputs=given, CM_MLPERF_RUN_ID="mine", CM_NUM_THREADS="2", **OTHER)
    assert answer["return"] == code == state["mlperf_comparison"]["return"], answer
    base, own = tmp_path / "results" / "mine-baseline", tmp_path / "results" / "mine"
    assert [(one["results_dir"], one["run_id"]) for one in cm.calls] == [
        (str(base), "repeat-1"), (str(own), "repeat-1"), (str(own), "repeat-2"), (str(base), "repeat-2"),
        (str(base), "repeat-3"), (str(own), "repeat-3"),
    ]  # fmt: skip
    assert {(one["threads"], one.get("batch_size")) for one in cm.calls if one["results_dir"] == str(own)} == {
        ("2", None)
    }
    assert {(one["threads"], one["batch_size"]) for one in cm.calls if one["results_dir"] == str(base)} == {("1", "2")}
    assert not any({"baseline_with", "repeats"} & one.keys() for one in cm.calls)
    assert "Repeat 1 of 3 of the baseline: " in capsys.readouterr().out
    assert json.loads((own / "repeats.json").read_text())["metrics"][0]["values"] == [
        float(speeds[at]) for at in (1, 2, 5)
    ]


def found_by(folder: Path) -> list[int]:
    return [json.loads(path.read_text())["found_by"] for path in sorted(folder.glob(f"*/{SHAPE}"))]


def test_the_shape_is_searched_once_and_shared_where_it_is_for_the_same_conditions(call, tmp_path):
    cm = Repeats(*[100.0] * 6)
    call(cm, CM_MLPERF_RUN_ID="mine", **{**OTHER, "CM_MLPERF_RUN_BASELINE_WITH": "source=tiny"})
    assert cm.searches == ["repeat-1"], "both sides have the same model"
    assert found_by(tmp_path / "results/mine-baseline") == found_by(tmp_path / "results/mine") == [1, 1, 1]
    cm = Repeats(*[100.0] * 6)
    call(cm, inputs={"threads": "2"}, CM_MLPERF_RUN_ID="threads", **OTHER)
    assert cm.searches == ["repeat-1", "repeat-1"], "one for each number of threads"
    assert found_by(tmp_path / "results/threads-baseline") == [1, 1, 1]
    assert found_by(tmp_path / "results/threads") == [2, 2, 2]
    cm, base = Repeats(*[100.0] * 3), str(tmp_path / "results/mine")
    call(cm, CM_MLPERF_RUN_ID="later", CM_MLPERF_RUN_REPEATS="3", CM_MLPERF_RUN_BASELINE=base)
    assert cm.searches == [] and found_by(tmp_path / "results/later") == [1, 1, 1]


def test_a_plan_has_the_runs_of_both_sides(call):
    runs = call(Repeats(), "plan", inputs={"model": "digits"}, **OTHER)[0]["runs"]
    assert [run.get("batch_size") for run in runs] == ["2", None, None, "2", "2", None]
