"""The form of rules, and the register of all of them, which rules_*.py fill."""

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from crowdperf.gate.steps import Step
from crowdperf.logs.tree import DIVISIONS

BOTH = "both official checkers (mlcommons/inference b66003e1, tools/submission)"
NEWER = "tools/submission/submission_checker of mlcommons/inference b66003e1"
OLDER = "tools/submission/submission_checker_old.py of mlcommons/inference b66003e1"
RULES_TEXT = "MLPerf inference rules (mlcommons/inference_policies, inference_rules.adoc)"
LOADGEN = "results.cc, loadgen.cc and test_settings_internal.cc of LoadGen 4.1 to 6.0.17"
MLPERF_CONF = "mlperf.conf in LoadGen 6.0.17, mlcommons/inference b66003e1"
CLIENT = "src of mlcommons/endpoints at ea332753 (August 2026), whose client writes these files"
OURS = "this project: not checked by official checkers, although the result would be wrong"

SINCE = "v4.1"
"""The first round whose LoadGen is known to derive its results and to log its messages as the rules on logs require.
Differences of LoadGen before 5.0 are in `derivation.hides_padding` (tried on 3,217 published logs of round v4.1)."""

CLOSED = ("closed", "network")


class Severity(enum.Enum):
    """Whether a finding refuses the tree."""

    ERROR = "error"
    WARNING = "warning"


class Scope(enum.Enum):
    """The object of a rule: the view that its function gets.

    RUN: a performance run whose result counts, the submitted one or that of a test. LOG: every run that LoadGen logged,
    also accuracy runs and those of all tests. ENDPOINTS: a scenario without LoadGen's logs. RESULT: a scenario compared
    with all others, once every log of the tree has been read.
    """

    TREE = "tree"
    SUBMITTER = "submitter"
    SYSTEM = "system"
    MODEL = "model"
    SCENARIO = "scenario"
    RUN = "run"
    LOG = "log"
    TEST = "test"
    ENDPOINTS = "endpoints"
    RESULT = "result"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """The objection of a rule. step, source, severity: if they differ from the rule's: the step that makes the file,
    the source of the value, whether it refuses."""

    path: str
    found: str
    allowed: str
    line: int | None = None
    step: Step | None = None
    source: str = ""
    severity: Severity | None = None


Check = Callable[[Any], Iterator[Violation]]
"""Accepts the view of the rule's scope. (The one `Any` here: a register of functions of nine types.)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule. since, until: the first and the last round that has it, None without an end."""

    identity: str
    scope: Scope
    text: str
    source: str
    step: Step
    check: Check
    severity: Severity = Severity.ERROR
    divisions: tuple[str, ...] = DIVISIONS
    since: str | None = None
    until: str | None = None


RULES: dict[str, Rule] = {}
"""By identity, in the order of registration."""


_STEPS = {
    Scope.SYSTEM: Step.SYSTEM,
    Scope.SCENARIO: Step.ACCURACY,
    Scope.RUN: Step.PERFORMANCE,
    Scope.LOG: Step.PERFORMANCE,
    Scope.TEST: Step.COMPLIANCE,
    Scope.ENDPOINTS: Step.ENDPOINTS,
    Scope.RESULT: Step.PERFORMANCE,
}
"""The step that makes the objects of a scope's rules, unless a rule has another one. The default is the tree."""


def rule(
    identity: str, scope: Scope, text: str, *, source: str, step: Step | None = None, **more: Any
) -> Callable[[Check], Check]:
    """Register the function below as a rule; `more`: severity, divisions, since, until."""

    def register(check: Check) -> Check:
        if identity in RULES:
            raise ValueError(f"two rules are called {identity}")
        made_by = step or _STEPS.get(scope, Step.TREE)
        row = Rule(identity=identity, scope=scope, text=text, source=source, step=made_by, check=check, **more)
        RULES[identity] = row
        return check

    return register


def log_rule(
    identity: str, text: str, *, source: str = LOADGEN, since: str | None = SINCE, **more: Any
) -> Callable[[Check], Check]:
    """Register a rule on every run's log. Its findings belong to the performance run, unless the gate can assign
    them."""
    return rule(identity, Scope.LOG, text, source=source, since=since, **more)


def shown(value: object) -> str:
    """Return a value as a finding shows it: as JSON-like text, cut short."""
    text = "missing" if value is None else repr(value)
    return text if len(text) <= 160 else f"{text[:157]}..."
