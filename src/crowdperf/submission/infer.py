"""Fills missing scenarios of an edge system with the runs that the rules let stand for them, when the user asks.

Legal on edge systems only: SingleStream for MultiStream or Offline, MultiStream for Offline (inference rules, "edge";
performance_check.py of the official checker at b66003e1, August 2026). The logs are copied as they are: the checker
computes the figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from crowdperf.rules.names import Scenario
from crowdperf.submission.run_discovery import FoundRun

SOURCES: Mapping[Scenario, tuple[Scenario, ...]] = {
    Scenario.MULTI_STREAM: (Scenario.SINGLE_STREAM,),
    Scenario.OFFLINE: (Scenario.MULTI_STREAM, Scenario.SINGLE_STREAM),
}
"""What a scenario may be inferred from, the better one first."""


def inferred(group: Iterable[FoundRun], wanted: Iterable[Scenario]) -> tuple[FoundRun, ...]:
    """Return the further runs of one model on one system: those of a present scenario in the place of a missing one."""
    runs = tuple(group)
    present = {run.place.scenario for run in runs}
    found: list[FoundRun] = []
    for scenario in wanted:
        if scenario.value in present:
            continue
        source = next((one for one in SOURCES.get(scenario, ()) if one.value in present), None)
        if source is not None:
            found += [
                replace(run, place=replace(run.place, scenario=scenario.value))
                for run in runs
                if run.place.scenario == source.value
            ]
    return tuple(found)
