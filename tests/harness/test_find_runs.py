"""find-performance with the real LoadGen: whole searches, each a process of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from harness_support import TIMEOUT_S, need, request, run_harness
from test_harness_runs import ONE, RAISING_BACKEND, SLOW_BACKEND, Digits, digits, with_backend

from crowdperf.logs.layout import RunPaths
from crowdperf.logs.run_log import read_run_logs
from crowdperf.rules.names import Scenario

need("mlperf_loadgen", "onnxruntime")

__all__ = ["digits"]  # a fixture

SHORT = {"min_duration_ms": 200, "min_query_count": 459}
SLOW = {"backend": "slow", "batch_size": 4, "instances": 1, "threads": 1, "target_qps": 1000}
"""A batch of at most four takes a millisecond and a little more."""


def find_request(digits: Digits, folder: Path, **changes: object) -> dict[str, object]:
    return digits.request(folder, **{"find": True, "scenario": "Server", **SHORT, **changes})


def slow_backend(folder: Path, seconds: float) -> Path:
    return with_backend(folder, "slow", SLOW_BACKEND.replace("0.001", str(seconds)), "onnxruntime")


def found(folder: Path) -> dict:
    return json.loads((folder / "out" / "find.json").read_text())


@pytest.mark.alone
def test_a_search_ends_at_a_rate_that_held_and_says_that_it_is_no_result(digits: Digits, tmp_path: Path) -> None:
    source = slow_backend(tmp_path, 0.001)
    content = find_request(digits, tmp_path, target_latency_ms=40, **SLOW)
    ended = run_harness(tmp_path, content, source=source)
    assert ended.code == 0, ended.stderr
    told, result = found(tmp_path), ended.result
    rate = told["settings"]["target_qps"]["value"]
    assert told["is_finished"] is True
    assert 100 < rate < 4000
    runs = [probe for probe in told["probes"] if probe["rate"] == rate]
    assert runs[-1]["verdict"] == "VALID"
    assert told["confidence"]["is_confirmed"] is (runs[-1]["kind"] == "confirmation")
    assert {probe["verdict"] for probe in told["probes"]} > {"VALID"}
    assert all(probe["reason"] for probe in told["probes"] if probe["verdict"] != "VALID")
    assert (told["limits"]["estimate"], told["limits"]["tolerance"]) == ({"value": 1000.0, "origin": "user"}, 0.02)
    assert told["spent_s"] < 60
    logs = [read_run_logs(RunPaths(tmp_path / "out" / probe["folder"])) for probe in told["probes"]]
    assert {log.seeds for log in logs} == {logs[0].seeds}  # those of the round, in every run of the process
    assert [log.effective.target_qps for log in logs] == [probe["rate"] for probe in told["probes"]]
    assert result["valid"] is False
    assert result["label"].startswith("a search for the best target, never a result; test run")
    assert result["run"]["target_qps"] == {"value": rate, "origin": "find-performance"}
    assert f"harness: found target_qps {rate:.6g} (" in ended.stderr
    assert "never a result" in ended.stderr.splitlines()[-1]
    assert ended.stderr.count("harness: find: probe") + ended.stderr.count("harness: find: confirmation") >= len(logs)
    assert not (tmp_path / "out" / "mlperf_log_summary.txt").exists()


def test_a_hopeless_run_is_given_up_at_once_and_no_rate_is_an_error_that_says_what_was_tried(
    digits: Digits, tmp_path: Path
) -> None:
    source = slow_backend(tmp_path, 0.01)
    content = find_request(
        digits, tmp_path, backend="slow", target_latency_ms=5, min_duration_ms=10_000, batch_size=1, target_qps=100
    )
    ended = run_harness(tmp_path, content, source=source)
    assert ended.code == 1
    assert "no rate was found that meets the limit of 5 ms: a single query already takes longer" in ended.stderr
    assert "At the lowest rate, 100 queries/s, p99 was" in ended.stderr
    assert "--target_latency_ms" in ended.stderr
    assert "Traceback" not in ended.stderr
    told = found(tmp_path)
    assert (told["is_finished"], told["settings"], told["probes"][0]["verdict"]) == (True, {}, "ABANDONED")
    assert told["probes"][0]["took_s"] < 10  # the run was not made to its end
    assert 9 < told["probes"][0]["p50_ms"] <= told["probes"][0]["p99_ms"]  # of true answers only
    assert "no rate was found" in told["error"]
    assert not (ended.folder / "result.json").exists()


def test_a_network_too_slow_for_the_budget_is_refused_before_the_search(digits: Digits, tmp_path: Path) -> None:
    source = slow_backend(tmp_path, 0.05)
    content = find_request(
        digits, tmp_path, backend="slow", target_latency_ms=200, batch_size=1, instances=1, threads=1
    )
    ended = run_harness(tmp_path, {**content, "min_query_count": None}, source=source)
    assert ended.code == 1
    assert "at least 662 queries" in ended.stderr
    assert "The budget of this execution mode is 60 s" in ended.stderr
    assert "--execution_mode" in ended.stderr
    assert not (ended.folder / "result.json").exists()


@pytest.mark.alone
def test_a_network_that_hangs_in_a_search_ends_it(digits: Digits, tmp_path: Path) -> None:
    hangs = "time.sleep(60 if time.monotonic() - STARTED_S > 4 else 0.001)"
    text = SLOW_BACKEND.replace("time.sleep(0.001)", hangs).replace(
        "class Slow", "STARTED_S = time.monotonic()\nclass Slow"
    )
    source = with_backend(tmp_path, "slow", text, "onnxruntime")
    content = find_request(digits, tmp_path, target_latency_ms=40, **{**SLOW, "min_duration_ms": 2000})
    ended = run_harness(tmp_path, {**content, "silence_s": 1.0}, source=source)
    assert ended.code == 1
    assert "inference failed during the run: no response for 1 s while" in ended.stderr
    assert list((tmp_path / "out").glob("probes/*/mlperf_log_summary.txt"))  # the warm-up was over
    assert not (ended.folder / "result.json").exists()


@pytest.mark.alone
@pytest.mark.full
def test_a_killed_search_goes_on_where_it_stood(digits: Digits, tmp_path: Path) -> None:
    source = slow_backend(tmp_path, 0.001)
    content = find_request(digits, tmp_path, target_latency_ms=40, **SLOW)
    run_json = tmp_path / "run.json"
    run_json.write_text(json.dumps(content))
    environment = {**os.environ, "PYTHONPATH": str(source)}
    process = subprocess.Popen(
        [sys.executable, "-m", "crowdperf.harness", str(run_json)],
        env=environment,
        cwd=tmp_path,
        stderr=subprocess.DEVNULL,
    )
    done = 0
    end_s = time.monotonic() + TIMEOUT_S
    while done < 2 and time.monotonic() < end_s and process.poll() is None:
        time.sleep(0.1)
        if (tmp_path / "out" / "find.json").exists():
            done = len(found(tmp_path)["probes"])
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = found(tmp_path)
    assert (before["is_finished"], before["settings"]) == (False, {})
    assert not (tmp_path / "out" / "result.json").exists()
    ended = run_harness(tmp_path, content, source=source)
    assert ended.code == 0, ended.stderr
    after = found(tmp_path)
    assert after["probes"][: len(before["probes"])] == before["probes"]
    assert f"{len(before['probes'])} runs finished" in ended.stderr
    assert after["spent_s"] > before["spent_s"]
    assert after["settings"]["target_qps"]["value"] > 0


@pytest.mark.alone
@pytest.mark.parametrize("scenario", ["SingleStream", pytest.param("MultiStream", marks=pytest.mark.full), "Offline"])
def test_the_other_scenarios_are_measured_once_for_a_later_run(digits: Digits, tmp_path: Path, scenario: str) -> None:
    content = find_request(
        digits, tmp_path, scenario=scenario, **ONE, backend="onnxruntime", min_query_count=None, execution_mode="valid"
    )
    ended = run_harness(tmp_path, content)
    assert ended.code == 0, ended.stderr
    told = found(tmp_path)
    name = "target_latency_ms" if Scenario(scenario).is_stream else "target_qps"
    assert list(told["settings"]) == [name]
    assert len(told["probes"]) == 1
    assert ended.result["valid"] is False
    given = {name: told["settings"][name]["value"]}
    later = run_harness(tmp_path / "later", digits.request(tmp_path / "later", scenario=scenario, min_duration_ms=300,
                                                          backend="onnxruntime", **ONE, **given))  # fmt: skip
    assert later.code == 0, later.stderr
    assert later.result["min_duration_met"] is True
    assert not any("ran out of generated queries" in reason for reason in later.result["invalid_reasons"])


def test_a_backend_that_raises_ends_the_search_with_its_error(digits: Digits, tmp_path: Path) -> None:
    source = with_backend(tmp_path, "raising", RAISING_BACKEND, "null")
    ended = run_harness(tmp_path, find_request(digits, tmp_path, backend="raising", threads=1), source=source)
    assert ended.code == 1, ended.stderr
    assert "the accelerator is on fire" in ended.stderr
    assert not (ended.folder / "result.json").exists()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"mode": "accuracy"}, "targets are looked for in performance mode"),
        ({"compliance_test": "TEST01"}, "a compliance test has the targets of the run that it is for"),
        ({"find": "yes"}, 'find: found "yes"; allowed: true or false'),
    ],
)
def test_a_search_that_makes_no_sense_is_refused(digits: Digits, tmp_path: Path, changes: dict, said: str) -> None:
    ended = run_harness(tmp_path, {**request(find=True, output_dir=str(tmp_path / "out")), **changes})
    assert ended.code == 2
    assert said in ended.stderr
