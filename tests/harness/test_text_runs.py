"""Whole runs of a text benchmark with LoadGen: the same way in every scenario."""

import json
from pathlib import Path

import pytest
from harness_support import need, run_harness
from text_toys import COUNT, add_parrot, parrot_request

need("numpy", "mlperf_loadgen")

SHORT = {"min_duration_ms": 100, "min_query_count": 20}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("text")
    add_parrot(folder)
    return folder


def run(root: Path, **changes: object):
    content = parrot_request(root, **changes)
    ended = run_harness(root / f"call-{Path(str(content['output_dir'])).name}", content, source=root / "source")
    return content, ended


def check(result: dict) -> None:
    """What holds for every good run."""
    tally = result["text"]["tally"]
    assert tally["issued"] == tally["completed"] > 0
    assert (tally["failed"], tally["skipped_pieces"], tally["late_first_tokens"]) == (0, 0, 0)
    assert sum(tally["finish_reasons"].values()) == tally["completed"]
    assert sum(bar["count"] for bar in tally["lengths"]["histogram"]) == tally["completed"]
    assert tally["tokens_in"] == 5 * tally["issued"]
    assert result["errors"] == 0
    assert "stand-in for a backend" in result["label"]


def test_a_server_run_measures_tokens_and_keeps_the_limits_of_the_benchmark(root: Path) -> None:
    _, ended = run(root, scenario="Server", min_duration_ms=600, min_query_count=460, target_qps=800)
    assert ended.code == 0, ended.stderr
    result, text = ended.result, ended.result["text"]
    check(result)
    assert result["valid"], result["invalid_reasons"]
    assert (result["metric"]["name"], result["metric"]["unit"]) == ("tokens per second", "tokens/s")
    assert text["tokens_per_second"] == result["metric"]["value"] > text["samples_per_second"] > 100
    assert text["limits"] == {"ttft_ms": 500.0, "tpot_ms": 200.0, "percentile": 99}
    assert 4 <= text["ttft_ms"]["p50"] <= text["ttft_ms"]["p99"] < 500
    assert 0.3 <= text["tpot_ms"]["p50"] < 200
    lines = (ended.folder / "user.conf").read_text()
    for line in ("use_token_latencies = 1", "ttft_latency = 500", "tpot_latency = 200", "target_latency = 0"):
        assert f"parrot.Server.{line}" in lines
    assert result["run"]["target_latency_ms"] is None
    metadata = json.loads((ended.folder / "metadata.json").read_text())
    assert metadata["scenario_key"] == "result_completed_tokens_per_second"
    assert metadata["result_completed_tokens_per_second"] == text["tokens_per_second"]
    assert metadata["result_first_token_99.00_percentile_latency_ns"] == round(text["ttft_ms"]["p99"] * 1e6)
    assert metadata["answer_lengths"]["max"] == 8


def test_a_single_stream_run_gets_first_tokens_and_the_plain_percentile_is_its_figure(root: Path) -> None:
    _, ended = run(root, scenario="SingleStream", **SHORT)
    assert ended.code == 0, ended.stderr
    result = ended.result
    check(result)
    assert result["metric"]["name"] == "90th percentile latency"
    assert result["metric"]["value"] == result["latency"]["p90_ns"] / 1e6
    assert result["text"]["ttft_ms"]["p90"] < result["metric"]["value"]
    assert result["text"]["samples_per_second"] is None


def test_an_accuracy_run_logs_first_tokens_and_counts_and_is_scored(root: Path) -> None:
    content, ended = run(root, scenario="Server", mode="accuracy")
    assert ended.code == 0, ended.stderr
    check(ended.result)
    entries = json.loads((ended.folder / "mlperf_log_accuracy.json").read_text())
    assert len(entries) == COUNT
    assert all(entry["data"].startswith(entry["token_data"]) and len(entry["token_data"]) == 8 for entry in entries)
    assert all(len(entry["data"]) == 8 * entry["token_count"] for entry in entries)
    scored = run_harness(root / "score", content, "score", source=root / "source")
    assert scored.code == 0, scored.stderr
    assert (ended.folder / "accuracy.txt").read_text() == "{'exact_match': 100.0}\n"


def test_interactive_is_a_server_run_of_a_model_name_with_limits_of_its_own(root: Path) -> None:
    _, ended = run(root, scenario="Interactive", min_duration_ms=100, min_query_count=40, target_qps=400)
    assert ended.code == 0, ended.stderr
    check(ended.result)
    assert ended.result["run"]["scenario"]["value"] == "Interactive"
    assert ended.result["text"]["limits"] == {"ttft_ms": 300.0, "tpot_ms": 100.0, "percentile": 99}
    assert ended.result["metric"]["unit"] == "tokens/s"
    lines = (ended.folder / "user.conf").read_text()
    assert "parrot-interactive.Server.ttft_latency = 300" in lines
    assert "Interactive." not in lines
    assert '"effective_scenario", "value": "Server"' in (ended.folder / "mlperf_log_detail.txt").read_text()


def test_an_engine_that_tells_no_first_token_makes_a_single_stream_run_invalid_and_crashes_nothing(root: Path) -> None:
    _, ended = run(root, backend="hushed", scenario="SingleStream", **SHORT)
    assert ended.code == 0, ended.stderr
    result = ended.result
    assert result["valid"] is False
    assert result["errors"] == 0
    assert "the engine gave the first token of" in result["invalid_reasons"][0]
    assert "INVALID (the engine gave the first token" in ended.stderr


def test_failed_requests_end_the_run_as_invalid_with_their_reason(root: Path) -> None:
    _, ended = run(root, backend="failing", scenario="Server", min_duration_ms=100, min_query_count=40, target_qps=400)
    assert ended.code == 0, ended.stderr
    result, tally = ended.result, ended.result["text"]["tally"]
    assert result["valid"] is False
    assert tally["issued"] == tally["completed"] + tally["failed"] and tally["failed"] > 0
    assert result["errors"] == tally["failed"]
    assert "got no answer: HTTP 503: the server is busy" in result["invalid_reasons"][0]
    assert result["text"]["problems"] == result["invalid_reasons"][:1]


@pytest.mark.parametrize("scenario", ["Server", "SingleStream"])
def test_failed_requests_are_in_no_latency_and_no_figure_is_below_zero(root: Path, scenario: str) -> None:
    """LoadGen counts the microseconds of failed requests, and divides by their tokens less one."""
    rate = {"target_qps": 400} if scenario == "Server" else {}
    output = {"output_dir": str(root / f"failing-{scenario}")}
    _, ended = run(
        root, backend="failing", scenario=scenario, min_duration_ms=100, min_query_count=40, **rate, **output
    )
    assert ended.code == 0, ended.stderr
    result, text = ended.result, ended.result["text"]
    assert (result["latency"], text["ttft_ms"], text["tpot_ms"]) == (None, None, None)
    assert text["tally"]["failure_kinds"] == {"other": text["tally"]["failed"]}
    assert (result["metric"] or {}).get("unit") == ("tokens/s" if scenario == "Server" else None)
    metadata = json.loads((ended.folder / "metadata.json").read_text())
    assert not [key for key in metadata if "first_token" in key or "per_output_token" in key]
    assert not [number for number in _numbers([result["metric"], text, metadata]) if number < 0]
    detail = (ended.folder / "mlperf_log_detail.txt").read_text()
    assert '"result_time_to_output_token_min", "value": -' in detail  # what LoadGen itself says


def _numbers(content: object) -> list[float]:
    if isinstance(content, dict):
        content = list(content.values())
    if isinstance(content, list):
        return [number for part in content for number in _numbers(part)]
    return [content] if isinstance(content, int | float) else []


@pytest.mark.full
@pytest.mark.parametrize("mode", ["performance", "accuracy"])
@pytest.mark.parametrize("scenario", ["Offline", "MultiStream"])
def test_the_other_scenarios_run_too(root: Path, scenario: str, mode: str) -> None:
    limits = {} if mode == "accuracy" else SHORT
    _, ended = run(root, scenario=scenario, mode=mode, **limits)
    assert ended.code == 0, ended.stderr
    check(ended.result)
    assert (ended.result["text"]["ttft_ms"] is None) == (scenario == "Offline" or mode == "accuracy")


def test_a_backend_that_runs_networks_is_refused_before_anything_is_opened(root: Path) -> None:
    _, ended = run(root, backend="null")
    assert ended.code == 2
    assert "backend null cannot run parrot: it runs networks on tensors (supported backends: " in ended.stderr
    assert not (ended.folder / "result.json").exists()
