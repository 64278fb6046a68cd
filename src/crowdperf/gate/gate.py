"""Applies every rule of a round to a tree and returns the verdict. Never raises for the content of a tree.

A rule that fails with an exception is itself a finding that refuses: unchecked content is not accepted.
"""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.gate import (  # noqa: F401 - the rules register themselves
    rules_accuracy,
    rules_clock,
    rules_compliance,
    rules_coverage,
    rules_draws,
    rules_endpoints,
    rules_figures,
    rules_generated,
    rules_honesty,
    rules_identity,
    rules_loadgen,
    rules_messages,
    rules_run,
    rules_scores,
    rules_settings,
    rules_summary,
    rules_system,
    rules_testlogs,
    rules_testscores,
    rules_tokens,
    rules_tree,
    rules_verdict,
    views,
)
from crowdperf.gate.endpoints import endpoints_of
from crowdperf.gate.listing import read_listing
from crowdperf.gate.rulebook import RULES, Rule, Scope, Severity, Violation
from crowdperf.gate.rules_compliance import WITH_RUN
from crowdperf.gate.rules_endpoints import OF_ANY_LAYOUT
from crowdperf.gate.rules_honesty import REHEARSAL_RULES, SYNTHETIC_RULES
from crowdperf.gate.rules_run import OF_EVERY_TEST
from crowdperf.gate.steps import Step, command_of, step_of_run
from crowdperf.gate.views import Options, ResultView, ScenarioView, Subject, TreeView
from crowdperf.logs.round_tables import RoundTable, load_round
from crowdperf.rules.names import printable
from crowdperf.rules.rounds import is_since


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One objection, with the information a person needs to correct it. path: relative to the tree."""

    rule: str
    severity: Severity
    path: str
    line: int | None
    text: str
    found: str
    allowed: str
    source: str
    step: str
    fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One scenario of a model on a system. is_accepted: there is no objection to it or to the folders above it."""

    path: str
    is_accepted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """All findings, the results, and whether the tree is accepted.

    is_synthetic, is_rehearsal: only because that was allowed.
    """

    round_name: str
    findings: tuple[Finding, ...]
    results: tuple[Result, ...]
    is_accepted: bool
    is_synthetic: bool
    is_rehearsal: bool = False

    @property
    def text(self) -> str:
        """The verdict in a few words."""
        if not self.is_accepted:
            count = sum(finding.severity is Severity.ERROR for finding in self.findings)
            return f"refused ({count} finding{'s' if count != 1 else ''})"
        if self.is_rehearsal:
            return "accepted as a rehearsal only, not as a submission"
        if self.is_synthetic:
            return "accepted as a pipeline proof only: synthetic"
        return "accepted"


def _allowed(options: Options) -> tuple[str, ...]:
    """The rules whose findings are notes at the caller's request."""
    if options.is_rehearsal:
        return (*SYNTHETIC_RULES, *REHEARSAL_RULES)
    return SYNTHETIC_RULES if options.allow_synthetic else ()


_RESULT_PARTS = 6
"""DIVISION/SUBMITTER/results/SYSTEM/MODEL/SCENARIO."""


def _owner(path: str, tree: TreeView) -> Subject:
    """The owner of a file or folder: the result or the submitter in whose folder it is, else the whole tree."""
    parts = path.split("/")
    is_owned = len(parts) > 1 and parts[0] in views.divisions_of(tree) and parts[1] in tree.listing.folders_in(parts[0])
    if not is_owned:
        return tree.subject
    is_of_result = len(parts) > _RESULT_PARTS and parts[2] == "results"
    system, model, scenario = parts[3:_RESULT_PARTS] if is_of_result else ("", "", "")
    return Subject(division=parts[0], submitter=parts[1], system=system, model=model, scenario=scenario)


_LONGEST = 5000
"""Characters: a path has at most 4,096 bytes (PATH_MAX of Linux)."""

_MOST, _MAX_OF_RULE = 100_000, 100
"""The maximum number of findings, and of one rule's findings in a scenario: a forged file may have millions."""


_MISSING, _MOST_SEARCHED = ("missing", "no system with results"), 1000
"""How findings of something missing begin, and before how many findings a similar name is looked for."""


class _Collector:
    """The findings so far."""

    def __init__(self, tree: TreeView, shown_root: str) -> None:
        self.tree = tree
        self.shown_root = shown_root
        self.findings: list[Finding] = []
        self.rules: set[str] = set()
        self.refused: set[tuple[str, ...]] = set()
        self.results: list[ResultView] = []

    def add(self, rule: Rule, found: Violation, subject: Subject) -> None:
        """Add the findings of a rule."""
        subject = _owner(found.path, self.tree) if rule.scope is Scope.TREE and found.path else subject
        step = found.step or rule.step
        is_note = rule.identity in _allowed(self.tree.options)
        severity = Severity.WARNING if is_note else found.severity or rule.severity
        self.refused |= {subject.folder} if severity is Severity.ERROR else set()
        self.rules.add(rule.identity)
        if len(self.findings) >= _MOST:
            return
        self.findings.append(
            Finding(
                rule=rule.identity,
                severity=severity,
                path=_shown(found.path),
                line=found.line,
                text=rule.text,
                found=_shown(self._with_similar(found)),
                allowed=_shown(found.allowed),
                source=found.source or rule.source,
                step=step.value,
                fix=_shown(self._command_of(step, subject)),
            )
        )

    def _with_similar(self, found: Violation) -> str:
        """What was found, with the folder or file of almost the same name where one is missing."""
        is_searched = found.path and found.found.startswith(_MISSING) and len(self.findings) < _MOST_SEARCHED
        similar = self.tree.listing.similar(found.path) if is_searched else ""
        return f"{found.found}, but there is {similar}" if similar else found.found

    def _command_of(self, step: Step, subject: Subject) -> str:
        return command_of(step, subject, self.shown_root, self.tree.round.name, self.tree.options.results_folders)

    def apply(self, scope: Scope, view: Any, division: str = "", only: tuple[str, ...] = ()) -> None:
        """Apply every rule of a scope, or some of them, to its view. A test's files are made by the compliance step."""
        for rule in RULES.values():
            is_meant = rule.scope is scope and (not only or rule.identity in only)
            if not is_meant or not _applies(rule, self.tree.round, division):
                continue
            try:
                for found in rule.check(view) if scope in _OF_MANY_FILES else _first(rule.check(view)):
                    self.add(rule, _of_step(found, view), view.subject)
            except Exception as error:  # what a rule cannot judge is refused, whatever a tree holds
                text = f"{rule.identity} could not be applied ({type(error).__name__}: {error})"
                self.add_own("GATE-001", text[:300], "a tree that this rule can judge", view.subject)

    def add_own(self, identity: str, found: str, allowed: str, subject: Subject) -> None:
        """Add a finding of the gate itself."""
        step = Step.CHECK if identity == "GATE-001" else Step.TREE
        rule = Rule(
            identity=identity,
            scope=Scope.TREE,
            text=_OWN_RULES[identity],
            source="this project: the gate itself",
            step=step,
            check=lambda _: iter(()),
        )
        self.add(rule, Violation(path="", found=found, allowed=allowed), subject)


_OWN_RULES = {
    "GATE-001": "Every rule can be applied.",
    "TREE-001": "There are results: the official checkers accept an empty tree.",
    "TREE-002": "There are as many results as expected.",
}


def _shown(text: str) -> str:
    """A foreign text as a finding has it: on one line, without control characters, not longer than people read."""
    return printable(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...")


_OF_MANY_FILES = (Scope.TREE, Scope.SUBMITTER)


def _first(found: Iterator[Violation]) -> Iterator[Violation]:
    """Yield the listed findings of a rule. The last one mentions omitted ones."""
    for number, one in enumerate(found, start=1):
        if number == _MAX_OF_RULE:
            yield dataclasses.replace(one, found=f"{one.found} (and more, not listed)")
            return
        yield one


def _of_step(found: Violation, view: Any) -> Violation:
    """Add the step that made a run, if the rule is about runs of several steps."""
    if not isinstance(view, views.RunView) or found.step is not None or not (view.test or view.is_accuracy):
        return found
    return dataclasses.replace(found, step=step_of_run(view.test, is_accuracy=view.is_accuracy))


def _applies(rule: Rule, table: RoundTable, division: str) -> bool:
    if division and division not in rule.divisions:
        return False
    is_late_enough = rule.since is None or table.since(rule.since)
    return is_late_enough and (rule.until is None or is_since(rule.until, table.name))


def _check_scenario(collector: _Collector, scenario: ScenarioView) -> None:
    endpoints = endpoints_of(scenario)
    if endpoints is not None:
        collector.apply(Scope.SCENARIO, scenario, scenario.division, only=OF_ANY_LAYOUT)
        collector.apply(Scope.ENDPOINTS, endpoints, scenario.division)
        return
    collector.apply(Scope.SCENARIO, scenario, scenario.division)
    runs = [*views.performance_runs(scenario), views.accuracy_run(scenario)]
    for run in runs[:-1]:
        collector.apply(Scope.RUN, run, scenario.division)
    for test in views.tests(scenario, runs[0]):
        collector.apply(Scope.TEST, test, scenario.division)
        if test.folder in collector.tree.listing.folders:
            only = () if test.test in WITH_RUN else OF_EVERY_TEST
            collector.apply(Scope.RUN, test.run, scenario.division, only=only)
            runs.append(test.run)
    for run in runs:
        collector.apply(Scope.LOG, run, scenario.division)
    collector.results.append(ResultView(tree=collector.tree, subject=scenario.subject))


def _check_all(collector: _Collector) -> Iterator[tuple[str, Subject]]:
    """Apply all rules. Yields the folder of each result and its owner."""
    tree = collector.tree
    collector.apply(Scope.TREE, tree)
    for owner in views.submitters(tree):
        collector.apply(Scope.SUBMITTER, owner, owner.division)
        for system in views.systems(owner):
            collector.apply(Scope.SYSTEM, system, owner.division)
            for model in views.models(system):
                collector.apply(Scope.MODEL, model, owner.division)
                for scenario in views.scenarios(model):
                    _check_scenario(collector, scenario)
                    yield scenario.folder, scenario.subject
    for result in collector.results:
        collector.apply(Scope.RESULT, result, result.subject.division)


def _is_refused(subject: Subject, refused: set[tuple[str, ...]]) -> bool:
    """Whether there is an objection to a result or to its surroundings: its model, system, ..., the tree."""
    own = subject.folder
    return any(own[:count] + ("",) * (len(own) - count) in refused for count in range(len(own) + 1))


def check(root: Path, round_name: str, options: Options | None = None) -> Verdict:
    """Return the verdict on a tree. Raises OSError when `root` is not a readable folder.

    round_name: of `crowdperf.rules.rounds.ROUNDS`.
    """
    options = options or Options()
    tree = TreeView(listing=read_listing(root), round=load_round(round_name), options=options)
    collector = _Collector(tree, str(root))
    found = list(_check_all(collector))
    expected = options.expected_results
    if not found:
        allowed = "DIVISION/SUBMITTER/results/SYSTEM/MODEL/SCENARIO"
        collector.add_own("TREE-001", "no result", allowed, Subject(submitter=options.submitter or ""))
    if expected is not None and len(found) != expected:
        collector.add_own("TREE-002", f"{len(found)} results", f"{expected} results", Subject())
    return Verdict(
        round_name=round_name,
        findings=tuple(collector.findings),
        results=tuple(
            Result(path=_shown(folder), is_accepted=not _is_refused(subject, collector.refused))
            for folder, subject in found
        ),
        is_accepted=not collector.refused,
        is_synthetic=not collector.rules.isdisjoint(SYNTHETIC_RULES),
        is_rehearsal=options.is_rehearsal,
    )
