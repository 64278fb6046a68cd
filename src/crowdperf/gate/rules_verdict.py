"""Rules on LoadGen's verdict on a performance run: its flags, and what each of them follows from.

LoadGen's early stopping as arithmetic: how many queries over the limit a run of a length tolerates.

LoadGen (early_stopping.cc, results.cc, 4.1 to 6.0.17) asks for 99 % confidence that the share of queries over the
limit is at most 1 - percentile. So `t` are tolerated among `n` where P[Binomial(n, 1 - percentile) <= t] < 0.01. The
stream scenarios discard the t - 1 slowest and report the next one; Server counts those over its limit.
"""

import math
import re
from collections.abc import Iterator

from crowdperf.gate.derivation import (
    CLOSE,
    PERCENTILES,
    QUERIES,
    SAMPLES,
    SECOND_NS,
    STAMPS_S,
    at_key,
    at_keys,
    contradiction,
    given,
    has_token_latencies,
    lasted_s,
    numbers,
    performance_rule,
    ranked,
    sample_count,
)
from crowdperf.gate.log_view import LogView
from crowdperf.gate.rulebook import Violation

CONFIDENCE = 0.99
_MIN_SHARE = 1e-18
_MAX_QUERIES = 10**10
"""Limit for a query count: a larger run would cost LoadGen hundreds of gigabytes, so it is not computed."""


def tolerated(queries: int, percentile: float) -> int | None:
    """Return the maximum number of queries over the limit, or -1 if the run is too short for any.

    None if the arguments are not a run: a count below 1 or beyond reason, a percentile outside of 0..1.
    """
    if not (0 < queries <= _MAX_QUERIES and 0.0 < percentile < 1.0):
        return None
    share, risk = 1.0 - percentile, 1.0 - CONFIDENCE
    odds = share / percentile
    deviation = math.sqrt(queries * share * percentile)
    count = min(queries, max(0, int(queries * share - 2.33 * deviation)))
    term = math.exp(_log_probability(queries, count, percentile))
    total = _at_most(queries, count, term, odds)
    while total >= risk and count >= 0:
        total -= term
        term *= count / ((queries - count + 1) * odds)
        count -= 1
    while count < queries:
        term = math.exp(_log_probability(queries, count + 1, percentile))
        if total + term >= risk:
            break
        total += term
        count += 1
    return count


def _log_probability(queries: int, count: int, percentile: float) -> float:
    """Of exactly so many over the limit."""
    ways = math.lgamma(queries + 1) - math.lgamma(count + 1) - math.lgamma(queries - count + 1)
    return ways + count * math.log1p(-percentile) + (queries - count) * math.log(percentile)


def _at_most(queries: int, count: int, term: float, odds: float) -> float:
    """Of so many or fewer. `term` is the probability of exactly so many."""
    total = 0.0
    while count >= 0 and term > _MIN_SHARE * total:
        total += term
        term *= count / ((queries - count + 1) * odds)
        count -= 1
    return total


_FLAGS = ("result_perf_constraints_met", "result_min_duration_met", "result_min_queries_met", "early_stopping_met")
_STREAMS = ("SingleStream", "MultiStream")
_STOPPING = ("early_stopping_result", "early_stopping_ttft_result", "early_stopping_tpot_result")
_ESTIMATES = {"SingleStream": "early_stopping_latency_ss", "MultiStream": "early_stopping_latency_ms"}
_DISCARDED = re.compile(r"Would discard ([0-9]{1,15}) ")
_PROCESSED = re.compile(r"Processed at least [0-9]{1,15} queries \(([0-9]{1,15})\)")
_ESTIMATED = re.compile(r"Early stopping ([0-9]{1,3}(?:\.[0-9])?)th percentile estimate: ([0-9]{1,18})")
"""With a digit behind the point since d7bbf881 of mlcommons/inference (February 2025), without before."""
_MULTI_STREAM_SHARE = 0.99
"""Of the second estimate of a SingleStream run, from which MultiStream may be inferred."""


@performance_rule("VER-001", "A run is VALID exactly when it met each of its constraints.")
def valid_means_all_met(log: LogView) -> Iterator[Violation]:
    for key in _FLAGS:
        if log.values.get("result_validity") == "VALID" and log.values.get(key) not in (None, True):
            yield contradiction(log, key, given(log, "result_validity", key), "true in a VALID run")
    keys = [key for key in _FLAGS if key in log.values]
    if log.values.get("result_validity") == "INVALID" and keys and all(log.values[key] is True for key in keys):
        yield at_keys(log, ("result_validity", *keys), "VALID: all were met")


@performance_rule("VER-002", "Early stopping was met exactly when its text reports it.")
def stopping_text_agrees(log: LogView) -> Iterator[Violation]:
    scenario, is_met = log.scenario, log.values.get("early_stopping_met")
    words = "Processed at least" if scenario in _STREAMS else "Run successful"
    texts = [text for text in map(log.text, _STOPPING) if text is not None]
    if scenario == "Offline" and any(texts):
        yield at_key(log, _STOPPING[0], "no text: Offline has no early stopping")
    if scenario not in (*_STREAMS, "Server") or not texts or not isinstance(is_met, bool):
        return
    if all(words in text for text in texts) != is_met:
        keys = [key for key in _STOPPING if log.text(key) is not None]
        yield contradiction(log, keys[0], given(log, "early_stopping_met", *keys), f"met exactly with {words!r}")


@performance_rule("VER-003", "Early stopping discards or tolerates as many queries as its arithmetic allows.")
def stopping_arithmetic_holds(log: LogView) -> Iterator[Violation]:
    found = numbers(log, "result_query_count", "effective_target_latency_percentile")
    limit = None if found is None else tolerated(int(found[0]), found[1])
    if found is None or limit is None:
        return
    if log.scenario == "Server":
        yield from _server_tolerates(log, limit)
    for key in _STOPPING if log.scenario in _STREAMS else ():
        text = log.text(key)
        discarded, processed = _first(_DISCARDED, text), _first(_PROCESSED, text)
        if discarded is not None and discarded != limit - 1:
            queries = given(log, "result_query_count", "effective_target_latency_percentile")
            yield contradiction(log, key, f"would discard {discarded}, {queries}", f"discards {max(0, limit - 1)}")
        if processed is not None and processed != found[0]:
            yield contradiction(log, key, f"processed {processed}, {given(log, 'result_query_count')}", "as many")


def _first(pattern: re.Pattern[str], text: str | None) -> int | None:
    found = pattern.search(text or "")
    return int(found[1]) if found else None


def _server_tolerates(log: LogView, limit: int) -> Iterator[Violation]:
    late, is_met = log.number("result_overlatency_query_count"), log.values.get("early_stopping_met")
    if has_token_latencies(log) or late is None or not isinstance(is_met, bool) or is_met == (late <= limit):
        return
    keys = ("early_stopping_met", "result_overlatency_query_count", "result_query_count")
    yield at_keys(log, keys, f"met exactly with at most {limit} over the latency")


@performance_rule("VER-004", "The early stopping estimate is the latency behind those discarded.")
def estimate_has_its_rank(log: LogView) -> Iterator[Violation]:
    scenario = log.scenario or ""
    found = numbers(log, "result_query_count", "effective_target_latency_percentile")
    if scenario not in _ESTIMATES or found is None or has_token_latencies(log):
        return
    known = ranked(log, SAMPLES if scenario == "SingleStream" else QUERIES)
    wanted = [(_ESTIMATES[scenario], found[1])]
    if scenario == "SingleStream":
        wanted.append(("early_stopping_latency_ms", _MULTI_STREAM_SHARE))
    for key, share in wanted:
        value, limit = log.number(key), tolerated(int(found[0]), share)
        if not value or limit is None or not known:  # 0: too few queries for an estimate
            continue
        rank = int(found[0]) - limit
        low = max((one.value for one in known if one.rank <= rank), default=0.0)
        high = min((one.value for one in known if one.rank >= rank), default=known[-1].value)
        if limit < 1 or not low <= value <= high:
            allowed = f"{low:.0f} to {high:.0f}, of which the percentiles about rank {rank} are"
            yield at_keys(log, (key, "result_query_count"), allowed)


@performance_rule("VER-005", "The estimates of the log are those of the early stopping text.")
def estimate_is_that_of_text(log: LogView) -> Iterator[Violation]:
    share = log.number("effective_target_latency_percentile")
    text = log.text("early_stopping_result")
    key = _ESTIMATES.get(log.scenario or "")
    if share is None or text is None or key is None:
        return
    keys = {share: key} if key == "early_stopping_latency_ms" else {
        _MULTI_STREAM_SHARE: "early_stopping_latency_ms", share: key}  # fmt: skip
    written = dict(_ESTIMATED.findall(text))
    for at, one in keys.items():
        value, spelt = log.number(one), (f"{at * 100:.1f}", f"{at * 100:.0f}")
        estimate = next((written[percent] for percent in spelt if percent in written), 0)
        if value is not None and int(value) != int(estimate):
            found = f"{given(log, one)}, early stopping text: {text.strip()[-120:]}"
            yield contradiction(log, one, found, "the estimate of the text, 0 without one")


@performance_rule("VER-006", "As many queries are over the latency target as the percentiles show.")
def late_queries_follow(log: LogView) -> Iterator[Violation]:
    keys = ("result_overlatency_query_count", "effective_target_latency_ns", "result_query_count")
    found = numbers(log, *keys)
    if log.scenario != "Server" or found is None:
        return
    late, target, queries = found
    wrong = [one for one in ranked(log, SAMPLES) if (one.value > target) != (one.rank >= queries - late)]
    if wrong:
        is_more = wrong[0].value > target
        allowed = f"{'at least' if is_more else 'at most'} {queries - wrong[0].rank:g} over the target"
        yield at_keys(log, (*keys, wrong[0].key), allowed)


@performance_rule("VER-007", "The performance constraint was met exactly when the percentile is within the target.")
def constraint_follows(log: LogView) -> Iterator[Violation]:
    is_met, share = log.values.get("result_perf_constraints_met"), log.number("effective_target_latency_percentile")
    at = next((name for name, one in PERCENTILES.items() if one == share), None)
    if log.scenario != "Server" or at is None or not isinstance(is_met, bool):
        return
    pairs = [(f"result_{at}_percentile_latency_ns", "effective_target_latency_ns")]
    if has_token_latencies(log):
        pairs = [(f"result_first_token_{at}_percentile_latency_ns", "requested_server_ttft_latency"),
                 (f"result_time_per_output_token_{at}_percentile_ns", "requested_server_tpot_latency")]  # fmt: skip
    found = [numbers(log, *pair) for pair in pairs]
    if None not in found and all(one is not None and one[0] <= one[1] for one in found) != is_met:
        yield at_keys(
            log, ("result_perf_constraints_met", *(key for pair in pairs for key in pair)), str(not is_met).lower()
        )


@performance_rule("VER-008", "Enough queries were met exactly when there were as many as requested.")
def queries_follow(log: LogView) -> Iterator[Violation]:
    keys = (
        "result_query_count",
        "effective_min_query_count",
        "generated_samples_per_query",
        "effective_min_sample_count",
    )
    found, is_met, samples = numbers(log, *keys), log.values.get("result_min_queries_met"), sample_count(log)
    if found is None or samples is None or not isinstance(is_met, bool):
        return
    if (found[0] >= found[1] and samples >= found[3]) != is_met:
        yield at_keys(log, ("result_min_queries_met", *keys), str(not is_met).lower())


@performance_rule("VER-009", "The duration was met only by a run whose results last as long.")
def duration_follows(log: LogView) -> Iterator[Violation]:
    asked_ms, lasted = log.number("effective_min_duration_ms"), _lasted_s(log)
    if asked_ms is None or lasted is None or log.values.get("result_min_duration_met") is not True:
        return
    seconds, keys = lasted
    if seconds * (1 + CLOSE) + STAMPS_S < asked_ms / 1000:
        text = f"{given(log, 'result_min_duration_met', *keys)}: {seconds:.3f} s"
        yield contradiction(log, "result_min_duration_met", text, f"at least {asked_ms / 1000:g} s")


def _lasted_s(log: LogView) -> tuple[float, tuple[str, ...]] | None:
    """The duration of the run by the value that LoadGen compares with min_duration, and the keys of that value."""
    scenario = log.scenario
    if scenario == "MultiStream":
        elapsed_s = lasted_s(log)
        return None if elapsed_s is None else (elapsed_s, ("power_begin",))
    if scenario == "Offline":
        longest = log.number("result_max_latency_ns")
        return None if longest is None else (longest / SECOND_NS, ("result_max_latency_ns",))
    rate = "result_scheduled_samples_per_sec" if scenario == "Server" else "result_qps_with_loadgen_overhead"
    found = numbers(log, "result_query_count", rate)
    if found is None or not found[1] > 0:
        return None
    return (found[0] - 1) / found[1], ("result_query_count", rate)
