"""Forged logs of one performance run: each says something that does not follow from the rest of the same run.

What both official checkers accept is most of it; every change is met by a rule of its own.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from changes import (
    C_MODEL,
    C_RUN,
    C_SERVER,
    DETAIL,
    O_ACC,
    O_MODEL,
    O_RUN,
    O_STREAM,
    SUMMARY,
    T01,
    T04,
    Change,
    Mutation,
    both,
    edit,
    line_without,
    replace,
    value,
)  # fmt: skip
from tree_builder import logs

O_MULTI = f"{O_MODEL}/MultiStream/performance/run_1"
C_STREAM = f"{C_MODEL}/SingleStream/performance/run_1"
C_MULTI = f"{C_MODEL}/MultiStream/performance/run_1"


def detail(run: str) -> str:
    """The detail log of a run."""
    return f"{run}/{DETAIL}"


def summary(run: str) -> str:
    """The summary of a run."""
    return f"{run}/{SUMMARY}"


def in_both(run: str, key: str, new: object, line: str, written: object) -> Change:
    """Give a figure another value in the detail log and in the summary's line of that name."""
    return both(value(detail(run), key, new), says(run, line, written))


def says(run: str, line: str, written: object) -> Change:
    """Give a line of the summary another value."""
    return edit(summary(run), rf"(?<=^{re.escape(line)}).*$", str(written))


def every_time(run: str, function: Callable[[float], float]) -> Change:
    """Change the time of each message."""

    def change(root: Path) -> None:
        path = root / detail(run)
        text = path.read_text(encoding="utf-8")
        replace(path, re.sub(r'(?<="time_ms": )[\d.]+', lambda found: f"{function(float(found[0])):.6f}", text))

    return change


def time_of(run: str, key: str, time_ms: float) -> Change:
    """Change the time of the messages of one key."""
    return edit(detail(run), rf'(?<="key": "{key}", "value": true, "time_ms": )[\d.]+', str(time_ms))


def summary_of(run: str, name: str) -> Change:
    """Exchange the summary for that of another run of the test data."""
    return lambda root: replace(root / summary(run), logs()[f"{name}/{SUMMARY}"])


def _offline_of_eight_machines() -> Change:
    """Eight times the samples and the rate; the settings and the length of the run as they were."""
    return both(
        value(detail(C_RUN), "result_samples_per_second", 324.273),
        says(C_RUN, "Samples per second: ", "324.273"),
        value(detail(C_RUN), "generated_samples_per_query", 8 * 24576),
    )


def figures() -> Iterator[Mutation]:
    """Figures that do not follow from the others."""
    text = "Samples per second: "
    server, scheduled = "Completed samples per second    : ", "Scheduled samples per second : "
    yield from (Mutation(name, tree, rule, change) for name, tree, rule, change in (
        ("Offline rate x10 in the detail log", "open", "FIG-001",
            value(detail(O_RUN), "result_samples_per_second", 53094.8)),
        ("Offline rate x100 in both logs", "closed", "FIG-001",
            in_both(C_RUN, "result_samples_per_second", 4053.41, text, "4053.41")),
        ("Offline rate of 1e308", "open", "FIG-001",
            in_both(O_RUN, "result_samples_per_second", 1e308, text, "1e+308")),
        ("Offline rate of eight machines", "closed", "SET-003", _offline_of_eight_machines()),
        ("Offline latency shortened with its rate", "closed", "FIG-010", both(
            value(detail(C_RUN), "result_max_latency_ns", 601000000000),
            value(detail(C_RUN), "result_samples_per_second", 40.8918))),
        ("Server rate of 1e308", "closed", "FIG-004", both(
            in_both(C_SERVER, "result_completed_samples_per_sec", 1e308, server, "1e+308"),
            in_both(C_SERVER, "result_scheduled_samples_per_sec", 1e308, scheduled, "1e+308"))),
        ("stream rate without overhead x10", "open", "FIG-002",
            value(detail(O_STREAM), "result_qps_without_loadgen_overhead", 21498.2)),
        ("stream rate with overhead x10", "open", "FIG-003",
            value(detail(O_STREAM), "result_qps_with_loadgen_overhead", 21084.6)),
        ("more MultiStream queries than fit", "open", "FIG-003", value(detail(O_MULTI), "result_query_count", 300000)),
        ("Server rate x10 in the detail log", "closed", "FIG-004",
            value(detail(C_SERVER), "result_completed_samples_per_sec", 201.613)),
        ("Server rates x10 in both logs", "closed", "FIG-004", both(
            in_both(C_SERVER, "result_completed_samples_per_sec", 201.613, server, "201.61"),
            in_both(C_SERVER, "result_scheduled_samples_per_sec", 201.615, scheduled, "201.62"))),
        ("Server counts x8 in the time of one", "closed", "FIG-005", both(
            value(detail(C_SERVER), "result_query_count", 96784),
            value(detail(C_SERVER), "generated_query_count", 96784),
            value(detail(C_SERVER), "result_completed_samples_per_sec", 161.290),
            value(detail(C_SERVER), "result_scheduled_samples_per_sec", 161.292))),
        ("101 Server queries in 600 s at 20 a second", "closed", "FIG-009",
            value(detail(C_SERVER), "result_query_count", 101)),
        ("p99 below p50", "closed", "FIG-006", value(detail(C_SERVER), "result_99.00_percentile_latency_ns", 5400000)),
        ("least latency above the greatest", "open", "FIG-006",
            value(detail(O_RUN), "result_min_latency_ns", 1366123451626)),
        ("mean latency / 10", "closed", "FIG-007", value(detail(C_SERVER), "result_mean_latency_ns", 593429)),
        ("p90 / 10 with what is below it", "closed", "FIG-007", both(
            value(detail(C_SERVER), "result_90.00_percentile_latency_ns", 5506797),
            value(detail(C_SERVER), "result_95.00_percentile_latency_ns", 5506797),
            value(detail(C_SERVER), "result_97.00_percentile_latency_ns", 5506797),
            value(detail(C_SERVER), "result_99.00_percentile_latency_ns", 5506797),
            value(detail(C_SERVER), "result_99.90_percentile_latency_ns", 5506797))),
        ("more queries than generated", "open", "FIG-009", value(detail(O_STREAM), "result_query_count", 8202326)),
        ("MultiStream query shorter than its samples", "open", "FIG-013",
            value(detail(O_MULTI), "result_max_latency_ns", 171052533)),
        ("two queries in Offline", "open", "SET-001", value(detail(O_RUN), "result_query_count", 2)),
    ))  # fmt: skip


def summaries() -> Iterator[Mutation]:
    """Summaries of another run, or with something else than the detail log."""
    yield from (Mutation(name, tree, rule, change) for name, tree, rule, change in (
        ("summary of another scenario", "open", "SUM-001", summary_of(O_RUN, "closed/SingleStream")),
        ("summary of another SUT", "open", "SUM-001", says(O_RUN, "SUT name : ", "FastSUT")),
        ("summary of another run", "closed", "SUM-002", summary_of(C_STREAM, "open/SingleStream")),
        ("summary with a rate x10", "open", "SUM-002", says(O_RUN, "Samples per second: ", "53094.8")),
        ("summary with a p99 / 10", "closed", "SUM-002",
            says(C_SERVER, "99.00 percentile latency (ns)   : ", "1006103")),
        ("summary without a latency", "closed", "SUM-002", edit(summary(C_SERVER), r"^Mean latency.*\n", "")),
        ("summary with a missed constraint", "closed", "SUM-003",
            says(C_SERVER, "  Performance constraints satisfied : ", "NO")),
        ("summary with another early stopping", "closed", "SUM-003",
            edit(summary(C_SERVER), r"Run successful\.", "Run unsuccessful.")),
        ("summary with another target rate", "open", "SUM-004", says(O_RUN, "target_qps : ", "1099")),
        ("summary with other seeds", "closed", "SUM-004", says(C_RUN, "schedule_rng_seed : ", "3936089224930324775")),
        ("summary that saw an error", "open", "SUM-005",
            edit(summary(O_RUN), "No errors encountered during test.", "1 ERROR encountered. See detailed log.")),
    ))  # fmt: skip


def verdicts() -> Iterator[Mutation]:
    """Verdicts that do not follow."""
    stopping = "early_stopping_result"
    unsuccessful = " * Run unsuccessful.  * Processed 12098 queries."
    yield from (Mutation(name, tree, rule, change) for name, tree, rule, change in (
        ("VALID with a missed constraint", "closed", "VER-001",
            value(detail(C_SERVER), "result_perf_constraints_met", False)),
        ("VALID with too short a duration", "open", "VER-001", value(detail(O_RUN), "result_min_duration_met", False)),
        ("VALID with too few queries", "open", "VER-001", value(detail(O_MULTI), "result_min_queries_met", False)),
        ("early stopping met, unsuccessful", "closed", "VER-002", value(detail(C_SERVER), stopping, unsuccessful)),
        ("early stopping discards too many", "open", "VER-003",
            edit(detail(O_STREAM), "Would discard 125722", "Would discard 225722")),
        ("early stopping of fewer queries", "open", "VER-003",
            edit(detail(O_STREAM), r"queries \(1265079\)", "queries (1265)")),
        ("early stopping with too many late", "closed", "VER-003",
            value(detail(C_SERVER), "result_overlatency_query_count", 120)),
        ("estimate / 10", "open", "VER-004", both(
            value(detail(O_STREAM), "early_stopping_latency_ss", 31213),
            edit(detail(O_STREAM), "90.0th percentile estimate: 312138", "90.0th percentile estimate: 31213"))),
        ("MultiStream estimate / 10 in the detail log", "open", "VER-005",
            value(detail(O_MULTI), "early_stopping_latency_ms", 1310129)),
        ("12,000 of 12,098 over latency", "closed", "VER-006",
            value(detail(C_SERVER), "result_overlatency_query_count", 12000)),
        ("no query over latency, but the greatest", "closed", "VER-006",
            value(detail(C_SERVER), "result_overlatency_query_count", 0)),
        ("p99 of 100 ms under a limit of 15 ms", "closed", "VER-007",
            value(detail(C_SERVER), "result_99.00_percentile_latency_ns", 100000000)),
        ("queries met with fewer than asked for", "open", "VER-008", both(
            value(detail(O_MULTI), "effective_min_query_count", 300000),
            value(detail(O_MULTI), "effective_min_sample_count", 2400000))),
        ("Offline stopped early", "open", "VER-002",
            value(detail(O_RUN), "early_stopping_result", " * Run successful.")),
        ("duration met by a shorter schedule", "closed", "VER-009",
            value(detail(C_SERVER), "result_scheduled_samples_per_sec", 30.1615)),
    ))  # fmt: skip


def clocks_and_messages() -> Iterator[Mutation]:
    """Hidden and doubled words, flags and clocks."""
    log = detail(O_RUN)
    hidden = ' :::MLLOG {"key": "result_validity", "value": "INVALID", "metadata": {"is_error": false}}\n'
    error = (':::MLLOG {"key": "error_runtime", "value": "Ending early: Max test duration reached.", '
             '"time_ms": 1366200.0, "metadata": {"is_error": false, "is_warning": false}}\n')  # fmt: skip
    flagged = error.replace('"is_error": false', '"is_error": true')
    validity = r'"key": "result_validity", "value": "VALID"'
    yield from (Mutation(name, tree, rule, change) for name, tree, rule, change in (
        ("INVALID behind a blank", "open", "LOG-001", edit(log, r"\Z", hidden)),
        ("two values in one message", "open", "LOG-002",
            edit(log, r'"key": "result_samples_per_second", ', '"key": "result_samples_per_second", "value": 9.9e9, ')),
        ("INVALID and VALID in one message", "closed", "LOG-002",
            edit(detail(C_RUN), validity, validity.replace('"key"', '"value": "INVALID", "key"'))),
        ("error flag flipped", "open", "LOG-003", edit(log, r"\Z", error)),
        ("error beside num_errors 0", "open", "LOG-004", edit(log, r"\Z", flagged)),
        ("messages of two processes", "open", "LOG-005",
            edit(log, r'(?<="line_no": 762, )"pid": \d+|(?<="pid": )\d+(?=, "tid": \d+\}\}\n\Z)', "4711")),
        ("no overlatency count", "closed", "LOG-006", line_without(detail(C_SERVER), "result_overlatency_query_count")),
        ("no flag of the duration", "open", "LOG-006", line_without(detail(O_STREAM), "result_min_duration_met")),
        ("mean latency as text", "closed", "LOG-006", value(detail(C_SERVER), "result_mean_latency_ns", "593429")),
        ("flag as a number", "closed", "LOG-006", value(detail(C_SERVER), "result_perf_constraints_met", 1)),
        ("accuracy run without its rate", "open", "LOG-006", line_without(f"{O_ACC}/{DETAIL}", "effective_target_qps")),
        ("no word of the mode asked for", "closed", "LOG-006", line_without(detail(C_RUN), "requested_test_mode")),
        ("less than no query asked for", "open", "LOG-007",
            value(detail(O_RUN), "requested_min_query_count", -24576)),
        ("more queries than 64 bits count", "open", "LOG-007", value(detail(O_MULTI), "result_query_count", 10**30)),
        ("clock that falls", "open", "TIME-001", every_time(O_RUN, lambda time_ms: 1366800.0 - time_ms)),
        ("60 s stretched by its stamps", "closed", "TIME-002", every_time(C_STREAM, lambda time_ms: time_ms / 10)),
        ("clock that stands still", "open", "TIME-002", every_time(O_RUN, lambda time_ms: 1400000.0)),
        ("results before the run", "closed", "TIME-003", time_of(C_SERVER, "early_stopping_met", 1000.0)),
        ("test a year off", "closed", "TIME-004", value(detail(C_SERVER), "test_datetime", "2025-11-21T13:48:51Z")),
        ("test two minutes off", "closed", "TIME-004",
            value(detail(C_SERVER), "test_datetime", "2026-11-21T13:46:51Z")),
        ("no date of the test", "open", "TIME-006", value(detail(O_RUN), "test_datetime", "today")),
        ("no date of the end of an accuracy run", "closed", "TIME-006",
            value(f"{C_MODEL}/Server/accuracy/{DETAIL}", "power_end", "")),
        ("no date of the build", "closed", "TIME-006", value(detail(C_RUN), "loadgen_build_date_utc", "2026")),
        ("dates three years back", "closed", "TIME-005", both(
            value(detail(C_SERVER), "test_datetime", "2023-11-21T13:48:51Z"),
            value(detail(C_SERVER), "power_begin", "11-21-2023 13:48:51.671"),
            value(detail(C_SERVER), "power_end", "11-21-2023 13:58:51.682"))),
    ))  # fmt: skip


def settings() -> Iterator[Mutation]:
    """Settings that were not asked for, or that the round does not have."""
    yield from (Mutation(name, tree, rule, change) for name, tree, rule, change in (
        ("another percentile than requested", "open", "SET-001",
            value(detail(O_STREAM), "effective_target_latency_percentile", 0.5)),
        ("requested 60 s, effective 600 s", "open", "SET-001",
            value(detail(O_RUN), "requested_min_duration_ms", 60000)),
        ("other seeds requested", "open", "SET-001", value(detail(O_RUN), "requested_schedule_rng_seed", 1)),
        ("10 queries at once in a stream", "open", "SET-001",
            value(detail(O_STREAM), "effective_max_async_queries", 10)),
        ("Server limit of queries at once", "closed", "SET-001",
            value(detail(C_SERVER), "effective_max_async_queries", 64)),
        ("twice as many queries asked for", "closed", "SET-001",
            value(detail(C_STREAM), "requested_min_query_count", 200)),
        ("Offline at the median", "open", "SET-001", value(detail(O_RUN), "effective_target_latency_percentile", 0.5)),
        ("accuracy run with a latency target", "open", "SET-001",
            value(f"{O_ACC}/{DETAIL}", "effective_target_latency_ns", 15000000)),
        ("target rate that nobody asked for", "open", "SET-002", value(detail(O_RUN), "effective_target_qps", 1099)),
        ("accuracy run at a rate that nobody asked for", "open", "SET-002",
            value(f"{O_ACC}/{DETAIL}", "effective_target_qps", 1099)),
        ("accuracy run generated for a day", "open", "SET-003",
            value(f"{O_ACC}/{DETAIL}", "generated_query_duration", 86_400_000_000_000)),
        ("performance set larger than the data set", "open", "SET-014",
            value(detail(O_RUN), "qsl_reported_performance_count", 50_001)),
        ("stream generated for a minute", "open", "SET-003", both(
            value(detail(O_STREAM), "generated_query_duration", 120000014750),
            value(detail(O_STREAM), "generated_query_count", 820232))),
        ("Server generated for a minute", "closed", "SET-003",
            value(detail(C_SERVER), "generated_query_duration", 60021434422)),
        ("least samples of another product", "open", "SET-003",
            value(detail(O_MULTI), "effective_min_sample_count", 662)),
        ("ended by max_duration", "closed", "SET-004", both(
            value(detail(C_SERVER), "requested_max_duration_ms", 60000),
            value(detail(C_SERVER), "effective_max_duration_ms", 60000))),
        ("ended by max_query_count", "closed", "SET-004", both(
            value(detail(C_SERVER), "requested_max_query_count", 12098),
            value(detail(C_SERVER), "effective_max_query_count", 12098))),
        ("submitted run of one sample", "open", "SET-005", both(
            value(detail(O_STREAM), "requested_performance_issue_same", True),
            value(detail(O_STREAM), "effective_performance_issue_same", True))),
        ("submitted run of unique samples", "closed", "SET-005", both(
            value(detail(C_SERVER), "requested_performance_issue_unique", True),
            value(detail(C_SERVER), "effective_performance_issue_unique", True))),
        ("TEST04 of different samples", "closed", "TEST-007", both(
            value(detail(f"{T04}/performance/run_1"), "requested_performance_issue_same", False),
            value(detail(f"{T04}/performance/run_1"), "effective_performance_issue_same", False))),
        ("TEST01 that logged nothing", "closed", "TEST-007", both(
            value(detail(f"{T01}/performance/run_1"), "requested_accuracy_log_sampling_target", 0),
            value(detail(f"{T01}/performance/run_1"), "effective_accuracy_log_sampling_target", 0))),
        ("closed stream judged at the median", "closed", "SET-007", both(
            value(detail(C_STREAM), "requested_single_stream_target_latency_percentile", 0.5),
            value(detail(C_STREAM), "effective_target_latency_percentile", 0.5))),
        ("closed MultiStream of two samples", "closed", "SET-007", both(
            value(detail(C_MULTI), "requested_multi_stream_samples_per_query", 2),
            value(detail(C_MULTI), "effective_samples_per_query", 2))),
        ("user.conf of one sample", "open", "SET-009", edit(
            f"{O_MODEL}/Offline/user.conf", r"\Z", "*.Offline.performance_issue_same = 1\n")),
        ("user.conf with another percentile", "closed", "SET-009", edit(
            f"{C_MODEL}/Server/user.conf", r"\Z", "*.Server.target_latency_percentile = 50\n")),
        ("empty set of samples", "open", "SET-010",
            edit(detail(O_RUN), r'(?<="loaded_qsl_set", "value": )\[[\d,]+\]', "[]")),
        ("one sample loaded 1,024 times", "closed", "SET-010", edit(
            detail(C_RUN), r'(?<="loaded_qsl_set", "value": )\[[\d,]+\]', str([7] * 1024))),
    ))  # fmt: skip


def builds() -> Iterator[Mutation]:
    """LoadGens that are not of the round, or that somebody changed."""
    yield from (Mutation(name, tree, rule, change) for name, tree, rule, change in (
        ("LoadGen 1.0", "open", "LG-001", value(detail(O_RUN), "loadgen_version", "1.0 @ 0123456789")),
        ("LoadGen of no version", "closed", "LG-001", value(detail(C_RUN), "loadgen_version", "fast")),
        ("another results.cc", "open", "LG-002",
            edit(detail(O_RUN), r'(?<="/results.cc":")[0-9a-f]{40}', "0" * 40)),
        ("no early_stopping.cc", "closed", "LG-002", edit(detail(C_RUN), r'"/early_stopping.cc":"[0-9a-f]{40}",', "")),
        ("modified files in git status", "open", "LG-003",
            value(detail(O_RUN), "loadgen_git_status_message", " M loadgen/results.cc")),
    ))  # fmt: skip


def forgeries() -> Iterator[Mutation]:
    """All of them."""
    for part in (figures, summaries, verdicts, clocks_and_messages, settings, builds):
        yield from part()
    chatter = "Loading the data\n" * 20_000
    yield Mutation("accuracy.txt of 340 kB", "open", "SIZE-001", edit(f"{O_ACC}/accuracy.txt", r"\A", chatter))
