"""Reads a sweep's folder back and writes sweep.json, sweep.csv, sweep.html and summary.txt into it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from crowdperf.kit.privacy import PrivateNames, known_here, masked
from crowdperf.kit.whole_file import write_bytes_whole
from crowdperf.sweeps.collecting import Row, read_row, summary_text, sweep_content, sweep_csv
from crowdperf.sweeps.executor import Executor
from crowdperf.sweeps.executors import KIND, KINDS, LOCAL, Say, make_executor
from crowdperf.sweeps.folder import State, SweepFolder
from crowdperf.sweeps.ids import digest_of
from crowdperf.sweeps.page import page
from crowdperf.sweeps.planning import Plan
from crowdperf.sweeps.sweep import read_plan

LOCK_NAME = "crowdperf.lock"
"""In the sweep's folder: what its points are held to, where they run without a network."""


class NoSweep(Exception):
    """A folder is none of a sweep; the text says what is missing."""


@dataclass(slots=True)
class Report:
    """A sweep's folder: its plan, and the files about all of its points."""

    folder: SweepFolder
    plan: Plan
    _done: dict[str, Row] = field(default_factory=dict)

    def rows(self, states: Mapping[str, State]) -> tuple[Row, ...]:
        """A row of each point, in the order of the plan. What is done is read once."""
        rows = []
        for point in self.plan.points:
            row = self._done.get(point.id)
            if row is None:
                row = read_row(point, self.folder.point(point.id), states.get(point.id))
                if row.status.state is State.DONE:
                    self._done[point.id] = row
            rows.append(row)
        return tuple(rows)

    def content(self, rows: tuple[Row, ...]) -> dict[str, Any]:
        """What sweep.json says now."""
        lock = self.folder.path / LOCK_NAME
        digest = digest_of(lock.read_text(encoding="utf-8")) if lock.is_file() else ""
        now = datetime.now(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")
        return sweep_content(self._shown(), rows, now, digest)

    def write(self, states: Mapping[str, State]) -> tuple[Row, ...]:
        """Writes the four files whole; gives the rows. Raises OSError."""
        rows = self.rows(states)
        content = self.content(rows)
        texts = {
            "sweep.json": json.dumps(content, indent=1) + "\n",
            "sweep.csv": sweep_csv(rows),
            "sweep.html": page(self._shown(), rows, content["made_utc"]),
            "summary.txt": summary_text(self.plan, rows),
        }
        for name, text in texts.items():
            write_bytes_whole(self.folder.path / name, text.encode("utf-8", "backslashreplace"))
        return rows

    def _shown(self) -> Plan:
        """The plan as files show it, which are passed on: without the user's home folder in the command."""
        return replace(self.plan, command=masked(self.plan.command, PrivateNames(homes=known_here().homes)))

    def executor(self, say: Say) -> Executor:
        """The executor that the sweep was begun with; the one of this machine where its settings cannot be read."""
        kind = self.plan.executor.get(KIND, LOCAL)
        found = make_executor({**self.plan.executor, KIND: kind}, say)[0] if kind in KINDS else None
        return found or KINDS[LOCAL].make(KINDS[LOCAL].options(), say)


def read_report(path: Path) -> Report:
    """The report of a sweep's folder. Raises NoSweep."""
    folder = SweepFolder(path)
    plan = read_plan(folder)
    if not plan.points:
        why = "damaged" if folder.plan_file.exists() else "missing"
        raise NoSweep(f"{path} is not the folder of a sweep: plan.json is {why}")
    return Report(folder, plan)
