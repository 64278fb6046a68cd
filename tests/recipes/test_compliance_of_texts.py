"""run-mlperf-compliance for language models: with what inputs their tests are made, against what answers are held, and
which files are left. The logs of LoadGen are recorded ones; whole runs are in tests/harness/test_text_benchmarks.py."""

import json
import shutil
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from recipe_loader import load_module, load_recipe

from crowdperf.compliance.verdict_lines import missing_lines
from crowdperf.logs.accuracy_log import DamagedLog

load_recipe("run-mlperf-compliance")
asking = load_module("run-mlperf-compliance", "asking")
limits = load_module("run-mlperf-compliance", "limits")
verifying = load_module("run-mlperf-compliance", "verifying")

LOGS = Path(__file__).resolve().parents[1] / "logs" / "fixtures" / "valid-offline"
TEXT = {
    "endpoint": {"url": "http://127.0.0.1:8000/v1", "model": "m", "api": None, "key_variable": "MY_KEY"},
    "max_in_flight": 32, "client_processes": 2, "kv_cache_bytes": 2_500_000_000, "timeout_s": 60.0,
}  # fmt: skip


def setting(value: object) -> dict[str, object]:
    return {"value": value, "origin": "default"}


def answers(*lengths: int, end: int = 128009) -> str:
    rows = [
        {"seq_id": number, "qsl_idx": number, "token_count": length,
         "data": b"".join(struct.pack("<i", one) for one in [*range(3, length + 2), end]).hex()}
        for number, length in enumerate(lengths)
    ]  # fmt: skip
    return json.dumps(rows)


def make_run(root: Path, model: str, *, is_synthetic: bool = False, text: dict[str, Any] | None = None) -> Any:
    """A measured run of a language model in `root`, with its model's folder."""
    scenario = root / model / "Offline"
    for place in (scenario / "performance" / "run_1", scenario / "accuracy"):
        place.mkdir(parents=True)
        for path in LOGS.iterdir():
            shutil.copy(path, place)
    detail = scenario / "performance" / "run_1" / "mlperf_log_detail.txt"
    mark = ':::MLLOG {"key": "result_tokens_per_second", "value": 1200.0, "time_ms": 1.0, "metadata": '
    mark += '{"is_error": false, "is_warning": false, "file": "x", "line_no": 1, "pid": 1, "tid": 1}}\n'
    rate = mark.replace("tokens", "samples").replace("1200.0", "100.0")
    detail.write_text(detail.read_text() + mark + rate)
    folder = root / "model"
    folder.mkdir(exist_ok=True)
    (folder / "model.json").write_text("{}")
    (folder / "config.json").write_text('{"eos_token_id": 2}')
    (folder / "generation_config.json").write_text('{"eos_token_id": [128001, 128009]}')
    metrics = [{"name": "exact_match", "value": 80.0, "target": None}]
    (scenario / "accuracy" / "accuracy.json").write_text(json.dumps({"metrics": metrics}))
    request = {
        "model": model, "backend": "endpoint", "device": "cpu", "scenario": "Offline", "precision": "fp32",
        "execution_mode": "valid", "threads": None, "batch_timeout_us": None, "gpus": None, "user_conf": None,
        "min_duration_ms": None, "min_query_count": None, "performance_sample_count": None, "text": text or TEXT,
        "model_info_path": str(folder / "model.json"),
    }  # fmt: skip
    found = dict.fromkeys(("model", "dataset"), is_synthetic)
    run = {name: setting(request[name]) for name in ("model", "backend", "device", "scenario", "precision")}
    run |= {"execution_mode": setting("valid"), "batch_size": setting(1), "instances": setting(1)}
    run |= {"threads": setting(2), "target_qps": setting(12.5), "target_latency_ms": None}
    result = {
        "run": run, "is_synthetic": found, "sample_counts": {"dataset": 3}, "model_sha256": {}, "loadgen_version": "6",
    }  # fmt: skip
    return asking.MeasuredRun(scenario_folder=scenario, request=request, result=result, source=None, passed_on={})


def write_test(run: Any, test: str, log: str, count: int = 3) -> Path:
    folder = run.scenario_folder / test / "performance" / "run_1"
    folder.mkdir(parents=True)
    for path in LOGS.iterdir():
        shutil.copy(path, folder)
    (folder / "mlperf_log_accuracy.json").write_text(log)
    (folder / "result.json").write_text(json.dumps({"sample_counts": {"dataset": count}}))
    return run.scenario_folder / test


def score_of(value: float) -> Any:
    return lambda folder: {
        "line": f"{{'exact_match': {value:.3f}}}",
        "metrics": [{"name": "exact_match", "value": value}],
    }


def test_a_test_may_be_silent_for_as_long_as_the_run(tmp_path: Path) -> None:
    run = make_run(tmp_path, "deepseek-r1")
    networks = replace(run, request={**run.request, "text": None, "silence_s": 20.0})
    assert asking.app_inputs(networks, "TEST01", "real")["request_timeout_s"] == "20.0"


def test_a_test_is_made_with_the_engine_of_the_run_and_no_batch_size(tmp_path: Path) -> None:
    inputs = asking.app_inputs(make_run(tmp_path, "deepseek-r1"), "TEST06", "real")
    assert {name: inputs[name] for name in ("endpoint", "endpoint_model", "endpoint_key_variable")} == {
        "endpoint": "http://127.0.0.1:8000/v1", "endpoint_model": "m", "endpoint_key_variable": "MY_KEY",
    }  # fmt: skip
    assert (inputs["max_in_flight"], inputs["kv_cache_gb"], inputs["request_timeout_s"]) == ("32", "2.5", "60.0")
    assert (inputs["client_processes"], inputs["target_qps"]) == ("2", "12.5")
    assert not {"batch_size", "instances", "threads", "endpoint_api"} & set(inputs)


@pytest.mark.parametrize(
    ("files", "ends"),
    [
        ({"config.json": {"eos_token_id": 2}, "generation_config.json": {"eos_token_id": [7, 8]}}, (7, 8)),
        ({"config.json": {"eos_token_id": 2}, "generation_config.json": {}}, (2,)),
        ({"config.json": {"eos_token_id": 2}}, (2,)),
        ({"config.json": {}}, ()),
        ({}, ()),
    ],
)
def test_the_end_tokens_are_those_of_the_model(tmp_path: Path, files: dict[str, Any], ends: tuple[int, ...]) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    assert limits.end_tokens(tmp_path) == ends
    assert limits.end_tokens(None) == ()


@pytest.mark.parametrize("value", ['"2"', "[true]", "[2.5]"])
def test_an_end_token_that_is_no_number_is_named(tmp_path: Path, value: str) -> None:
    (tmp_path / "config.json").write_text(f'{{"eos_token_id": {value}}}')
    with pytest.raises(DamagedLog, match="allowed: a number, or a list of numbers"):
        limits.end_tokens(tmp_path)


def test_test06_looks_for_the_models_own_end_tokens(tmp_path: Path) -> None:
    run = make_run(tmp_path, "llama3.1-8b")
    folder = write_test(run, "TEST06", answers(3, 4, 5))
    outcome = verifying.verify(run, "TEST06", score_of(0.0))
    assert outcome.is_passed, outcome.notes
    assert missing_lines("TEST06", (folder / "verify_accuracy.txt").read_text()) == ()
    assert (folder / "accuracy" / "mlperf_log_accuracy.json").read_text() == answers(3, 4, 5)
    twice = json.loads(answers(3))
    twice[0] |= {"data": twice[0]["data"] + struct.pack("<i", 128001).hex(), "token_count": 4}
    (folder / "performance" / "run_1" / "mlperf_log_accuracy.json").write_text(json.dumps(twice))
    assert not verifying.verify(run, "TEST06", score_of(0.0)).is_passed


def test_a_model_without_an_end_token_is_named(tmp_path: Path) -> None:
    run = make_run(tmp_path, "llama3.1-8b")
    write_test(run, "TEST06", answers(3))
    for name in ("generation_config.json", "config.json"):
        (tmp_path / "model" / name).unlink()
    outcome = verifying.verify(run, "TEST06", score_of(0.0))
    assert not outcome.is_passed and "no eos_token_id in generation_config.json or config.json" in outcome.notes[0]


@pytest.mark.parametrize(
    ("is_synthetic", "value", "is_passed"),
    [(False, 60.698, True), (False, 60.69, False), (True, 79.2, True), (True, 79.1, False)],
)
def test_test07_asks_for_its_score_or_with_made_data_for_the_runs_own(
    tmp_path: Path, is_synthetic: bool, value: float, is_passed: bool
) -> None:
    run = make_run(tmp_path, "gpt-oss-120b", is_synthetic=is_synthetic)
    folder = write_test(run, "TEST07", answers(3))
    assert verifying.verify(run, "TEST07", score_of(value)).is_passed == is_passed
    text = (folder / "verify_accuracy.txt").read_text()
    assert f"Accuracy threshold: {79.2 if is_synthetic else 60.698}\n" in text
    assert ("TEST PASS" in text) == is_passed


@pytest.mark.parametrize(
    ("is_synthetic", "lengths", "is_passed"),
    [
        (False, (1200, 1300, 1400), True),
        (False, (12, 12, 12), False),
        (True, (12, 12, 12), True),  # the performance run's own mean: 1,200 tokens/s of 100 samples/s
        (True, (14, 14, 14), False),
        (True, (12, 12), False),  # one sample is missing
    ],
)
def test_test09_asks_for_its_lengths_or_with_made_data_for_the_runs_own(
    tmp_path: Path, is_synthetic: bool, lengths: tuple[int, ...], is_passed: bool
) -> None:
    run = make_run(tmp_path, "gpt-oss-120b", is_synthetic=is_synthetic)
    folder = write_test(run, "TEST09", answers(*lengths))
    outcome = verifying.verify(run, "TEST09", score_of(0.0))
    assert outcome.is_passed == is_passed, outcome.notes
    assert ("TEST PASS" in (folder / "verify_output_len.txt").read_text()) == is_passed


def test_test07_may_have_other_samples_than_the_run_and_no_other_test() -> None:
    keys = ("model_sha256", "is_synthetic", "loadgen_version")
    one = {**dict.fromkeys(keys, ""), "run": {}, "sample_counts": {"dataset": 64}}
    other = {**one, "sample_counts": {"dataset": 10}}
    assert asking.misfits(one, other, "TEST07") == ()
    assert asking.misfits(one, other, "TEST09") == ("samples of the data set: 64 and 10",)
