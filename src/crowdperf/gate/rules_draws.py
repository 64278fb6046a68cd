"""Rules on LoadGen's random draws: arrivals in Server, the samples that it loads, the responses that it logs.

All of them were true in the published round v5.1: 336 Server logs of up to two million queries, the samples of 1,117
logs that loaded some of all, the responses of 246 tests, and their number in 171 but one, whose verdict is of another
run.
"""

from collections.abc import Iterator, Sequence

from crowdperf.gate.derivation import (
    CLOSE,
    EQUALLY,
    SECOND_NS,
    contradiction,
    given,
    hides_padding,
    is_close,
    numbers,
    padded,
    performance_rule,
    version_of,
)
from crowdperf.gate.documents import TextFile
from crowdperf.gate.loadgen_random import MAX_DRAWS, arrival, log_value, logged_count
from crowdperf.gate.log_view import LogView
from crowdperf.gate.rulebook import LOADGEN, SINCE, Scope, Severity, Violation, rule
from crowdperf.gate.rules_testlogs import logged_responses, sampled_share
from crowdperf.gate.views import ScenarioView, TestView
from crowdperf.logs.accuracy_log import shown_responses
from crowdperf.logs.seeds import SEEDS

_SCHEDULE_SEEDS = frozenset(one.schedule for one in SEEDS.values())

_LOADS_FIRST_SAMPLES, _MAY_LOAD_FIRST_SAMPLES = (6, 0, 6), (6, 0, 0)
"""From here on a performance run has the first samples of the data set, in random order (mlcommons/inference
a8d4d783 of January 2026, in the course of 6.0.5). Before, it had some of all of them."""

_FEW, _NEVER = 6, 1e-12
"""Fewer samples may be in order by chance. A lower probability than this one is not a coincidence."""

_MAX_COUNTED = 200_000


@performance_rule("FIG-017", "Server queries were scheduled at the times that the seed draws.")
def schedule_is_drawn(log: LogView) -> Iterator[Violation]:
    keys = ("generated_query_count", "generated_query_duration", "effective_target_qps", "result_query_count",
            "result_scheduled_samples_per_sec")  # fmt: skip
    found, seed = numbers(log, *keys), log.values.get("effective_schedule_rng_seed")
    if log.scenario != "Server" or found is None or not isinstance(seed, int) or seed not in _SCHEDULE_SEEDS:
        return
    generated, duration_ns, target, issued, rate = found
    if not 1 < issued <= generated <= MAX_DRAWS or not min(target, rate) > 0:
        return
    times = (
        (duration_ns / SECOND_NS, int(generated), keys[1]),
        ((issued - 1) / rate, int(issued) - 1, keys[4]),
    )
    for seconds, number, key in times:
        wanted_s = arrival(seed, number) / target
        if not is_close(seconds, wanted_s, relative=3 * CLOSE, absolute=number / SECOND_NS):  # cut to whole ns
            text = f"{given(log, *keys)}: query {number} at {seconds:.3f} s"
            yield contradiction(log, key, text, f"{wanted_s:.3f} s, by the seed {seed}")
            return


@performance_rule("SET-013", "The loaded samples are those that LoadGen's random choice gives, in its order.")
def loaded_is_drawn(log: LogView) -> Iterator[Violation]:
    loaded, total = log.values.get("loaded_qsl_set"), log.number("qsl_reported_total_count")
    count, version = log.number("effective_performance_sample_count"), version_of(log)
    samples = log.loaded_samples
    if not isinstance(loaded, list) or len(samples) < _FEW or total is None or count is None or version is None:
        return
    found = ""
    if loaded[: len(samples)] == sorted(samples):
        found = f"{len(samples)} samples in ascending order"
    elif len(samples) >= total:
        return
    elif version >= _LOADS_FIRST_SAMPLES and max(samples) >= max(count, len(samples)):
        found = f"sample {max(samples)} among {len(samples)}"
    elif version < _MAY_LOAD_FIRST_SAMPLES and max(samples) < total * _NEVER ** (1 / len(samples)):
        found = f"{len(samples)} samples up to number {max(samples)}"
    if found:
        is_new = version >= _LOADS_FIRST_SAMPLES
        allowed = f"{'the first' if is_new else f'of all {total:g}'} samples, in random order"
        yield contradiction(log, "loaded_qsl_set", found, allowed)


@rule("TEST-023", Scope.TEST, "The responses that a test logged are those that LoadGen chooses.", source=LOADGEN,
      since=SINCE)  # fmt: skip
def responses_are_chosen(test: TestView) -> Iterator[Violation]:
    """A verdict of TEST01 that counts one response fewer warns: two submitters' verdicts of Server runs of
    stable-diffusion-xl do (rounds v4.1 and v5.1: 113 of 114), with the speed of the very run to six digits.
    """
    log, share = test.run.detail, sampled_share(test.run.detail)
    seed = log.values.get("effective_accuracy_log_rng_seed")
    if share is None or not isinstance(seed, int) or share >= 1.0:
        return
    foreign = [number for number in dict.fromkeys(number for number, _ in shown_responses(test.responses.text))
               if number < MAX_DRAWS and log_value(number, seed) > share * (1 + CLOSE)]  # fmt: skip
    if foreign:
        allowed = f"one that accuracy_log_rng_seed chooses in {log.path}"
        yield Violation(path=test.responses.path, found=f"seq_id {foreign[0]}", allowed=allowed)
    issued = numbers(log, "result_query_count", "generated_samples_per_query")
    logged, source = logged_responses(test)
    if logged is None or issued is None:
        return
    counts = [issued[0] * issued[1]]
    counts += [issued[0] * padded(log, issued[1])] if hides_padding(log) else []
    if max(counts) > _MAX_COUNTED:
        return
    least = logged_count(int(counts[0]), seed, share * (1 - CLOSE))
    most = logged_count(int(max(counts)), seed, share * (1 + CLOSE))
    if not least <= logged <= most:
        allowed = f"{least}, by {log.path}" if least == most else f"{least} to {most}, by {log.path}"
        is_published = logged == least - 1 and source is not test.responses
        yield Violation(path=source.path, found=f"{logged} responses", allowed=allowed,
                        severity=Severity.WARNING if is_published else None)  # fmt: skip


@rule("TEST-024", Scope.TEST, "Each response that a test logged is of the sample that was issued under its number.",
      source=LOADGEN, since=SINCE)  # fmt: skip
def tested_samples_have_numbers(test: TestView) -> Iterator[Violation]:
    yield from _misplaced(test.responses, test.run.detail, is_accuracy=False)


@rule("ACC-026", Scope.SCENARIO, "Each response of the accuracy log is of the sample that was issued under its number.",
      source=LOADGEN, since=SINCE)  # fmt: skip
def samples_have_numbers(scenario: ScenarioView) -> Iterator[Violation]:
    yield from _misplaced(scenario.accuracy_log, scenario.accuracy_detail, is_accuracy=True)


def _misplaced(source: TextFile, log: LogView, *, is_accuracy: bool) -> Iterator[Violation]:
    """An accuracy run issues the samples that it loaded once, part by part. The first part is checked."""
    loaded = log.values.get("loaded_qsl_set")
    is_run = log.text("effective_test_mode") == ("AccuracyOnly" if is_accuracy else "PerformanceOnly")
    if not source.is_usable or not log.is_usable or not is_run or not isinstance(loaded, list) or not loaded:
        return
    switches = (EQUALLY, "performance_issue_same", "performance_issue_unique")
    is_shuffled = hides_padding(log) or any(log.values.get(f"effective_{key}") is True for key in switches)
    is_in_order = log.scenario == "Offline" and not is_shuffled
    known = log.loaded_samples
    for number, index in shown_responses(source.text):
        if is_accuracy and number >= len(loaded):
            continue
        wanted = _issued(loaded, number) if is_in_order else None
        if index != wanted if is_in_order else is_accuracy and index not in known:
            allowed = f"sample {wanted}" if is_in_order else f"one of the {len(known)} samples that were loaded first"
            found = f"seq_id {number} with sample {index}"
            yield Violation(path=source.path, found=found, allowed=f"{allowed}, by {log.path}")
            return


def _issued(loaded: Sequence[object], number: int) -> object:
    """Offline repeats the samples that were loaded, in their order."""
    return loaded[number % len(loaded)]
