"""The rule on the queries that LoadGen generates before a run: their number and duration must match its settings."""

import math
from collections.abc import Iterator

from crowdperf.gate.derivation import (
    CLOSE,
    EQUALLY,
    SECOND_NS,
    at_key,
    at_keys,
    hides_padding,
    is_close,
    numbers,
    padded,
    readable,
    usable,
)
from crowdperf.gate.log_view import LogView
from crowdperf.gate.rulebook import Violation, log_rule
from crowdperf.gate.views import RunView

_SLACK, _LOST = 1.1, 1.0
"""LoadGen generates 10 % more Offline samples than the rate requires, rounded down."""


@log_rule("SET-003", "LoadGen generated the queries that its settings require.")
def generated_follows(run: RunView) -> Iterator[Violation]:
    for log in readable(run):
        yield from _least_samples(log)
        if log.scenario == "Offline":
            yield from _offline_interval(log)
        elif log.scenario in ("SingleStream", "MultiStream"):
            yield from _stream_interval(log)
    for log in usable(run):
        yield from _queries(log)


def _queries(log: LogView) -> Iterator[Violation]:
    """Of a performance run. An accuracy run has each sample once, independent of the settings."""
    scenario = log.scenario
    yield from _samples_of_query(log)
    if scenario == "Offline":
        yield from _offline_samples(log)
    elif scenario in ("SingleStream", "MultiStream"):
        yield from _stream_queries(log)
    elif scenario == "Server":
        keys = ("generated_query_duration", "effective_min_duration_ms", "generated_query_count",
                "effective_min_query_count")  # fmt: skip
        found = numbers(log, *keys)
        if found is not None and not (found[0] >= found[1] * 1e6 and found[2] >= found[3]):
            yield at_keys(log, keys, "at least the requested duration and count")
        elif found is not None and found[2] % _padding(log):
            yield at_key(log, keys[2], f"a multiple of the {_padding(log)} samples")


def _least_samples(log: LogView) -> Iterator[Violation]:
    keys = ("effective_min_sample_count", "effective_min_query_count", "effective_samples_per_query")
    found = numbers(log, *keys)
    if found is not None and found[0] != found[1] * found[2]:
        yield at_keys(log, keys, "the product of the other two")


def _samples_of_query(log: LogView) -> Iterator[Violation]:
    pair = ("generated_samples_per_query", "effective_samples_per_query")
    found = numbers(log, *pair)
    if found is None:
        return
    is_padded = log.values.get(f"effective_{EQUALLY}") is True and log.scenario == "Offline"
    wanted = padded(log, found[1]) if is_padded else found[1]
    if found[0] != wanted and not (hides_padding(log) and found[0] == found[1]):
        yield at_keys(log, pair, f"{wanted:g}")


def _offline_samples(log: LogView) -> Iterator[Violation]:
    keys = ("effective_samples_per_query", "effective_min_duration_ms", "effective_target_qps",
            "requested_min_query_count")  # fmt: skip
    found = numbers(log, *keys)
    if found is None or log.values.get("effective_performance_issue_unique") is True:
        return
    wanted = max(found[3], _SLACK * found[1] / 1000 * found[2])
    if not is_close(found[0], wanted, relative=2 * CLOSE, absolute=_LOST):
        yield at_keys(log, keys, f"{wanted:.0f}")


def _padding(log: LogView) -> int:
    """Of what number a count of queries is a multiple: of the samples, where all are issued equally often."""
    loaded = log.values.get("loaded_qsl_set")
    is_equal = log.values.get(f"effective_{EQUALLY}") is True
    return len(loaded) if is_equal and isinstance(loaded, list) and loaded else 1


def _offline_interval(log: LogView) -> Iterator[Violation]:
    """What LoadGen generates its one query for is the interval of the target rate."""
    keys = ("generated_query_duration", "effective_target_qps")
    found = numbers(log, *keys)
    if found is not None and found[1] > 0:
        wanted_ns, queries = SECOND_NS / found[1], padded(log, 1)
        is_of_each = hides_padding(log) and is_close(found[0], queries * wanted_ns, 2 * CLOSE, queries)
        if not is_of_each and not is_close(found[0], wanted_ns, relative=2 * CLOSE, absolute=1.0):
            yield at_keys(log, keys, f"{wanted_ns:.0f}: one query at the target rate")


def _stream_interval(log: LogView) -> Iterator[Violation]:
    """Queries are generated at fixed intervals."""
    keys = ("generated_query_duration", "generated_query_count", "effective_target_qps")
    found = numbers(log, *keys)
    if found is not None and found[2] > 0:
        duration_ns, queries, interval_ns = found[0], found[1], SECOND_NS / found[2]
        if not is_close(duration_ns, queries * interval_ns, relative=2 * CLOSE, absolute=queries):
            yield at_keys(log, keys, f"{queries:g} intervals of {interval_ns:.0f} ns")


def _stream_queries(log: LogView) -> Iterator[Violation]:
    """For twice the requested duration, and no more of them."""
    keys = ("generated_query_duration", "generated_query_count", "effective_min_duration_ms")
    found = numbers(log, *keys)
    if found is None or not found[0] > 0:
        return
    duration_ns, queries, asked_ms = found
    is_unique = log.values.get("effective_performance_issue_unique") is True
    if not is_unique and duration_ns * (1 + CLOSE) < 2e6 * asked_ms:
        yield at_keys(log, (keys[0], keys[2]), "at least twice the requested duration")
    least = log.number("effective_min_query_count")
    if is_unique or least is None or (log.scenario == "MultiStream" and _padding(log) > 1):
        return
    wanted = max(least, math.ceil(2e6 * asked_ms / duration_ns * queries) + 1 if asked_ms else 0)
    wanted = -(-wanted // _padding(log)) * _padding(log)
    if abs(queries - wanted) > 1 + CLOSE * wanted:
        three = (keys[1], "effective_min_query_count", keys[2])
        yield at_keys(log, three, f"{wanted:g}: LoadGen generates no more queries than fit into it")
