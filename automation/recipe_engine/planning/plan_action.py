"""``cm plan script``: what a run would do, without doing any of it."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..actions.adapter import Home, is_verbose, listing_width, print_lines
from ..actions.journals import recorded_runs
from ..actions.run import guard_for, new_engine, parse_request
from ..rules.errors import RecipeError, RequestError
from ..rules.inputs import ACTION_FLAGS
from ..rules.model import Request
from ..rules.rerun import given_line, name_command, request_text
from ..rules.schema import is_yes
from ..running.console import print_document
from ..running.engine import Engine
from ..running.journal import RUNS_FOLDER
from .plan import Plan
from .plan_text import GRAPHS, plan_json, plan_lines, summary_lines
from .planned import PlannedEngine

OF_A_PLAN = (*ACTION_FLAGS["plan"], "v", "verbose", "j", "json")
"""Inputs that are no part of the run that is planned."""


def plan_action(i: Mapping[str, Any], home: Home) -> dict[str, Any]:
    """Answers ``cm plan script``; the code is that of the first error that would surely stop the run."""
    graph = str(i.get("graph") or "")
    if graph and graph not in GRAPHS:
        raise RequestError(f"--graph={graph} is not known", hint=f"one of: {', '.join(GRAPHS)}")
    engine = new_engine(home, None)
    engine.guard = guard_for(i, engine)
    planned = PlannedEngine(engine, is_before_run=is_yes(i.get("before_run")))
    plan = make_plan(engine, parse_request(i), planned)
    name_command_in_errors(plan, i)
    if i.get("out") == "con":
        if graph:
            print_document(GRAPHS[graph](plan) + "\n")
        elif is_verbose(i):
            print_lines(plan_lines(plan))
        else:
            print_lines(summary_lines(plan, listing_width(), former_time(plan.command, home)))
    answer: dict[str, Any] = {"return": 0, "plan": plan_json(plan)}
    if graph:
        answer["graph"] = GRAPHS[graph](plan)
    if first := first_error(plan):
        answer.update({"return": first.code, "error": f"the run would fail: {first.message.splitlines()[0]}"})
    return answer


def first_error(plan: Plan) -> RecipeError | None:
    """What would surely stop the run first, or that the disk has less space than the steps declare."""
    needed_mb, free_mb = plan.needs.total_disk_mb, plan.free_bytes // 10**6
    if plan.errors or needed_mb <= free_mb:
        return plan.errors[0] if plan.errors else None
    return RequestError(
        f"{needed_mb} MB of disk are needed, {free_mb} MB are free at {plan.cache_path}",
        hint="free space (cm gc cache --dry-run lists the removable entries), or move the cache to a larger disk",
    )


def refuse_impossible(engine: Engine, request: Request) -> None:
    """Plans a run that is about to begin; raises the error that would surely stop it, before anything is installed."""
    fresh = Engine(engine.source, engine.effects, engine.top_folder, engine.run)
    fresh.names_below, fresh.reported = engine.names_below, engine.reported
    if error := first_error(make_plan(fresh, request, PlannedEngine(fresh, is_before_run=True))):
        raise error


def make_plan(engine: Engine, request: Request, planned: PlannedEngine | None = None) -> Plan:
    """The plan of a request, made with ``planned`` when one is given.

    Raises RecipeError only when not even the recipe of the request is known.
    """
    planned = planned or PlannedEngine(engine)
    try:
        planned.run_consistently(request)
    except RecipeError:
        if planned.tree.is_empty:
            raise
    cache = engine.store.root
    return Plan(planned.tree.root, command_of(request), str(cache), _free_bytes(cache))


def names_below(engine: Engine, request: Request) -> tuple[tuple[str, str], ...]:
    """The names of the dependencies of a planned request, each with its recipe, the outermost first."""
    fresh = Engine(engine.source, engine.effects, engine.top_folder, engine.run)
    fresh.reported = engine.reported
    steps = make_plan(fresh, request._replace(recursive_overrides={})).root.walk()
    rows = [(depth, step.configured) for depth, step in steps if step.configured]
    rows.sort(key=lambda row: row[0])
    parts = ((each.recipe.id.alias, each.request.dependency) for _, each in rows)
    found = [(name, alias) for alias, dependency in parts if dependency for name in dependency.names]
    return tuple(dict(reversed(found)).items())[::-1]


def command_of(request: Request) -> str:
    """The line that runs what is planned, with the inputs that the user gave."""
    inputs = {name: value for name, value in request.inputs.items() if name not in OF_A_PLAN}
    is_whole = inputs.get("tags") or inputs.get("artifact") or inputs.get("artifacts")
    return given_line(inputs).text if is_whole else f"cm run script {request_text(request)}"


def former_time(command: str, home: Home) -> str:
    """How long the same command took when it last ended well, in words; empty when no journal knows."""
    ended = [run for run in recorded_runs(home.path / RUNS_FOLDER, command) if run.state == "done"]
    if not ended:
        return ""
    date = str(ended[-1].request.get("started_utc", ""))[:10]
    return f"the same command lasted {ended[-1].duration_text} on {date}"


def name_command_in_errors(plan: Plan, i: Mapping[str, Any]) -> None:
    """Words the hints of a plan's errors for the command that was given; what runs a step alone is shown with -v."""
    for error in (step.error for _, step in plan.root.walk() if step.error):
        name_command(error, i, is_verbose=is_verbose(i))
        if not is_verbose(i):
            error.given, error.given_left_out, error.rerun, error.left_out = "", (), "", ()


def _free_bytes(path: Path) -> int:
    """The free space at ``path`` or at the nearest folder above that exists."""
    import shutil  # here, because only plans ask

    existing = next(folder for folder in (path, *path.parents) if os.path.isdir(folder))
    return shutil.disk_usage(existing).free
