"""crowdperf.harness.runner.audit and compliance tests as whole runs: LoadGen takes the test's settings, and nothing
is left behind."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from harness_support import SOURCE, Ended, need, request, run_harness
from recipe_programs import program

from crowdperf.compliance.verification import verify_performance, verify_responses
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.runner.audit import FILE, FOLDER, audit_file, clear_audit
from crowdperf.logs.layout import RunPaths
from crowdperf.logs.run_log import read_detail_log, read_run_logs
from crowdperf.rules.compliance import audit_values

need("mlperf_loadgen")

COUNT = 100


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("digits")
    source = program("get-dataset-digits", "make_dataset").read_source()
    np.save(folder / "validation_images.npy", source.images[:COUNT])
    np.save(folder / "validation_labels.npy", source.labels[:COUNT])
    return folder


def run(folder: Path, dataset: Path, **changes: object):
    texts = {"dataset_path": str(dataset), "output_dir": str(folder / "out"), "min_duration_ms": 200,
             "instances": 1, "threads": 1}  # fmt: skip
    return run_harness(folder, request(**{**texts, "backend": "null", **changes}))


def effective(folder: Path) -> dict[str, object]:
    values = read_detail_log(folder / "mlperf_log_detail.txt").values.beginning("effective_")
    return {key.removeprefix("effective_"): value for key, value in values.items()}


SCENARIOS = {"TEST01": "SingleStream", "TEST04": "MultiStream", "TEST05": "Offline", "TEST06": "Offline"}
"""One scenario of each test is looked at always, the others with --full."""


@pytest.mark.parametrize(
    ("test", "scenario"),
    [
        pytest.param(test, scenario, marks=() if SCENARIOS[test] == scenario else pytest.mark.full)
        for test in SCENARIOS
        for scenario in ("SingleStream", "MultiStream", "Offline", "Server")
    ],
)
def test_a_run_of_a_compliance_test_has_its_settings(tmp_path: Path, dataset: Path, test: str, scenario: str) -> None:
    ended = run(tmp_path, dataset, scenario=scenario, compliance_test=test)
    assert ended.code == 0, ended.stderr
    assert not (ended.folder / FOLDER).exists()
    assert ended.result["run"]["compliance_test"] == {"value": test, "origin": "request"}
    assert ended.result["label"].startswith(f"compliance test {test}; ")
    found = effective(ended.folder)
    expected = {"TEST01": 200, "TEST04": 200, "TEST05": 200, "TEST06": 0}
    assert found["min_duration_ms"] == expected[test] == ended.result["run"]["min_duration_ms"]["value"]
    assert (found["accuracy_log_rng_seed"] == 720381539243781796) is (test in ("TEST01", "TEST06"))
    assert found["performance_issue_same"] is (test == "TEST04")
    own_seeds = ended.result["seeds"]["qsl"]
    log = json.loads((ended.folder / "mlperf_log_accuracy.json").read_text())
    assert bool(log) is (test in ("TEST01", "TEST06"))
    if test == "TEST05":
        ordinary = run(tmp_path / "ordinary", dataset, scenario=scenario)
        assert own_seeds != ordinary.result["seeds"]["qsl"]
    if test == "TEST06":
        assert ended.result["run"]["min_duration_ms"]["origin"] == "compliance test"


def test_the_responses_of_a_performance_run_are_those_of_the_accuracy_run(tmp_path: Path, dataset: Path) -> None:
    accuracy = run(tmp_path / "accuracy", dataset, scenario="SingleStream", mode="accuracy")
    tested = run(tmp_path / "test", dataset, scenario="SingleStream", compliance_test="TEST01")
    with (
        RunPaths(accuracy.folder).accuracy_log.open() as reference,
        RunPaths(tested.folder).accuracy_log.open() as sampled,
    ):
        verdict = verify_responses(reference, sampled, "float32")
    assert verdict.is_identical, verdict.lines


def test_the_log_of_test01_is_scored_on_the_samples_that_it_has(tmp_path: Path, dataset: Path) -> None:
    ended = run(tmp_path, dataset, scenario="SingleStream", compliance_test="TEST01", min_duration_ms=100)
    log = RunPaths(ended.folder).accuracy_log
    rows = json.loads(log.read_text())
    kept = [row for row in rows if row["qsl_idx"] < 40]
    log.write_text("[\n" + ",\n".join(map(json.dumps, kept)) + "\n]\n")
    scored = run_harness(tmp_path, json.loads((tmp_path / "run.json").read_text()), "score")
    assert scored.code == 0, scored.stderr
    assert f"total={len({row['qsl_idx'] for row in kept})}\n" in (ended.folder / "accuracy.txt").read_text()


def test_a_run_of_another_test_is_not_scored(tmp_path: Path, dataset: Path) -> None:
    content = request(dataset_path=str(dataset), output_dir=str(tmp_path), compliance_test="TEST04")
    ended = run_harness(tmp_path, content, "score")
    assert ended.code == 2
    assert "a performance run is scored in TEST01 and TEST07 only" in ended.stderr


SERVER = {"scenario": "Server", "target_qps": 1000.0, "min_duration_ms": 500}


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory: pytest.TempPathFactory, dataset: Path) -> Ended:
    """The run that tests of Server are for."""
    return run(tmp_path_factory.mktemp("ordinary"), dataset, **SERVER)


@pytest.mark.parametrize(("test", "part"), [("TEST01", 0.96), ("TEST04", 0.97)])
def test_a_server_test_is_sent_a_little_less_than_the_run_that_it_is_for(
    tmp_path: Path, dataset: Path, ordinary: Ended, test: str, part: float
) -> None:
    tested = run(tmp_path / "test", dataset, compliance_test=test, **SERVER)
    assert ordinary.result["run"]["target_qps"] == {"value": 1000.0, "origin": "user"}
    assert tested.result["run"]["target_qps"] == {"value": 1000.0 * part, "origin": "compliance test"}
    logs = [read_run_logs(RunPaths(ended.folder)) for ended in (ordinary, tested)]
    verdict = verify_performance(test, *logs)
    assert verdict.is_passed, verdict.lines


def test_no_audit_config_that_lies_about_is_read_and_what_a_killed_run_left_is_removed(
    tmp_path: Path, dataset: Path
) -> None:
    left = tmp_path / "out" / FOLDER
    left.mkdir(parents=True)
    for folder in (left, left.parent, tmp_path):  # a killed run's, somebody's, and one in the current folder
        (folder / FILE).write_text("*.*.min_duration = 77\n")
    ended = run(tmp_path, dataset)
    assert ended.code == 0, ended.stderr
    assert read_run_logs(RunPaths(ended.folder)).effective.min_duration_ms == 200
    assert not left.exists()
    assert (tmp_path / "out" / FILE).is_file()


def test_a_compliance_test_that_is_killed_does_not_spoil_the_next_run(tmp_path: Path, dataset: Path) -> None:
    paths = {"dataset_path": str(dataset), "output_dir": str(tmp_path / "out")}
    slow = {"scenario": "Server", "target_qps": 50.0, "min_duration_ms": 60_000}
    content = request(backend="null", compliance_test="TEST04", instances=1, threads=1, batch_size=8, **paths, **slow)
    (tmp_path / "run.json").write_text(json.dumps(content))
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-m", "crowdperf.harness", str(tmp_path / "run.json")]
    left = tmp_path / "out" / FOLDER / FILE
    process = subprocess.Popen(command, env=environment, cwd=tmp_path, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while not left.is_file() and time.monotonic() < deadline:
            assert process.poll() is None
            time.sleep(0.02)
    finally:
        process.kill()
        process.wait()
    assert left.is_file()
    ended = run(tmp_path, dataset)
    assert ended.code == 0, ended.stderr
    assert effective(ended.folder)["performance_issue_same"] is False
    assert not left.parent.exists()


def test_the_file_is_there_during_the_block_only(tmp_path: Path) -> None:
    with audit_file(tmp_path, audit_values("TEST04", "digits", "6.0.17")) as path:
        assert "performance_issue_same = 1" in path.read_text()
    assert list(tmp_path.iterdir()) == []
    with audit_file(tmp_path, None) as path:
        assert not path.exists()
    with pytest.raises(ValueError, match="stop"), audit_file(tmp_path, {"mode": 2}):
        raise ValueError("stop")
    assert list(tmp_path.iterdir()) == []


def test_what_somebody_else_put_beside_it_stays(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "mine").write_text("")
    clear_audit(tmp_path)
    assert (tmp_path / FOLDER / "mine").is_file()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / FOLDER).write_text("a file in the way")
    with pytest.raises(HarnessError, match=FOLDER), audit_file(tmp_path, {"mode": 2}):
        pass
