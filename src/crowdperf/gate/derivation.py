"""The relations between the values of one LoadGen run: the comparisons that the rules on results share. Pure.

LoadGen (results.cc) writes a rate with six significant digits, a latency as whole nanoseconds cut off, power_begin and
power_end in whole milliseconds. So values that it derived from each other agree within `CLOSE`, and times within
`STAMPS_S`. All relations were true for 1,818 published performance logs of round v5.1 (LoadGen 4.1 to 5.1.0).
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from crowdperf.gate.log_view import LogView, Message
from crowdperf.gate.rulebook import Check, Violation, log_rule, shown
from crowdperf.gate.views import RunView
from crowdperf.logs.round_tables import RoundTable

CLOSE = 1.1e-5
"""Relative: one unit in the sixth digit of 1.00000, and a little for the order of floating point operations."""

STAMPS_S = 0.003
"""Both stamps are cut to milliseconds, and the begin is recorded an instant before the run's clock."""

SECOND_NS = 1e9
_SHOWN = 3


def is_close(one: float, other: float, relative: float = CLOSE, absolute: float = 0.0) -> bool:
    """Return whether two values are equal except for their notation. Never true if one is infinite."""
    return (
        math.isfinite(one)
        and math.isfinite(other)
        and abs(one - other) <= relative * max(abs(one), abs(other)) + absolute
    )


def numbers(log: LogView, *keys: str) -> list[float] | None:
    """Return the numbers of all keys as floats, or None if one is missing (LOG-006 reports those)."""
    found = [log.number(key) for key in keys]
    return [float(one) for one in found if one is not None] if None not in found else None


def given(log: LogView, *keys: str) -> str:
    """Return `key = value` of each key, as a finding shows it."""
    return ", ".join(f"{key} = {str(log.values.get(key, 'missing'))[:60]}" for key in keys)


def contradiction(log: LogView, key: str, found: str, allowed: str) -> Violation:
    """Return a finding at the line of a key."""
    return Violation(path=log.path, found=found, allowed=allowed, line=log.lines.get(key))


def at_key(log: LogView, key: str, allowed: str) -> Violation:
    """Return a finding about the value of one key."""
    return contradiction(log, key, f"{key} = {shown(log.values.get(key))}", allowed)


def at_keys(log: LogView, keys: Sequence[str], allowed: str) -> Violation:
    """Return a finding about values that contradict each other, at the line of the first."""
    return contradiction(log, keys[0], given(log, *keys), allowed)


def messages(log: LogView, found: Sequence[Message], allowed: str) -> Iterator[Violation]:
    """Yield a finding for each of the first messages of a kind."""
    for message in found[:_SHOWN]:
        yield Violation(path=log.path, found=message.text, allowed=allowed, line=message.line)


SEEDS = (("effective_qsl_rng_seed", "qsl"), ("effective_sample_index_rng_seed", "sample_index"),
         ("effective_schedule_rng_seed", "schedule"))  # fmt: skip
"""Keys of the seeds in effect, with the seed's name in a round's table."""


def other_seeds(log: LogView, table: RoundTable, more: str = "") -> Iterator[Violation]:
    """Yield the seeds of a log that are not those of the round."""
    for key, name in SEEDS:
        wanted, value = getattr(table.seeds, name), log.values.get(key)
        if isinstance(value, bool) or value != wanted:
            yield at_key(log, key, f"{wanted} (the seeds of {table.name}{more})")


def unreadable(log: LogView) -> Iterator[Violation]:
    """Yield why a log cannot be read to its end."""
    if log.problem is not None:
        yield from messages(log, [log.problem], ":::MLLOG {JSON} lines")


def sample_count(log: LogView) -> float | None:
    """Return how many samples the run had: the queries times the samples of each."""
    found = numbers(log, "result_query_count", "generated_samples_per_query")
    return None if found is None else found[0] * found[1]


def has_token_latencies(log: LogView) -> bool:
    """Return whether LoadGen measured first tokens and times for each token."""
    return log.values.get("requested_use_token_latencies") is True


def token_count(log: LogView) -> float | None:
    """Return the number of tokens that a run with token latencies answered, or None if the log does not have it
    (Offline)."""
    found = numbers(log, "result_token_throughput", "result_mean_latency_ns", "result_query_count")
    return math.prod(found) if found is not None and has_token_latencies(log) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """The values of one distribution, by their keys. `at`: the key of a percentile, in which %s is the percentile."""

    least: str
    at: str
    greatest: str
    mean: str
    is_of_queries: bool = True

    def keys(self) -> list[str]:
        """From the minimum to the maximum."""
        return [self.least, *(self.at % name for name in PERCENTILES), self.greatest]


PERCENTILES = {"50.00": 0.5, "90.00": 0.9, "95.00": 0.95, "97.00": 0.97, "99.00": 0.99, "99.90": 0.999}

SAMPLES = Family(
    least="result_min_latency_ns", at="result_%s_percentile_latency_ns", greatest="result_max_latency_ns",
    mean="result_mean_latency_ns", is_of_queries=False,
)  # fmt: skip
QUERIES = Family(
    least="result_min_query_latency_ns", at="result_%s_percentile_per_query_latency_ns",
    greatest="result_max_query_latency_ns", mean="result_mean_query_latency_ns",
)  # fmt: skip
FIRST_TOKENS = Family(
    least="result_first_token_min_latency_ns", at="result_first_token_%s_percentile_latency_ns",
    greatest="result_first_token_max_latency_ns", mean="result_first_token_mean_latency_ns",
)  # fmt: skip
OUTPUT_TOKENS = Family(
    least="result_time_to_output_token_min", at="result_time_per_output_token_%s_percentile_ns",
    greatest="result_time_to_output_token_max", mean="result_time_to_output_token_mean",
)  # fmt: skip
FAMILIES = (SAMPLES, QUERIES, FIRST_TOKENS, OUTPUT_TOKENS)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A value that is known of the sorted ones, at its rank from 0."""

    rank: int
    value: float
    key: str


def ranked(log: LogView, family: Family) -> list[Ranked]:
    """Return the known values of a distribution, by rank. Empty if a value is missing, if there are no queries, and for
    times per token of a run with errors: a failed request has no token, and LoadGen divides by -1.

    LoadGen uses the value at `int(count * percentile)` of the sorted ones.
    """
    values = numbers(log, *family.keys())
    count = log.number("result_query_count") if family.is_of_queries else sample_count(log)
    is_divided = family is OUTPUT_TOKENS and log.error_count > 0
    if values is None or count is None or not 1 <= count <= 2**53 or is_divided:
        return []
    ranks = [0, *(int(count * share) for share in PERCENTILES.values()), int(count) - 1]
    return [Ranked(*row) for row in zip(ranks, values, family.keys(), strict=True)]


def mean_bounds(known: Sequence[Ranked]) -> tuple[float, float]:
    """Return the minimum and the maximum mean of sorted values of which some are known.

    Each value between two known ones is between both. `known` has the first and the last one.
    """
    low = high = known[0].value
    for before, after in pairwise(known):
        between = max(0, after.rank - before.rank - 1)
        is_new = after.rank > before.rank
        low += between * before.value + is_new * after.value
        high += (between + is_new) * after.value
    count = known[-1].rank + 1
    return low / count, high / count


def readable(run: RunView) -> Iterator[LogView]:
    """Yield the log if it could be read to its end."""
    if run.detail.is_usable:
        yield run.detail


EQUALLY = "sample_concatenate_permutation"
"""The setting that issues each sample equally often: Offline queries are padded to whole data sets."""
_MAJOR = re.compile(r"([0-9]{1,4})\.[0-9]")
_SAYS_PADDING = 5


def is_before_5(log: LogView) -> bool:
    """Return whether a LoadGen before 5.0 wrote the log: `4.1 @ REVISION`, where later ones have three numbers."""
    found = _MAJOR.match(log.text("loadgen_version") or "")
    return found is not None and int(found[1]) < _SAYS_PADDING


def hides_padding(log: LogView) -> bool:
    """Return whether an Offline query may have more samples than its log has.

    LoadGen before 5.0 logs the query before it is padded, and a query for each sample (mlcommons/inference ef1bd3b9 and
    1f73d4c2 of January 2025 changed that). It pads only since 3fb6c3e1 of July 2024.
    """
    return is_before_5(log) and log.scenario == "Offline" and log.values.get(f"effective_{EQUALLY}") is not False


def padded(log: LogView, samples: float) -> float:
    """Return a count of samples, padded to whole data sets as loaded."""
    loaded = log.values.get("loaded_qsl_set")
    size = len(loaded) if isinstance(loaded, list) and loaded else 1
    return -(-samples // size) * size


_STEP_S, _DAYLIGHT_S = 2.0, 3600.0
"""A clock that is set (NTP) moves by less than a second as a rule. More is not believed: 3 s of 600 are half a percent
of a rate, and somebody may want those."""
LINGERS_S, LINGERS = 15.0, 0.02
"""Between the queries and the stamp of the end a Server run waits for its threads, and LoadGen gathers the latencies:
at most 2.3 s in 1,818 published logs, with up to 200 million samples."""
STREAM_MEANS = {"SingleStream": "result_mean_latency_ns", "MultiStream": "result_mean_query_latency_ns"}
IDLE_NS, IDLE = 100_000, 0.1
"""Between two queries of a stream: at most 16,000 ns and 3.4 % of the latency in 909 published logs."""


def clock_window_s(log: LogView) -> float | None:
    """Return the time by the log's own clock from generating the queries to the end: at least the duration of the
    run."""
    begin_ms = log.times_ms.get("generated_query_count")
    return None if begin_ms is None or log.end_time_s is None else log.end_time_s - begin_ms / 1000


def _measured_s(log: LogView) -> tuple[float, float] | None:
    """Return the minimum and the maximum duration of a run by its results, which LoadGen measures with a monotonic
    clock."""
    scenario, found = log.scenario, None
    longest = numbers(log, "result_max_latency_ns", "result_query_count")
    if longest is None:
        return None
    longest_s, queries = longest[0] / SECOND_NS, longest[1]
    if scenario == "Offline":
        return longest_s, longest_s
    if scenario == "SingleStream":
        found = numbers(log, "result_qps_with_loadgen_overhead")
        issued_s = (queries - 1) / found[0] if found and found[0] > 0 else None
        return None if issued_s is None else (issued_s, issued_s + longest_s)
    if scenario == "Server":
        found = numbers(log, "result_completed_samples_per_sec", "result_scheduled_samples_per_sec")
        if found is None or not min(found) > 0:
            return None
        return (queries - 1) / found[0], (queries - 1) / found[1] + longest_s
    found = numbers(log, STREAM_MEANS["MultiStream"])
    if found is None:
        return None
    return queries * found[0] / SECOND_NS, queries * (found[0] * (1 + IDLE) + IDLE_NS) / SECOND_NS


def clock_step_s(log: LogView) -> float:
    """Return the adjustment of the machine's clock during a run, or 0 if there is no sign of one.

    power_begin and power_end are times of day, the log's own clock and the latencies are not. If only the times of day
    disagree, by less than two seconds (NTP) or by an hour (daylight saving), they are considered wrong.
    """
    measured, window_s = _measured_s(log), clock_window_s(log)
    if measured is None or window_s is None or log.elapsed_s is None:
        return 0.0
    least_s, most_s = measured[0], min(measured[1], window_s)
    if least_s > window_s + STAMPS_S or measured[1] < window_s * (1 - LINGERS) - LINGERS_S:
        return 0.0  # the log's own clock does not agree with the figures either
    slack_s = STAMPS_S + 2 * CLOSE * least_s
    nearest_s = min(max(log.elapsed_s, least_s), max(most_s, least_s))
    step_s = log.elapsed_s - nearest_s
    is_set = slack_s < abs(step_s) < _STEP_S or abs(abs(step_s) - _DAYLIGHT_S) < _STEP_S
    return step_s if is_set else 0.0


def lasted_s(log: LogView) -> float | None:
    """Return the duration of the run by its two stamps, without the adjustment of the machine's clock."""
    return None if log.elapsed_s is None else log.elapsed_s - clock_step_s(log)


_VERSION = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})\.([0-9]{1,4})")


def version_of(log: LogView) -> tuple[int, ...] | None:
    """Return the three numbers of LoadGen's version, or None if the log has none."""
    found = _VERSION.match(log.text("loadgen_version") or "")
    return None if found is None else tuple(map(int, found.groups()))


def usable(run: RunView) -> Iterator[LogView]:
    """Yield the log of a performance run if it could be read to its end."""
    yield from (log for log in readable(run) if log.text("effective_test_mode") in ("PerformanceOnly", "SubmissionRun"))


def performance_rule(identity: str, text: str) -> Callable[[Callable[[LogView], Iterator[Violation]]], Check]:
    """Register a rule on the log of every performance run. Its function gets the log, read to its end."""

    def register(check: Callable[[LogView], Iterator[Violation]]) -> Check:
        return log_rule(identity, text)(lambda run: (found for log in usable(run) for found in check(log)))

    return register
