"""Rules on the times of a performance log: its own clock, the stamps of the run, the dates."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

from crowdperf.gate.derivation import (
    LINGERS,
    LINGERS_S,
    STAMPS_S,
    at_key,
    clock_step_s,
    clock_window_s,
    contradiction,
    given,
    lasted_s,
    messages,
    performance_rule,
    readable,
    usable,
)
from crowdperf.gate.log_view import LogView
from crowdperf.gate.rulebook import OURS, Severity, Violation, log_rule
from crowdperf.gate.views import RunView

_QUARTER_S, _ZONES_S = 900, 14 * 3600 + 60
"""One of the two is in UTC, the other in the machine's time zone: quarters of an hour, at most 14 hours."""

_DATE_S, _START_S = 2.0, 12.0
"""test_datetime is cut to seconds, and the log's clock begins within a second of it (at most 1.01 s in 1,711
published logs). A Server run then waits up to 10 s for its threads."""

_HOUR_S = 3600

_TEST_DATE, _POWER_DATE, _BUILD_DATE = "%Y-%m-%dT%H:%M:%SZ", "%m-%d-%Y %H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S"
_FRACTION = re.compile(r"\.[0-9]{1,9}")


@log_rule("TIME-001", "The log's clock never falls.")
def clock_rises(run: RunView) -> Iterator[Violation]:
    yield from messages(run.detail, run.detail.falls, "the time of the message before, or later")


def _seconds(log: LogView) -> tuple[float, float] | None:
    """Return the duration of the run by its stamps, and the time by the log's clock since the generation of its
    queries."""
    elapsed_s, window_s = lasted_s(log), clock_window_s(log)
    return None if elapsed_s is None or window_s is None else (elapsed_s, window_s)


_BY_CLOCK = "from generated_query_count to power_end by the log's own clock"


@performance_rule("TIME-002", "The run is between generating its queries and its end by the log's clock.")
def run_fits_clock(log: LogView) -> Iterator[Violation]:
    found = _seconds(log)
    if found is not None and found[0] > found[1] + STAMPS_S:
        text = f"{found[0]:.3f} s from power_begin to power_end"
        yield contradiction(log, "power_end", text, f"at most {found[1]:.3f} s: {_BY_CLOCK}")


@performance_rule("TIME-007", "The run lasts from generating its queries to its end by the log's clock.")
def run_fills_clock(log: LogView) -> Iterator[Violation]:
    """Else its latencies and stamps were made shorter."""
    found = _seconds(log)
    if found is not None and found[0] < found[1] * (1 - LINGERS) - LINGERS_S:
        text = f"{found[0]:.3f} s from power_begin to power_end"
        yield contradiction(log, "power_end", text, f"about {found[1]:.3f} s: {_BY_CLOCK}")


@log_rule("TIME-009", "The machine's clock was not set during the run.", severity=Severity.WARNING)
def clock_was_not_set(run: RunView) -> Iterator[Violation]:
    """A warning: no result depends on it. power_begin and power_end are times of day, in local time."""
    for log in usable(run):
        step_s = clock_step_s(log)
        if step_s:
            cause = "daylight saving began or ended" if abs(step_s) > _HOUR_S / 2 else "it was set by NTP or by hand"
            found = f"{log.elapsed_s:.3f} s from power_begin to power_end, {step_s:+.3f} s: {cause}"
            allowed = "the time of LoadGen's monotonic clock"
            yield contradiction(log, "power_end", found, allowed)


@performance_rule("TIME-003", "The results were logged after the run.")
def results_come_last(log: LogView) -> Iterator[Violation]:
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


def _built(log: LogView) -> datetime | None:
    return _moment(_FRACTION.sub("", log.build_date or "", count=1), _BUILD_DATE)


_DATES = {"test_datetime": _TEST_DATE, "power_begin": _POWER_DATE, "power_end": _POWER_DATE}


@log_rule("TIME-006", "Dates are written as LoadGen writes them.")
def dates_are_dates(run: RunView) -> Iterator[Violation]:
    for log in readable(run):
        for key, form in _DATES.items():
            if log.text(key) is not None and _moment(log.text(key), form) is None:
                yield at_key(log, key, f"a date in the form {form}")
        if log.build_date is not None and _built(log) is None:
            yield at_key(log, "loadgen_build_date_utc", f"a date in the form {_BUILD_DATE}, perhaps with a fraction")


@performance_rule("TIME-004", "power_begin is the time of the test, in some time zone.")
def date_is_that_of_run(log: LogView) -> Iterator[Violation]:
    start = _moment(log.text("test_datetime"), _TEST_DATE)
    begin = _moment(log.text("power_begin"), _POWER_DATE)
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
def build_is_older(log: LogView) -> Iterator[Violation]:
    built = _built(log)
    start = _moment(log.text("test_datetime"), _TEST_DATE)
    if built is not None and start is not None and (built - start).total_seconds() > 86400:
        text = given(log, "loadgen_build_date_utc", "test_datetime")
        yield contradiction(log, "test_datetime", text, "a test after the build")


_TOMORROW = timedelta(days=1)


@log_rule("TIME-008", "A run is not dated in the future.", source=OURS)
def date_is_past(run: RunView) -> Iterator[Violation]:
    """By more than a day, as a machine may be in any time zone."""
    for log in readable(run):
        start = _moment(log.text("test_datetime"), _TEST_DATE)
        now = run.scenario.tree.options.now_utc or datetime.now(timezone.utc).replace(tzinfo=None)
        if start is not None and start > now + _TOMORROW:
            allowed = f"no later than {now + _TOMORROW:%Y-%m-%dT%H:%M:%SZ}, a day after this check"
            yield at_key(log, "test_datetime", allowed)
