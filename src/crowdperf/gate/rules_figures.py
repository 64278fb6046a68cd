"""Rules on the results of a performance run: each is recomputed from others of the same detail log."""

import math
from collections.abc import Iterator
from itertools import pairwise

from crowdperf.gate.derivation import (
    CLOSE,
    FAMILIES,
    IDLE,
    IDLE_NS,
    PERCENTILES,
    QUERIES,
    SAMPLES,
    SECOND_NS,
    STAMPS_S,
    STREAM_MEANS,
    at_keys,
    contradiction,
    given,
    hides_padding,
    is_close,
    lasted_s,
    mean_bounds,
    numbers,
    padded,
    performance_rule,
    ranked,
)
from crowdperf.gate.log_view import LogView
from crowdperf.gate.rulebook import Violation

_SUM_OVERFLOWS = 2.0**63
"""LoadGen adds latencies in 64 bits: beyond that the mean is of the remainder (28 published Offline logs of v5.1,
with 17 million samples and more)."""


@performance_rule("FIG-001", "An Offline rate is the samples of its query divided by the maximum latency.")
def offline_rate_follows(log: LogView) -> Iterator[Violation]:
    keys = ("result_samples_per_second", "result_max_latency_ns", "result_query_count", "generated_samples_per_query")
    found = numbers(log, *keys)
    if log.scenario != "Offline" or found is None:
        return
    rate, latency_ns, queries, samples = found
    counted = rate * latency_ns / SECOND_NS
    if hides_padding(log) and is_close(counted, queries * padded(log, samples)):
        return
    if not is_close(counted, queries * samples):
        allowed = f"{queries * samples / latency_ns * SECOND_NS:g} samples per second" if latency_ns else "a latency"
        yield at_keys(log, keys, allowed)


@performance_rule("FIG-002", "The rate without LoadGen's overhead is one query in each mean latency.")
def stream_rate_follows(log: LogView) -> Iterator[Violation]:
    keys = ("result_qps_without_loadgen_overhead", "result_mean_latency_ns")
    found = numbers(log, *keys)
    if log.scenario == "SingleStream" and found is not None and found[1] > 0:
        rate, mean_ns = found
        if not is_close(rate * mean_ns, SECOND_NS, absolute=rate):  # the mean is cut to whole nanoseconds
            yield at_keys(log, keys, f"{SECOND_NS / mean_ns:g} queries per second")


@performance_rule("FIG-003", "The queries of a stream follow each other and fill the run.")
def stream_fills_run(log: LogView) -> Iterator[Violation]:
    scenario, elapsed_s = log.scenario, lasted_s(log)
    mean = STREAM_MEANS.get(scenario or "")
    if mean is None or elapsed_s is None:
        return
    found = numbers(log, "result_query_count", mean)
    if found is not None and found[0] * found[1] / SECOND_NS > elapsed_s + STAMPS_S:
        text = f"{given(log, 'result_query_count', mean)}, from power_begin to power_end {elapsed_s:.3f} s"
        yield contradiction(log, mean, text, "the queries together last no longer than the run")
    if scenario == "SingleStream":
        yield from _last_query_ends_run(log, elapsed_s)


def _last_query_ends_run(log: LogView, elapsed_s: float) -> Iterator[Violation]:
    keys = ("result_qps_with_loadgen_overhead", "result_query_count", "result_max_latency_ns")
    found = numbers(log, *keys)
    if found is None or not found[0] > 0:
        return
    rate, queries, longest_ns = found
    issued_s = (queries - 1) / rate
    slack_s = STAMPS_S + CLOSE * issued_s
    if not issued_s - slack_s <= elapsed_s <= issued_s + longest_ns / SECOND_NS + slack_s:
        text = f"{given(log, *keys)}: the last query issued after {issued_s:.3f} s, the end after {elapsed_s:.3f} s"
        yield contradiction(log, keys[0], text, "the run ends when the last query is answered")


@performance_rule("FIG-004", "A Server run ends when the queries that it completed are done.")
def server_rates_follow(log: LogView) -> Iterator[Violation]:
    keys = ("result_completed_samples_per_sec", "result_scheduled_samples_per_sec", "result_query_count",
            "result_min_latency_ns", "result_max_latency_ns")  # fmt: skip
    found, elapsed_s = numbers(log, *keys), lasted_s(log)
    if log.scenario != "Server" or found is None or not (found[0] > 0 and found[1] > 0):
        return
    completed, scheduled, queries, least_ns, greatest_ns = found
    done_s, last_s = (queries - 1) / completed, (queries - 1) / scheduled
    slack_s = 2 * CLOSE * done_s + STAMPS_S
    text = f"{given(log, *keys)}: the last query scheduled after {last_s:.3f} s, done after {done_s:.3f} s"
    if not least_ns / SECOND_NS - slack_s <= done_s - last_s <= greatest_ns / SECOND_NS + slack_s:
        yield contradiction(log, keys[0], text, "the last query done within the latencies of the run")
    elif elapsed_s is not None and not done_s - slack_s <= elapsed_s <= last_s + greatest_ns / SECOND_NS + slack_s:
        text += f", from power_begin to power_end {elapsed_s:.3f} s"
        yield contradiction(log, keys[0], text, "a run as long as its queries")


@performance_rule("FIG-005", "Server queries were scheduled as they were generated, at about the target rate.")
def server_schedule_follows(log: LogView) -> Iterator[Violation]:
    keys = ("result_scheduled_samples_per_sec", "effective_target_qps", "result_query_count", "generated_query_count",
            "generated_query_duration")  # fmt: skip
    found = numbers(log, *keys)
    if log.scenario != "Server" or found is None or not min(found[:4]) > 0:
        return
    rate, target, queries, generated, generated_ns = found
    last_s, generated_s = (queries - 1) / rate, generated_ns / SECOND_NS
    # Intervals are exponential: the sum of n deviates by sqrt(n) of them, and one of 50 never occurs. Each is cut
    # to whole nanoseconds, which counts at 650,000 queries a second.
    deviation = 6 * math.sqrt(generated) + 50 + generated * (CLOSE + target / SECOND_NS)
    if abs(generated_s * target - generated) > deviation:
        yield contradiction(log, keys[4], given(log, *keys), f"{generated:g} queries at {target:g} a second")
    elif queries == generated and not -CLOSE * last_s <= generated_s - last_s <= 50 / target + CLOSE * last_s:
        text = f"{given(log, *keys)}: the last query scheduled after {last_s:.3f} s"
        yield contradiction(log, keys[0], text, f"the last of those generated, after about {generated_s:.3f} s")


@performance_rule("FIG-006", "Latencies rise from the minimum over the percentiles to the maximum.")
def percentiles_rise(log: LogView) -> Iterator[Violation]:
    for family in FAMILIES:
        known = ranked(log, family)
        for before, after in pairwise(known):
            is_same = before.rank == after.rank and before.value != after.value
            if before.value > after.value or is_same or before.value < 0:
                allowed = "no less than the one before" if not is_same else f"both of the sample of rank {after.rank}"
                yield contradiction(log, after.key, given(log, before.key, after.key), allowed)
                break


@performance_rule("FIG-007", "A mean is one that latencies with these percentiles can have.")
def mean_is_possible(log: LogView) -> Iterator[Violation]:
    for family in FAMILIES:
        known, mean = ranked(log, family), log.number(family.mean)
        if not known or mean is None or any(a.value > b.value for a, b in pairwise(known)):
            continue
        low, high = mean_bounds(known)
        if high * (known[-1].rank + 1) >= _SUM_OVERFLOWS:
            continue
        if not low * (1 - CLOSE) - 1 <= mean <= high * (1 + CLOSE) + 1:
            keys = (family.mean, family.least, *(family.at % one for one in ("50.00", "90.00", "99.00")))
            yield at_keys(log, keys, f"{low:.0f} to {high:.0f}")


@performance_rule("FIG-009", "No more queries were issued than generated, in Server and Offline all.")
def counts_follow(log: LogView) -> Iterator[Violation]:
    keys = ("result_query_count", "generated_query_count")
    found = numbers(log, *keys)
    if found is None:
        return
    is_all = log.scenario in ("Server", "Offline")
    if hides_padding(log) and found[0] == 1 and found[1] == padded(log, 1):
        return
    if not 1 <= found[0] <= found[1] or (is_all and found[0] != found[1]):
        yield at_keys(log, keys, "all generated" if is_all else "at most those generated")


@performance_rule("FIG-010", "An Offline run ends with its last sample.")
def offline_fills_run(log: LogView) -> Iterator[Violation]:
    longest_ns, elapsed_s = log.number("result_max_latency_ns"), lasted_s(log)
    if log.scenario != "Offline" or longest_ns is None or elapsed_s is None:
        return
    if not is_close(elapsed_s, longest_ns / SECOND_NS, relative=0.0, absolute=STAMPS_S):
        text = f"{given(log, 'result_max_latency_ns')}, from power_begin to power_end {elapsed_s:.3f} s"
        yield contradiction(log, "result_max_latency_ns", text, "the same time")


@performance_rule("FIG-011", "A stream spends its run on queries: the next one follows when one is answered.")
def stream_is_busy(log: LogView) -> Iterator[Violation]:
    """Else its latencies were made smaller. The time between two queries is LoadGen's own."""
    mean = STREAM_MEANS.get(log.scenario or "")
    found = numbers(log, "result_query_count", mean) if mean else None
    elapsed_s = lasted_s(log)
    if mean is None or found is None or not found[0] > 0 or elapsed_s is None:
        return
    idle_ns, most_ns = elapsed_s * SECOND_NS / found[0] - found[1], IDLE_NS + IDLE * found[1]
    if idle_ns > most_ns:
        text = f"{given(log, 'result_query_count', mean)} in {elapsed_s:.3f} s: {idle_ns:.0f} ns between two queries"
        yield contradiction(log, mean, text, f"at most {most_ns:.0f} ns")


@performance_rule("FIG-013", "A MultiStream query lasts as long as its slowest sample, at each percentile at least so.")
def query_ends_with_sample(log: LogView) -> Iterator[Violation]:
    keys = ("result_max_query_latency_ns", "result_max_latency_ns", "result_mean_query_latency_ns",
            "result_mean_latency_ns")  # fmt: skip
    found = numbers(log, *keys)
    if log.scenario != "MultiStream" or found is None:
        return
    if found[0] != found[1] or found[2] < found[3]:
        allowed = "equal maximum latencies, and a mean of queries not below that of samples"
        yield at_keys(log, keys, allowed)
        return
    for pair in ((QUERIES.at % name, SAMPLES.at % name) for name in PERCENTILES):
        both = numbers(log, *pair)
        if both is not None and both[0] < both[1]:
            yield at_keys(log, pair, "no less than the samples of this percentile")
            return
