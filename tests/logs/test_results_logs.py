"""crowdperf.logs.run_log: recorded logs of real runs (fixtures/README.md), and what happens to damaged ones."""

import shutil
from pathlib import Path

import pytest

from crowdperf.logs.detail_log import DetailLog
from crowdperf.logs.layout import RunPaths
from crowdperf.logs.run_log import LogError, parse_detail_log, parse_summary_verdict, read_run_logs
from crowdperf.rules.names import Mode, Scenario

FIXTURES = Path(__file__).parent / "fixtures"
V6_1_SEEDS = (2085463073848966840, 2747215439041700203, 16159082839903944936)


def read(name: str):
    return read_run_logs(RunPaths(FIXTURES / name))


@pytest.mark.parametrize(
    ("name", "scenario", "value", "unit"),
    [
        ("valid-singlestream", Scenario.SINGLE_STREAM, 0.00282, "ms"),
        ("valid-multistream", Scenario.MULTI_STREAM, 0.019035, "ms"),
        ("valid-offline", Scenario.OFFLINE, 1612210.0, "samples/s"),
        ("valid-server", Scenario.SERVER, 5159.22, "queries/s"),
    ],
)
def test_a_valid_run_gives_its_metric_in_its_unit(name: str, scenario: Scenario, value: float, unit: str) -> None:
    log = read(name)
    assert (log.scenario, log.mode, log.is_valid, log.invalid_reasons) == (scenario, Mode.PERFORMANCE, True, ())
    assert log.metric is not None
    assert log.metric.value == pytest.approx(value, rel=1e-9)
    assert log.metric.metric.unit == unit
    assert (log.seeds.qsl, log.seeds.sample_index, log.seeds.schedule) == V6_1_SEEDS
    assert log.loadgen_version.startswith("6.0.17")
    assert log.error_count == 0


def test_a_log_of_loadgen_4_1_is_read_too() -> None:
    log = read("valid-server-4.1")
    assert (log.loadgen_version[:6], log.scenario, log.is_valid) == ("4.1.30", Scenario.SERVER, True)
    assert log.effective.accuracy_sample_count == log.qsl_total_count == 500
    assert log.seeds.qsl == 3066443479025735752


def test_latencies_are_of_whole_queries_in_multistream() -> None:
    log = read("valid-multistream")
    text = (FIXTURES / "valid-multistream" / "mlperf_log_detail.txt").read_text()
    assert log.latencies is not None
    assert f'"result_99.00_percentile_per_query_latency_ns", "value": {log.latencies.p99_ns},' in text
    assert log.latencies.min_ns <= log.latencies.p50_ns <= log.latencies.p99_9_ns <= log.latencies.max_ns
    assert log.generated_samples_per_query == 8


def test_the_duration_is_between_power_begin_and_power_end() -> None:
    events = {event.key: str(event.value) for event in DetailLog(detail_text("valid-server"))}
    assert events["power_begin"][:17] == events["power_end"][:17]  # one minute, so the seconds can be subtracted
    expected = float(str(events["power_end"])[17:]) - float(str(events["power_begin"])[17:])
    assert read("valid-server").duration_s == pytest.approx(expected, abs=1e-6)


def test_an_accuracy_run_has_no_metric_and_is_valid_without_errors() -> None:
    log = read("accuracy-offline")
    assert (log.mode, log.is_valid, log.metric, log.latencies, log.early_stopping) == (
        Mode.ACCURACY, True, None, None, None
    )  # fmt: skip
    assert log.effective.accuracy_sample_count == log.qsl_total_count == 500


@pytest.mark.parametrize(
    ("name", "reasons"),
    [
        ("invalid-singlestream-queries-ran-out", ["minimum duration not met", "expected latency", "LoadGen error"]),
        ("invalid-server-too-late", ["performance constraints", "early stopping", "Reduce target QPS"]),
        ("invalid-offline-too-short", ["minimum duration not met"]),
        ("invalid-singlestream-too-few", ["early stopping"]),
    ],
)
def test_an_invalid_run_says_why(name: str, reasons: list[str]) -> None:
    log = read(name)
    assert not log.is_valid
    for reason in reasons:
        assert any(reason in text for text in log.invalid_reasons), log.invalid_reasons


def test_errors_are_counted_and_kept() -> None:
    log = read("invalid-singlestream-queries-ran-out")
    assert log.error_count == 1
    assert "Ran out of generated queries" in log.errors[0]


def test_a_stream_run_without_an_estimate_has_no_metric() -> None:
    log = read("invalid-singlestream-too-few")
    assert log.metric is None
    assert log.early_stopping is not None
    assert "Need to process at least 64 queries" in log.early_stopping.text


def detail_text(name: str) -> str:
    return (FIXTURES / name / "mlperf_log_detail.txt").read_text()


def test_a_logged_error_makes_a_run_invalid_whatever_its_verdict_is() -> None:
    text = detail_text("valid-offline")
    other = detail_text("invalid-singlestream-queries-ran-out")
    error = next(line for line in other.splitlines() if "error_runtime" in line)
    log = parse_detail_log(f"{text}{error}\n")
    assert not log.is_valid
    assert log.error_count == 1


def test_a_latency_below_zero_is_none() -> None:
    text = detail_text("valid-singlestream")
    line = next(line for line in text.splitlines() if '"result_min_latency_ns"' in line)
    log = parse_detail_log(text.replace(line, line.replace('"value": ', '"value": -', 1)))
    assert log.latencies is None and log.metric is not None


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[: text.index("result_validity")], "damaged"),
        (lambda text: text.replace("result_validity", "another_key"), "result_validity"),
        (lambda text: text.replace('"SingleStream"', '"Strange"'), "Strange"),
        (lambda text: text.replace('"PerformanceOnly"', '"FindPeakPerformance"'), "FindPeakPerformance"),
        (lambda text: text.replace('_duration_met", "value": true', '_duration_met", "value": 1'), "true or false"),
        (lambda text: text.replace("11-21-2026", "2026"), "power_begin"),
        (lambda text: "", "effective_test_mode"),
    ],
)  # fmt: skip
def test_a_damaged_log_is_refused_with_the_place(damage, message: str) -> None:
    damaged = damage(detail_text("valid-singlestream"))
    assert damaged != detail_text("valid-singlestream")
    with pytest.raises(LogError, match=message):
        parse_detail_log(damaged)


@pytest.mark.parametrize("missing", ["mlperf_log_summary.txt", "mlperf_log_detail.txt"])
def test_a_missing_log_is_named(tmp_path: Path, missing: str) -> None:
    shutil.copytree(FIXTURES / "valid-offline", tmp_path, dirs_exist_ok=True)
    (tmp_path / missing).unlink()
    with pytest.raises(LogError, match=missing):
        read_run_logs(RunPaths(tmp_path))


def test_a_summary_that_ends_early_is_refused(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "valid-offline", tmp_path, dirs_exist_ok=True)
    (tmp_path / "mlperf_log_summary.txt").write_text("===\nMLPerf Results Summary\n")
    with pytest.raises(LogError, match="Result is"):
        read_run_logs(RunPaths(tmp_path))


def test_logs_of_two_runs_are_not_taken_for_one(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "valid-offline", tmp_path, dirs_exist_ok=True)
    shutil.copy(FIXTURES / "invalid-offline-too-short" / "mlperf_log_summary.txt", tmp_path)
    with pytest.raises(LogError, match="disagree"):
        read_run_logs(RunPaths(tmp_path))


@pytest.mark.parametrize(
    ("text", "verdict"), [("Result is : VALID\n", True), ("Result is : INVALID\n", False), ("No errors\n", None)]
)
def test_the_verdict_of_a_summary(text: str, verdict: bool | None) -> None:
    assert parse_summary_verdict(text) is verdict
