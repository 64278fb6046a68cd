"""Makes what points need on this machine before they start, and locks it: nodes then need no network."""

from collections.abc import Iterator, Mapping
from typing import Any

from crowdperf.call.recipe_calls import Access, RecipeFailed, run_recipe
from crowdperf.kit.canonical_json import canonical_json
from crowdperf.kit.whole_file import write_json
from crowdperf.sweeps import commands
from crowdperf.sweeps.planning import steps_of_points
from crowdperf.sweeps.report import LOCK_NAME

from . import plans
from .request import Call

FOLDER_INPUTS = ("output_dir", "result_dir", "results_dir")
"""Inputs that say where results go, and decide nothing about what a run needs."""
ENGINE_RECIPE = "generate-engine"


class PrestageFailed(Exception):
    """What the points need could not be made here."""


def _runs(step: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The calls that a point makes itself, as inputs."""
    for child in step.get("children", ()):
        if not child.get("phase"):
            names = [f"_{row['name']}" for row in child.get("variations", ()) if row["reason"] == "asked for"]
            inputs = {name: value for name, value in child.get("inputs", {}).items() if name not in FOLDER_INPUTS}
            yield {**inputs, "tags": ",".join([*child["tags"], *names])}


def _builds_engine(step: Mapping[str, Any]) -> bool:
    """Whether a step below makes an engine: of one kind of points, each batch size has its own."""
    is_engine = str(step.get("recipe", "")).startswith(ENGINE_RECIPE) and step.get("action") != "skip"
    return is_engine or any(_builds_engine(child) for child in step.get("children", ()))


def prestage(access: Access, call: Call, found: Mapping[str, Any]) -> tuple[str, ...]:
    """Makes the cached steps of all points once and locks them; gives the words that hold a point to the lock.

    Raises PrestageFailed.
    """
    kinds = plans.missing_points(call)
    steps = {plans.kind_of(point.inputs): step for point, step in zip(kinds, steps_of_points(found), strict=False)}
    points = [
        point
        for point in plans.missing_points(call, lambda inputs: canonical_json(dict(inputs)))
        if point in kinds or _builds_engine(steps.get(plans.kind_of(point.inputs), {}))
    ]
    calls = plans.calls_of(call, points)
    wanted: dict[str, dict[str, Any]] = {}
    for point, inputs in zip(points, calls, strict=True):
        step = steps.get(plans.kind_of(point.inputs), {})
        passed_on = {name: inputs[name] for name in ("adr", "add_deps_recursive", "env") if name in inputs}
        for run in ({**inputs}, *({**passed_on, **run} for run in _runs(step))):
            key = {name: value for name, value in run.items() if name not in (*FOLDER_INPUTS, "run_id")}
            wanted[canonical_json(key)] = run
    for number, run in enumerate(wanted.values(), start=1):
        commands.say(f"preparing {number} of {len(wanted)}: {run['tags']}")
        _asked(access, run, "prepare")
    path = call.folder.path / LOCK_NAME
    locks = [_asked(access, run, "lock")["lock"] for run in calls]
    write_json(path, _joined(locks))
    return (f"--frozen={path.absolute()}", "--only_execute_from_cache")


def _asked(access: Access, run: Mapping[str, Any], action: str) -> dict[str, Any]:
    try:
        return run_recipe(access, run, action)
    except RecipeFailed as error:
        raise PrestageFailed(f"{run['tags']} cannot be prepared here: {error}") from None


def _joined(locks: list[dict[str, Any]]) -> dict[str, Any]:
    """Lockfiles of several calls as one."""
    recipes = {name: digest for lock in locks for name, digest in lock["recipes"].items()}
    artifacts = {canonical_json(row): row for lock in locks for row in lock["things"]}
    return {**locks[0], "recipes": dict(sorted(recipes.items())), "things": list(artifacts.values())}
