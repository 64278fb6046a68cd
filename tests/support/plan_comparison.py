"""Compares a plan with the run that follows it, event by event: what the plan called certain is what happens.

A contradiction is a step that the plan calls certain and that does not happen so or not in that order, a dependency
that it surely skips and that runs, a failure that does not come, a further dependency of a recipe that has no hooks,
and an env value, a key or a version that it knows and that differs. A run that fails is compared as far as it came.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from recipe_engine.actions.adapter import Home
from recipe_engine.actions.run import new_engine, parse_request
from recipe_engine.planning.plan_action import make_plan
from recipe_engine.planning.planned import PlannedEngine
from recipe_engine.rules.conditions import has_symbol
from recipe_engine.rules.env import key_matcher
from recipe_engine.rules.model import StepEvent


class Row(NamedTuple):
    """One step of a plan or of a run: ``run``, ``reuse``, ``skip`` or ``fail``.

    ``env`` is what it gives, None when it gives nothing; ``unknown`` are globs of keys that it may give beside.
    ``has_run``: in an earlier attempt of the run, which then started over; the last one may reuse what it made.
    """

    trace: tuple[str, ...]
    action: str
    is_certain: bool = True
    env: dict[str, Any] | None = None
    unknown: tuple[str, ...] = ()
    version: str = ""
    has_hooks: bool = True
    has_run: bool = False

    def is_as(self, planned: Row) -> bool:
        """Whether this was done as planned."""
        is_run = planned.action == "run" and self.action == "reuse" and self.has_run
        return self.trace == planned.trace and (self.action == planned.action or is_run)


def rows_of(events: Iterable[StepEvent]) -> list[Row]:
    """The steps that events tell of, in the order in which they start; of several attempts, those of the last one."""
    rows: list[Row] = []
    begun: list[int] = []
    ran: set[tuple[str, ...]] = set()
    for event in events:
        if event.kind == "again" and len(event.trace) == 1:
            ran |= {row.trace for row in rows if row.action == "run"}
            rows, begun = [], []
        elif event.kind == "start":
            assert event.configured is not None
            begun.append(len(rows))
            has_hooks = (event.configured.recipe.path / "customize.py").is_file()
            rows.append(Row(event.trace, "reuse", has_hooks=has_hooks, has_run=event.trace in ran))
        elif event.kind == "skip":
            rows.append(Row(event.trace, "skip"))
        elif event.kind == "run":
            rows[begun[-1]] = rows[begun[-1]]._replace(action="run")
        elif event.kind in ("done", "fail", "again") and begun and rows[begun[-1]].trace == event.trace:
            at = begun.pop()
            if event.kind == "fail":
                rows[at] = rows[at]._replace(action="fail")
            elif event.result:
                found = event.result
                unknown = tuple(pattern for pattern, _ in found.unknown)
                rows[at] = rows[at]._replace(env=found.new_env, unknown=unknown, version=found.version)
    return rows


def planned_rows(inputs: Mapping[str, Any], home: Home) -> list[Row]:
    """The plan's steps; a failing one that has no recipe is left out."""
    events: list[StepEvent] = []

    class Listening(PlannedEngine):
        def emit(self, event: StepEvent) -> None:
            super().emit(event)
            events.append(event)

    engine = Listening(new_engine(home, None))
    plan = make_plan(engine, parse_request(inputs), engine)
    rows = rows_of(events)
    steps = [step for _, step in plan.root.walk() if step.recipe or step.action == "skip"]
    assert len(steps) == len(rows), (len(steps), len(rows))
    return [
        row._replace(is_certain=step.is_certain, action=step.action, version=step.version)
        for row, step in zip(rows, steps, strict=True)
    ]


def compare(planned: list[Row], done: list[Row], counts: Counter[str], *, has_failed: bool) -> list[str]:
    """What the plan called certain and the run did otherwise."""
    found: list[str] = []
    at = 0
    places = {}
    for number, row in enumerate(planned):
        counts[row.action if row.is_certain else "open"] += 1
        if not row.is_certain:
            continue
        if row.action == "fail":
            if not has_failed:
                found.append(f"did not fail: {' -> '.join(row.trace)}")
            break  # what comes after it is only planned to show all errors at once
        position = next((n for n in range(at, len(done)) if done[n].is_as(row)), -1)
        if position < 0:
            failing = [n for n in range(at, len(done)) if (done[n].trace, done[n].action) == (row.trace, "fail")]
            if failing and has_failed:
                at = failing[0] + 1
                continue
            if not has_failed:
                found.append(f"not done: {row.action} {' -> '.join(row.trace)}")
            break
        at = position + 1
        places[number] = position
        real = done[position]
        if row.version and real.version and row.version != real.version:
            found.append(f"version {real.version} instead of {row.version}: {' -> '.join(row.trace)}")
        if row.env is None or real.env is None:
            continue
        may_be_there = key_matcher(row.unknown)
        for key, value in real.env.items():
            if key not in row.env and not may_be_there(key):
                found.append(f"{key}={value!r:.60} was not expected from {' -> '.join(row.trace)}")
        for key, value in row.env.items():
            if not has_symbol(value):
                counts["values"] += 1
                if real.env.get(key) != value:
                    found.append(f"{key}={real.env.get(key)!r:.60} instead of {value!r:.60}: {' -> '.join(row.trace)}")
    return [*found, *unplanned(planned, done, places, has_failed=has_failed)]


def unplanned(planned: list[Row], done: list[Row], places: dict[int, int], *, has_failed: bool) -> list[str]:
    """Further dependencies of certain steps whose recipes have no hooks that could add any."""
    found = []
    for number, position in places.items() if not has_failed else ():
        parent = planned[number]
        below = children(planned, number)
        if not parent.has_hooks and all(row.is_certain for row in below):
            real = children(done, position)
            if len(real) != len(below) or not all(map(Row.is_as, real, below)):
                steps = [(row.trace, row.action) for row in real]
                found.append(f"other steps below {' -> '.join(parent.trace)}: {steps!r:.300}")
    return found


def children(rows: list[Row], number: int) -> list[Row]:
    """The direct children of a row."""
    depth = len(rows[number].trace)
    found = []
    for row in rows[number + 1 :]:
        if len(row.trace) <= depth:
            break
        if len(row.trace) == depth + 1:
            found.append(row)
    return found


def files_below(*folders: Path) -> dict[str, int]:
    """Times of all files but those of the indexes; of a folder only that it is there."""
    paths = [path for folder in folders for path in folder.rglob("*")]
    names = {"recipe-index", "index.json", ".index"}
    paths = [path for path in paths if names.isdisjoint(path.parts)]
    return {str(path): 0 if path.is_dir() else path.lstat().st_mtime_ns for path in paths}
