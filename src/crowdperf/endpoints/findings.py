"""What a rule sees of a curve, and what it says: the views of a tree, findings, and the list of rules.

The rules E1 to E19 look for what the official checker (endpoints-submission-cli 1.5.3.0) accepts although it is wrong;
they do not repeat what it refuses.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from crowdperf.endpoints.clientfiles import Accuracy, ClientConfig, Summary
from crowdperf.endpoints.edition import Edition, Model
from crowdperf.endpoints.pointfiles import DeclaredPoint, Offline, PointProvenance, Provenance
from crowdperf.endpoints.regions import Regions
from crowdperf.endpoints.samples import Derived


class Severity(str, Enum):
    """ERROR refuses the tree; WARNING names what a reviewer should know; UNCHECKED says what could not be seen."""

    ERROR = "error"
    WARNING = "warning"
    UNCHECKED = "not checked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding. path: relative to the folder that was given. found and allowed: short texts."""

    rule: str
    severity: Severity
    path: str
    found: str
    allowed: str

    def __str__(self) -> str:
        """The line of a list of findings."""
        return f"{self.rule} {self.severity.value}: {self.path}: {self.found}; allowed: {self.allowed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PointFigures:
    """What one r<N> says of itself. path: relative."""

    path: str
    declared: DeclaredPoint
    summary: Summary
    accuracy: Accuracy | None

    @property
    def name(self) -> str:
        """The point in a few letters: r12."""
        return self.path.rpartition("/")[2]

    @property
    def is_dedicated_offline(self) -> bool:
        """True for an Offline run of its own, to which no concurrency and no latency applies."""
        return self.declared.offline == Offline.DEDICATED.value


@dataclass(frozen=True, slots=True, kw_only=True)
class PointView(PointFigures):
    """One r<N> of a tree. number: N. derived: from events that were given beside the tree."""

    number: int
    config: ClientConfig
    provenance: PointProvenance | None
    derived: Derived | None

    @property
    def issue_span_s(self) -> float | None:
        """Seconds over which samples were issued, None where no events say it."""
        if self.derived is not None:
            return self.derived.issue_span_s()
        return self.provenance.issue_span_s if self.provenance else None

    @property
    def greatest_in_flight(self) -> int | None:
        """The most samples under way at once, None where no events say it."""
        if self.derived is not None:
            return self.derived.greatest_in_flight
        return self.provenance.greatest_in_flight if self.provenance else None

    @property
    def echoed(self) -> int:
        """How many answers were their prompt, 0 where no events say it."""
        if self.derived is not None:
            return self.derived.echoed
        return self.provenance.echoed if self.provenance else 0

    @property
    def is_echo(self) -> bool:
        """True where half of the answers or more were their prompt: no model made them."""
        return 0 < self.summary.issued <= 2 * self.echoed


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveView:
    """One results/<system>/<model>. regions: None where C_max or the points give none; model: None where unknown."""

    path: str
    edition: Edition
    model: Model | None
    regions: Regions | None
    points: tuple[PointView, ...]
    provenance: Provenance | None

    @property
    def is_agentic(self) -> bool:
        """True where the points have the load pattern of agentic models, or the edition says so of the model."""
        if self.model is not None:
            return self.model.is_agentic
        return any(one.declared.load_pattern == "agentic_inference" for one in self.points)

    def dataset_samples(self, point: PointView) -> int | None:
        """Return the size of a point's data set: the edition's, else the provenance's; None where neither knows it."""
        known = self.edition.dataset_samples.get(point.declared.dataset)
        return known or (self.provenance.dataset_samples if self.provenance else None)


PointRule = Callable[[PointView, CurveView], Iterator[Finding]]
POINT_RULES: dict[str, PointRule] = {}
TITLES: dict[str, str] = {}

_NUMBER = re.compile(r"-?\d[\d.,]*")
_Rule = TypeVar("_Rule", bound=Callable[..., Iterator[Finding]])


def rule(name: str, title: str, rules: dict[str, _Rule]) -> Callable[[_Rule], _Rule]:
    """Enter a function into a list of rules."""

    def enter(function: _Rule) -> _Rule:
        rules[name], TITLES[name] = function, title
        return function

    return enter


@dataclass(frozen=True, slots=True)
class Says:
    """Makes the findings of one rule about one file."""

    rule: str
    path: str

    def error(self, found: str, allowed: str) -> Finding:
        """Return a finding that refuses."""
        return self._finding(Severity.ERROR, found, allowed)

    def warning(self, found: str, allowed: str) -> Finding:
        """Return a finding for reviewers."""
        return self._finding(Severity.WARNING, found, allowed)

    def unchecked(self, found: str, allowed: str) -> Finding:
        """Return what could not be seen, and what would be needed to see it."""
        return self._finding(Severity.UNCHECKED, found, allowed)

    def _finding(self, severity: Severity, found: str, allowed: str) -> Finding:
        return Finding(rule=self.rule, severity=severity, path=self.path, found=found, allowed=allowed)


def grouped(findings: Sequence[Finding]) -> tuple[str, ...]:
    """Return lines for people: what differs between points in its numbers only is one line."""
    groups: dict[tuple[str, Severity, str, str], list[Finding]] = {}
    for one in findings:
        kind = _NUMBER.sub("N", one.found)
        groups.setdefault((one.rule, one.severity, one.path.rsplit("/", 1)[-1], kind), []).append(one)
    lines = []
    for same in groups.values():
        others = f" (and {len(same) - 1} more like it)" if len(same) > 1 else ""
        lines.append(f"{same[0]}{others}")
    return tuple(lines)
