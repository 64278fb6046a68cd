"""run-mlperf-inference tells the engine how each of its runs is made again, and what must come out."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from recipe_loader import load_module
from test_run_mlperf_inference import config, matrix, outcome, result, score

record = load_module("run-mlperf-inference", "record")
RunPaths = record.RunPaths

CONF = "# Written by the harness\ndigits.Offline.min_duration = 2000\ndigits.Offline.target_qps = 10150.0\n"


def spec(scenario: str = "Offline", mode: str = "performance", **changes: str) -> Any:
    names = {"CM_MLPERF_LOADGEN_SCENARIO": scenario, "CM_MLPERF_LOADGEN_MODE": mode}
    return matrix.matrix(config(**names, **changes))[0]


def finished(made: Any, *, accuracy: Any = None, **facts: Any) -> Any:
    return outcome.FinishedRun(spec=made, folder="f", result={**result(), **facts}, accuracy=accuracy)


def row(run: Any, folder: Path, passed_on: dict[str, Any] | None = None) -> dict[str, Any]:
    made: dict[str, Any] = record.record_input(run, RunPaths(folder), record.begin(folder, run.spec), passed_on or {})
    return made


def test_the_request_makes_this_run_and_no_other(tmp_path: Path) -> None:
    run = finished(spec("MultiStream", "accuracy", CM_NUM_THREADS="2"), accuracy=score())
    made = row(run, tmp_path, {"adr": {"dataset": {"tags": "_size.500"}}, "env": {"CM_HF_TOKEN": "x"}})
    assert made["name"] == "digits/MultiStream/accuracy"
    assert made["request"] == {
        "tags": "run,mlperf,inference", "quiet": True, "check": "no", "model": "digits", "backend": "onnxruntime",
        "device": "cpu", "precision": "fp32", "source": "real", "scenario": "MultiStream", "mode": "accuracy",
        "execution_mode": "test", "threads": "2", "adr": {"dataset": {"tags": "_size.500"}},
        "env": {"CM_HF_TOKEN": "x"},
    }  # fmt: skip
    assert made["folder_input"] == "results_dir"


def test_the_request_is_one_that_the_recipe_takes(tmp_path: Path) -> None:
    given = row(finished(spec("Server", CM_MLPERF_LOADGEN_TARGET_QPS="50")), tmp_path)["request"]
    again = spec(
        given["scenario"], given["mode"], CM_MLPERF_LOADGEN_TARGET_QPS=given["target_qps"], CM_MLPERF_RUN_CHECK="no"
    )
    assert again.inputs == spec("Server", CM_MLPERF_LOADGEN_TARGET_QPS="50").inputs


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("warm-up estimate", {"batch_size": "16", "instances": "2", "threads": "6", "target_qps": "10990.0"}),
        ("found by an earlier run, shape.json", {"batch_size": "16", "instances": "2", "threads": "6"}),
        ("rule", {}),
    ],
)
def test_what_was_measured_is_fixed_when_the_run_is_made_again(
    tmp_path: Path, origin: str, expected: dict[str, str]
) -> None:
    values = {"batch_size": 16, "instances": 2, "threads": 3, "target_qps": 10990.0, "target_latency_ms": None}
    settings = {name: {"value": value, "origin": origin} for name, value in values.items()}
    request = row(finished(spec(), run={**settings, "target_latency_ms": None}), tmp_path)["request"]
    assert {name: request[name] for name in (*expected, "target_latency_ms") if name in request} == expected
    assert ("batch_size" in request) is bool(expected)


def test_figures_are_exact_or_near_by_their_kind(tmp_path: Path) -> None:
    accuracy = row(finished(spec(mode="accuracy"), accuracy=score(), metric=None), tmp_path)["outcome"]
    assert accuracy["within"] == {}
    assert accuracy["exact"]["valid"] is True
    assert [name for name in accuracy["exact"] if name.startswith("accuracy ")] == ["accuracy acc", "accuracy passed"]
    speed = row(finished(spec()), tmp_path)["outcome"]
    reasons = {"not_judged": [], "slowed_by": [], "not_judged_alone": ["less than 60 s were measured"]}
    short = {"spread_percent": None, **reasons}
    assert speed["within"] == {"throughput (of all)": {"value": 12.5, "unit": "samples/s", **short}}
    metric = {"name": "latency", "value": 2.0, "unit": "ms", "higher_is_better": False}
    better = row(finished(spec(), metric=metric), tmp_path)["outcome"]
    assert better["within"] == {"latency": {"value": 2.0, "unit": "ms", "higher_is_better": False, **short}}
    assert better["further"] == {}
    text = {"ttft_ms": {"mean": 1.0, "p50": 2.0, "p90": 3.0, "p99": 4.0}, "tpot_ms": None, "tokens_per_second": 9.0}
    found = row(finished(spec(), text=text), tmp_path)["outcome"]["further"]
    assert {name: one["value"] for name, one in found.items()} == {
        "TTFT p50": 2.0, "TTFT p90": 3.0, "TTFT p99": 4.0, "tokens per second": 9.0,
    }  # fmt: skip
    assert found["TTFT p99"] == {"value": 4.0, "unit": "ms", "higher_is_better": False, **reasons}
    energy = row(finished(spec(), energy={"j_per_sample": 0.5}, cost={"per_million_samples": 3.0}), tmp_path)
    assert energy["outcome"]["further"] == {
        "energy per sample": {"value": 0.5, "unit": "J", **reasons},
        "cost per million samples": {"value": 3.0, "unit": "", **reasons},
    }


def test_the_lines_of_user_conf_are_inputs_by_their_keys(tmp_path: Path) -> None:
    (tmp_path / "user.conf").write_text(CONF, encoding="utf-8")
    made = row(finished(spec(), model_sha256={"model": "ab"}), tmp_path)
    assert made["inputs"]["user.conf"] == {
        "digits.Offline.min_duration": "2000",
        "digits.Offline.target_qps": "10150.0",
    }
    assert made["inputs"]["model"] == {"model": "ab"}
    assert made["inputs"]["version"]["LoadGen"] == "6.0.17"
    facts = {"model": "own", "dataset": "given", "sample_count": 50, "benchmark_sample_count": 50_000}
    assert row(finished(spec(), provenance=facts), tmp_path)["inputs"]["origin"] == facts  # so that a diff shows it
    assert {"user.conf", "result.json", "accuracy.json"} <= set(made["files"])


def test_a_given_user_conf_is_kept_as_it_was_when_the_run_began(tmp_path: Path) -> None:
    path = tmp_path / "mine.conf"
    path.write_text(CONF, encoding="utf-8")
    run = finished(spec(CM_MLPERF_USER_CONF=str(path)))
    begun = record.begin(tmp_path, run.spec)
    path.write_text("*.Offline.target_qps = 1\n", encoding="utf-8")
    made = record.record_input(run, RunPaths(tmp_path), begun, {})
    assert made["attachments"] == {"user_conf": CONF}
    assert made["request"]["user_conf"] == "<record>/user_conf"


def test_own_prompts_are_known_by_a_digest(tmp_path: Path) -> None:
    own = spec(CM_MLPERF_MODEL="own-prompts", CM_MLPERF_ENDPOINT_URL="http://h/v1", CM_MLPERF_OWN_INPUT_TOKENS="9")
    data = tmp_path / "data"
    data.mkdir()
    (tmp_path / "run.json").write_text('{"dataset_path": "<result>/data"}', encoding="utf-8")
    assert "prompts" not in row(finished(own), tmp_path)["settings"]
    (data / "samples.jsonl").write_text('{"prompt": "Hello"}\n', encoding="utf-8")
    assert row(finished(own), tmp_path)["settings"]["prompts"] == {"value": "ca42d24f", "origin": "data"}
    assert "prompts" not in row(finished(spec()), tmp_path)["settings"]


def test_what_a_sweep_over_servers_varies_is_a_chosen_setting(tmp_path: Path) -> None:
    given = {"endpoint": "http://h/v1", "endpoint_model": "m", "endpoint_api": "chat"}
    keys = ("CM_MLPERF_ENDPOINT_URL", "CM_MLPERF_ENDPOINT_MODEL", "CM_MLPERF_ENDPOINT_API")
    own = spec(
        CM_MLPERF_MODEL="own-prompts", CM_MLPERF_OWN_INPUT_TOKENS="9", **dict(zip(keys, given.values(), strict=True))
    )
    settings = row(finished(own), tmp_path)["settings"]
    assert {name: settings.get(name) for name in given} == {
        name: {"value": value, "origin": "user"} for name, value in given.items()
    }


def test_a_run_that_begins_takes_the_record_of_the_earlier_one_away(tmp_path: Path) -> None:
    (tmp_path / "record.json").write_text("{}", encoding="utf-8")
    record.begin(tmp_path, spec())
    assert not (tmp_path / "record.json").exists()
    record.begin(tmp_path / "not there yet", spec())


def test_a_record_that_cannot_be_written_is_told_and_spoils_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = []

    def access(request: dict[str, Any]) -> dict[str, Any]:
        calls.append(request)
        return {"return": 1, "error": "disk full"}

    run = finished(spec())
    record.write(access, run, tmp_path, record.begin(tmp_path, run.spec), {})
    assert "this run has no record, so it cannot be reproduced: disk full" in capsys.readouterr().out
    assert (calls[0]["action"], calls[0]["folder"]) == ("record", str(tmp_path))


@pytest.mark.parametrize(
    ("model", "digests", "name"),
    [
        ("own-onnx", {"model": "0123456789abcdef"}, "own-onnx-01234567/Offline/performance"),
        ("own-prompts", {}, "own-prompts/Offline/performance"),
        ("digits", {"model": "0123456789abcdef"}, "digits/Offline/performance"),
    ],
)
def test_networks_of_users_are_told_apart_by_their_files(model: str, digests: dict[str, str], name: str) -> None:
    spec: Any = SimpleNamespace(model=model, scenario=matrix.Scenario.OFFLINE, mode=matrix.Mode.PERFORMANCE)
    assert record.run_name(spec, {"model_sha256": digests}) == name
