"""Rules on the runs of a tree compared with each other: one run is one result, and the runs of a result are of one
system.

The properties of honest trees were counted in the published round v5.1 (3,224 detail logs, 257 builds of LoadGen): no
two logs have the same second, process and build. One build has one version and one set of sources. SUT and QSL have the
same names in all runs of a result. Versions of LoadGen within a result do differ there (27 of 1,437), which is a
warning.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from crowdperf.gate.documents import read_json
from crowdperf.gate.rulebook import OURS, Scope, Severity, Violation, rule, shown
from crowdperf.gate.run_fingerprint import (
    FIGURES,
    MAX_ALIKE,
    LogLocation,
    ResponsesMark,
    RunMark,
    RunRegister,
    task_of,
)
from crowdperf.gate.steps import Step, step_of_run
from crowdperf.gate.views import ResultView
from crowdperf.kit.records import number_of
from crowdperf.rules.compliance import ANSWER_TESTS

_AS_LONG = 1.06
_OF_CATEGORY = ("division", "system_type", "system_type_detail")
"""Fields that may differ in two descriptions of one machine: it may be submitted for the edge and for the
datacenter."""

_LONGEST_OFFSET = timedelta(days=1)
"""Clocks of machines and containers may be set to any time zone. 6 published logs are 6 h older than their LoadGen."""


def _runs(result: ResultView) -> tuple[RunMark, ...]:
    """The runs of a result, the timed one first. Those of its tests only if the division requires tests."""
    found = result.tree.register.runs_with("folder", result.subject.folder)
    kept = (mark for mark in found if not mark.place.test or result.subject.division != "open")
    return tuple(sorted(kept, key=lambda mark: not mark.place.kind.startswith("performance")))


def _at(mark: RunMark | ResponsesMark, found: str, allowed: str, severity: Severity | None = None) -> Violation:
    step = step_of_run(mark.place.test, is_accuracy=mark.place.kind == "accuracy")
    return Violation(path=mark.path, found=found, allowed=allowed, step=step, severity=severity)


def _task(result: ResultView, place: LogLocation) -> str:
    """The model by the name that the round's checker has for it, without its level of accuracy."""
    return task_of(result.tree.round.aliases.get(place.model, place.model))


def _is_misplaced_in_a_test(own: LogLocation, other: LogLocation) -> bool:
    """Whether it is the test of a result with a superfluous log, which the test's own finding reports."""
    return bool(other.test) and not own.test and own.folder[:3] == other.folder[:3]


def _another(mark: RunMark | ResponsesMark, others: Iterable[RunMark | ResponsesMark]) -> str:
    """Return the path of the first log that has other content and is not misplaced, or an empty text."""
    found = (one for one in others if one.digest != mark.digest)
    return next((one.path for one in found if not _is_misplaced_in_a_test(mark.place, one.place)), "")


def _is_one_result(result: ResultView, one: LogLocation, other: LogLocation) -> bool:
    """Whether one log may be in two places: that of a task with two levels of accuracy, that of a scenario from
    which others are inferred (the rules on a log's scenario judge that), and a closed result in the open division."""
    return one.system == other.system and _is_one_task(result, one, other)


def _is_one_task(result: ResultView, one: LogLocation, other: LogLocation) -> bool:
    is_server_too = {one.scenario.lower(), other.scenario.lower()} == {"server", "interactive"}
    same = [(place.submitter, _task(result, place), place.kind) for place in (one, other)]
    return same[0] == same[1] and not is_server_too


def _is_one_machine(result: ResultView, one: LogLocation, other: LogLocation) -> bool:
    """Whether two systems of a submitter are described with the same words, apart from the category."""
    texts = [read_json(result.tree.listing, "/".join((*place.folder[:2], "systems", f"{place.system}.json")))
             for place in (one, other)]  # fmt: skip
    machines = [{name: text.fields[name] for name in text.fields if name not in _OF_CATEGORY} for text in texts]
    return all(text.is_usable for text in texts) and machines[0] == machines[1]


@rule("IDENT-001", Scope.RESULT, "A log is of one run, and one run is one result.", source=OURS)
def log_is_of_one_result(result: ResultView) -> Iterator[Violation]:
    """One result of one machine that is listed under two names is a warning: no result belongs to another machine."""
    for mark in _runs(result):
        copies = [
            other
            for other in result.tree.register.runs_with("digest", mark.digest)[:MAX_ALIKE]
            if not _is_misplaced_in_a_test(mark.place, other.place)
            and not _is_one_result(result, mark.place, other.place)
        ]
        twins = [
            other
            for other in copies
            if _is_one_task(result, mark.place, other.place) and _is_one_machine(result, mark.place, other.place)
        ]
        severity = Severity.WARNING if len(twins) == len(copies) else None
        for other in [one for one in copies if severity or one not in twins][:1]:
            found = f"the same {mark.digest[:12]}... as {other.path}"
            yield _at(mark, found, "the log of a separate run", severity)


@rule("IDENT-002", Scope.RESULT, "No two different logs are of one process.", source=OURS)
def process_made_one_log(result: ResultView) -> Iterator[Violation]:
    for mark in _runs(result):
        for other in result.tree.register.runs_with("start", mark.start):
            is_near = mark.place.folder[:3] == other.place.folder[:3]
            begins = mark.text("power_begin"), other.text("power_begin")
            if other.digest != mark.digest and (is_near or begins[0] == begins[1]):
                found = f"process {mark.process} began at {mark.text('test_datetime')} here and in {other.path}"
                yield _at(mark, found, "one log of a process: LoadGen is set up once in each")
                break


def _others(result: ResultView, keys: tuple[str, ...]) -> Iterator[Violation]:
    """Yield what later runs of a result have other values of than the first."""
    runs = _runs(result)
    for key in keys:
        for mark in runs[1:]:
            if mark.fields.get(key) != runs[0].fields.get(key):
                yield _unlike(key, mark, runs[0])


def _unlike(key: str, mark: RunMark, first: RunMark) -> Violation:
    """Return the finding for a run with another value than the first one. It is the first one's that has none."""
    if first.fields.get(key) is None:
        mark, first = first, mark
    return _at(mark, f"{key} = {shown(mark.fields.get(key))}", f"{shown(first.fields.get(key))}, as in {first.path}")


@rule("IDENT-003", Scope.RESULT, "The runs of a result have one SUT and one QSL by LoadGen's logs.", source=OURS)
def runs_are_of_one_sut(result: ResultView) -> Iterator[Violation]:
    yield from _others(result, ("sut_name", "qsl_name"))


@rule(
    "IDENT-004",
    Scope.RESULT,
    "The runs of a result were made with one LoadGen.",
    source=OURS,
    severity=Severity.WARNING,
)
def runs_have_one_loadgen(result: ResultView) -> Iterator[Violation]:
    yield from _others(result, ("loadgen_version", "loadgen_file_sha1"))


@rule("IDENT-005", Scope.RESULT, "One build of LoadGen has one version and one set of sources.", source=OURS)
def build_is_one(result: ResultView) -> Iterator[Violation]:
    for mark in _runs(result):
        others = result.tree.register.runs_with("build", mark.build)
        for key in ("loadgen_version", "loadgen_file_sha1"):
            value = mark.fields.get(key)
            known = (one for one in others if value is None or one.fields.get(key) is not None)
            other = next((one for one in known if one.fields.get(key) != value), None)
            if other is not None:
                found = f"{key} = {shown(value)} in the build of {mark.build}"
                yield _at(mark, found, f"{shown(other.fields.get(key))}, which that build has in {other.path}")


@rule("IDENT-006", Scope.RESULT, "No run is older than the LoadGen that made it.", source=OURS)
def run_is_newer_than_its_loadgen(result: ResultView) -> Iterator[Violation]:
    for mark in _runs(result):
        begin, build = _moment(mark.text("test_datetime")), _moment(mark.text("loadgen_build_date_utc"))
        if begin and build and begin < build - _LONGEST_OFFSET:
            found = f"test_datetime = {mark.text('test_datetime')}"
            yield _at(mark, found, f"after {mark.text('loadgen_build_date_utc')}, when its LoadGen was built")


def _moment(text: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(text.removesuffix("Z")).replace(tzinfo=None) if text else None
    except ValueError:
        return None


@rule("IDENT-007", Scope.RESULT, "The logged responses are of this task, and of this run.", source=OURS,
      step=Step.ACCURACY)  # fmt: skip
def responses_are_of_one_run(result: ResultView) -> Iterator[Violation]:
    register = result.tree.register
    for mark in register.responses_with("folder", result.subject.folder):
        if mark.place.test and result.subject.division == "open":
            continue
        for other in register.responses_with("digest", mark.digest):
            if not _is_misplaced_in_a_test(mark.place, other.place) and not _may_have_same_responses(
                result, mark, other
            ):
                found = f"the same {mark.digest[:12]}... as {other.path}"
                allowed = "the responses of this run: other samples, or another choice"
                yield _at(mark, found, allowed)
                break


def _may_have_same_responses(result: ResultView, one: ResponsesMark, other: ResponsesMark) -> bool:
    """A deterministic model answers alike in every accuracy run of its task, whatever the system and the scenario.

    The responses that a compliance test logs depend on the number requested and the number available, so that two
    scenarios have different ones, unless one is inferred from the other and their detail logs are also the same. Tests
    that log every answer to a set number of queries log the same ones in each scenario: Server and Interactive differ
    in their limits alone. TEST09 requests each sample once, in the order of an accuracy run. In the open division
    models of several names may be of one task.
    """
    systems = [(mark.place.submitter, mark.place.system) for mark in (one, other)]
    if one.place.kind != other.place.kind and {one.place.test, other.place.test} != {"", "TEST09"}:
        return systems[0] != systems[1]  # which of the two is misplaced, their own systems' logs say
    is_open = "open" in (one.place.division, other.place.division)
    if not is_open and _task(result, one.place) != _task(result, other.place):
        return False
    if one.place.test in ("", *ANSWER_TESTS) or one.place.scenario.lower() == other.place.scenario.lower():
        return True
    return len({_digest_of_run(result.tree.register, mark) for mark in (one, other)}) == 1


def _digest_of_run(register: RunRegister, mark: ResponsesMark) -> str:
    path = mark.path.removesuffix("accuracy/mlperf_log_accuracy.json") + "performance/run_1/mlperf_log_detail.txt"
    return next((run.digest for run in register.runs_with("path", path)), path)


@rule("IDENT-008", Scope.RESULT, "No two different logs have the same latencies, to the nanosecond.", source=OURS)
def run_has_figures_of_its_own(result: ResultView) -> Iterator[Violation]:
    for mark in _runs(result):
        other = _another(mark, result.tree.register.runs_with("figures", mark.figures))
        if other:
            shown_figures = ", ".join(f"{key} = {mark.fields[key]}" for key in FIGURES)
            yield _at(mark, f"{shown_figures} here and in {other}", "the metrics of a separate run")


@rule("IDENT-009", Scope.RESULT, "The runs of a result use one data set, and one build loads the same samples of it.",
      source=OURS)  # fmt: skip
def runs_are_of_one_data_set(result: ResultView) -> Iterator[Violation]:
    """TEST07 has its own samples, and so have accuracy runs with fewer samples than a performance run loads."""
    total = "qsl_reported_total_count"
    runs = [mark for mark in _runs(result) if mark.place.test != "TEST07"]
    loaded = number_of(runs[0].fields.get("effective_performance_sample_count")) if runs else None
    for mark in runs[1:]:
        is_own = mark.place.kind == "accuracy" and (number_of(mark.fields.get(total)) or 0) < (loaded or 0)
        if mark.fields.get(total) != runs[0].fields.get(total) and not is_own:
            yield _unlike(total, mark, runs[0])
        elif mark.choice == runs[0].choice and mark.loaded != runs[0].loaded:
            allowed = f"those that the same build loaded by the same seed in {runs[0].path}"
            yield _at(mark, "other samples in loaded_qsl_set, or in another order", allowed)


@rule("IDENT-010", Scope.RESULT, "A hash is of one accuracy log.", source=OURS, step=Step.ACCURACY)
def hash_is_of_one_log(result: ResultView) -> Iterator[Violation]:
    register = result.tree.register
    for mark in register.responses_with("folder", result.subject.folder):
        other = _another(mark, register.responses_with("hash", mark.hash))
        if other:
            found = f"hash={str(mark.hash)[:12]}... in accuracy.txt here and of {other}"
            yield _at(mark, found, "the hash of this log before it was cut")


@rule("IDENT-011", Scope.RESULT, "No two different logs have the same times by their clocks, to the nanosecond.",
      source=OURS)  # fmt: skip
def run_has_times_of_its_own(result: ResultView) -> Iterator[Violation]:
    for mark in _runs(result):
        other = _another(mark, result.tree.register.runs_with("clock", mark.clock))
        if other:
            times = "queries generated at {:.6f} ms, power_end at {:.6f} ms".format(*mark.clock or ())
            yield _at(mark, f"{times} here and in {other}", "the times of a separate run")


@rule("IDENT-012", Scope.RESULT, "No run has the latencies of another one, shifted or scaled.", source=OURS)
def run_is_no_copy(result: ResultView) -> Iterator[Violation]:
    for mark in _runs(result):
        for other in result.tree.register.copies_of(mark):
            if other.figures != mark.figures and not _is_misplaced_in_a_test(mark.place, other.place):
                found = f"latencies in the proportions of those in {other.path}, each to the nanosecond"
                yield _at(mark, found, "the latencies of a separate run")
                break


@rule("FIG-018", Scope.RESULT, "A model's answers are as long in all of its scenarios.", source=OURS,
      step=Step.PERFORMANCE)  # fmt: skip
def answers_are_as_long_in_every_scenario(result: ResultView) -> Iterator[Violation]:
    """Where each run issued all samples equally often. At most 3.7 % apart in the 170 models of round v5.1 that have
    two scenarios."""
    *model, _ = result.subject.folder
    for mark in (one for one in _runs(result) if one.place.kind.startswith("performance")):
        for other in result.tree.register.runs_with("model", tuple(model)):
            if other.place.kind == mark.place.kind and other.answer_tokens and mark.answer_tokens:
                length, wanted = mark.answer_tokens, other.answer_tokens
                if not 1 / _AS_LONG <= length / wanted <= _AS_LONG:
                    yield _at(mark, f"{length:.1f} tokens a sample", f"about {wanted:.1f}, as in {other.path}")
                    return


@rule("IDENT-013", Scope.RESULT, "No two runs of a system were made at the same time.", source=OURS,
      severity=Severity.WARNING)  # fmt: skip
def runs_follow_each_other(result: ResultView) -> Iterator[Violation]:
    """A warning: a description may be of many equal systems. Each of the runs may have used a part of one machine."""
    for mark in _runs(result):
        other = result.tree.register.overlaps.get(mark.path)
        if other is not None:
            found = f"began at {mark.text('test_datetime')} while {other.path} ran ({other.text('test_datetime')})"
            yield _at(mark, found, "runs one after the other")
            break
