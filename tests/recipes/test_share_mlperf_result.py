"""share-mlperf-result refuses what cannot be before anything is installed, and hands on words that no shell reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from recipe_loader import load_recipe

PREFIX = "CM_MLPERF_SHARE_"


def _call(tmp_path: Path, **inputs: str) -> dict:
    env = {f"{PREFIX}{name.upper()}": value for name, value in inputs.items()}
    return {"env": {**env, "CM_TMP_CURRENT_PATH": str(tmp_path)}, "state": {}}


@pytest.fixture(name="results")
def _results(tmp_path: Path) -> Path:
    for name in ("20261101T000000Z-a", "20261102T000000Z-b"):
        (tmp_path / "results" / name).mkdir(parents=True)
        (tmp_path / "results" / name / "results.json").write_text("{}")
    return tmp_path / "results"


def test_the_newest_result_is_taken_and_words_stay_words(tmp_path: Path, results: Path) -> None:
    i = _call(tmp_path, collector="http://127.0.0.1:8090", alias="x; $(rm -rf /)", dry_run="yes", yes="no")
    assert load_recipe("share-mlperf-result").preprocess(i) == {"return": 0}
    assert i["env"]["CM_TMP_SHARE_WORDS"].split("\n") == [
        f"--result={results}/20261102T000000Z-b",
        "--collector=http://127.0.0.1:8090",
        "--alias=x; $(rm -rf /)",
        "--dry_run",
    ]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"result": "elsewhere"}, "is not a result folder"),
        ({"collector": "127.0.0.1:8090"}, "--collector must be http"),
        ({"withdraw": "a1"}, "--withdraw needs the collector"),
        ({"alias": "a\n--yes"}, "holds a line break"),
    ],
)
def test_a_call_that_cannot_succeed_is_refused(tmp_path: Path, results: Path, inputs: dict, message: str) -> None:
    for hook in ("plan", "preprocess"):
        answer = getattr(load_recipe("share-mlperf-result"), hook)(_call(tmp_path, **inputs))
        assert answer["return"] == 1 and message in answer["error"]
    assert results.is_dir()


def test_without_any_result_the_way_to_one_is_named(tmp_path: Path) -> None:
    answer = load_recipe("share-mlperf-result").plan(_call(tmp_path))
    assert "there is no result below" in answer["error"] and "show,mlperf,results" in answer["error"]


def test_the_answer_becomes_state_or_the_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    hooks, i = load_recipe("share-mlperf-result"), {"env": {}, "state": {}}
    Path("tmp-share.json").write_text('{"sent": true}')
    assert hooks.postprocess(i) == {"return": 0} and i["state"]["mlperf_share"] == {"sent": True}
    Path("tmp-share.json").write_text('{"error": "no"}')
    assert hooks.postprocess(i) == {"return": 1, "error": "no"}
    assert not Path("tmp-share.json").exists()
