"""Rules that make the verdicts of TEST07, TEST08 and TEST09 again from their numbers; the checker reads `TEST PASS`.

    TEST07  Accuracy score: 61.2            TEST08  num_matched = 4096        TEST09  Total samples: 6396
            Accuracy threshold: 60.698              num_unmatched = 0                 Mean output tokens: 1278.20
            TEST PASS                               num_ne_mismatch = 0               Min threshold: 1150.38
                                                    tolerance = 0.10%                 Max threshold: 1406.02

What run_verification.py of each test writes; limits from audit.config (mlcommons/inference b66003e1, compliance/).
"""

import math
import re
from collections.abc import Iterator, Mapping

from crowdperf.compliance.answer_checks import answer_lengths
from crowdperf.compliance.entropy_checks import verify_entropies
from crowdperf.compliance.verdict_lines import PASS, printed_counts
from crowdperf.gate.derivation import at_key, sample_count
from crowdperf.gate.documents import TextFile
from crowdperf.gate.rulebook import Scope, Severity, Violation, rule
from crowdperf.gate.rules_accuracy import CUT, lines_of, whole_lines
from crowdperf.gate.views import TestView
from crowdperf.logs.accuracy_log import DamagedLog
from crowdperf.rules.names import counted

SCRIPTS = "run_verification.py and audit.config of the test (mlcommons/inference b66003e1, compliance/)"
_PRINTED = re.compile(
    r"^(Accuracy score|Accuracy threshold|Total samples|Mean output tokens|Min threshold|Max threshold|tolerance)"
    r"(?::| =) ([0-9]{1,15}(?:\.[0-9]{1,20})?)%?$",
    re.M,
)
_SCORE = re.compile(r"'exact_match':\s*([0-9]{1,15}(?:\.[0-9]{1,20})?)")
_MISMATCH = re.compile(r"^\s*NE mismatch at ", re.M)
_AS_LONG = 1.1
"""The tokens that a run counts may be other ones than those of its answers, such as the last of each."""
_ROUNDING = 0.0051
"""TEST09 writes two digits of the mean."""


def _printed(source: TextFile) -> Mapping[str, float]:
    """The numbers by the words before them. The first of each counts, except TEST09's mean, which is twice the same."""
    found: dict[str, float] = {}
    for name, number in _PRINTED.findall(source.text):
        found.setdefault(name, float(number))
    return found


def _limits(test: TestView, name: str) -> Mapping[str, float]:
    table = test.scenario.model.table
    return table.test_limits.get(name, {}) if table is not None and test.test == name else {}


def _missing(source: TextFile, printed: Mapping[str, float], names: tuple[str, ...]) -> Iterator[Violation]:
    for name in names:
        if name not in printed:
            yield Violation(
                path=source.path, found=f"no line {name!r} with a number", allowed="the output of the script"
            )


def _bound(
    source: TextFile, name: str, value: float | None, least: float, most: float = math.inf
) -> Iterator[Violation]:
    if value is not None and not least <= value <= most:
        allowed = f"at least {least:g}" if most == math.inf else f"{least:g} to {most:g}"
        yield Violation(path=source.path, found=f"{name} {value:g}", allowed=allowed, line=source.line_of(name))


@rule("TEST-015", Scope.TEST, "TEST07's verdict follows from its score, and the score from its script.", source=SCRIPTS)
def score_in_performance_run_is_enough(test: TestView) -> Iterator[Violation]:
    limits, source = _limits(test, "TEST07"), test.verify_accuracy
    if not limits or not source.is_usable or PASS not in source.text:
        return
    printed = _printed(source)
    yield from _missing(source, printed, ("Accuracy score", "Accuracy threshold"))
    for name in ("Accuracy score", "Accuracy threshold"):
        yield from _bound(source, name, printed.get(name), limits["least_score"])
    scored, score = _SCORE.search(source.text), printed.get("Accuracy score")
    if scored and score is not None and float(scored[1]) != score:
        found, line = f"Accuracy score: {score:g}", source.line_of("Accuracy score")
        yield Violation(path=source.path, found=found, allowed=f"{scored[1]}, by 'exact_match' above it", line=line)


@rule("TEST-016", Scope.TEST, "TEST08's verdict follows from its counts and the tolerance of the test.", source=SCRIPTS)
def entropies_agree(test: TestView) -> Iterator[Violation]:
    limits, source = _limits(test, "TEST08"), test.verify_accuracy
    if not limits or not source.is_usable or PASS not in source.text:
        return
    counts, printed = printed_counts(source.text), _printed(source)
    names = ("num_acc_log_entries", "num_perf_log_entries", "num_matched", "num_unmatched", "num_ne_mismatch")
    yield from _missing(source, {**counts, **printed}, (*names, "tolerance"))
    yield from _bound(source, "tolerance", printed.get("tolerance"), 0.0, limits["tolerance"] * 100)
    for name in ("num_unmatched", "num_ne_mismatch"):
        yield from _bound(source, name, counts.get(name), 0, 0)
    logged = counts.get("num_perf_log_entries")
    if logged is not None:
        yield from _bound(source, "num_matched", counts.get("num_matched"), max(1, logged), logged)
    table = test.scenario.model.table
    wanted = table.accuracy_samples_in(test.scenario.scenario or "") if table else 0
    yield from _bound(source, "num_acc_log_entries", counts.get("num_acc_log_entries"), wanted)
    if _MISMATCH.search(source.text):
        line = source.line_of("NE mismatch at")
        yield Violation(path=source.path, found="an NE mismatch", allowed="none in a test that passed", line=line)


def _tested_lines(test: TestView) -> Iterator[str] | None:
    """Return the lines of TEST08's log, which no tool puts into the tree: from there, else from the backup's path."""
    log, backup = test.responses, test.scenario.tree.options.backup_folder
    if not log.is_missing:
        return whole_lines(test.responses_score, log, test.scenario.tree.options) if log.is_usable else None
    path = None if backup is None else backup / log.path
    return lines_of(path) if path is not None and path.is_file() else None


@rule("TEST-020", Scope.TEST, "TEST08's entropies, computed again from the logs, are those of the accuracy run.",
      source=SCRIPTS)  # fmt: skip
def entropies_follow_from_logs(test: TestView) -> Iterator[Violation]:
    limits, source, scenario = _limits(test, "TEST08"), test.verify_accuracy, test.scenario
    log = scenario.accuracy_log
    if not limits or not source.is_usable or PASS not in source.text or not log.is_usable:
        return
    tested, whole = _tested_lines(test), whole_lines(scenario.accuracy_text, log, scenario.tree.options)
    if tested is None or whole is None:
        path, allowed = (
            (test.responses if tested is None else log).path,
            "the whole log at this path below --backup_dir",
        )
        found = "no complete log: TEST08's verdict is believed"
        yield Violation(path=path, found=found, allowed=allowed, severity=Severity.WARNING)
        return
    verdict, line = verify_entropies(whole, tested, limits["tolerance"]), source.line_of(PASS)
    if not verdict.is_passed:
        said = "; ".join(line.strip() for line in verdict.lines if line)
        yield Violation(path=source.path, found=PASS, allowed=f"by the logs: {said}", line=line)
        return
    printed = printed_counts(source.text)
    for name, count in verdict.counts.items():
        if printed.get(name, count) != count:
            found, allowed = f"{name} = {printed[name]}", f"{name} = {count}, by the logs"
            yield Violation(path=source.path, found=found, allowed=allowed, line=source.line_of(name))


@rule("TEST-017", Scope.TEST, "TEST09's verdict follows from the mean length of its answers.", source=SCRIPTS)
def answers_are_as_long(test: TestView) -> Iterator[Violation]:
    limits, source = _limits(test, "TEST09"), test.verify_length
    if not limits or not source.is_usable or PASS not in source.text:
        return
    printed = _printed(source)
    yield from _missing(source, printed, ("Total samples", "Mean output tokens", "Min threshold", "Max threshold"))
    low, high = limits["least_tokens"], limits["most_tokens"]
    yield from _bound(source, "Mean output tokens", printed.get("Mean output tokens"), low, high)
    yield from _bound(source, "Min threshold", printed.get("Min threshold"), low, high)
    yield from _bound(source, "Max threshold", printed.get("Max threshold"), low, high)
    run = test.run.detail
    issued = (sample_count(run) if run.is_usable else None) or math.inf
    yield from _bound(source, "Total samples", printed.get("Total samples"), limits["samples"], issued)
    mean, length = printed.get("Mean output tokens"), run.tokens_of_sample
    if mean and length and not 1 / _AS_LONG <= length / mean <= _AS_LONG:
        found, line = f"Mean output tokens: {mean:g}", source.line_of("Mean output tokens")
        yield Violation(
            path=source.path, found=found, allowed=f"about {length:.1f}, by the rates in {run.path}", line=line
        )


@rule("TEST-018", Scope.TEST, "The answers that TEST07 and TEST09 logged are as many, and as long, as they say.",
      source=SCRIPTS)  # fmt: skip
def answers_are_those_of_log(test: TestView) -> Iterator[Violation]:
    limits, log = _limits(test, test.test), test.responses
    if "samples" not in limits or not log.is_usable:
        return
    lines = whole_lines(test.responses_score, log, test.scenario.tree.options)
    if lines is None:
        return  # cut, and the whole log is not here
    try:
        lengths, counts = answer_lengths(lines)
    except DamagedLog as error:
        yield Violation(path=log.path, found=f"a damaged log ({error})", allowed="the log that LoadGen wrote")
        return
    if len(counts) < limits["samples"]:
        allowed = f"{limits['samples']:g}, all samples of the test"
        yield Violation(path=log.path, found=f"answers to {counted(len(counts), 'sample')}", allowed=allowed)
    mean = _printed(test.verify_length).get("Mean output tokens") if test.test == "TEST09" else None
    real = sum(lengths) / len(lengths) if lengths else 0.0
    if mean is not None and abs(mean - real) > _ROUNDING:
        source, found = test.verify_length, f"Mean output tokens: {mean:g}"
        allowed = f"{real:.2f}, by {log.path}{' before it was cut' if CUT in log.text else ''}"
        yield Violation(path=source.path, found=found, allowed=allowed, line=source.line_of("Mean output tokens"))


@rule("TEST-019", Scope.TEST, "The run of TEST07 and TEST09 issued every sample and logged every answer.",
      source=SCRIPTS)  # fmt: skip
def run_has_settings_of_test(test: TestView) -> Iterator[Violation]:
    limits, log = _limits(test, test.test), test.run.detail
    if "samples" not in limits or not log.is_usable:
        return
    for key in ("effective_accuracy_log_sampling_target", "effective_min_sample_count"):  # Offline is one query
        value = log.number(key)
        if value is None or value < limits["samples"]:
            yield at_key(log, key, f"at least {limits['samples']:g}")
    key = "effective_performance_issue_unique"
    if limits.get("is_unique") and log.values.get(key) is not True:
        yield at_key(log, key, "true: each sample once")
