"""Applies the rules that only need the two logs of one run: for a run that is not in a submission tree.

Their findings are contradictions in the logs, whether the run is VALID or not.
"""

import functools
import re
from collections.abc import Iterator
from pathlib import Path

from crowdperf.gate import (  # noqa: F401 - the rules register themselves
    rules_clock,
    rules_draws,
    rules_figures,
    rules_generated,
    rules_loadgen,
    rules_messages,
    rules_run,
    rules_settings,
    rules_summary,
    rules_tokens,
    rules_verdict,
)
from crowdperf.gate.documents import JsonFile, TextFile
from crowdperf.gate.listing import Listing
from crowdperf.gate.log_view import LogView
from crowdperf.gate.rulebook import RULES, Rule, Scope, Severity, Violation
from crowdperf.gate.views import ModelView, Options, RunView, ScenarioView, Subject, SubmitterView, SystemView, TreeView
from crowdperf.logs.round_tables import load_round
from crowdperf.logs.tree import SubmissionTree
from crowdperf.rules.rounds import ROUNDS

_OF_LOGS = re.compile(r"(?:SUM|FIG|VER|TIME|LOG)-[0-9]+|LG-00[2-5]|SET-(?:00[1-3]|01[34])|RUN-0(?:03|21)")
_NEED_MORE = ("FIG-012", "FIG-015")
"""Of those, what looks at the benchmark's tables."""


@functools.cache
def rules_of_logs() -> tuple[Rule, ...]:
    """Return the rules that refuse and only need the logs."""
    return tuple(
        rule
        for rule in RULES.values()
        if rule.scope in (Scope.RUN, Scope.LOG)
        and rule.severity is Severity.ERROR
        and _OF_LOGS.fullmatch(rule.identity)
        and rule.identity not in _NEED_MORE
    )


@functools.cache
def _nowhere() -> ScenarioView:
    """The scenario of a run that is not in a tree: all facts about it are unknown."""
    missing = TextFile(path="", is_missing=True)
    none = JsonFile(path="", fields={}, source=missing)
    listing = Listing(Path(), {}, {}, {}, ())
    tree = TreeView(listing=listing, round=load_round(ROUNDS[-1]), options=Options())
    subject = Subject(division="open")
    paths = SubmissionTree(root=Path(), division="open", submitter="", round_name=ROUNDS[-1])
    owner = SubmitterView(
        tree=tree, division="open", submitter="", paths=paths, mapping=none, systems=(), subject=subject
    )
    system = SystemView(owner=owner, system="", description=none, subject=subject)
    model = ModelView(system=system, model="", canonical="", table=None, scenarios=(), folder="", subject=subject)
    return ScenarioView(
        model=model,
        name="",
        scenario=None,
        folder="",
        measurements_folder="",
        measurements=none,
        user_conf=missing,
        readme=missing,
        accuracy_folder="",
        accuracy_text=missing,
        accuracy_log=missing,
        accuracy_detail=LogView(path="", is_missing=True),
        accuracy_summary=missing,
        subject=subject,
    )


def contradictions(folder: str, detail: LogView, summary: TextFile) -> Iterator[tuple[Rule, Violation]]:
    """Yield the contradictions in the logs of a run. A log that a rule cannot judge also is one."""
    scenario = _nowhere()
    run = RunView(scenario=scenario, test="", folder=folder, detail=detail, summary=summary, subject=scenario.subject)
    for rule in rules_of_logs():
        try:
            yield from ((rule, found) for found in rule.check(run))
        except Exception as error:  # what a log holds must never be what ends the check
            text = f"cannot be judged ({type(error).__name__}: {error})"
            yield rule, Violation(path=detail.path, found=text[:300], allowed="a log that this rule can judge")
