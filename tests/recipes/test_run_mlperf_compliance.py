"""run-mlperf-compliance: which tests are made with what inputs, what they leave, and what is kept.

LoadGen is a fake here; whole runs with it are in tests/harness/test_audit.py.
"""

import dataclasses
import json
import shutil
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from recipe_loader import input_values, load_module, load_recipe, recipe_meta

recipe = load_recipe("run-mlperf-compliance")
asking = load_module("run-mlperf-compliance", "asking")
finding = load_module("run-mlperf-compliance", "finding")
record = load_module("run-mlperf-compliance", "record")

META = recipe_meta("run-mlperf-compliance")
LOGS = Path(__file__).resolve().parents[1] / "logs" / "fixtures"
SAMPLES = 20


def label_log(indices: list[int], labels: dict[int, float] | None = None) -> str:
    """An accuracy log: sample i has the label i, but for those in `labels`."""
    rows = [
        {"seq_id": number, "qsl_idx": index, "data": struct.pack("<f", (labels or {}).get(index, index)).hex().upper()}
        for number, index in enumerate(indices)
    ]
    return "[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n"


def setting(value: object) -> dict[str, object]:
    return {"value": value, "origin": "user"}


def request(scenario: str, **changes: object) -> dict[str, Any]:
    base = {
        "format": 3, "model": "resnet50", "backend": "onnxruntime", "device": "cpu", "scenario": scenario,
        "mode": "performance", "execution_mode": "valid", "precision": "fp32", "gpus": None, "batch_size": None,
        "instances": None, "threads": None, "batch_timeout_us": None, "min_duration_ms": None, "min_query_count": None,
        "performance_sample_count": None, "target_qps": None, "target_latency_ms": None, "user_conf": None,
        "compliance_test": None,
    }  # fmt: skip
    return {**base, **changes}


def result(scenario: str, **changes: object) -> dict[str, Any]:
    names = ("model", "backend", "device", "scenario", "precision", "execution_mode")
    run: dict[str, Any] = {name: setting(request(scenario)[name]) for name in names}
    run |= {
        "batch_size": setting(8),
        "instances": setting(2),
        "threads": setting(1),
        "min_duration_ms": setting(600000),
    }
    run |= {"target_qps": setting(70.5) if scenario in ("Offline", "Server") else None}
    run |= {"target_latency_ms": setting(3.5) if scenario != "Offline" else None}
    content = {
        "valid": True, "invalid_reasons": [], "run": run, "model_sha256": {"model": "a" * 64},
        "is_synthetic": {"model": True, "dataset": True}, "sample_counts": {"dataset": SAMPLES},
        "loadgen_version": "6.0.17",
    }  # fmt: skip
    return {**content, **changes}


def write_run(folder: Path, scenario: str, **changes: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for path in (LOGS / f"valid-{scenario.lower()}").iterdir():
        shutil.copy(path, folder)
    (folder / "run.json").write_text(json.dumps(request(scenario, **changes)))
    (folder / "result.json").write_text(json.dumps(result(scenario)))


def make_scenario(folder: Path, scenario: str = "Offline") -> Path:
    """A scenario's folder with a performance run and a scored accuracy run."""
    write_run(folder / "performance" / "run_1", scenario)
    accuracy = folder / "accuracy"
    accuracy.mkdir()
    (accuracy / "mlperf_log_accuracy.json").write_text(label_log(list(range(SAMPLES))))
    (accuracy / "accuracy.txt").write_text("accuracy=100.000%, good=20, total=20\n")
    return folder


class FakeCM:
    """Stands for the recipes below. `labels`: what the test's run answers instead; `factor`: its score by the run's;
    `dies`: names of recipes that fail."""

    def __init__(self, labels: dict[int, float] | None = None, factor: float = 1.0) -> None:
        self.calls: list[dict[str, Any]] = []
        self.labels = labels
        self.factor = factor
        self.dies: tuple[str, ...] = ()

    def access(self, inputs: dict[str, Any]) -> dict[str, Any]:
        self.calls.append(inputs)
        if any(name in inputs["tags"] for name in self.dies):
            return {"return": 1, "error": "it died"}
        return self.score(inputs) if "accuracy" in inputs["tags"] else self.run(inputs)

    def run(self, inputs: dict[str, Any]) -> dict[str, Any]:
        folder = Path(inputs["output_dir"])
        scenario = {"_offline": "Offline", "_server": "Server", "_singlestream": "SingleStream"}[
            next(word for word in inputs["tags"].split(",") if word in ("_offline", "_server", "_singlestream"))
        ]
        write_run(folder, scenario, compliance_test=inputs["compliance_test"])
        detail = folder / "mlperf_log_detail.txt"
        figure = {"Offline": "1.61221e+06", "Server": "5159.22", "SingleStream": "2820"}[scenario]
        assert figure in detail.read_text()
        detail.write_text(detail.read_text().replace(f'"value": {figure}', f'"value": {self.factor * float(figure):g}'))
        log = label_log([3, 7, 3, 11], self.labels) if inputs["compliance_test"] == "TEST01" else "[]\n"
        (folder / "mlperf_log_accuracy.json").write_text(log)
        return {"return": 0, "new_state": {}}

    def score(self, inputs: dict[str, Any]) -> dict[str, Any]:
        folder = Path(inputs["result_dir"])
        assert json.loads((folder / "run.json").read_text())["compliance_test"] == "TEST01"
        rows = {row["qsl_idx"]: row for row in json.loads((folder / "mlperf_log_accuracy.json").read_text())}
        right = sum(struct.unpack("<f", bytes.fromhex(row["data"]))[0] == index for index, row in rows.items())
        value = 100.0 * right / len(rows)
        line = f"accuracy={value:.3f}%, good={right}, total={len(rows)}"
        (folder / "accuracy.txt").write_text(line + "\n")
        metrics = [{"name": "acc", "value": value, "target": 75.0}]
        return {"return": 0, "new_state": {"mlperf_accuracy": {"line": line, "metrics": metrics}}}

    @property
    def tests_run(self) -> list[str]:
        return [call["compliance_test"] for call in self.calls if "compliance_test" in call]


def call(folder: Path, cm: FakeCM, inputs: dict[str, Any] | None = None, **env: str) -> dict[str, Any]:
    i = {
        "env": {
            "CM_MLPERF_RESULTS_DIR": str(folder), "CM_MLPERF_COMPLIANCE_TESTS": "all",
            "CM_MLPERF_SUBMISSION_DIVISION": "closed", "CM_MLPERF_SUBMISSION_VERSION": "v6.1", **env,
        },
        "state": {}, "input": inputs or {}, "automation": SimpleNamespace(cmind=cm), "meta": META,
    }  # fmt: skip
    answer = recipe.preprocess(i)
    return {**answer, "passed": i["env"].get("CM_MLPERF_COMPLIANCE_PASSED"), "state": i["state"]}


def test_the_tests_of_the_round_are_made_with_the_runs_own_inputs(tmp_path, capsys):
    scenario = make_scenario(tmp_path / "resnet50" / "Offline")
    cm = FakeCM()
    answer = call(tmp_path, cm)
    assert (answer["return"], answer["passed"]) == (0, "yes")
    assert cm.tests_run == ["TEST01", "TEST04"]
    assert cm.calls[0] == {
        "tags": "app,mlperf,inference,_resnet50,_onnxruntime,_cpu,_offline,_performance",
        "compliance_test": "TEST01", "compliance_reference": str(scenario / "performance" / "run_1"),
        "execution_mode": "valid", "batch_size": "8", "instances": "2", "threads": "2", "target_qps": "70.5",
        "output_dir": str(scenario / "TEST01" / "performance" / "run_1"),
        "action": "run", "automation": "script,5b4e0237da074764", "quiet": True, "silent": False,
    }  # fmt: skip
    told = capsys.readouterr().out
    assert "2 compliance tests, division closed, round v6.1" in told
    assert "at least 600 s as the run that it is for" in told
    assert "resnet50 Offline TEST01: PASSED" in told


def test_a_submissions_files_are_left_in_the_folder_of_the_test(tmp_path):
    make_scenario(tmp_path / "Offline")
    call(tmp_path, FakeCM())
    test01, test04 = tmp_path / "Offline" / "TEST01", tmp_path / "Offline" / "TEST04"
    assert sorted(path.name for path in (test01 / "accuracy").iterdir()) == ["accuracy.txt", "mlperf_log_accuracy.json"]
    assert (test01 / "accuracy" / "accuracy.txt").read_text() == "accuracy=100.000%, good=3, total=3\n"
    for path in (test01 / "verify_performance.txt", test01 / "verify_accuracy.txt", test04 / "verify_performance.txt"):
        assert path.read_text().splitlines()[-1] == "TEST PASS"
    assert (test01 / "performance" / "run_1" / "mlperf_log_detail.txt").is_file()
    assert not (test04 / "accuracy").exists()
    assert list(tmp_path.rglob(".*")) == []


@pytest.mark.parametrize("division", ["open"])
def test_an_open_submission_needs_none(tmp_path, capsys, division):
    make_scenario(tmp_path / "Offline")
    cm = FakeCM()
    answer = call(tmp_path, cm, CM_MLPERF_SUBMISSION_DIVISION=division)
    assert (answer["return"], answer["passed"], cm.calls) == (0, "yes", [])
    assert "no compliance test is needed: an open submission is exempt in v6.1" in capsys.readouterr().out


def test_a_benchmark_that_needs_none_in_the_round_is_exempt(tmp_path, capsys):
    make_scenario(tmp_path / "Offline")
    for name in ("run.json",):
        path = tmp_path / "Offline" / "performance" / "run_1" / name
        path.write_text(path.read_text().replace("resnet50", "gptj-99"))
    assert call(tmp_path, FakeCM(), CM_MLPERF_SUBMISSION_VERSION="v4.1")["return"] == 0
    assert "no compliance test is needed: gptj-99 is exempt in v4.1" in capsys.readouterr().out
    command = f"cm run script --tags=run,mlperf,compliance --results_dir={tmp_path} --division=closed --version=v4.1"
    for test in ("all", "TEST06"):
        refused = call(tmp_path, FakeCM(), CM_MLPERF_SUBMISSION_VERSION="v5.0", CM_MLPERF_COMPLIANCE_TESTS=test)
        assert refused["error"].splitlines()[-1].strip() == f"hint: {command}"


def test_a_test_that_passed_is_kept_and_one_of_other_inputs_is_made_again(tmp_path, capsys):
    make_scenario(tmp_path / "Offline")
    call(tmp_path, FakeCM())
    again = FakeCM()
    assert call(tmp_path, again)["return"] == 0
    assert again.calls == []
    assert "has passed with the same inputs, kept" in capsys.readouterr().out
    assert call(tmp_path, again, CM_RERUN="yes", CM_MLPERF_COMPLIANCE_TESTS="TEST04")["return"] == 0
    assert again.tests_run == ["TEST04"]
    log = tmp_path / "Offline" / "accuracy" / "mlperf_log_accuracy.json"
    log.write_text(label_log([*range(SAMPLES), 0]))
    other = FakeCM()
    call(tmp_path, other)
    assert other.tests_run == ["TEST01"]  # only this one is compared with the accuracy run
    further = FakeCM()
    call(tmp_path, further, inputs={"adr": {"dataset": {"tags": "_size.500"}}})
    assert further.tests_run == ["TEST01", "TEST04"]
    assert further.calls[0]["adr"] == {"dataset": {"tags": "_size.500"}}


def test_a_results_folder_may_be_moved(tmp_path):
    make_scenario(tmp_path / "here" / "Offline")
    call(tmp_path / "here", FakeCM())
    (tmp_path / "here").rename(tmp_path / "there")
    cm = FakeCM()
    assert call(tmp_path / "there", cm)["return"] == 0
    assert cm.calls == []
    assert str(tmp_path) not in (tmp_path / "there" / "Offline" / "TEST01" / "compliance.json").read_text()


@pytest.mark.parametrize(
    ("name", "tests"),
    [
        ("TEST01/verify_accuracy.txt", []),
        ("TEST01/accuracy/accuracy.txt", []),
        ("TEST04/verify_performance.txt", []),
        ("TEST01/performance/run_1/mlperf_log_detail.txt", ["TEST01"]),
        ("TEST04/performance/run_1/mlperf_log_summary.txt", ["TEST04"]),
        ("TEST04/compliance.json", ["TEST04"]),
    ],
)
def test_a_file_that_was_lost_is_made_again_without_a_run_where_that_can_be(tmp_path, name, tests):
    make_scenario(tmp_path / "Offline")
    call(tmp_path, FakeCM())
    lost = tmp_path / "Offline" / name
    lost.unlink()
    cm = FakeCM()
    assert call(tmp_path, cm)["return"] == 0
    assert cm.tests_run == tests
    assert lost.is_file()


def test_a_test_that_failed_is_an_error_and_is_made_again(tmp_path, capsys):
    make_scenario(tmp_path / "Offline")
    answer = call(tmp_path, FakeCM(factor=0.8))
    assert (answer["return"], answer["passed"]) == (1, "no")
    assert "compliance tests failed: resnet50 Offline TEST01\nhint: " in answer["error"]
    text = (tmp_path / "Offline" / "TEST01" / "verify_performance.txt").read_text()
    assert "TEST PASS" not in text and "score out of tolerance" in text
    again = FakeCM()
    assert call(tmp_path, again)["return"] == 0
    assert again.tests_run == ["TEST01"]
    assert [row["test"] for row in answer["state"]["mlperf_compliance"]["tests"]] == ["TEST01", "TEST04"]
    capsys.readouterr()


@pytest.mark.parametrize(
    ("labels", "is_passed"),
    [({7: 7.5}, False), ({3: 3.0}, True)],  # one of three answers wrong: more than a percent
)
def test_other_responses_are_judged_by_the_scores_of_both_on_the_same_samples(tmp_path, labels, is_passed):
    make_scenario(tmp_path / "Offline")
    cm = FakeCM(labels=labels)
    answer = call(tmp_path, cm, CM_MLPERF_COMPLIANCE_TESTS="test01")
    assert answer["return"] == (0 if is_passed else 1)
    folder = tmp_path / "Offline" / "TEST01"
    names = {path.name for path in (folder / "accuracy").iterdir()} - {"accuracy.txt", "mlperf_log_accuracy.json"}
    assert names == (set() if is_passed else {"baseline_accuracy.txt", "compliance_accuracy.txt"})
    if not is_passed:
        assert "TEST FAIL" in (folder / "verify_accuracy.txt").read_text()
        assert (folder / "accuracy" / "baseline_accuracy.txt").read_text() == "accuracy=100.000%, good=3, total=3\n"
        assert "good=2, total=3" in (folder / "accuracy" / "compliance_accuracy.txt").read_text()
    assert not (folder / ".baseline").exists()


def test_a_model_that_does_not_repeat_itself_passes_when_it_scores_the_same(tmp_path):
    make_scenario(tmp_path / "Offline")
    wrong_too = tmp_path / "Offline" / "accuracy" / "mlperf_log_accuracy.json"
    wrong_too.write_text(label_log(list(range(SAMPLES)), {7: 100.0}))
    assert call(tmp_path, FakeCM(labels={7: 99.0}), CM_MLPERF_COMPLIANCE_TESTS="TEST01")["return"] == 0
    folder = tmp_path / "Offline" / "TEST01"
    assert "TEST FAIL" in (folder / "verify_accuracy.txt").read_text()  # as the official script says
    assert "% apart, allowed 1 %" in (folder / "compliance.json").read_text()


@pytest.mark.parametrize("dies", ["inference", "accuracy"])
def test_a_call_goes_on_where_the_last_one_ended(tmp_path, dies):
    make_scenario(tmp_path / "Offline")
    cm = FakeCM()
    cm.dies = (dies,)
    answer = call(tmp_path, cm)
    assert (answer["return"], answer["error"]) == (1, "it died")
    again = FakeCM()
    assert call(tmp_path, again)["return"] == 0
    assert again.tests_run == (["TEST01", "TEST04"] if dies == "inference" else ["TEST04"])


def test_a_run_made_with_another_model_fails(tmp_path):
    scenario = make_scenario(tmp_path / "Offline")
    path = scenario / "performance" / "run_1" / "result.json"
    path.write_text(json.dumps(result("Offline", model_sha256={"model": "b" * 64})))
    answer = call(tmp_path, FakeCM(), CM_MLPERF_COMPLIANCE_TESTS="TEST04")
    assert answer["return"] == 1
    assert "not made with the same inputs: model_sha256" in (scenario / "TEST04" / "compliance.json").read_text()


def test_every_wrong_input_is_named(tmp_path):
    answer = call(
        tmp_path, FakeCM(), CM_MLPERF_SUBMISSION_VERSION="v9", CM_MLPERF_RESULTS_DIR="",
    )  # fmt: skip
    for words in ("--version: unknown round 'v9'", "--results_dir"):
        assert words in answer["error"]


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda folder: shutil.rmtree(folder / "performance"), "has no finished performance run"),
        (lambda folder: (folder / "performance" / "run_1" / "result.json").unlink(), "is not finished"),
        (lambda folder: shutil.rmtree(folder / "accuracy"), "needs a scored accuracy run"),
        (
            lambda folder: (folder / "performance" / "run_1" / "result.json").write_text(
                json.dumps(result("Offline", valid=False, invalid_reasons=["too short"]))
            ),
            "is INVALID: too short",
        ),
        (lambda folder: (folder / "performance" / "run_1" / "run.json").write_text("{"), "cannot read "),
    ],
)
def test_runs_that_cannot_be_tested_are_refused_before_anything_is_run(tmp_path, damage, expected):
    damage(make_scenario(tmp_path / "Offline"))
    cm = FakeCM()
    answer = call(tmp_path, cm)
    assert answer["return"] == 1 and expected in answer["error"] and "hint: cm run script" in answer["error"]
    assert cm.calls == []


def test_tests_of_old_rounds_that_are_not_made_here_are_said(tmp_path):
    make_scenario(tmp_path / "Offline")
    answer = call(tmp_path, FakeCM(), CM_MLPERF_SUBMISSION_VERSION="v2.0")
    assert "needs TEST04-A, TEST04-B in v2.0" in answer["error"]
    assert "--test=TEST01,TEST05 makes the others" in answer["error"]


SESSIONS = {
    "of one call": {"format": 1, "settings": {"source": "tiny", "passed_on": {"adr": {"dataset": {"tags": "_a"}}}}},
    "that calls share": {
        "format": 2,
        "runs": {
            "resnet50/Offline/performance/run_1": {
                "request": {"source": "tiny", "passed_on": {"adr": {"dataset": {"tags": "_a"}}}}
            }
        },
    },
}


@pytest.mark.parametrize("session", SESSIONS.values(), ids=list(SESSIONS))
def test_model_and_data_set_are_those_that_session_json_names(tmp_path, session):
    make_scenario(tmp_path / "id" / "resnet50" / "Offline")
    (tmp_path / "id" / "session.json").write_text(json.dumps(session))
    cm = FakeCM()
    assert call(tmp_path / "id" / "resnet50" / "Offline", cm)["return"] == 0
    assert ",_cpu,_tiny,_offline," in cm.calls[0]["tags"]
    assert cm.calls[0]["adr"] == {"dataset": {"tags": "_a"}}
    assert cm.calls[1]["tags"] == "process,mlperf,accuracy,_imagenet"


def test_a_server_run_is_asked_for_with_its_rate_and_limit_and_a_stream_with_its_latency(tmp_path):
    for scenario in ("Server", "SingleStream"):
        make_scenario(tmp_path / scenario, scenario)
    cm = FakeCM()
    call(tmp_path, cm, CM_MLPERF_COMPLIANCE_TESTS="TEST04")
    server, stream = cm.calls
    assert (server["target_qps"], server["target_latency_ms"], server["batch_size"]) == ("70.5", "3.5", "8")
    assert "target_qps" not in stream and "batch_size" not in stream and stream["target_latency_ms"] == "3.5"


def test_the_plan_lists_the_runs_and_changes_nothing(tmp_path):
    make_scenario(tmp_path / "Offline")
    before = sorted(tmp_path.rglob("*"))
    env = {
        "CM_MLPERF_RESULTS_DIR": str(tmp_path), "CM_MLPERF_SUBMISSION_DIVISION": "closed",
        "CM_MLPERF_SUBMISSION_VERSION": "v6.1",
    }  # fmt: skip
    answer = recipe.plan({"env": env, "input": {}, "meta": META})
    assert [run["compliance_test"] for run in answer["runs"]] == ["TEST01", "TEST04"]
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 9}', '{"format": 1, "test": "TEST01"}'])
def test_a_damaged_record_counts_as_none(tmp_path, text):
    (tmp_path / record.FILE).write_text(text)
    assert record.read_record(tmp_path) is None


def asked(division: str, round_name: str = "v6.1") -> Any:
    return asking.Call(folder=Path(), tests=None, round_name=round_name, division=division, source=None, is_rerun=False)


def test_a_benchmark_that_the_round_no_longer_has_names_the_newest_round_with_it():
    with pytest.raises(asking.WrongCall, match=r"--version=v5\.0 selects the newest that has it and --test selects"):
        asking.wanted_tests(asked("closed"), "gptj-99")
    assert asking.wanted_tests(asked("open"), "gptj-99") == ()
    assert asking.wanted_tests(asked("closed", "v6.1"), "resnet50")


@pytest.mark.parametrize(
    ("benchmark", "round_name", "tests"),
    [
        ("resnet50", "v6.1", ("TEST01", "TEST04")),
        ("rnnt", "v4.0", ("TEST01", "TEST05")),
    ],
)
def test_without_a_version_the_newest_round_that_has_the_benchmark_decides(benchmark, round_name, tests):
    assert asking.round_of(asked("closed", ""), benchmark) == round_name
    assert asking.wanted_tests(asked("closed", ""), benchmark) == tests


@pytest.mark.parametrize("tests", [None, ("TEST06",)])
def test_a_test_that_cannot_pass_is_refused_at_once_with_the_round_that_asks_for_none(tests):
    with pytest.raises(asking.WrongCall, match=r"TEST06 of gptj-99 cannot pass.*--version=v4\.1"):
        asking.wanted_tests(dataclasses.replace(asked("closed", ""), tests=tests), "gptj-99")
    assert asking.wanted_tests(asked("closed", "v4.1"), "gptj-99") == ()
    assert asking.wanted_tests(asked("closed", "v6.1"), "llama2-70b-99.9")


def test_the_round_that_is_named_is_that_of_the_benchmark(tmp_path, capsys):
    make_scenario(tmp_path / "Offline")
    path = tmp_path / "Offline" / "performance" / "run_1" / "run.json"
    path.write_text(path.read_text().replace("resnet50", "gptj-99"))
    assert (
        call(tmp_path, FakeCM(), CM_MLPERF_SUBMISSION_DIVISION="open", CM_MLPERF_SUBMISSION_VERSION="")["return"] == 0
    )
    assert "exempt in v5.0" in capsys.readouterr().out


@pytest.mark.parametrize("test", ["TEST04-A", "test04-b"])
def test_the_two_runs_of_test04_up_to_v20_are_refused_with_their_round(test):
    (problem,) = input_values("run-mlperf-compliance", {}, test=test).problems()
    assert "rounds up to v2.0" in problem
