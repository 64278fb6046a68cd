"""The plan of a call: which points the engine has to plan, and what its plan says of them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from crowdperf.call.model_server import look_for_run
from crowdperf.call.recipe_calls import Access, RecipeFailed, run_recipe
from crowdperf.call.server_access import settings_of
from crowdperf.kit.canonical_json import canonical_json
from crowdperf.kit.numbers import positive_number
from crowdperf.kit.server_address import server_parts
from crowdperf.rules.prompt_settings import URL
from crowdperf.sweeps.expand import Point
from crowdperf.sweeps.folder import State
from crowdperf.sweeps.planning import LoadgenRun, Plan, loadgen_runs, planned_points, steps_of_points
from crowdperf.sweeps.states import status
from crowdperf.sweeps.sweep import read_plan

from .recipes import nested
from .request import Call

DURATIONS = ("min_duration", "min_duration_ms")
"""Numbers that say how long a run takes."""
NOT_PLANNED = ("plan", "bash", "output")


def kind_of(inputs: Mapping[str, str]) -> str:
    """What points have in common that need the same: all inputs, numbers (batch_size, target_qps ...) by name only."""
    return canonical_json({name: "#" if _is_tuning(name, value) else value for name, value in inputs.items()})


def _is_tuning(name: str, value: str) -> bool:
    return name not in DURATIONS and positive_number(value) is not None


def missing_points(call: Call, key_of: Callable[[Mapping[str, str]], str] = kind_of) -> list[Point]:
    """The first point of each kind that has no result yet."""
    folder, found = call.folder, dict[str, Point]()
    for point in call.expansion.points:
        key = key_of(point.inputs)
        if key not in found and status(folder.point(point.id)).state is not State.DONE:
            found[key] = point
    return list(found.values())


def look_at_servers(call: Call) -> None:
    """Ask each server that points without a result are to measure for its models, before anything is installed or
    planned: for points on this machine. Raises modelserver.ServerProblem."""
    asked = {
        (
            *(point.inputs.get(name, "") for name in (URL, "endpoint_model", "model", "endpoint_api")),
            settings_of(point.inputs),
        )
        for point in missing_points(call)
    }
    for url, model, benchmark, api, access in sorted(asked, key=str):
        if server_parts(url) is not None and not access.problems():
            look_for_run(url, model, access, benchmark, api)


def calls_of(call: Call, points: Sequence[Point]) -> list[dict[str, Any]]:
    """The inputs of the recipe calls of these points."""
    more = {"tags": call.definition.recipe, "quiet": True}
    owns = (call.program.own_inputs(call.folder.point(point.id)) for point in points)
    return [{**nested(point.inputs), **own, **more} for point, own in zip(points, owns, strict=True)]


def engine_plan(access: Access, inputs: Mapping[str, Any], names: Mapping[str, str], call: Call) -> dict[str, Any]:
    """What `cm plan script` says of the points without a result; an empty plan where there are none."""
    if not missing_points(call):
        return {}
    own = {name: inputs[name] for name in names if name not in NOT_PLANNED and inputs.get(name)}
    try:
        answer = run_recipe(access, {**own, "tags": "run,mlperf,sweep"}, "plan")
    except RecipeFailed as error:
        answer = error.answer
    return dict(answer.get("plan") or {"errors": [str(answer.get("error", ""))]})


def make_plan(call: Call, command: str, found: Mapping[str, Any]) -> Plan:
    """The plan of a call, with what the engine's plan says."""
    runs: dict[str, tuple[LoadgenRun, ...]] = {
        kind_of(point.inputs): point.runs for point in read_plan(call.folder).points if point.runs
    }
    for point, step in zip(missing_points(call), steps_of_points(found), strict=False):
        runs[kind_of(point.inputs)] = tuple(loadgen_runs(step))
    own = {point.id: runs.get(kind_of(point.inputs), ()) for point in call.expansion.points}
    needs = found.get("needs") or {}
    nodes = call.settings.get("nodes", "1")
    return Plan(
        name=call.expansion.name,
        recipe=call.definition.recipe,
        command=command,
        points=planned_points(call.expansion.points, call.program, own, call.definition.point_seconds),
        executor=call.settings,
        nodes=int(nodes) if nodes.isdigit() else 1,
        max_parallel=call.max_parallel,
        downloads=tuple(str(row["what"]) for row in needs.get("downloads", ())),
        disk_mb=int(found.get("disk_need_mb", 0)),
        problems=tuple(dict.fromkeys(str(error).splitlines()[0] for error in found.get("errors", ()))),
    )
