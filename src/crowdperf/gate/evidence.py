"""The evidence of each rule: its source, and the part of the published round on which it was tried.

A rule may refuse if an official checker, the rules' text, LoadGen's source or a client's source supports it. One of
this project's own may refuse if the published round has at most the exceptions that are explained here.
published_round.json has how often each rule was applied in that round, how often it refused, and how often it warned
(tests/gate/record_published.py). A test refuses every rule without such a ground.
"""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from crowdperf.gate.rulebook import OURS, Rule, Severity

PUBLISHED = Path(__file__).parent / "published_round.json"

_ABSENT = "files of 4 MB and more that are not in the stored copy"
_TEST01 = "one submitter's TEST01, whose detail log is the submitted run's"
_PART = "two results with TEST01's logs in the place of the accuracy run's"
_HUNDRED = "two results with scores of 100 answers"
_PICTURES = "three results of one submitter with 962 pictures"
_SMALL = "one result of a data set of 4,761 samples"
_CUT = "one submitter's TEST06, with the accuracy run's log, cut, for its own"

EXCEPTIONS: Mapping[str, str] = {
    "ACC-001": _ABSENT,
    "ACC-005": _SMALL,
    "ACC-010": "three results of one submitter with the hash of a log that was cut already",
    "ACC-013": _PICTURES,
    "ACC-014": f"{_PART}, two with the performance run's",
    "ACC-015": "the published repository has no pictures, and the checker of the round refuses the same 40 results",
    "ACC-018": _PART,
    "ACC-019": _SMALL,
    "ACC-020": f"{_HUNDRED}, {_SMALL}",
    "ACC-025": _PART,
    "IDENT-001": _TEST01,
    "IDENT-007": f"{_CUT}, {_PART}",
    "LG-002": "one result whose LoadGen had one changed source",
    "PRIV-001": "a token of a service",
    "RUN-001": _ABSENT,
    "RUN-022": _ABSENT,
    "SUM-002": _TEST01,
    "SUM-004": _TEST01,
    "SUM-005": "four accuracy runs with an error that was removed from the detail log but not from the summary, "
    f"{_TEST01}",
    "TEST-007": _TEST01,
    "TEST-008": "one TEST01 that is a third slower than its run",
    "TEST-009": "the verdict of that TEST01, of a run that is not in the tree",
    "TEST-010": _PART,
    "TEST-013": _CUT,
}
"""The actual faults of the refused results of the round, by rule. None of them is allowed by the rules."""


@dataclass(frozen=True, slots=True)
class Tried:
    """How often a rule was asked in the published round, how often it refused, and how often it warned."""

    asked: int = 0
    refused: int = 0
    warned: int = 0


@functools.cache
def published() -> tuple[str, Mapping[str, Tried]]:
    """Return the published round's name with its commit, and what each rule found there."""
    content = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    name = f"published round {content['round']} ({content['commit'][:8]})"
    return name, {rule: Tried(*row) for rule, row in content["rules"].items()}


def tried_of(rule: Rule) -> Tried:
    """Return the findings of a rule in the published round, empty if it was not applied there."""
    return published()[1].get(rule.identity, Tried())


def evidence_of(rule: Rule) -> str:
    """Return the evidence of a rule in one line."""
    tried, name = tried_of(rule), published()[0]
    if not tried.asked:
        return f"not checked in the {name}"
    exceptions = EXCEPTIONS.get(rule.identity, "")
    found = f"{tried.refused} refused" + (f" ({exceptions})" if exceptions else "")
    warned = f", {tried.warned} warned" if tried.warned else ""
    return f"{name}: checked {tried.asked:,} times, {found}{warned}"


def has_ground(rule: Rule) -> bool:
    """Whether a rule may refuse. True for one that only warns."""
    tried = tried_of(rule)
    is_explained = not tried.refused or rule.identity in EXCEPTIONS
    return rule.severity is Severity.WARNING or (is_explained and (rule.source != OURS or tried.asked > 0))
