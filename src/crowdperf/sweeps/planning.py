"""What a sweep would do: each point's program, its LoadGen runs and least time, node hours, downloads. Pure.

plan.json holds `PlannedPoint`s; the tree of steps that LoadGen runs are read from is the one of `cm plan script`.
"""

import math
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from crowdperf.call.values import is_set
from crowdperf.kit.canonical_json import canonical_json
from crowdperf.rules.names import ExecutionMode, counted, duration_text
from crowdperf.sweeps.expand import Point
from crowdperf.sweeps.folder import PointFile, PointFolder
from crowdperf.sweeps.ids import digest_of

FORMAT = 1
LOADGEN_RECIPE = "app-mlperf-inference"
SETUP_S = 10.0
"""What a LoadGen run of a cached benchmark takes beside measuring: starting, loading, warm-up, records. A guess for
small networks (digits: 5 to 8 s on 2 cores, 2026-11-23); `point_seconds` in the file replaces it."""
LIMIT_FACTOR, LIMIT_MARGIN_S = 1.5, 600.0
"""The time limit of a job is so many times what is planned, and so much more."""


@dataclass(frozen=True, slots=True)
class LoadgenRun:
    """One LoadGen run. least_s: shortest time that it measures; 0 for an accuracy run, which takes what it takes."""

    scenario: str
    mode: str
    least_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPoint(Point):
    """A point of plan.json. planned_s: expected seconds. command: the call by itself, for people.

    `is_wanted` is False for a point of an earlier call that this one does not ask for.
    """

    command: str
    planned_s: float = 0.0
    runs: tuple[LoadgenRun, ...] = ()
    is_wanted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """How calls of the swept recipe are made.

    words: what runs cm. cwd: where relative inputs begin. own: which inputs the recipe has of those the sweep sets.
    outcome: the file with the verdict, `{id}` for the point's id; None: exit code 0 is VALID. more: further words.
    """

    words: tuple[str, ...]
    recipe: str
    cwd: str
    environment: Mapping[str, str] = field(default_factory=dict)
    own: frozenset[str] = frozenset()
    outcome: str | None = None
    more: tuple[str, ...] = ()

    def command(self, inputs: Mapping[str, str]) -> str:
        """The call by itself, as a user would type it."""
        return " ".join(["cm run script", *map(shlex.quote, self._call(inputs))])

    def _call(self, inputs: Mapping[str, str]) -> list[str]:
        return [f"--tags={self.recipe}", *(f"--{name}={value}" for name, value in inputs.items())]

    def own_inputs(self, folder: PointFolder) -> dict[str, str]:
        """What the sweep itself sets of a point's call, as far as the recipe has such inputs."""
        own = {"results_dir": str(folder.results), "run_id": folder.id, "check": "no"}
        return {name: value for name, value in own.items() if name in self.own}

    def point_file(self, point: PlannedPoint, folder: PointFolder) -> PointFile:
        """The content of point.json."""
        words = [f"--{name}={value}" for name, value in self.own_inputs(folder).items()]
        is_search = is_set(point.inputs.get("find"))
        return {
            "format": FORMAT,
            "id": point.id,
            "recipe": self.recipe,
            "inputs": dict(point.inputs),
            "repeat": point.repeat,
            "argv": [*self.words, "run", "script", *self._call(point.inputs), *words, "--quiet", *self.more],
            "cwd": self.cwd,
            "environment": dict(self.environment),
            "outcome": None if self.outcome is None or is_search else self.outcome.format(id=point.id),
            "planned_s": point.planned_s,
        }


def loadgen_runs(step: Mapping[str, Any]) -> Iterator[LoadgenRun]:
    """The LoadGen runs at and below a step of a plan."""
    if str(step.get("recipe", "")).startswith(f"{LOADGEN_RECIPE},") and step.get("action") == "run":
        names = {str(row["name"]) for row in step.get("variations", ())}
        inputs = step.get("inputs", {})
        mode = "accuracy" if "accuracy" in names else "performance"
        scenarios = names & {"singlestream", "multistream", "offline", "server", "interactive"}
        yield LoadgenRun(next(iter(scenarios), ""), mode, 0.0 if mode == "accuracy" else _least_s(inputs))
        return
    for child in step.get("children", ()):
        yield from loadgen_runs(child)


def _least_s(inputs: Mapping[str, Any]) -> float:
    if str(inputs.get("min_duration_ms", "")).isdigit():
        return int(inputs["min_duration_ms"]) / 1000
    known = {mode.value: mode.min_duration_ms for mode in ExecutionMode}
    return known.get(str(inputs.get("execution_mode")), ExecutionMode.TEST.min_duration_ms) / 1000


def steps_of_points(plan: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The steps of a plan of the sweep's recipe that are calls of points, in their order."""
    children = (plan.get("steps") or {}).get("children", ())
    return [child for child in children if not child.get("phase")]


def planned_points(
    points: Sequence[Point], program: Program, runs: Mapping[str, tuple[LoadgenRun, ...]], point_seconds: float | None
) -> tuple[PlannedPoint, ...]:
    """The points with what they run (`runs` by id) and how long that is expected to take."""
    found = []
    for point in points:
        own = runs.get(point.id, ())
        expected = sum(run.least_s + SETUP_S for run in own) or SETUP_S
        found.append(
            PlannedPoint(
                **{each.name: getattr(point, each.name) for each in fields(point)},
                command=program.command(point.inputs),
                planned_s=expected if point_seconds is None else point_seconds,
                runs=own,
            )
        )
    return tuple(found)


def run_order(points: Sequence[Point]) -> list[str]:
    """The ids in the order of their runs: the first repeat of every point, then the second one. A change of the machine
    while the sweep runs, such as other load, then affects all points alike."""
    return [point.id for point in sorted(points, key=lambda one: one.repeat)]


def with_earlier(points: Sequence[PlannedPoint], earlier: Sequence[PlannedPoint]) -> tuple[PlannedPoint, ...]:
    """The points of this call, then those of earlier ones that it does not ask for."""
    own = {point.id for point in points}
    return (*points, *(replace(point, is_wanted=False) for point in earlier if point.id not in own))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A whole sweep. nodes: of each point. problems: what would surely make a run fail, as the engine's plan says.
    points: also those of earlier calls in plan.json; none where that is missing or damaged."""

    name: str = ""
    recipe: str = ""
    command: str = ""
    points: tuple[PlannedPoint, ...] = ()
    executor: Mapping[str, str] = field(default_factory=dict)
    nodes: int = 1
    max_parallel: int = 1
    downloads: tuple[str, ...] = ()
    disk_mb: int = 0
    problems: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """What tells this sweep from others: a SHA-256 over its name, recipe and ids."""
        return digest_of(canonical_json([self.name, self.recipe, sorted(point.id for point in self.points)]))

    @property
    def node_hours(self) -> float:
        """Hours of nodes that all points take."""
        return sum(point.planned_s for point in self.points) * self.nodes / 3600

    @property
    def wall_hours(self) -> float:
        """Hours until the last point ends, with `max_parallel` at once."""
        return sum(point.planned_s for point in self.points) / self.max_parallel / 3600


def limit_min(planned_s: float) -> int:
    """The time limit of a job for a point, in minutes."""
    return math.ceil((LIMIT_FACTOR * planned_s + LIMIT_MARGIN_S) / 60)


def counts(points: Sequence[PlannedPoint]) -> dict[str, dict[str, int]]:
    """How many points have each variant and each value of each axis."""
    found = {"variant": Counter(point.variant for point in points)}
    for key in dict.fromkeys(key for point in points for key in point.axes):
        found[key] = Counter(point.axes[key] for point in points if key in point.axes)
    return {key: dict(counter) for key, counter in found.items()}


def plan_json(plan: Plan, states: Mapping[str, str] | None = None) -> dict[str, Any]:
    """plan.json; with `states` also what has become of each point: those it does not name are planned."""

    def state(point: PlannedPoint) -> dict[str, str]:
        return {} if states is None else {"state": states.get(point.id, "planned")}

    return {
        "format": FORMAT,
        "name": plan.name,
        "digest": plan.digest,
        "recipe": plan.recipe,
        "command": plan.command,
        "executor": dict(plan.executor),
        "nodes": plan.nodes,
        "max_parallel": plan.max_parallel,
        "n_points": len(plan.points),
        "node_hours": round(plan.node_hours, 3),
        "wall_hours": round(plan.wall_hours, 3),
        "counts": counts(plan.points),
        "downloads": list(plan.downloads),
        "disk_mb": plan.disk_mb,
        "problems": list(plan.problems),
        "points": [{**asdict(point), **state(point), "limit_min": limit_min(point.planned_s)} for point in plan.points],
    }


def plan_text(plan: Plan, states: Mapping[str, str]) -> str:
    """The plan for a terminal."""
    lines = [f"{plan.name}: {counted(len(plan.points), 'point')} of {plan.recipe}"]
    lines += [
        f"  {key}: {', '.join(f'{value} ({count})' for value, count in values.items())}"
        for key, values in counts(plan.points).items()
    ]
    for number, point in enumerate(plan.points, start=1):
        runs = f"{len(point.runs)} LoadGen {'run' if len(point.runs) == 1 else 'runs'}, " if point.runs else ""
        about = f"{states.get(point.id, 'planned')}, {runs}about {duration_text(point.planned_s)}"
        lines += [f"{number:4}. {point.id}: {about}", f"      {point.command}"]
    kind = plan.executor.get("kind", "local")
    at_once = f"{plan.max_parallel} at once" if plan.max_parallel > 1 else "one after another"
    lines.append(f"executor: {kind}, {at_once}, at most {max(limit_min(p.planned_s) for p in plan.points)} min a point")
    lines.append(
        f"about {plan.node_hours:.2f} node hours, {duration_text(plan.wall_hours * 3600)} in all (without accuracy "
        "runs, whose duration depends on the data set)"
    )
    if plan.disk_mb or plan.downloads:
        lines.append(f"not in the cache yet: {plan.disk_mb} MB of disk, {len(plan.downloads)} downloads")
        lines += [f"  {what}" for what in plan.downloads]
    lines += [f"would fail: {problem}" for problem in plan.problems]
    return "\n".join(lines)
