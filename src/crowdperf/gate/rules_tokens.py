"""Rules on the tokens of a language model's run: rates, latencies and lengths that follow from each other."""

import math
import re
import statistics
from collections.abc import Iterator

from crowdperf.gate.derivation import (
    CLOSE,
    FIRST_TOKENS,
    OUTPUT_TOKENS,
    SAMPLES,
    SECOND_NS,
    STAMPS_S,
    at_keys,
    contradiction,
    given,
    has_token_latencies,
    is_close,
    numbers,
    performance_rule,
    ranked,
    token_count,
    usable,
)
from crowdperf.gate.log_view import TOKEN_RATES, LogView
from crowdperf.gate.rulebook import BOTH, CLOSED, OURS, SINCE, Scope, Violation, rule
from crowdperf.gate.rules_accuracy import samples_of
from crowdperf.gate.steps import Step
from crowdperf.gate.views import RunView, ScenarioView, TestView
from crowdperf.logs.score_lines import parse_scores

_LENGTH = "TOKENS_PER_SAMPLE"
_COUNTED = re.compile(r'"token_count"\s*:\s*([0-9]{1,9})')
_MEAN = re.compile(r"^Mean output tokens: ([0-9]{1,15}(?:\.[0-9]{1,20})?)$", re.M)

_COUNTS = 5
_AS_LONG, _COUNTED_AS_LONG, _OTHER_MEAN = 1.06, 1.1, 3.0
"""Mean lengths of answers in accuracy and performance runs differ by at most 2.3 % in 344 results of round v5.1. The
count of a test may omit a token of each. The mean over tokens differs from the mean over answers by 4 %."""


@performance_rule("FIG-008", "All rates of tokens are of the same number of tokens.")
def token_rates_follow(log: LogView) -> Iterator[Violation]:
    base = ("result_token_throughput", "result_mean_latency_ns", "result_query_count")
    rates = TOKEN_RATES.get(log.scenario or "", ())
    keys = (*base, *rates)
    found, tokens = numbers(log, *keys), token_count(log)
    if tokens is None or found is None or len(found) < len(base) + 2 or not found[4] > 0:
        return
    others = found[3] * (found[2] - 1) / found[4]
    if not is_close(tokens, others, relative=4 * CLOSE + 1 / max(found[1], 1.0)):
        text = f"{given(log, *keys)}: {others:.0f} and {tokens:.0f} tokens"
        yield contradiction(log, keys[3], text, "as many tokens")
    yield from _other_token_rate(log, tokens)


def _other_token_rate(log: LogView, tokens: float) -> Iterator[Violation]:
    """The rate whose time ends when the last query was issued, in a stream that ends when it was answered."""
    if log.scenario == "Server":
        keys = ("result_token_throughput_with_loadgen_overhead", "result_scheduled_samples_per_sec")
    else:
        keys = ("result_completed_tokens_per_second", "result_qps_with_loadgen_overhead")
    found = numbers(log, *keys, "result_query_count", "result_max_latency_ns")
    if found is None or not min(found[:2]) > 0:
        return
    seconds, issued_s = tokens / found[0], (found[2] - 1) / found[1]
    slack_s = STAMPS_S + 6 * CLOSE * issued_s
    if not issued_s - slack_s <= seconds <= issued_s + found[3] / SECOND_NS + slack_s:
        text = f"{given(log, *keys)}: {tokens:.0f} tokens in {seconds:.3f} s, the last query issued at {issued_s:.3f} s"
        yield contradiction(log, keys[0], text, "the end of the run within a latency of its last query")


@rule("FIG-012", Scope.RUN, "The answers are about as long as the benchmark's.", source=BOTH, since="v5.0",
      divisions=CLOSED)  # fmt: skip
def answers_have_length(run: RunView) -> Iterator[Violation]:
    table = run.scenario.model.table
    for log in usable(run):
        scenario = log.scenario or ""
        least = [one.value for one in table.targets_in(scenario) if one.metric == _LENGTH] if table else []
        length = log.tokens_of_sample
        if least and length is not None and not least[0] / 2 <= length <= least[0] * 3:
            yield _of_length(log, length, f"half to three times the {least[0]:g} of the accuracy target")


@performance_rule("FIG-014", "No answer is done before its first token, and the later tokens need the remaining time.")
def tokens_fill_latencies(log: LogView) -> Iterator[Violation]:
    if log.scenario not in ("Server", "SingleStream") or not has_token_latencies(log):
        return
    for first, last in zip(ranked(log, FIRST_TOKENS), ranked(log, SAMPLES), strict=False):
        if first.value > last.value:
            yield at_keys(log, (first.key, last.key), "a first token no later than the whole answer")
            break
    yield from _time_of_tokens(log)


def _time_of_tokens(log: LogView) -> Iterator[Violation]:
    """All answers together: the remaining latency after the first tokens, divided by the other tokens."""
    means = (SAMPLES.mean, FIRST_TOKENS.mean, OUTPUT_TOKENS.mean)
    found, tokens = (
        numbers(log, *means, "result_query_count", OUTPUT_TOKENS.least, OUTPUT_TOKENS.greatest),
        token_count(log),
    )
    if found is None or tokens is None or not tokens > 2 * CLOSE * tokens + found[3]:
        return
    mean_ns, first_ns, each_ns, queries, least_ns, greatest_ns = found
    real_ns = (mean_ns - first_ns) * queries / (tokens - queries)
    slack_ns = 2 + 8 * CLOSE * tokens / (tokens - queries) * real_ns  # the tokens are counted by rates of six digits
    low, high = max(least_ns, each_ns / _OTHER_MEAN), min(greatest_ns, each_ns * _OTHER_MEAN)
    if not low - slack_ns <= real_ns <= high + slack_ns:
        text = f"{given(log, *means)}: {real_ns:.0f} ns for each of {tokens - queries:.0f} tokens"
        yield contradiction(log, OUTPUT_TOKENS.mean, text, f"{low:.0f} to {high:.0f} ns")


@rule("FIG-015", Scope.RUN, "The answers are as long as those of the accuracy run.", source=OURS, since=SINCE)
def answers_are_those_of_accuracy_run(run: RunView) -> Iterator[Violation]:
    """If both runs use all samples of one data set."""
    table = run.scenario.model.table
    if table is None or samples_of(run.scenario) != table.performance_samples:
        return
    scored = _length_in_accuracy_run(run.scenario)
    for log in usable(run):
        length = log.tokens_of_sample
        if length is not None and scored and not 1 / _AS_LONG <= length / scored[1] <= _AS_LONG:
            yield _of_length(log, length, f"about {scored[1]:g}, as {scored[0]} says")


def _length_in_accuracy_run(scenario: ScenarioView) -> tuple[str, float] | None:
    """Return the file with the length of the answers: accuracy.txt, or a log whose shown answers have one length
    only."""
    scored = parse_scores(_LENGTH, scenario.accuracy_text.text)
    if scored and scored[0].value > 0:
        return scenario.accuracy_text.path, scored[0].value
    counts = list(map(int, _COUNTED.findall(scenario.accuracy_log.text)))
    is_clear = len(counts) >= _COUNTS and len(set(counts)) == 1 and counts[0] > 0
    return (scenario.accuracy_log.path, float(counts[0])) if is_clear else None


@rule("FIG-016", Scope.TEST, "The answers of the run are as long as those of its tests.", source=OURS,
      step=Step.PERFORMANCE, since=SINCE)  # fmt: skip
def answers_are_those_of_test(test: TestView) -> Iterator[Violation]:
    """All have samples of one data set. TEST01 is of models that answer alike: 37 published runs of it have the rates
    of the submitted ones to four digits. Where answers were counted, six deviations of their mean are allowed."""
    for log in usable(test.submitted):
        length = log.tokens_of_sample
        for path, mean, slack in _lengths_of_test(test) if length is not None else ():
            factor = _COUNTED_AS_LONG if test.test == "TEST09" else _AS_LONG
            if length is not None and not mean / factor - slack <= length <= mean * factor + slack:
                yield _of_length(log, length, f"about {mean:.1f} (+-{slack:.1f}), as {path} says")
                break


def _lengths_of_test(test: TestView) -> Iterator[tuple[str, float, float]]:
    """The mean length of answers by a file, and how far it may be from that of all answers."""
    counted = test.responses.text
    if test.test == "TEST01":
        length = next((log.tokens_of_sample for log in usable(test.run)), None)
        if length is not None:
            yield test.run.detail.path, length, 0.0
        counted += test.scenario.accuracy_log.text
    if test.test in ("TEST01", "TEST06"):
        counts = list(map(int, _COUNTED.findall(counted)))
        if len(counts) >= _COUNTS:
            slack = 6 * statistics.stdev(counts) / math.sqrt(len(counts))
            yield test.responses.path, statistics.fmean(counts), slack
    found = _MEAN.search(test.verify_length.text) if test.test == "TEST09" else None
    if found and float(found[1]) > 0:
        yield test.verify_length.path, float(found[1]), 0.0


def _of_length(log: LogView, length: float, allowed: str) -> Violation:
    rates = TOKEN_RATES[log.scenario or ""]
    return contradiction(log, rates[0], f"{given(log, *rates)}: {length:.1f} tokens a sample", allowed)
