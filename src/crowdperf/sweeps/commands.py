"""What the recipes show-, cancel- and collect-mlperf-sweep do with the folder of a sweep. Gives CM's answers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crowdperf.call.answers import Answer, failure
from crowdperf.rules.names import counted, duration_text, printable_lines
from crowdperf.sweeps.collecting import Row, summary_text
from crowdperf.sweeps.executor import ExecutorError
from crowdperf.sweeps.folder import State
from crowdperf.sweeps.planning import Plan
from crowdperf.sweeps.report import NoSweep, Report, read_report
from crowdperf.sweeps.slurm import states_without_queue
from crowdperf.sweeps.sweep import UNDER_WAY, exit_code

HINT = "hint: cm run script --tags={},mlperf,sweep --sweep_dir=results/NAME"


def refused(error: Exception | str, word: str = "show") -> Answer:
    """CM's answer for a call that cannot be carried out."""
    return failure(printable_lines(str(error)), HINT.format(word))


def say(text: str) -> None:
    """A line for people."""
    print(printable_lines(text), flush=True)


def _report(folder: Path | None) -> Report:
    """The report of the folder that the call names. Raises NoSweep."""
    if folder is None:
        raise NoSweep("--sweep_dir is missing")
    return read_report(folder)


def _states(report: Report) -> Mapping[str, State]:
    """The states of all points; those that the files know where the queue cannot be asked, which is said."""
    try:
        return report.executor(say).states(report.folder)
    except ExecutorError as error:
        say(f"from the files alone, without the queue: {error}")
        return states_without_queue(report.folder)


def under_way(plan: Plan, rows: Sequence[Row]) -> Answer:
    """CM's answer while points are not over: 3, and the line that makes what is missing."""
    waiting = [row for row in rows if row.status.state in (State.PLANNED, *UNDER_WAY)]
    left = duration_text(sum(row.point.planned_s for row in waiting) / max(1, plan.max_parallel))
    text = f"unfinished: {counted(len(waiting), 'point')}, about {left} left"
    again = f"\nhint: {plan.command}   # runs missing points and does not touch running ones"
    return {"return": 3, "error": text + (again if plan.command else "")}


def show(folder: Path | None, state: dict[str, Any]) -> Answer:
    """Prints the states; the code is 3 where points are under way."""
    try:
        report = _report(folder)
        states = _states(report)
    except (NoSweep, OSError) as error:
        return refused(error, "show")
    rows = report.rows(states)
    state["mlperf_sweep"] = report.content(rows)
    say(summary_text(report.plan, rows))
    found = {row.point.id: row.status.state for row in rows}
    if exit_code(found, list(found)) != 3:
        return {"return": 0}
    return under_way(report.plan, rows)


def cancel(folder: Path | None, state: dict[str, Any]) -> Answer:
    """Takes back what the sweep has started."""
    try:
        report = _report(folder)
        cancelled = report.executor(say).cancel(report.folder)
    except (NoSweep, ExecutorError, OSError) as error:
        return refused(error, "cancel")
    state["mlperf_sweep"] = {"cancelled": list(cancelled)}
    say(f"cancelled: {', '.join(cancelled)}" if cancelled else "no point was queued or running")
    return {"return": 0}


def collect(folder: Path | None, state: dict[str, Any]) -> Answer:
    """Writes the files about all points; the code is 2 where one has no valid result."""
    try:
        report = _report(folder)
        rows = report.write(_states(report))
    except (NoSweep, OSError) as error:
        return refused(error, "collect")
    state["mlperf_sweep"] = report.content(rows)
    say(summary_text(report.plan, rows))
    say(f"Page: {report.folder.path / 'sweep.html'}")
    return without_result({row.point.id: row.status.state.value for row in rows})


def without_result(states: Mapping[str, str]) -> Answer:
    """CM's answer from the states of the points: 2 and their names where some have no valid result."""
    missing = [point for point, state in states.items() if state != "done"]
    if not missing:
        return {"return": 0}
    listed = "\n  ".join(f"{point}: {states[point]}" for point in missing[:10])
    more = f"\n  and {len(missing) - 10} more" if len(missing) > 10 else ""
    hint = (
        "hint: points/ID/attempts/ has the output of each. To rerun them, add --rerun=failed,invalid to the command "
        "of the sweep"
    )
    text = f"{len(missing)} of {counted(len(states), 'point')} without a valid result:\n  {listed}{more}"
    return {"return": 2, "error": f"{text}\n{hint}"}
