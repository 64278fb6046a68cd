"""Makes a curve: its points in a folder of a sweep, then the submission tree, the checks and the page.

<results_dir>/<name>/   a sweep's folder (crowdperf.sweeps.folder), with beside its own:
    plan.json                                       the points, as of any sweep
    curve.json curve.csv curve.html summary.txt     what came out, also while it is made
    submission.yaml                                 the form of a declaration, where none was given
    tree/<organization>/<submission>/               once every point is done
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.curves.declaration import FORM, form, read_declaration
from crowdperf.curves.page import CurvePage, PointRow, curve_csv, html_page, summary_text
from crowdperf.curves.point import OUTCOME, RUN
from crowdperf.curves.pointinputs import RECIPE, PointInputs
from crowdperf.curves.request import CurveRequest
from crowdperf.curves.sizing import expected_s
from crowdperf.curves.tokens import counter_of
from crowdperf.endpoints.clientfiles import read_run
from crowdperf.endpoints.events import derive
from crowdperf.endpoints.readtree import CURVE, TREE
from crowdperf.endpoints.samples import SAMPLES, EventsError
from crowdperf.endpoints.tree import CurveFacts, MeasuredPoint, write_tree
from crowdperf.kit.whole_file import read_object, write_json, write_whole
from crowdperf.rules.benchmarks import user_limits
from crowdperf.rules.names import counted
from crowdperf.sweeps.executor import Executor
from crowdperf.sweeps.executors import KIND, LOCAL
from crowdperf.sweeps.folder import PointFile, PointFolder, State, SweepFolder
from crowdperf.sweeps.ids import point_id
from crowdperf.sweeps.planning import Plan, PlannedPoint, plan_json
from crowdperf.sweeps.states import status
from crowdperf.sweeps.sweep import Conduct, Sweep, locked, write_point

FORMAT = 1
UNDER_WAY = (State.PLANNED.value, State.SUBMITTED.value, State.RUNNING.value)
CSV, PAGE, SUMMARY = "curve.csv", "curve.html", "summary.txt"
_SHORTENED = "shortened runs (execution mode {mode})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """The client's program, and what was installed; empty where that is not known."""

    program: Path
    version: str
    commit: str


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A point and its folder."""

    inputs: PointInputs
    folder: PointFolder


def label_of(request: CurveRequest) -> str:
    """Return why the curve is no result of the model as far as the request says; empty for a valid run."""
    return "" if request.mode == "valid" else _SHORTENED.format(mode=request.mode)


def plan_text(request: CurveRequest, points: Sequence[PointInputs]) -> str:
    """Return the points with their regions and expected seconds, for a terminal."""
    regions = request.regions
    lines = [
        f"{request.name}: {request.model}, {counted(len(points), 'point')}, C_min {regions.c_min},"
        f" C_max {regions.c_max}",
        f"  regions: low {regions.low}, medium {regions.medium}, high {regions.high}, margin {regions.margin}",
        f"  seeds: set {request.seed_set.id} in cohort {request.target_cohort}, data set of "
        f"{request.dataset_samples:,} samples, offline: {request.offline.value}",
    ]
    for one in points:
        accuracy = ", then accuracy" if one.has_accuracy else ""
        steady = f"{one.floor_s:g} s of steady state" if one.floor_s else "all samples at once"
        lines.append(f"  {one.name:>8}  {_region(request, one.concurrency):<16} {steady}{accuracy}")
    seconds = sum(expected_s(one.floor_s) for one in points)
    scored = sum(one.has_accuracy for one in points)
    lines.append(f"  expected: {seconds:,.0f} s ({seconds / 3600:.1f} h), and {scored} accuracy runs")
    lines += [f"  a submission would be refused: {note}" for note in request.notes]
    return "\n".join(lines)


def _region(request: CurveRequest, concurrency: int) -> str:
    region = request.regions.region_of(concurrency) if concurrency else None
    return region.value if region else "offline"


def curve_points(request: CurveRequest, client: Client, folder: Path) -> tuple[CurvePoint, ...]:
    """Return the points in the order of their runs, each with its folder, which need not be there."""
    sweep = SweepFolder(folder)
    return tuple(
        CurvePoint(one, sweep.point(point_id(RECIPE, one.as_inputs(), [one.name])))
        for one in request.point_inputs(client.version, client.commit)
    )


def point_file(point: CurvePoint, client: Client) -> PointFile:
    """Return point.json."""
    folder = point.folder
    words = [sys.executable, "-m", "crowdperf.curves.point", f"--point={folder.point_file.absolute()}"]
    return PointFile(
        format=FORMAT,
        id=folder.id,
        recipe=RECIPE,
        inputs=point.inputs.as_inputs(),
        repeat=1,
        argv=[*words, f"--results={folder.results.absolute()}", f"--client={client.program}"],
        cwd=str(folder.path.absolute()),
        environment={"PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        outcome=OUTCOME,
        planned_s=expected_s(point.inputs.floor_s),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveRun:
    """A curve at work. command: the call, as files may show it. say: gets lines for people."""

    request: CurveRequest
    client: Client
    folder: Path
    submission: Path | None
    command: str
    say: Callable[[str], None]

    def make(self, executor: Executor, conduct: Conduct) -> dict[str, State]:
        """Make what is missing of the points; returns their states. Raises FolderInUse, ExecutorError, OSError."""
        points = curve_points(self.request, self.client, self.folder)
        with locked(self.folder):
            for point in points:
                write_point(point.folder, point_file(point, self.client))
            write_json(SweepFolder(self.folder).plan_file, plan_json(self._plan(points)), indent=1)
            if self.submission is None and not (self.folder / FORM).exists():
                write_whole(self.folder / FORM, form())

            told = {point.inputs.name for point in points if status(point.folder).state is State.DONE}

            def collect(_: Mapping[str, State]) -> None:
                for row in self.collect(points).rows:
                    if row.state not in UNDER_WAY and row.name not in told:
                        told.add(row.name)
                        self.say(f"{row.name}: {row.state}")

            sweep = Sweep(SweepFolder(self.folder), executor, conduct, collect, self.say)
            states = sweep.run([point.folder.id for point in points])
        return {point.folder.id: states.get(point.folder.id, State.PLANNED) for point in points}

    def _plan(self, points: Sequence[CurvePoint]) -> Plan:
        """The curve as the plan of a sweep, for what shows and cancels sweeps."""
        planned = tuple(
            PlannedPoint(
                id=point.folder.id,
                variant="",
                inputs=point.inputs.as_inputs(),
                varied={"point": point.inputs.name},
                axes={"point": point.inputs.name},
                repeat=1,
                tags=(),
                command=self.command,
                planned_s=expected_s(point.inputs.floor_s),
            )
            for point in points
        )
        executor = {KIND: LOCAL}
        return Plan(name=self.request.name, recipe=RECIPE, command=self.command, points=planned, executor=executor)

    def collect(self, points: Sequence[CurvePoint], findings: Sequence[str] = ()) -> CurvePage:
        """Write curve.json, curve.csv, curve.html and summary.txt from what is there. Raises OSError."""
        page = self._page([self._row(point) for point in points], findings)
        write_json(self.folder / CURVE, self._content(page, points), indent=1)
        write_whole(self.folder / CSV, curve_csv(page.rows))
        write_whole(self.folder / PAGE, html_page(page))
        write_whole(self.folder / SUMMARY, summary_text(page))
        return page

    def tree(self, points: Sequence[CurvePoint]) -> Path:
        """Write the submission tree of points that are all done; raises ClientFileError, EventsError, TreeError."""
        request = self.request
        facts = CurveFacts(
            model=request.model,
            division=request.division,
            c_max=request.regions.c_max,
            c_min=request.regions.c_min if request.regions.is_override else None,
            offline=request.offline,
            seed_set=request.seed_set,
            target_cohort=request.target_cohort,
            dataset_samples=request.dataset_samples,
            label=label_of(request),
            served_model=request.settings.model if request.settings.model != request.model else "",
        )
        declared = read_declaration(self.submission, facts)
        measured = [self._measured(point) for point in points]
        return write_tree(self.folder / TREE, declared, measured)

    def _measured(self, point: CurvePoint) -> MeasuredPoint:
        run, samples = read_run(point.folder.results / RUN), point.folder.results / SAMPLES
        if run.events is None:
            raise EventsError(f"{point.inputs.name}: the client left no events.jsonl")
        counter = None if samples.is_file() else counter_of(Path(point.inputs.settings.tokenizer), self.client.program)
        outcome = read_object(point.folder.results / OUTCOME) or {}
        return MeasuredPoint(
            run=run,
            derived=derive(samples if samples.is_file() else run.events, counter),
            started_utc=str(outcome.get("started_utc", "")),
            client_commit=point.inputs.client_commit,
        )

    def _row(self, point: CurvePoint) -> PointRow:
        now = status(point.folder)
        return PointRow(
            name=point.inputs.name,
            concurrency=point.inputs.concurrency,
            region=_region(self.request, point.inputs.concurrency),
            state=now.state.value,
            reason=now.reason if now.state not in (State.DONE, State.PLANNED) else "",
            label=now.label,
            outcome=read_object(point.folder.results / OUTCOME) or {},
        )

    def _page(self, rows: Sequence[PointRow], findings: Sequence[str]) -> CurvePage:
        request, regions = self.request, self.request.regions
        facts = [
            ("model", request.model),
            ("division", request.division),
            ("C_min, C_max", f"{regions.c_min}, {regions.c_max}"),
            ("regions", f"low {regions.low}, medium {regions.medium}, high {regions.high}"),
            ("offline", request.offline.value),
            ("seeds", f"set {request.seed_set.id}, cohort {request.target_cohort}"),
            ("data set", f"{request.settings.performance.name}: {request.dataset_samples:,} samples, SHA-256 "
             f"{request.dataset_sha256}"),
            ("client", " ".join(filter(None, (self.client.version, self.client.commit))) or "version unknown"),
            ("command", self.command),
        ]  # fmt: skip
        disturbed = ", ".join(row.name for row in rows if row.label)
        label = "; ".join(filter(None, (label_of(request), disturbed and f"not measured alone: {disturbed}")))
        return CurvePage(name=request.name, label=label, facts=facts, rows=tuple(rows),
                         findings=tuple(findings), limits=user_limits(request.model))  # fmt: skip

    def _content(self, page: CurvePage, points: Sequence[CurvePoint]) -> Mapping[str, Any]:
        return {
            "format": FORMAT,
            "name": page.name,
            "label": page.label,
            "official": False,
            **{key: value for key, value in page.facts if key in ("model", "division", "command", "client")},
            "c_min": self.request.regions.c_min,
            "c_max": self.request.regions.c_max,
            "points": [
                {"id": point.folder.id, "name": row.name, "concurrency": row.concurrency, "region": row.region,
                 "state": row.state, "reason": row.reason, "outcome": dict(row.outcome) or None}
                for row, point in zip(page.rows, points, strict=True)
            ],
            "findings": list(page.findings),
        }  # fmt: skip
