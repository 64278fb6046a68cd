"""What a call keeps of the runs that are there, what it makes again and why. Pure.

Runs are there in two kinds of folders: that of an earlier call with the same settings (`--resume`), and one that
several calls share (`--run_id`). Of both, `session.json` says how far each run came and what it was made with. They
differ only in what is made again (x); what is neither made again nor there is left.

                                              --resume=failed  unfinished  all    --run_id  --rerun
    never begun, broken off, files gone                         x          x       x         x
    ended with an error, or INVALID            x                           x       x         x
    missed its accuracy                        x                           x                 x
    other inputs, recipes or files                                                 x         x
    nothing of this                                                                          x
"""

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crowdperf.rules.names import Mode

from .matrix import Config, RunSpec
from .outcome import FinishedRun, ScenarioOutcome


class Progress(enum.Enum):
    """How far a run came, as its call noted it: nothing is noted of a run that never began."""

    STARTED = "started"
    FAILED = "failed"
    FINISHED = "finished"


class Flaw(enum.Enum):
    """What speaks against keeping a run."""

    UNFINISHED = "unfinished"
    FAILED = "failed"
    MISSED = "missed"
    CHANGED = "changed"
    NONE = "none"


MADE_AGAIN: Mapping[str, frozenset[Flaw]] = {
    "": frozenset(Flaw),
    "failed": frozenset([Flaw.FAILED, Flaw.MISSED]),
    "unfinished": frozenset([Flaw.UNFINISHED]),
    "all": frozenset([Flaw.FAILED, Flaw.MISSED, Flaw.UNFINISHED]),
    "run_id": frozenset([Flaw.FAILED, Flaw.UNFINISHED, Flaw.CHANGED]),
    "rerun": frozenset([Flaw.FAILED, Flaw.UNFINISHED, Flaw.CHANGED, Flaw.NONE]),
}
"""By the value of `--resume`, or the input that has none; the first is for a new folder."""

BASIS = {"request": "requested differently", "recipes": "changed recipes", "files": "changed files"}
"""The parts of what a run is made with, and what a user reads when one has changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A run that is asked for, and what is there of it.

    progress: None when it never began. run: None unless it finished and its files can be read. `before` and `now`: what
    it was made with, and would be made with, by the names of BASIS: the request, digests of the recipes that matter
    for it, digests of the names, sizes and times of the files that it read.
    """

    spec: RunSpec
    progress: Progress | None = None
    error: str = ""
    run: FinishedRun | None = None
    before: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    now: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def changes(self, part: str) -> list[str]:
        """What differs in a part of BASIS, by name."""
        before, now = self.before.get(part, {}), self.now.get(part, {})
        return sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What a call does: the runs it makes, those it keeps, and a text for each that is made again, and for each that is
    neither made nor there. changed: recipes that are not those any more that kept runs were made with."""

    make: tuple[RunSpec, ...]
    kept: tuple[FinishedRun, ...] = ()
    again: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


def run_name(spec: RunSpec) -> str:
    """A run within its call: `Offline accuracy`."""
    return f"{spec.scenario.value} {spec.mode.value}"


def problems_of(run: FinishedRun) -> tuple[str, ...]:
    """Why a finished run does not pass; empty when it does, and for a search, which is never VALID."""
    if run.result.get("find"):
        return ()
    is_accuracy = run.spec.mode is Mode.ACCURACY
    alone = ScenarioOutcome(
        scenario=run.spec.scenario,
        performance=None if is_accuracy else run,
        accuracy=run if is_accuracy else None,
    )
    return alone.problems


def flaws_of(candidate: Candidate) -> Iterator[tuple[Flaw, str]]:
    """What speaks against keeping a run, the weightiest first, each with what a user reads of it."""
    run = candidate.run
    if candidate.progress is None:
        yield Flaw.UNFINISHED, ""
    elif candidate.progress is Progress.FAILED:
        yield Flaw.FAILED, f"it failed: {candidate.error}" if candidate.error else "it failed"
    elif candidate.progress is not Progress.FINISHED or run is None:
        yield Flaw.UNFINISHED, "it did not finish"
    else:
        problems = problems_of(run)
        if problems and not run.result["valid"]:
            yield Flaw.FAILED, "it was INVALID"
        for part, words in BASIS.items():
            if names := candidate.changes(part):
                yield Flaw.CHANGED, f"{words}: {', '.join(names)}"
        if problems:
            yield Flaw.MISSED, "it did not pass"
    yield Flaw.NONE, "requested with --rerun"


def rule_of(config: Config) -> str:
    """The key of MADE_AGAIN for a call that finds runs in its folder."""
    if config.run_id:
        return "rerun" if config.is_rerun else "run_id"
    return config.resume


def choose(candidates: Sequence[Candidate], rule: str) -> Choice:
    """What a call makes and keeps; ``rule`` is a key of MADE_AGAIN."""
    make, kept, again, missing = [], [], [], []
    changed: set[str] = set()
    for candidate in candidates:
        name, run = run_name(candidate.spec), candidate.run
        reason = next((text for flaw, text in flaws_of(candidate) if flaw in MADE_AGAIN[rule]), None)
        if reason is not None:
            make.append(candidate.spec)
            again += [f"{name} is repeated: {reason}"] if reason else []
        elif candidate.progress is Progress.FINISHED and run is not None:
            kept.append(run)
            changed.update(candidate.changes("recipes"))
        else:
            state = "failed" if candidate.progress is Progress.FAILED else "unfinished"
            why = f": {candidate.error}" if candidate.error else ""
            missing.append(f"{name} is {state}{why} (run it with --resume={state})")
    return Choice(
        make=tuple(make), kept=tuple(kept), again=tuple(again), missing=tuple(missing), changed=tuple(sorted(changed))
    )


def describe(choice: Choice, folder: Path, *, is_shared: bool) -> str:
    """What a user reads of the runs that are there, before the list of runs; empty when there is nothing to say."""
    if is_shared:
        is_there = "Run files exist, skipping run..."
        kept = [f"{run_name(run.spec)}: {is_there} ({folder / run.folder})" for run in choice.kept]
        return "\n".join([*choice.again, *kept])
    lines = [f"resuming in {folder}"]
    lines += [f"  kept: {run_name(run.spec)} ({_verdict(run)})" for run in choice.kept]
    lines += [f"  {text}" for text in choice.again]
    lines += [f"  left: {text}" for text in choice.missing]
    return "\n".join(lines)


def _verdict(run: FinishedRun) -> str:
    if run.result.get("find"):
        return "search finished"
    problems = problems_of(run)
    return f"not passed: {'; '.join(problems)}" if problems else "passed"
