"""Rules that recompute the verdict of a compliance test from the logs of the tree, instead of trusting its files.

The arithmetic is that of `crowdperf.compliance.verification`, which also makes the files. Of cut accuracy logs, the
first and last 4,096 bytes are checked. If the whole ones are known (`--backup_dir`), all of them.
"""

import math
import re
from collections.abc import Iterator, Mapping

from crowdperf.compliance.answer_checks import verify_answers
from crowdperf.compliance.verdict_lines import printed_counts, printed_scores
from crowdperf.compliance.verification import RunScore, compare_scores, first_element, tested_scores, verify_responses
from crowdperf.gate.derivation import SEEDS, at_key, numbers
from crowdperf.gate.documents import TextFile
from crowdperf.gate.log_view import LogView
from crowdperf.gate.rulebook import BOTH, LOADGEN, OURS, SINCE, Scope, Severity, Violation, rule
from crowdperf.gate.rules_accuracy import CUT, cut_problems, hash_problems, repeated_number, shown_samples, whole_lines
from crowdperf.gate.rules_compliance import passed
from crowdperf.gate.run_fingerprint import task_of
from crowdperf.gate.steps import Step
from crowdperf.gate.views import RunView, TestView
from crowdperf.logs.accuracy_log import ANSWERED, shown_responses
from crowdperf.logs.score_lines import parse_hashes
from crowdperf.rules.benchmarks import BENCHMARKS
from crowdperf.rules.compliance import audit_values, has_second_seeds
from crowdperf.rules.names import FIGURE_KEYS, Scenario
from crowdperf.rules.record import Record

_COMPARED = ("TEST01", "TEST04", "TEST05")
_AUDIT = "the audit.config of the test (mlcommons/inference b66003e1, compliance/)"
_COMPARED_SETTINGS = (
    "accuracy_log_rng_seed", "accuracy_log_sampling_target", "performance_issue_unique", "performance_issue_same",
    "performance_issue_same_index", "qsl_rng_seed", "sample_index_rng_seed", "schedule_rng_seed",
)  # fmt: skip
"""Keys of audit.config that define the test. The others only make it shorter."""

_LOGS_RESPONSES = ("TEST01", "TEST06", "TEST07", "TEST09")
_CUT_BY_TOOL = ("TEST01", "TEST07", "TEST09")
"""The tests whose logs truncate_accuracy_log.py (mlcommons/inference b66003e1) cuts, with the hash stored next to
them."""

_FLAGS = ("performance_issue_unique", "performance_issue_same")
_SIZED = re.compile(r'"data"\s*:\s*"([0-9A-Fa-f]+)"[^{}]{0,99}?"token_count"\s*:\s*([0-9]{1,9})')
_WIDTHS: Mapping[int, str] = {4: "int32", 8: "int64", 2: "int16"}
_NEEDED_COUNTS = ("num_acc_log_entries", "num_perf_log_entries", "num_perf_log_data_mismatch")
"""Those that the script writes in each of its two ways."""


@rule("TEST-007", Scope.TEST, "The run of a compliance test was made with the settings of its test.", source=_AUDIT)
def has_settings_of_test(test: TestView) -> Iterator[Violation]:
    log = test.run.detail
    if not log.is_usable or test.test not in (*_COMPARED, "TEST06"):
        return
    version, table = log.text("loadgen_version") or "", test.scenario.model.table
    settings = audit_values(test.test, _benchmark(test), version)
    if test.test == "TEST01" and table is not None and table.sampling_target:
        settings["accuracy_log_sampling_target"] = table.sampling_target
    for setting, wanted in settings.items():
        key, is_target = f"effective_{setting}", setting == "accuracy_log_sampling_target"
        value = log.values.get(key) is True if setting in _FLAGS else log.number(key)
        if key not in log.values and test.scenario.tree.round.is_old:
            continue  # LoadGen of old rounds did not log all of them
        is_right = value is not None and (value >= wanted if is_target else value == wanted)
        if setting in _COMPARED_SETTINGS and not is_right:
            allowed = bool(wanted) if setting in _FLAGS else f"{'at least ' if is_target else ''}{wanted}"
            yield at_key(test.run.detail, key, f"{allowed}, which defines {test.test}")
    if test.test == "TEST05" and has_second_seeds(version):
        yield from _has_second_seeds(test)


def _benchmark(test: TestView) -> str:
    """This project's name of the model, else the checkers' without its level."""
    name = test.scenario.subject.benchmark
    return name if name in BENCHMARKS else task_of(test.scenario.model.canonical)


def _record(test: TestView) -> Record | None:
    """The record of the benchmark, or None for one that this project cannot run."""
    row = BENCHMARKS.get(test.scenario.subject.benchmark)
    return None if row is None else row.record


def _element(test: TestView) -> str:
    record = _record(test)
    return (record.response_type if record else "") or "byte"


def _has_second_seeds(test: TestView) -> Iterator[Violation]:
    seeds = test.scenario.tree.round.seeds
    for key, name in SEEDS:
        if test.run.detail.values.get(key) in (None, 0, getattr(seeds, name)):
            allowed = "another seed than that of the round: LoadGen has a second one for TEST05"
            yield at_key(test.run.detail, key, allowed)


def _score_of(run: RunView) -> RunScore | None:
    """The part of a run that a test compares, or None for a scenario that LoadGen does not have."""
    log = run.detail
    scenario = next((one for one in Scenario if one.value == log.text("effective_scenario")), None)
    if scenario is None or not log.is_usable:
        return None
    is_valid = log.values.get("result_validity") == "VALID"
    return RunScore(
        scenario=scenario,
        score=log.number(FIGURE_KEYS[scenario]),
        target_latency_ns=log.number("effective_target_latency_ns"),
        problem="" if is_valid else "is not VALID",
    )


@rule("TEST-008", Scope.TEST, "The test's run is as fast as its rules allow, by the logs of both runs.", source=BOTH)
def speed_is_allowed(test: TestView) -> Iterator[Violation]:
    scores = _score_of(test.submitted), _score_of(test.run)
    if test.test in _COMPARED and scores[0] and scores[1]:
        verdict = compare_scores(test.test, scores[0], scores[1])
        if not verdict.is_passed:
            allowed = f"what {test.test} allows in addition to {test.submitted.detail.path}"
            yield Violation(path=test.run.detail.path, found="; ".join(verdict.lines), allowed=allowed)


@rule("TEST-009", Scope.TEST, "verify_performance.txt has the results of the two logs.", source=OURS, since="v5.0")
def figures_are_of_logs(test: TestView) -> Iterator[Violation]:
    """Results of another run are a warning if the available logs also pass: TEST-008 recomputes the verdict."""
    source, scores = test.verify_performance, (_score_of(test.submitted), _score_of(test.run))
    if test.test not in _COMPARED or not source.is_usable or not (scores[0] and scores[1]):
        return
    printed = printed_scores(source.text)
    severity = Severity.WARNING if compare_scores(test.test, scores[0], scores[1]).is_passed else None
    for name, score in tested_scores(test.test, scores[0], scores[1]).items():
        one = printed.get(name)
        if one is None:
            yield Violation(path=source.path, found=f"no {name} score", allowed=f"{name} score = {score}, by the log")
        elif score is not None and not one.is_of(score):
            found, allowed = f"{name} score = {one.text}", f"{score}, by the log"
            line = source.line_of(one.text)
            yield Violation(path=source.path, found=found, allowed=allowed, line=line, severity=severity)


@rule("TEST-010", Scope.TEST, "The counts in verify_accuracy.txt give its verdict, and are those of the logs.",
      source=OURS)  # fmt: skip
def counts_give_verdict(test: TestView) -> Iterator[Violation]:
    source = test.verify_accuracy
    if test.test != "TEST01" or not source.is_usable:
        return
    counts = printed_counts(source.text)
    missing = [name for name in _NEEDED_COUNTS if name not in counts]
    if missing:
        yield Violation(
            path=source.path, found=f"no {missing[0]}", allowed="the output of the verification, with its counts"
        )
        return
    for found, allowed in _wrong_counts(test, counts):
        yield Violation(path=source.path, found=found, allowed=allowed)


def _wrong_counts(test: TestView, counts: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    entries, mismatched = counts["num_perf_log_entries"], counts["num_perf_log_data_mismatch"]
    lost = counts.get("num_missing_qsl_idxs", 0)
    matched = counts.get("num_perf_log_qsl_idx_match", entries - lost)
    is_equal = not mismatched and matched > 0
    if is_equal != passed(test):
        words = f"num_perf_log_data_mismatch = {mismatched}, num_perf_log_qsl_idx_match = {matched}"
        yield f"{words}, {'TEST PASS' if passed(test) else 'no TEST PASS'}", "the verdict that follows from them"
    if matched + lost != entries:
        yield f"{matched} found and {lost} missing of {entries} entries", "counts that add up"
    table = test.scenario.model.table
    wanted = table.accuracy_samples_in(test.scenario.scenario or test.scenario.name) if table else 0
    whole = counts["num_acc_log_entries"] - counts.get("num_acc_log_duplicate_keys", 0)
    is_rehearsal = test.scenario.tree.options.is_rehearsal  # which may be of a few made samples
    if whole < wanted and not is_rehearsal:
        yield f"{whole} samples of the accuracy run", f"{wanted}, the whole data set"
    is_cut = CUT in test.responses.text
    shown_entries = len(shown_samples(test.responses.text))
    if test.responses.is_usable and (shown_entries > entries or (not is_cut and shown_entries != entries)):
        yield f"num_perf_log_entries = {entries}", f"{shown_entries} in {test.responses.path}"


@rule("TEST-011", Scope.TEST, "A test that logs responses logged those of its run.", source=_AUDIT)
def responses_are_of_run(test: TestView) -> Iterator[Violation]:
    source, log = test.responses, test.run.detail
    if test.test not in _LOGS_RESPONSES or not source.is_usable:
        return
    found = shown_responses(source.text)
    if not found:
        yield _no_response(test)
        return
    loaded = log.values.get("loaded_qsl_set")
    if not log.is_usable or not isinstance(loaded, list):
        return
    known = log.loaded_samples
    repeated = repeated_number(source.text)
    if repeated is not None:
        yield Violation(path=source.path, found=f"seq_id {repeated} twice", allowed="each response once")
    foreign = [index for _, index in found if index not in known]
    if foreign:
        allowed = f"the {len(known)} samples that {log.path} loaded"
        yield Violation(path=source.path, found=f"sample {foreign[0]}", allowed=allowed)
    count = log.number("result_query_count") or log.number("generated_query_count") or 0
    issued = count * (log.number("generated_samples_per_query") or 1)
    last = max(number for number, _ in found)
    if issued and last >= issued:
        yield Violation(
            path=source.path, found=f"seq_id {last}", allowed=f"below {issued:g}, the samples of {log.path}"
        )


def _no_response(test: TestView) -> Violation:
    """A warning if TEST06's log is LoadGen's empty list and the run's detail log is not in the tree.

    The official checkers read the verdict alone, and the script (compliance/TEST06/run_verification.py of
    mlcommons/inference b66003e1) passes an empty log: twelve results of round v5.1 were accepted so. Where there is a
    detail log, LoadGen's source determines how many responses it wrote.
    """
    source, found, allowed = test.responses, "no response", "the responses that LoadGen logged in the test"
    if test.test != "TEST06" or source.text.split() != ["[", "]"] or not test.run.detail.is_missing:
        return Violation(path=source.path, found=found, allowed=allowed)
    found = f"no response: {test.verify_accuracy.path} passed without an answer, so TEST06 has no evidence"
    allowed = "about 100: put TEST06's audit.config into the folder in which the run starts, and repeat the test"
    return Violation(path=source.path, found=found, allowed=allowed, severity=Severity.WARNING)


@rule("TEST-022", Scope.TEST, "As many responses were logged as the run's sampling target requires.", source=LOADGEN,
      since=SINCE)  # fmt: skip
def enough_responses_were_logged(test: TestView) -> Iterator[Violation]:
    """Otherwise a log would be accepted from which differing responses were removed. Additional responses do no
    harm."""
    logged, source = logged_responses(test)
    wanted = sampled_responses(test.run.detail)
    if logged is None or wanted is None:
        return
    mean, least = wanted
    if logged < least:
        allowed = f"about {mean:.0f}, at least {least:.0f}, by {test.run.detail.path}"
        yield Violation(path=source.path, found=f"{logged} responses", allowed=allowed)


def logged_responses(test: TestView) -> tuple[int | None, TextFile]:
    """Return the number of responses that a test logged, and the file with that number, or None if there is no such
    file.

    TEST06's log is whole, that of TEST01 is cut, and its script counts it.
    """
    if test.test == "TEST06" and test.responses.is_usable and CUT not in test.responses.text:
        return len(shown_samples(test.responses.text)) or None, test.responses  # none at all: TEST-011
    counts = printed_counts(test.verify_accuracy.text) if test.test == "TEST01" else {}
    return counts.get("num_perf_log_entries"), test.verify_accuracy


def sampled_share(log: LogView) -> float | None:
    """Return the share of its responses that LoadGen logs in a performance run, 0..1, or None if it is unknown.

    It is the target of the samples that LoadGen expects (IssueQueries in loadgen.cc, the same since September 2020).
    """
    found = numbers(log, "effective_accuracy_log_sampling_target", "effective_target_qps", "effective_min_duration_ms",
                    "effective_min_sample_count", "effective_samples_per_query")  # fmt: skip
    if not log.is_usable or found is None or not found[0] > 0:
        return None
    target, rate, duration_ms, least, in_query = found
    expected = max(int(rate * duration_ms / 1000) * (1 if log.scenario == "Offline" else in_query), least, 1)
    return min(target / expected, 1.0)


def sampled_responses(log: LogView) -> tuple[float, float] | None:
    """Return the number of responses that LoadGen logs of a performance run, on average and at least, or None if
    unknown.

    It draws a number from 0 to 1 for each sample: at least six deviations below the mean.
    """
    share, issued = sampled_share(log), numbers(log, "result_query_count", "generated_samples_per_query")
    if share is None or issued is None:
        return None
    mean = issued[0] * issued[1] * share
    return mean, mean - 6 * math.sqrt(max(mean * (1 - share), 0.0)) - 1


@rule("TEST-012", Scope.TEST, "The responses that TEST01 logged are those of the accuracy run.", source=BOTH)
def responses_agree(test: TestView) -> Iterator[Violation]:
    reference, tested = test.scenario.accuracy_log, test.responses
    if test.test != "TEST01" or not passed(test) or not (reference.is_usable and tested.is_usable):
        return
    options = test.scenario.tree.options
    whole = whole_lines(test.scenario.accuracy_text, reference, options)
    sampled = whole_lines(test.responses_score, tested, options)
    if whole is None or sampled is None:
        yield from _shown_responses_agree(test)
        return
    verdict = verify_responses(whole, sampled, _element(test))
    if not verdict.is_passed:
        yield Violation(path=tested.path, found="; ".join(verdict.lines), allowed="the responses of the accuracy run")


def _shown_responses_agree(test: TestView) -> Iterator[Violation]:
    """Compare the responses that both cut logs still have."""
    element = _element(test)
    answers = {index: data for _, index, data in ANSWERED.findall(test.scenario.accuracy_log.text)}
    for _, index, data in ANSWERED.findall(test.responses.text):
        if index in answers and first_element(answers[index], element) != first_element(data, element):
            found = f"sample {index}: {data[:40]}"
            yield Violation(
                path=test.responses.path, found=found, allowed=f"{answers[index][:40]}, as in the accuracy run"
            )
            return


@rule("TEST-013", Scope.TEST, "TEST06's verdict follows from the answers that it logged.", source=BOTH)
def answers_are_whole(test: TestView) -> Iterator[Violation]:
    source = test.responses
    if test.test != "TEST06" or not shown_responses(source.text):
        return
    if CUT in source.text:
        yield Violation(path=source.path, found="a log that was cut", allowed="the whole log: TEST06's is never cut")
        return
    scenario = Scenario.OFFLINE if test.scenario.scenario == "Offline" else Scenario.SERVER
    record = _record(test)
    end_token = None if record is None else record.end_token
    verdict = verify_answers(source.text.split("\n"), scenario, end_token, _width(source.text))
    if not verdict.is_passed:
        yield Violation(path=source.path, found="; ".join(verdict.lines), allowed="answers as long as they say")


def _width(text: str) -> str:
    """The numeric type of answers, by the first answer that is not empty: int32 if that does not determine it."""
    sizes = ((len(found[1]) // 2, int(found[2])) for found in _SIZED.finditer(text))
    width = next((size // count for size, count in sizes if count), 0)
    return _WIDTHS.get(width, "int32")


@rule("TEST-014", Scope.TEST, "accuracy.txt has the hash of the whole log of a test.", source=OURS, step=Step.TREE)
def hash_of_test_belongs(test: TestView) -> Iterator[Violation]:
    score, log = test.responses_score, test.responses
    if test.test not in _CUT_BY_TOOL or not log.is_usable:
        return
    if score.is_usable:
        yield from hash_problems(score, log, test.scenario.tree.options)
    if CUT in log.text and not parse_hashes(score.text):
        yield Violation(
            path=score.path, found=f"no hash next to {log.path}, which was cut", allowed="hash=SHA256 OF THE WHOLE LOG"
        )


@rule("TEST-026", Scope.TEST, "A test's log that was cut is its first and last 4,096 bytes.", source=BOTH,
      step=Step.TREE)  # fmt: skip
def is_cut_as_by_tool(test: TestView) -> Iterator[Violation]:
    yield from cut_problems(test.responses)
