"""A rehearsal: the whole way of a submission in minutes, with short runs that no submission may hold. Pure.

What is made says so in every file of its own, and the gate refuses it unless it is asked to judge a rehearsal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from crowdperf.rules.benchmarks import BENCHMARKS
from crowdperf.rules.names import REHEARSAL_LABEL
from crowdperf.rules.official_names import checker_name
from crowdperf.rules.rounds import rounds_of, rules_in
from crowdperf.submission.benchmark import named
from crowdperf.submission.request import Request
from crowdperf.submission.run_discovery import FoundRun

NOT_GIVEN = "not given (rehearsal)"
_STATUS = "rdi"
"""Research, development or internal: the one of the three kinds of system (submission rules) that a rehearsal is of."""


def stood_in(request: Request, runs: Sequence[FoundRun], round_name: str) -> Request:
    """Return the request with a mapping for each model that is no benchmark: to one of the round with its metrics."""
    maps = dict(request.model_maps)
    for run in runs:
        model, metrics = run.place.model, {row["name"] for row in run.accuracy.get("metrics") or ()}
        if metrics and named(model, maps, round_name) is None:
            for name in _with_metrics(metrics, round_name)[:1]:
                maps[model] = checker_name(name)
    return replace(request, model_maps=maps)


def _with_metrics(metrics: set[str], round_name: str) -> list[str]:
    here = [name for name in BENCHMARKS if round_name in rounds_of(name)]
    return [name for name in here if {target.metric for target in rules_in(name, round_name).targets} == metrics]


def labelled(runs: Sequence[FoundRun]) -> tuple[FoundRun, ...]:
    """Return the runs with the rehearsal's label before their own, from where it gets into the tree's files."""
    return tuple(replace(run, result={**run.result, "label": _label(run)}) for run in runs)


def _label(run: FoundRun) -> str:
    return "; ".join(filter(None, (REHEARSAL_LABEL, str(run.result.get("label") or ""))))


def described(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description of a system without open questions: what nobody said is called so."""
    facts = dict(answer["facts"])
    for key in answer["missing"]:
        facts[key] = {"value": _STATUS if key == "status" else NOT_GIVEN, "origin": REHEARSAL_LABEL}
    notes = "; ".join(filter(None, (REHEARSAL_LABEL, str(facts.get("hw_notes", {}).get("value", "")))))
    facts["hw_notes"] = {"value": notes, "origin": REHEARSAL_LABEL}
    return {**answer, "facts": facts, "missing": []}
