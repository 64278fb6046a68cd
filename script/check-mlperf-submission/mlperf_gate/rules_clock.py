"""Rules on the times of a performance log: its own clock, the stamps of the run, the dates."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from mlperf_gate.derivation import STAMPS_S, contradiction, given, messages, performance_rule
from mlperf_gate.detaillog import DetailLog
from mlperf_gate.rulebook import Found, log_rule
from mlperf_gate.views import RunView

_QUARTER_S, _ZONES_S = 900, 14 * 3600 + 60
"""One of the two is in UTC, the other in the machine's time zone: quarters of an hour, at most 14 hours."""

_DATE_S, _START_S = 2.0, 12.0
"""test_datetime is cut to seconds, and the log's clock begins within a second of it (at most 1.01 s in 1,711 published
logs); a Server run then waits up to 10 s for its threads."""


@log_rule("TIME-001", "The log's clock never falls.")
def clock_rises(run: RunView) -> Iterator[Found]:
    yield from messages(run.detail, run.detail.falls, "the time of the message before, or later")


@performance_rule("TIME-002", "The run fits between generating its queries and its end by the log's clock.")
def run_fits_clock(log: DetailLog) -> Iterator[Found]:
    times, elapsed_s = log.times_ms, log.elapsed_s
    if elapsed_s is None or "generated_query_count" not in times or log.end_time_s is None:
        return
    had_s = log.end_time_s - times["generated_query_count"] / 1000
    if elapsed_s > had_s + STAMPS_S:
        text = f"{elapsed_s:.3f} s from power_begin to power_end"
        allowed = f"at most {had_s:.3f} s: from generated_query_count to power_end by the log's own clock"
        yield contradiction(log, "power_end", text, allowed)


@performance_rule("TIME-003", "The results were logged after the run.")
def results_come_last(log: DetailLog) -> Iterator[Found]:
    for key in ("result_validity", "early_stopping_met", "result_query_count", "result_max_latency_ns"):
        line, time_ms = log.lines.get(key), log.times_ms.get(key)
        end_ms, end_line = log.times_ms.get("power_end"), log.lines.get("power_end")
        is_early = end_line is not None and line is not None and line < end_line
        if is_early or (time_ms is not None and end_ms is not None and time_ms < end_ms):
            text = f"{key} in line {line} at {time_ms} ms, power_end in line {end_line} at {end_ms} ms"
            yield contradiction(log, key, text, "results behind power_end")
            break


def _moment(text: str | None, form: str) -> datetime | None:
    try:
        return datetime.strptime(text or "", form)
    except ValueError:
        return None


@performance_rule("TIME-004", "power_begin is the time of the test, in some time zone.")
def date_is_that_of_run(log: DetailLog) -> Iterator[Found]:
    start = _moment(log.text("test_datetime"), "%Y-%m-%dT%H:%M:%SZ")
    begin = _moment(log.text("power_begin"), "%m-%d-%Y %H:%M:%S.%f")
    generated_ms = log.times_ms.get("generated_query_count")
    if start is None or begin is None or generated_ms is None:
        return
    text = given(log, "test_datetime", "power_begin")
    behind_s = (begin - start).total_seconds() - generated_ms / 1000
    over_s = (behind_s + _DATE_S) % _QUARTER_S - _DATE_S
    if abs(behind_s) > _ZONES_S or over_s > _START_S:
        allowed = f"power_begin {generated_ms / 1000:.1f} s behind test_datetime, but for quarters of an hour"
        yield contradiction(log, "test_datetime", text, allowed)


@performance_rule("TIME-005", "LoadGen was built before it ran.")
def build_is_older(log: DetailLog) -> Iterator[Found]:
    built = _moment((log.build_date or "").partition(".")[0], "%Y-%m-%dT%H:%M:%S")
    start = _moment(log.text("test_datetime"), "%Y-%m-%dT%H:%M:%SZ")
    if built is not None and start is not None and (built - start).total_seconds() > 86400:
        text = given(log, "loadgen_build_date_utc", "test_datetime")
        yield contradiction(log, "test_datetime", text, "a test after the build")
