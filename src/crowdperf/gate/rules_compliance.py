"""Rules on the compliance tests of the closed and network divisions. Their runs are judged as any other run is."""

from collections.abc import Iterator

from crowdperf.compliance.verdict_lines import PASS, missing_lines
from crowdperf.gate.listing import join
from crowdperf.gate.rulebook import BOTH, OLDER, OURS, Scope, Severity, Violation, rule
from crowdperf.gate.rules_accuracy import TOLERATED
from crowdperf.gate.rules_scores import LARGEST
from crowdperf.gate.views import ACCURACY, DETAIL, SUMMARY, TestView
from crowdperf.logs.score_lines import parse_scores

WITH_RUN = ("TEST01", "TEST04", "TEST04-A", "TEST04-B", "TEST05")
"""Tests whose performance run both checkers judge."""

_NEEDS_ACCURACY = ("TEST01", "TEST06", "TEST07", "TEST08")
_NEEDS_PERFORMANCE = WITH_RUN
_NEEDS_LENGTH = ("TEST09",)
SUBMIT = 'Part IV, "Submit", of compliance/TEST07 and TEST09/README.md (mlcommons/inference b66003e1)'
_MUST_SUBMIT, _MAY_LEAVE_OUT = ("TEST07", "TEST09"), ("TEST06", "TEST08")
_SCORES = ("baseline_accuracy.txt", "compliance_accuracy.txt")
_NEAR = 0.1


def _is_there(test: TestView) -> bool:
    return test.folder in test.scenario.tree.listing.folders


def passed(test: TestView) -> bool:
    """Whether verify_accuracy.txt confirms it for both checkers (the newer one requires the words alone on a line)."""
    return PASS in {line.strip() for line in test.verify_accuracy.text.split("\n")}


@rule("TEST-001", Scope.TEST, "The compliance test was made.", source=BOTH)
def has_folder(test: TestView) -> Iterator[Violation]:
    if not _is_there(test):
        yield Violation(path=test.folder, found="missing", allowed=f"{test.test} of this model")


@rule("TEST-002", Scope.TEST, "The compliance test was verified.", source=BOTH)
def has_verification(test: TestView) -> Iterator[Violation]:
    files = (
        (_NEEDS_ACCURACY, test.verify_accuracy),
        (_NEEDS_PERFORMANCE, test.verify_performance),
        (_NEEDS_LENGTH, test.verify_length),
    )
    for names, source in files:
        if test.test in names and not source.is_usable and _is_there(test):
            found = source.problem or "missing"
            yield Violation(path=source.path, found=found, allowed="the output of the verification")


@rule("TEST-003", Scope.TEST, "The verification of the speed passed.", source=BOTH)
def performance_passed(test: TestView) -> Iterator[Violation]:
    source = test.verify_performance
    if test.test in _NEEDS_PERFORMANCE and source.is_usable and PASS not in source.text:
        yield Violation(path=source.path, found=source.text.strip()[-120:], allowed=PASS)


@rule("TEST-004", Scope.TEST, "The verification of the responses passed.", source=BOTH)
def responses_passed(test: TestView) -> Iterator[Violation]:
    source = test.verify_length if test.test in _NEEDS_LENGTH else test.verify_accuracy
    if not source.is_usable:
        return
    if test.test == "TEST06":
        for choices in missing_lines(test.test, source.text):
            yield Violation(path=source.path, found="not among the lines", allowed=choices)
    elif test.test in ("TEST07", "TEST08", "TEST09") and PASS not in source.text:
        yield Violation(path=source.path, found=source.text.strip()[-120:], allowed=PASS)
    elif test.test == "TEST01" and not passed(test):
        yield from _scores_agree(test)


def _scores_agree(test: TestView) -> Iterator[Violation]:
    """Without equal bits, the scores of both runs on the same samples must be near each other."""
    table = test.scenario.model.table
    missing = [name for name in _SCORES if not test.scores[name].is_usable]
    if missing:
        allowed = f"{PASS}, or {' and '.join(_SCORES)} in {join(test.folder, 'accuracy')}"
        yield Violation(path=test.verify_accuracy.path, found=f"no {PASS}", allowed=allowed)
        return
    for limit in table.targets_in(test.scenario.scenario or "") if table else ():
        values = [parse_scores(limit.metric, test.scores[name].text) for name in _SCORES]
        if not all(values) or not all(one[-1].value for one in values):
            found = f"no score of {limit.metric} above 0"
            yield Violation(path=test.scores[_SCORES[0]].path, found=found, allowed="a score in both files")
            continue
        baseline, compliance = (one[-1].value for one in values)
        percent = abs(1 - baseline / compliance) * 100
        allowed_percent = table.delta_of(limit.metric) if table else 0.0
        if not percent <= allowed_percent:
            found = f"{limit.metric} {baseline:g} and {compliance:g}: {percent:.2f} %"
            yield Violation(path=test.scores[_SCORES[1]].path, found=found, allowed=f"at most {allowed_percent:g} %")


@rule("TEST-025", Scope.TEST, "The scores that TEST01 compares are about that of the accuracy run.", source=OURS,
      since="v5.0")  # fmt: skip
def scores_are_those_of_model(test: TestView) -> Iterator[Violation]:
    """They are of some of its samples: 80 published ones differ by less than 2 %."""
    table, scenario = test.scenario.model.table, test.scenario.scenario or ""
    if test.test != "TEST01" or passed(test) or table is None:
        return
    for metric in (one.metric for one in table.targets_in(scenario) if one.metric in (*LARGEST, "CLIP_SCORE")):
        whole = parse_scores(metric, test.scenario.accuracy_text.text)
        for source in test.scores.values():
            found = parse_scores(metric, source.text)
            if whole and found and abs(found[-1].value - whole[-1].value) > _NEAR * whole[-1].value:
                allowed = f"about {whole[-1].value:g}, as {test.scenario.accuracy_text.path} says"
                text = f"{metric} {found[-1].value:g}"
                yield Violation(path=source.path, found=text, allowed=allowed, line=found[-1].line)


@rule("TEST-005", Scope.TEST, "TEST01 has its accuracy folder, with the files that its verdict requires and no more.",
      source=OLDER)  # fmt: skip
def accuracy_folder_is_right(test: TestView) -> Iterator[Violation]:
    if test.test != "TEST01" or not _is_there(test):
        return
    folder = join(test.folder, "accuracy")
    needed = {ACCURACY, "accuracy.txt"} | (set() if passed(test) else set(_SCORES))
    present = set(test.scenario.tree.listing.files_in(folder)) - set(TOLERATED)
    for name in sorted(needed - present):
        yield Violation(path=join(folder, name), found="missing", allowed=", ".join(sorted(needed)))
    for name in sorted(present - needed):
        yield Violation(path=join(folder, name), found="a stray file", allowed=", ".join(sorted(needed)))


@rule("TEST-021", Scope.TEST, "The logs of a test's run are there: its verdict follows from them.", source=SUBMIT)
def has_logs_of_run(test: TestView) -> Iterator[Violation]:
    """Refuses if the test's text requires their submission, as that of TEST07 and TEST09.

    TEST06's script copies the accuracy log alone, and TEST08's none: all 18 results with TEST06 in the sample of round
    v5.1 are without the run's logs, so for these two it is a warning.
    """
    if test.test not in (*_MUST_SUBMIT, *_MAY_LEAVE_OUT) or not _is_there(test):
        return
    is_needed = test.test in _MUST_SUBMIT
    names = (DETAIL, SUMMARY) if is_needed or not test.run.detail.is_missing else (DETAIL,)
    paths = [join(test.run.folder, name) for name in names]
    for path in (*paths, *([test.responses.path] if is_needed else [])):
        if path not in test.scenario.tree.listing.sizes:
            found = "missing" if is_needed else f"missing: the verdict of {test.test} is believed"
            severity = None if is_needed else Severity.WARNING
            yield Violation(path=path, found=found, allowed="the log that LoadGen wrote in the test", severity=severity)


@rule("TEST-006", Scope.TEST, "TEST06 keeps the responses that it verified.", source=OLDER)
def test06_has_log(test: TestView) -> Iterator[Violation]:
    """From v6.1 on only the newer checker decides, which does not require them."""
    path = join(test.folder, f"accuracy/{ACCURACY}")
    if test.test == "TEST06" and _is_there(test) and path not in test.scenario.tree.listing.sizes:
        severity = Severity.WARNING if test.scenario.tree.round.since("v6.1") else None
        yield Violation(path=path, found="missing", allowed=ACCURACY, severity=severity)
