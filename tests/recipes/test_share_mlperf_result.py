"""share-mlperf-result refuses what cannot be before anything is installed, and hands on words that no shell reads."""

import subprocess
from pathlib import Path

import pytest
from recipe_loader import RECIPES, input_values, load_recipe

PREFIX = "CM_MLPERF_SHARE_"


def _call(tmp_path: Path, **inputs: str) -> dict:
    env = {f"{'CM_MLPERF_COLLECTOR_' if name == 'token' else PREFIX}{name.upper()}": inputs[name] for name in inputs}
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
        ({"token": "token.txt"}, "--token is not a file here\nhint: --token=FILE"),
        ({"token": "../token"}, "--token is not a file here"),
        ({"alias": "a\n--yes"}, "contains a line break"),
    ],
)
def test_a_call_that_cannot_succeed_is_refused(tmp_path: Path, results: Path, inputs: dict, message: str) -> None:
    for hook in ("plan", "preprocess"):
        answer = getattr(load_recipe("share-mlperf-result"), hook)(_call(tmp_path, **inputs))
        assert answer["return"] == 1 and message in answer["error"]
    assert results.is_dir()


@pytest.mark.parametrize("collector", ["127.0.0.1:8090", "http://HOST:PORT", "http://127.0.0.1:99999"])
def test_a_collector_is_an_address(collector: str) -> None:
    (told,) = input_values("share-mlperf-result", {}, collector=collector).problems()
    assert told.startswith(f"--collector: found {collector!r}; allowed: the URL of a server")


def test_a_result_is_withdrawn_from_a_collector() -> None:
    (told,) = input_values("share-mlperf-result", {}, withdraw="a1").problems()
    assert told == "--withdraw: found 'a1', which counts only with --collector"


def test_a_file_with_the_token_is_found_from_where_the_call_was_made_and_a_token_stays(
    tmp_path: Path, results: Path
) -> None:
    (tmp_path / "token.txt").write_text("word")
    for given, expected in (("token.txt", str(tmp_path / "token.txt")), ("k" * 300, "k" * 300), ("", "")):
        i = _call(tmp_path, token=given)
        assert load_recipe("share-mlperf-result").preprocess(i) == {"return": 0}
        assert i["env"]["CM_TMP_SHARE_TOKEN"] == expected
    assert results.is_dir()


def test_without_any_result_the_way_to_one_is_named(tmp_path: Path) -> None:
    answer = load_recipe("share-mlperf-result").plan(_call(tmp_path))
    assert "there is no result below" in answer["error"] and "show,mlperf,results" in answer["error"]


def test_the_answer_becomes_state_or_the_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    hooks, i = load_recipe("share-mlperf-result"), {"env": {}, "state": {}}
    Path("tmp-share.json").write_text('{"sent": true}')
    assert hooks.postprocess(i) == {"return": 0} and i["state"]["mlperf_share"] == {"sent": True}
    Path("tmp-share.json").write_text('{"error": "no", "return": 2}')
    assert hooks.postprocess(i) == {"return": 2, "error": "no"}
    assert not Path("tmp-share.json").exists()


@pytest.mark.parametrize("token", ["/here/token.txt", None])  # the engine exports no empty value
def test_the_program_gets_the_token_of_the_hook_because_an_input_keeps_its_env(
    tmp_path: Path, token: str | None
) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/bash\nprintf "%s|" "$CM_MLPERF_COLLECTOR_TOKEN" > tmp-share.json\n')
    python.chmod(0o755)
    env = {"CM_MLPERF_COLLECTOR_TOKEN": "token.txt", **({} if token is None else {"CM_TMP_SHARE_TOKEN": token})}
    env |= {"CM_MLPERF_RESULTS_SERVER_PYTHON": str(python), "CM_TMP_SHARE_WORDS": "--dry_run", "PATH": "/usr/bin:/bin"}
    script = RECIPES / "share-mlperf-result" / "run.sh"
    subprocess.run(["bash", str(script)], cwd=tmp_path, env=env, check=True, timeout=20)
    assert (tmp_path / "tmp-share.json").read_text() == f"{token or ''}|"
