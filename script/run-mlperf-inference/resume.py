"""What `--resume` keeps of an earlier call and what it makes again. Pure.

A call writes `session.json` into its folder: its settings, and how far each of its runs came. A later call with the
same settings and `--resume=...` goes on in that folder. By the state of a run it is made again (x) or stays:

                 passed   failed   unfinished
    failed                  x
    unfinished                         x
    all                     x          x
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlperf_results.names import Mode

from .matrix import Config, RunSpec
from .outcome import FinishedRun, ScenarioOutcome

FORMAT = 1


class Progress(enum.Enum):
    """How far a run came, as its call noted it: nothing is noted of a run that never began."""

    STARTED = "started"
    FAILED = "failed"
    FINISHED = "finished"


class RunState(enum.Enum):
    """What an earlier run is worth now."""

    PASSED = "passed"
    FAILED = "failed"
    UNFINISHED = "unfinished"


MADE_AGAIN: Mapping[str, frozenset[RunState]] = {
    "": frozenset(RunState),
    "failed": frozenset([RunState.FAILED]),
    "unfinished": frozenset([RunState.UNFINISHED]),
    "all": frozenset([RunState.FAILED, RunState.UNFINISHED]),
}
"""The states that each value of `--resume` makes again; without it everything is new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormerRun:
    """One run of an earlier call: how far it came, why it failed, and its outcome when that can be read."""

    progress: Progress | None = None
    error: str = ""
    finished: FinishedRun | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What a call does: the runs it makes, those it keeps, and why others are neither (one text each)."""

    make: tuple[RunSpec, ...]
    kept: tuple[FinishedRun, ...] = ()
    missing: tuple[str, ...] = ()


def run_name(spec: RunSpec) -> str:
    """A run within its call: `Offline accuracy`."""
    return f"{spec.scenario.value} {spec.mode.value}"


def problems_of(run: FinishedRun) -> tuple[str, ...]:
    """Why a finished run does not pass; empty when it does."""
    is_accuracy = run.spec.mode is Mode.ACCURACY
    alone = ScenarioOutcome(
        scenario=run.spec.scenario,
        performance=None if is_accuracy else run,
        accuracy=run if is_accuracy else None,
    )
    return alone.problems


def state_of(former: FormerRun) -> RunState:
    """What a run of an earlier call is worth now."""
    if former.progress is Progress.FAILED:
        return RunState.FAILED
    if former.progress is not Progress.FINISHED or former.finished is None:
        return RunState.UNFINISHED
    return RunState.FAILED if problems_of(former.finished) else RunState.PASSED


def choose(specs: Sequence[RunSpec], former: Mapping[str, FormerRun], resume: str) -> Choice:
    """What a call with these runs makes and keeps; ``former`` maps the name of a run to what was left of it."""
    make, kept, missing = [], [], []
    for spec in specs:
        earlier = former.get(run_name(spec), FormerRun())
        state = state_of(earlier)
        if state in MADE_AGAIN[resume]:
            make.append(spec)
        elif earlier.finished is not None and earlier.progress is Progress.FINISHED:
            kept.append(earlier.finished)
        else:
            why = f": {earlier.error}" if earlier.error else ""
            missing.append(f"{run_name(spec)} is {state.value}{why} (--resume={state.value} makes it)")
    return Choice(make=tuple(make), kept=tuple(kept), missing=tuple(missing))


def describe(choice: Choice, folder: str) -> str:
    """What a user is told of a call that goes on, before the list of runs."""
    lines = [f"going on in {folder}"]
    lines += [f"  kept: {run_name(run.spec)}" + _in_words(problems_of(run)) for run in choice.kept]
    lines += [f"  left: {text}" for text in choice.missing]
    return "\n".join(lines)


def _in_words(problems: Sequence[str]) -> str:
    return f" (not passed: {'; '.join(problems)})" if problems else " (passed)"


def settings_record(config: Config, passed_on: Mapping[str, Any]) -> dict[str, Any]:
    """What two calls must have in common, so that the one can go on with the other: all that decides their runs."""
    return {
        **config.as_texts(),
        "scenarios": [scenario.value for scenario in config.scenarios],
        "modes": [mode.value for mode in config.modes],
        "options": dict(sorted(config.options.items())),
        "targets": dict(sorted(config.targets.items())),
        "passed_on": dict(passed_on),
    }


def changed_recipes(before: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """The recipes that both calls know and that are not the same any more, by their digests."""
    return tuple(sorted(name for name in before.keys() & now.keys() if before[name] != now[name]))
