"""show-mlperf-results: which folders are looked at, what is read of results, the filters, the table."""

import json
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from recipe_loader import load_recipe

recipe = load_recipe("show-mlperf-results")
history = recipe.history

TEST_RUN = "test run, not a valid MLPerf result"
NOW = datetime(2026, 11, 23, 12, tzinfo=timezone.utc)


def put(root: Path, run_id: str, *scenarios: str, **changes: Any) -> Path:
    """A results folder with one figure and one score for each scenario."""
    rows = [
        {
            "scenario": name,
            "performance": {
                "valid": name != "Server",
                "metric": {"name": "throughput", "value": 1234.5, "unit": "samples/s", "higher_is_better": True},
                "label": TEST_RUN,
            },
            "accuracy": {"valid": True, "metrics": [{"name": "acc", "value": 99.332, "passed": name != "Server"}]},
            "passed": True,
        }
        for name in scenarios
    ]
    base = {"run_id": run_id, "model": "digits", "backend": "onnxruntime", "device": "cpu", "label": TEST_RUN}
    folder = root / run_id
    folder.mkdir(parents=True)
    (folder / "results.json").write_text(json.dumps({**base, "scenarios": rows, **changes}))
    return folder


@pytest.fixture
def show(hook_input, capsys, tmp_path: Path):
    """Calls the recipe in tmp_path; ``runs`` is what ``cm runs script`` answers."""

    def call(runs: tuple[dict[str, str], ...] = (), **inputs: str) -> dict[str, Any]:
        env = {f"CM_MLPERF_SHOW_{name.upper()}": value for name, value in inputs.items()}
        i = hook_input({**env, "CM_TMP_CURRENT_PATH": str(tmp_path)})
        i["automation"] = SimpleNamespace(cmind=SimpleNamespace(access=lambda _: {"return": 0, "runs": list(runs)}))
        answer = recipe.preprocess(i)
        return {**answer, "found": i["state"].get("mlperf_results"), "text": capsys.readouterr().out}

    return call


def test_the_newest_result_comes_first_with_its_figure_and_what_it_is_not(show, tmp_path: Path) -> None:
    put(tmp_path / "results", "20261101T000000Z-digits-onnxruntime-cpu", "Offline")
    newest = put(tmp_path / "results", "20261123T010133Z-digits-onnxruntime-cpu", "Server")
    answer = show()
    assert answer["return"] == 0, answer
    assert answer["text"].splitlines() == [
        "made (UTC)       model  backend     device scenario figure unit      LoadGen      score",
        "2026-11-23 01:01 digits onnxruntime cpu    Server    1,234 samples/s INVALID 99.332 low [1]",
        "2026-11-01 00:00 digits onnxruntime cpu    Offline   1,234 samples/s VALID       99.332 [1]",
        "",
        f"[1] {TEST_RUN}",
        f"2 results in 2 folders, the newest: {newest}",
        history.MORE,
    ]
    assert [row["scenario"] for row in answer["found"]] == ["Server", "Offline"]
    assert answer["found"][0] == {
        "made_utc": "2026-11-23T01:01:33Z", "run_id": newest.name, "folder": str(newest), "model": "digits",
        "backend": "onnxruntime", "device": "cpu", "scenario": "Server", "figure": 1234.5, "unit": "samples/s",
        "metric": "throughput", "loadgen": "INVALID", "score_name": "acc", "score": 99.332, "score_passed": False,
        "passed": True, "label": TEST_RUN, "batch_size": None, "instances": None,
        "ttft_p99_ms": None, "tpot_p99_ms": None, "duration_s": None,
    }  # fmt: skip


def test_times_of_tokens_are_columns_and_repeats_have_median_and_spread(show, tmp_path: Path) -> None:
    metric = {"name": "tokens per second", "unit": "tokens/s", "higher_is_better": True}
    for number, value in enumerate((90.0, 110.0, 100.0), start=1):
        text = {"ttft_ms": {"p99": 41.5}, "tpot_ms": {"p99": 3.25}}
        performance = {"valid": True, "metric": {**metric, "value": value}, "text": text, "duration_s": 2.0}
        row = {"scenario": "Server", "performance": performance, "accuracy": None, "passed": True}
        put(tmp_path / "results" / "mine", f"repeat-{number}", scenarios=[row])
    put(tmp_path / "results", "alone", scenarios=[{**row, "performance": {**performance, "text": None}}])
    heading, first, *others = show()["text"].splitlines()
    assert "TTFT p99, ms" in heading and "TPOT p99, ms" in heading
    assert any("41.5" in line and "3.25" in line for line in (first, *others))
    text = "\n".join(others)
    assert f"digits Server, repeats in {tmp_path / 'results' / 'mine'}: median 100 tokens/s ±10 % (n=3)" in text
    assert "1 result of one run of less than 60 s. To compare, add --repeats=6" in text


def test_results_of_other_folders_are_found_by_the_input_and_by_earlier_runs(show, tmp_path: Path) -> None:
    put(tmp_path / "given", "20261101T000000Z-a", "Offline")
    put(tmp_path / "elsewhere" / "results", "20261102T000000Z-b", "Offline")
    put(tmp_path / "elsewhere" / "my results", "20261103T000000Z-c", "Offline")
    runs = (
        {"folder": str(tmp_path / "elsewhere"), "command": "cm run script --tags=a '--results_dir=my results'"},
        {"folder": str(tmp_path / "gone"), "command": "cm run script 'a quote that never ends"},
        {"folder": str(tmp_path / "elsewhere"), "command": "cm run script --tags=a"},
    )
    assert [row["run_id"][-1] for row in show(runs, results_dir="given")["found"]] == ["c", "b", "a"]
    assert [row["run_id"][-1] for row in show(results_dir="given/20261101T000000Z-a")["found"]] == ["a"]


@pytest.mark.parametrize(
    ("inputs", "found"),
    [
        ({"scenario": "single-stream"}, ["resnet50 SingleStream"]),
        ({"model": "resnet"}, ["resnet50 SingleStream", "resnet50 Offline"]),
        ({"model": "bert-99"}, ["bert-99 Offline"]),
        ({"model": "BERT-99.9"}, ["bert-99.9 Offline"]),
        ({"backend": "pytorch"}, ["bert-99 Offline"]),
        ({"device": "cuda"}, ["bert-99.9 Offline"]),
        ({"since": "2026-11-03"}, ["resnet50 SingleStream", "resnet50 Offline"]),
        ({"last": "1"}, ["resnet50 SingleStream"]),
        ({"model": "bert", "last": "5"}, ["bert-99 Offline", "bert-99.9 Offline"]),
        ({"model": "dlrm"}, []),
    ],
)
def test_filters(show, tmp_path: Path, inputs: dict[str, str], found: list[str]) -> None:
    root = tmp_path / "results"
    put(root, "20261101T000000Z-a", "Offline", model="bert-99.9", device="cuda")
    put(root, "20261102T000000Z-b", "Offline", model="bert-99", backend="pytorch")
    put(root, "20261103T000000Z-c", "SingleStream", "Offline", model="resnet50")
    answer = show(**inputs)
    assert [f"{row['model']} {row['scenario']}" for row in answer["found"]] == found
    assert found or f"none of 4 results matches, looked in {root}" in answer["text"]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("", None),
        ("7d", datetime(2026, 11, 16, 12, tzinfo=timezone.utc)),
        ("90 min", datetime(2026, 11, 23, 10, 30, tzinfo=timezone.utc)),
        ("2026-11-01", datetime(2026, 11, 1, tzinfo=timezone.utc)),
        ("2026-11-01T06:00+01:00", datetime(2026, 11, 1, 5, tzinfo=timezone.utc)),
    ],
)
def test_since_is_a_date_or_an_age(text: str, moment: datetime | None) -> None:
    assert history.parse_since(text, NOW) == moment


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"since": "yesterday"}, "--since=yesterday is neither a date (2026-11-01) nor an age"),
        ({"since": "9999999d"}, "--since=9999999d is neither a date (2026-11-01) nor an age"),
        ({"since": "99999999999w"}, "--since=99999999999w is neither a date (2026-11-01) nor an age"),
    ],
)
def test_a_wrong_input_is_refused_with_what_is_allowed(show, inputs: dict[str, str], said: str) -> None:
    answer = show(**inputs)
    assert answer["return"] == 1
    assert said in answer["error"]
    assert answer["error"].endswith(recipe.HINT)


def test_a_damaged_file_is_named_and_the_others_are_shown(show, tmp_path: Path) -> None:
    put(tmp_path / "results", "20261101T000000Z-a", "Offline")
    damaged = put(tmp_path / "results", "20261102T000000Z-b", "Offline", scenarios=[{"performance": 3}])
    answer = show()
    assert f"not read, because they are damaged: {damaged / 'results.json'}" in answer["text"]
    assert len(answer["found"]) == 1


def test_settings_that_tell_results_apart_are_columns(show, tmp_path: Path) -> None:
    for number, batch_size in enumerate((4, 32)):
        run = {"batch_size": {"value": batch_size, "origin": "user"}, "instances": {"value": 2, "origin": "default"}}
        rows = [{"scenario": "Offline", "performance": {"valid": True, "metric": {}, "run": run}, "passed": True}]
        put(tmp_path / "results", f"2026110{number + 1}T000000Z-x", "Offline", scenarios=rows)
    title, newest, oldest, *_ = show()["text"].splitlines()
    place = title.index("batch") + len("batch")
    assert (newest[:place].split()[-1], oldest[:place].split()[-1]) == ("32", "4")
    assert "inst" not in title


def test_a_batch_is_shown_only_where_samples_are_computed_together(show, tmp_path: Path) -> None:
    """Queries of SingleStream and MultiStream have 1 and 8 samples; a Server of a fast network answers one by one."""
    run = {"batch_size": {"value": 32, "origin": "default"}, "instances": {"value": 2, "origin": "default"}}
    shapes = {"SingleStream": "inline", "MultiStream": "inline batch", "Offline": "batches of 32", "Server": "inline"}
    rows = [
        {"scenario": scenario, "performance": {"metric": {}, "run": run, "issue_shape": shape}, "passed": True}
        for scenario, shape in shapes.items()
    ]
    put(tmp_path / "results", "20261101T000000Z-x", "Offline", scenarios=rows)
    assert [row["batch_size"] for row in show()["found"]] == [None, None, 32, 1]


def test_a_run_without_figure_or_score_and_a_name_of_the_users_own(show, tmp_path: Path) -> None:
    rows = [{"scenario": "Offline", "performance": None, "accuracy": {"valid": True, "metrics": []}}]
    put(tmp_path / "results", "mine", "Offline", scenarios=rows, label="", model="a-model-with-a-very-long-name-" * 3)
    answer = show()
    (row,) = answer["found"]
    assert (row["figure"], row["score"], row["loadgen"], row["label"]) == (None, None, "VALID", "")
    assert max(map(len, answer["text"].splitlines()[:2])) <= 100


def test_without_results_it_says_how_to_make_some(show) -> None:
    answer = show()
    assert (answer["return"], answer["found"]) == (0, [])
    assert answer["text"].startswith("there are no results yet, looked in ")
    assert "cm run script --tags=run,mlperf,inference makes some" in answer["text"]


@pytest.mark.parametrize(
    "place", ["build/runs", "build/runs/20261123T101010Z", "mine/valid_results", "valid_results", "test_results"]
)
def test_runs_of_make_and_of_the_tutorial_are_listed(show, tmp_path: Path, place: str) -> None:
    put(tmp_path / "workspace" / place, "2026.11.23-10.10.10", "Offline")
    commands = ("cm run script --tags=run,mlperf,make --target=run", "cm run script --tags=x --results_dir=mine")
    runs = tuple({"folder": str(tmp_path / "workspace"), "command": command} for command in commands)
    (found,) = show(runs)["found"]
    assert Path(found["folder"]) == tmp_path / "workspace" / place / "2026.11.23-10.10.10"
