"""run-mlperf-curve: plans, refuses, lays out recorded runs, measures; in --full a curve that is killed and resumed."""

import json
import os
import re
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from curve_builder import given, standin
from curve_tree import NUMBERS, setup_of
from helpers import TemporaryHome, wait_until
from recipe_loader import input_values, load_recipe
from report_folder import write_report
from stub_openai import running_stub

recipe = load_recipe("run-mlperf-curve")


class Cm:
    """Stands for cmind: answers as get,mlperf,endpoints,client would."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.answer = answer
        self.cmind = self

    def access(self, request: dict[str, Any]) -> dict[str, Any]:
        assert request["tags"] == "get,mlperf,endpoints,client"
        return self.answer


def call(folder: Path, texts: dict[str, str], client: dict[str, Any] | None = None) -> dict[str, Any]:
    """The recipe's call with these inputs, in a folder."""
    env = {f"CM_MLPERF_CURVE_{key.upper()}": value for key, value in texts.items()}
    mapping = {key: f"CM_MLPERF_CURVE_{key.upper()}" for key in texts}
    automation = Cm(client or {"return": 16, "error": "no client"})
    return {"env": {**env, "CM_TMP_CURRENT_PATH": str(folder)}, "state": {}, "input": texts,
            "meta": {"input_mapping": mapping}, "automation": automation}  # fmt: skip


def test_without_a_client_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipe, "probe", lambda *_: None)
    answer = recipe.preprocess(call(tmp_path, given(tmp_path, "http://127.0.0.1:9")))
    assert answer == {"return": 16, "error": "no client"}
    assert [path.name for path in tmp_path.iterdir()] == ["data.jsonl"]


def test_a_server_that_does_not_answer_ends_the_call_before_the_client_is_looked_for(tmp_path: Path) -> None:
    answer = recipe.preprocess(call(tmp_path, given(tmp_path, "http://127.0.0.1:9")))
    assert answer["return"] == 1 and "start the server" in answer["error"]
    assert answer["error"].endswith("hint: rerun the command once the server answers (no file was written)")
    assert [path.name for path in tmp_path.iterdir()] == ["data.jsonl"]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"from_recorded": "absent"}, "no runs of the client"),
        ({"action": "check"}, "--curve_dir is missing"),
        ({"action": "view", "curve_dir": "absent"}, "not a submission"),
    ],
)
def test_wrong_calls_say_what_is_wrong(tmp_path: Path, changed: dict[str, str], words: str) -> None:
    request = call(tmp_path, given(tmp_path, "http://127.0.0.1:9", **changed))
    request["env"] |= dict.fromkeys(
        ("CM_MLPERF_ENDPOINTS_CHECKER_BIN_WITH_PATH", "CM_MLPERF_ENDPOINTS_VIEWER_BIN_WITH_PATH"), "/bin/false"
    )
    answer = recipe.preprocess(request)
    assert answer["return"] == 1 and words in answer["error"], answer


def test_wrong_values_are_told_before_anything_is_looked_for() -> None:
    wrong = {
        "c_max": "x",
        "dataset_samples": "0",
        "rerun": "good",
        "retries": "-1",
        "division": "Open",
        "url": "host:1",
    }
    told = input_values("run-mlperf-curve", {}, **wrong).problems()
    assert sorted(told) == [
        "--c_max: found 'x'; allowed: a whole number from 1",
        "--dataset_samples: found '0'; allowed: a whole number from 1",
        "--division=Open is not one of its values (allowed: Standardized, Serviced, RDI)",
        "--rerun=good is not one of its values (allowed: failed, invalid, lost, all)",
        "--retries: found '-1'; allowed: a whole number from 0",
        "--url: found 'host:1'; allowed: the URL of a server, such as http://HOST:8000/v1",
    ]


def test_recorded_runs_become_a_tree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in NUMBERS:
        write_report(tmp_path / "runs" / f"run-{number}", setup_of(number))
    request = call(tmp_path, {"from_recorded": "runs", "offline": "elected", "division": "RDI"})
    assert recipe.preprocess(request) == {"return": 0}
    submission = Path(request["env"]["CM_MLPERF_CURVE_TREE"])
    assert submission == tmp_path / "results/recorded/tree/unnamed/unnamed-0001"
    points = sorted((submission / "results/undeclared/gpt-oss-120b").iterdir())
    assert {path.name for path in points} == {f"r{number}" for number in NUMBERS}
    said = capsys.readouterr().out
    assert "E17" in said and "not declared" in said and f"--curve_dir={submission}" in said


def test_a_declaration_is_used_and_its_faults_are_named(tmp_path: Path) -> None:
    for number in NUMBERS:
        write_report(tmp_path / "runs" / f"run-{number}", setup_of(number))
    from crowdperf.curves.declaration import form

    text = form().replace("organization: unnamed", "organization: LabOrg")
    (tmp_path / "submission.yaml").write_text(text, encoding="utf-8")
    request = call(tmp_path, {"from_recorded": "runs", "submission": "submission.yaml"})
    assert recipe.preprocess(request) == {"return": 0}
    submission = Path(request["env"]["CM_MLPERF_CURVE_TREE"])
    assert submission.parent.name == "LabOrg"
    assert json.loads((submission / "docs/provenance.json").read_text())["label"] == ""
    power = submission / "results/undeclared/system_power.json"
    assert not power.exists()
    (tmp_path / "watts.json").write_text('{"watts": 300}')
    for said in ("{watts: 300}", "watts.json"):
        (tmp_path / "submission.yaml").write_text(f"{text}power: {said}\n", encoding="utf-8")
        assert recipe.preprocess(request) == {"return": 0}
        assert json.loads(power.read_text()) == {"watts": 300}
    (tmp_path / "submission.yaml").write_text(f"{text}power: lost.json\n", encoding="utf-8")
    assert "allowed: the name of a JSON file that can be read" in recipe.preprocess(request)["error"]
    (tmp_path / "submission.yaml").write_text(text.replace("LabOrg", "../up"), encoding="utf-8")
    answer = recipe.preprocess(request)
    assert answer["return"] == 1 and 'organization: found "../up"; allowed: the name of a folder' in answer["error"]


@pytest.mark.parametrize("errors", [(0, 0), (1, 0), (0, 1)])
def test_a_tree_is_accepted_where_neither_checker_refuses_it(
    errors: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recipe.commands, "check_both", lambda *_: recipe.commands.Checked(*errors, ("said",)))
    i: dict[str, Any] = {"env": {"CM_MLPERF_ENDPOINTS_CHECKER_BIN_WITH_PATH": "checker"}, "state": {}}
    answer = recipe.check(i, None)
    assert answer["return"] == int(any(errors)) and i["state"]["mlperf_curve_check"]["official_errors"] == errors[1]
    assert errors == (0, 0) or f"{errors[1]} errors of the official checker, {errors[0]} of" in answer["error"]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[TemporaryHome]:
    found = TemporaryHome(tmp_path)
    yield found
    found.close()


def words_of(texts: dict[str, str]) -> list[str]:
    return [f"--{key}={value}" for key, value in texts.items()]


def test_the_plan_is_one_json_object_and_needs_neither_client_nor_server(home: TemporaryHome) -> None:
    texts = given(home.work, "http://127.0.0.1:9", points="auto", c_max="64")
    done = home.run_cm("run,mlperf,curve,_plan", *words_of(texts))
    assert done.code == 0, done.stderr
    found = done.answer["new_state"]["mlperf_curve"]
    assert [one["concurrency"] for one in found["points"]] == [1, 2, 3, 5, 10, 18, 34, 64]
    assert not (home.work / "results").exists()


@pytest.mark.full
def test_a_killed_curve_goes_on_behind_its_third_point(home: TemporaryHome) -> None:
    program = standin(home.work)
    calls = home.work / "calls"
    with running_stub() as (_, root):
        texts = given(home.work, f"{root}/tokens=6,ttft_ms=4,tpot_ms=2", points="auto", accuracy="mandatory",
                      accuracy_dataset="data.jsonl", eval_method="string_match", extractor="identity_extractor",
                      offline="elected", client=str(program))  # fmt: skip
        env = {"STANDIN_CALLS": str(calls), "TMPDIR": str(home.folder)}
        child = home.start_run("run,mlperf,curve", *words_of(texts), env=env)
        points = home.work / "results" / "small" / "points"
        wait_until(lambda: child.poll() is not None or len(list(points.glob("*/done.json"))) >= 3, "three points")
        assert child.poll() is None, child.communicate()
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        before = {path: path.stat().st_mtime_ns for path in points.glob("*/done.json")}
        made = calls.read_text().splitlines()
        done = home.run_cm("run,mlperf,curve", *words_of(texts), "--rerun=invalid,failed", env=env)
    assert done.code == 0, done.stdout + done.stderr
    assert {path: path.stat().st_mtime_ns for path in before} == before
    finished = {path.parent.name.split("-")[0] for path in before}
    again = {line.split()[0].rpartition("_")[2] for line in calls.read_text().splitlines()[len(made) :]}
    assert not finished & again
    tree = Path(done.answer["new_env"]["CM_MLPERF_CURVE_TREE"])
    assert {path.name for path in (tree / "results/undeclared/gpt-oss-120b").iterdir()} == {
        f"r{number}" for number in (1, 2, 3, 5, 8, 14, 24, 40)
    }
    scored = {path.parent.name for path in tree.glob("results/*/*/*/accuracy_results.json")}
    assert scored == {"r1", "r2", "r5", "r14", "r40"}


@pytest.mark.full
def test_the_official_checker_misses_only_accuracy_samples_in_a_tree_of_recorded_runs(home: TemporaryHome) -> None:
    for number in NUMBERS:
        setup = setup_of(number)
        few = replace(setup, accuracy_samples=min(setup.accuracy_samples, 64), git_sha=None, started_at=0, is_echo=True)
        write_report(home.work / "runs" / f"run-{number}", few)
    done = home.run_cm("run,mlperf,curve", "--from_recorded=runs", "--offline=elected", "--division=RDI")
    assert done.code == 0, done.stderr
    tree = done.answer["new_env"]["CM_MLPERF_CURVE_TREE"]
    checked = home.run_cm("run,mlperf,curve,_check", f"--curve_dir={tree}")
    assert checked.code == 1
    lines = [line.strip() for line in (checked.stdout + checked.stderr).splitlines()]
    official = [line for line in lines if re.match(r"error [a-z-]+:", line)]
    assert len(official) == 1 and official[0].startswith("error accuracy-sample-count"), official
    own = {line.split()[0] for line in lines if re.match(r"E\d+ error:", line)}
    assert {"E13", "E17"} <= own
    viewed = home.run_cm("run,mlperf,curve,_view", f"--curve_dir={tree}")
    assert viewed.code == 0, viewed.stderr
    assert len(json.loads((home.work / "view" / "bundle.json").read_text())["runs"]) == len(NUMBERS)


def test_an_error_names_a_command_of_the_action_that_was_asked_for(tmp_path: Path) -> None:
    refused = recipe.plan(call(tmp_path, {"c_max": "64"}))["error"]
    assert "--url is missing" in refused and "--url must be" not in refused
    assert "--eval_method is missing: a scorer of the client, such as pass_at_1" in refused
    assert refused.endswith("hint: cm help script run-mlperf-curve   # its inputs, with what each may be")
    i = call(tmp_path, {"action": "check"})
    i["env"]["CM_MLPERF_ENDPOINTS_CHECKER_BIN_WITH_PATH"] = "checker"
    checked = recipe.preprocess(i)["error"]
    assert checked.endswith("hint: cm run script --tags=run,mlperf,curve,_check --curve_dir=results/NAME-curve")
