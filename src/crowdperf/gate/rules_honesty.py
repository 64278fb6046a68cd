"""Rules on forbidden content of a submission: synthetic results, test runs, and private data."""

import dataclasses
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

from crowdperf.gate.documents import TextFile, read_bytes
from crowdperf.gate.rulebook import CLOSED, OURS, Scope, Severity, Violation, rule, shown
from crowdperf.gate.rules_system import OWN_KEY
from crowdperf.gate.steps import Step
from crowdperf.gate.views import ScenarioView, SubmitterView, SystemView
from crowdperf.kit.privacy import (
    CERTAIN,
    FOLDER_PLACES,
    NOBODYS_HOMES,
    Budget,
    Leak,
    PrivateNames,
    find_leaks,
    known_in,
    masked,
    zip_members,
)
from crowdperf.kit.secret_shapes import Kind
from crowdperf.rules.backends import STAND_IN_BACKENDS
from crowdperf.rules.names import REHEARSAL_LABEL, STAND_IN_LABEL, SYNTHETIC_LABEL, TEST_RUN_LABEL, plain_text
from crowdperf.rules.provenance import OWN, OWN_DATA_LABEL, OWN_MODEL_LABEL, parse

SYNTHETIC_RULES = ("SYN-001", "SYN-002", "SYN-004")
"""Findings that `--allow_synthetic` turns into a note of the verdict."""

REHEARSAL_RULES = (
    "SYN-003", "SYN-005", "ACC-005", "ACC-007", "ACC-008", "ACC-013", "ACC-020", "RUN-008", "RUN-009", "RUN-010",
    "RUN-012", "RUN-013", "RUN-014", "RUN-023", "SYS-010", "TEST-015", "TEST-017", "TEST-018", "TEST-019",
)  # fmt: skip
"""Findings that `--rehearsal` also turns into notes: runs that are long enough, of an official benchmark on all of its
published data and weights, on a system that is described, have none of them. (With made ones a score says nothing: sums
over the samples, such as the characters of all answers, are those of a few.)"""

_STAND_INS, _MADE = "|".join(STAND_IN_BACKENDS), "synthetic|tiny"
_TRACES = re.compile(
    rf"\|\s*backend\s*\|\s*(?:{_STAND_INS})\b|--backend[= ](?:{_STAND_INS})\b|--source[= ](?:{_MADE})\b|--simulate[= ]"
    rf"|,_(?:{_STAND_INS}|{_MADE})\b|none \(the backend computes nothing\)|made (?:them|by a program)"
)
"""Text of README.md and measurements.json of this project about a stand-in or synthetic data, in addition to the
labels: the row of the backend, the commands that repeat the runs, the weights
(`crowdperf/submission/readme_texts.py`, `crowdperf/submission/measurements.py`)."""

_SYSTEM_TRACE = re.compile(rf"-crowdperf-.*-(?:{_STAND_INS})(?:-|$)")
"""A system's folder has the backend in its name."""

_SHOWN_LEAKS, _COUNTED_LEAKS = 3, 1000
"""Of one file. The search ends after the last one that is counted."""
_REAL = "real weights and the real data set (--allow_synthetic: as the proof of a pipeline only)"


def _texts(scenario: ScenarioView) -> tuple[TextFile, ...]:
    return (scenario.readme, scenario.accuracy_text, scenario.user_conf, scenario.measurements.source)


def _has_label(source: TextFile, label: str) -> bool:
    """Whether people read the label in a file, however it is written."""
    return label in source.text or label.casefold() in plain_text(source.text)


def _parts(flags: Mapping[str, object]) -> list[object]:
    """Return what is said of each part; trees made before stand-in backends were named say nothing of them."""
    return [flags.get("model"), flags.get("dataset"), flags.get("backend", False)]


@rule("SYN-001", Scope.SCENARIO, "The result is of real weights and real data.", source=OURS)
def is_not_synthetic(scenario: ScenarioView) -> Iterator[Violation]:
    own = scenario.measurements.fields.get(OWN_KEY)
    flags = own.get("is_synthetic") if isinstance(own, dict) else own
    parts = _parts(flags) if isinstance(flags, dict) else [flags]
    if OWN_KEY in scenario.measurements.fields and any(part is not False for part in parts):
        line = scenario.measurements.line_of("is_synthetic")
        found = f"{OWN_KEY}.is_synthetic = {shown(flags)}"
        yield Violation(path=scenario.measurements.path, found=found, allowed=_REAL, line=line)
    for source in _texts(scenario):
        is_new = source is not scenario.measurements.source or OWN_KEY not in scenario.measurements.fields
        for label in (SYNTHETIC_LABEL, STAND_IN_LABEL):
            if is_new and _has_label(source, label):
                yield Violation(path=source.path, found=label, allowed=_REAL, line=source.line_of(label))


@rule("SYN-002", Scope.SYSTEM, "The system is not described as one with synthetic results.", source=OURS)
def system_is_not_synthetic(system: SystemView) -> Iterator[Violation]:
    source = system.description.source
    for label in (SYNTHETIC_LABEL, STAND_IN_LABEL):
        if _has_label(source, label):
            yield Violation(path=source.path, found=label, allowed=_REAL, line=source.line_of(label))


@rule("SYN-003", Scope.SCENARIO, "The result is not of a test run.", source=OURS, step=Step.PERFORMANCE)
def is_no_test_run(scenario: ScenarioView) -> Iterator[Violation]:
    return _labelled(scenario, TEST_RUN_LABEL, "a run of the full rules")


@rule("SYN-005", Scope.SCENARIO, "The result is not of a rehearsal.", source=OURS, step=Step.TREE)
def is_no_rehearsal(scenario: ScenarioView) -> Iterator[Violation]:
    return _labelled(scenario, REHEARSAL_LABEL, "runs of the full rules")


@rule("SYN-006", Scope.SCENARIO, "A closed result is of the published weights and the benchmark's data.", source=OURS,
      divisions=CLOSED)  # fmt: skip
def is_of_published_weights(scenario: ScenarioView) -> Iterator[Violation]:
    allowed = "the published weights (custom models belong in the open division)"
    own = scenario.measurements.fields.get(OWN_KEY)
    said = parse(own.get("provenance")) if isinstance(own, dict) else None
    if said is not None and said.model == OWN:
        found, line = f"{OWN_KEY}.provenance.model = {shown(said.model)}", scenario.measurements.line_of("provenance")
        yield Violation(path=scenario.measurements.path, found=found, allowed=allowed, line=line)
    yield from _labelled(scenario, OWN_MODEL_LABEL, allowed)
    yield from _labelled(scenario, OWN_DATA_LABEL, "the benchmark's data (your own data belongs in the open division)")


def _labelled(scenario: ScenarioView, label: str, allowed: str) -> Iterator[Violation]:
    for source in _texts(scenario):
        if _has_label(source, label):
            yield Violation(path=source.path, found=label, allowed=allowed, line=source.line_of(label))


@rule("SYN-004", Scope.SCENARIO, "No other text declares a stand-in or synthetic data.", source=OURS)
def has_no_trace_of_stand_in(scenario: ScenarioView) -> Iterator[Violation]:
    system = scenario.model.system.system
    for source in (scenario.readme, scenario.measurements.source):
        match = _TRACES.search(source.text)
        if match:
            yield Violation(path=source.path, found=shown(match[0]), allowed=_REAL, line=source.line_of(match[0]))
    if _SYSTEM_TRACE.search(system):
        yield Violation(path=scenario.folder, found=f"the system {shown(system)}", allowed=_REAL)


@rule(
    "PRIV-001", Scope.SUBMITTER, "No file contains a token or key, or the name of a person or a machine.", source=OURS
)
def holds_nothing_private(owner: SubmitterView) -> Iterator[Violation]:
    """A certain secret refuses. Other private data is a warning, because published trees are full of it."""
    listing, given, budget = owner.tree.listing, owner.tree.options.known, Budget(FOLDER_PLACES)
    all_known = dataclasses.replace(given, public=(*given.public, *NOBODYS_HOMES))
    for path in listing.below(owner.folder):
        content = read_bytes(listing, path)
        yield from _private_in(path, find_leaks(path, known_in(path, all_known))[:1], all_known)
        parts = [(path, content)] if isinstance(content, bytes) else []
        for name, part in itertools.chain(parts, _members(path, content)):
            leaks = find_leaks(part, known_in(path, all_known), _COUNTED_LEAKS, budget)
            yield from _private_in(name, leaks, all_known)
            if leaks and leaks[-1].kind is Kind.NOT_SEARCHED:
                return


def _members(path: str, content: bytes | str) -> Iterator[tuple[str, bytes]]:
    members = zip_members(content) if isinstance(content, bytes) else ()
    return ((f"{path}/{name}", part) for name, part in members)


def _private_in(path: str, leaks: Sequence[Leak], known: PrivateNames) -> Iterator[Violation]:
    """Yield the first findings of a file: those that refuse, then the others."""
    for is_certain in (True, False):
        some = [leak for leak in leaks if (leak.kind in CERTAIN) is is_certain]
        for number, leak in enumerate(some[:_SHOWN_LEAKS], start=1):
            is_last = number == _SHOWN_LEAKS and len(some) > _SHOWN_LEAKS
            found = f"{leak.kind.value}: {leak.excerpt}{_more(len(some)) if is_last else ''}"
            severity = None if is_certain else Severity.WARNING
            yield Violation(
                path=masked(path, known), found=found, allowed="no private data", line=leak.line, severity=severity
            )


def _more(counted: int) -> str:
    limit = "at least " if counted == _COUNTED_LEAKS else ""
    return f" (and {limit}{counted - _SHOWN_LEAKS} more in this file)"
