"""Reads a sweep's folder back and writes sweep.json, sweep.csv, sweep.html and summary.txt into it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path

from crowdperf.kit.whole_file import write_whole
from crowdperf.sweeps.collecting import Collector, Facts, Row, summary_text, sweep_csv, sweep_json
from crowdperf.sweeps.executor import Executor
from crowdperf.sweeps.executors import KIND, KINDS, LOCAL, Say, make_executor
from crowdperf.sweeps.folder import State, SweepFolder
from crowdperf.sweeps.ids import digest_of
from crowdperf.sweeps.page import page
from crowdperf.sweeps.planning import PlannedPoint
from crowdperf.sweeps.sweep import UNDER_WAY, read_plan

LOCK_NAME = "crowdperf.lock"
"""In the sweep's folder: what its points are held to, where they run without a network."""


class NoSweep(Exception):
    """A folder is none of a sweep; the text says what is missing."""


@dataclass(slots=True)
class Report:
    """A sweep's folder: its points, and the files about all of them."""

    folder: SweepFolder
    facts: Facts
    points: tuple[PlannedPoint, ...]
    settings: Mapping[str, str]
    _collector: Collector = field(init=False)

    def __post_init__(self) -> None:
        self._collector = Collector(self.folder, self.points)

    def rows(self, states: Mapping[str, State]) -> tuple[Row, ...]:
        """A row of each point."""
        return self._collector.rows(states)

    def write(self, states: Mapping[str, State]) -> tuple[Row, ...]:
        """Writes the four files whole; gives the rows. Raises OSError."""
        rows, facts = self.rows(states), self._now()
        write_whole(self.folder.path / "sweep.json", sweep_json(facts, rows))
        write_whole(self.folder.path / "sweep.csv", sweep_csv(rows))
        write_whole(self.folder.path / "sweep.html", page(facts, rows))
        write_whole(self.folder.path / "summary.txt", summary_text(facts, rows))
        return rows

    def _now(self) -> Facts:
        lock = self.folder.path / LOCK_NAME
        digest = digest_of(lock.read_text(encoding="utf-8")) if lock.is_file() else ""
        now = datetime.now(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")
        return replace(self.facts, made_utc=now, lock_sha256=digest)

    def executor(self, say: Say) -> Executor:
        """The executor that the sweep was begun with; the one of this machine where its settings cannot be read."""
        kind = self.settings.get(KIND, LOCAL)
        found = make_executor(self.settings, say)[0] if kind in KINDS else None
        return found or KINDS[LOCAL].make(KINDS[LOCAL].options(), say)


def read_report(path: Path) -> Report:
    """The report of a sweep's folder. Raises NoSweep."""
    folder = SweepFolder(path)
    plan = read_plan(folder)
    if not plan.points:
        why = "damaged" if folder.plan_file.exists() else "missing"
        raise NoSweep(f"{path} is not the folder of a sweep: plan.json is {why}")
    facts = Facts(name=plan.name, digest=plan.digest, made_utc="", command=plan.command, recipe=plan.recipe)
    return Report(folder, facts, plan.points, plan.executor)


def remaining_s(rows: Sequence[Row], at_once: int) -> float:
    """How long the points that are not over should still take."""
    return sum(row.point.planned_s for row in rows if row.status.state in (State.PLANNED, *UNDER_WAY)) / max(1, at_once)
