"""``cm plan script``: what a run would do, without doing any of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..planning.plan import Plan
from ..planning.plan_text import GRAPHS, plan_json, plan_lines
from ..planning.planned import PlannedEngine
from ..rules.errors import RecipeError, RequestError
from ..rules.model import Request
from ..rules.schema import is_yes
from ..rules.secrets import hidden_text
from ..running.engine import Engine
from .adapter import Home
from .run import guard_for, new_engine, parse_request


def plan_action(i: Mapping[str, Any], home: Home) -> dict[str, Any]:
    """Answers ``cm plan script``; the code is that of the first error that would surely stop the run."""
    graph = str(i.get("graph") or "")
    if graph and graph not in GRAPHS:
        raise RequestError(f"--graph={graph} is not known", hint=f"one of: {', '.join(GRAPHS)}")
    engine = new_engine(home, None)
    engine.guard = guard_for(i, engine)
    plan = make_plan(engine, parse_request(i))
    if i.get("out") == "con":
        is_verbose = is_yes(i.get("verbose")) or is_yes(i.get("v"))
        text = GRAPHS[graph](plan) if graph else "\n".join(plan_lines(plan, with_skipped=is_verbose))
        sys.stdout.write(text + "\n")
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
        hint="make room (cm gc cache --dry-run lists what can go), or move the cache to a larger disk",
    )


def refuse_impossible(engine: Engine, parse: Callable[[Mapping[str, Any]], Request], request: Request) -> None:
    """Plans a run that is about to begin; raises the error that would surely stop it, before anything is installed."""
    fresh = Engine(engine.source, engine.effects, engine.top_folder, engine.run)
    error = first_error(make_plan(fresh, request, PlannedEngine(fresh, parse)))
    if error:
        raise error


def make_plan(engine: Engine, request: Request, planned: PlannedEngine | None = None) -> Plan:
    """The plan of a request, made with ``planned`` when one is given.

    Raises RecipeError only when not even the recipe of the request is known.
    """
    planned = planned or PlannedEngine(engine, parse_request)
    try:
        planned.run_consistently(request)
    except RecipeError:
        if planned.tree.is_empty:
            raise
    cache = engine.store.root
    return Plan(planned.tree.root, f"cm run script {request_text(request)}", str(cache), _free_bytes(cache))


def _free_bytes(path: Path) -> int:
    """The free space at ``path`` or at the nearest folder above that exists."""
    import shutil  # here, because only plans ask

    existing = next(folder for folder in (path, *path.parents) if os.path.isdir(folder))
    return shutil.disk_usage(existing).free


def request_text(request: Request) -> str:
    """The query of a request as words of a command line."""
    return hidden_text(f"--tags={request.query.text}" if request.query.text else request.alias)
