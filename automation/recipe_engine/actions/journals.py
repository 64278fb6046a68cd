"""The journals of runs, read: what was asked for, what each step did, how it ended.

``running/journal.py`` writes them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ..disk.files import read_json
from ..disk.locks import is_locked
from ..rules.errors import NothingFound
from ..rules.query import nearest
from ..running.journal import FORMAT, JOURNAL_FILE, REQUEST_FILE

LIST_HINT = "cm runs script lists the runs that are known"


class RunStep(NamedTuple):
    """One step of a recorded run.

    ``status`` is how it ended: ran, reused, skipped, faked, failed, or ``unfinished``. ``digest`` is that of the recipe
    in ``path`` when the step ran. ``entry_path`` is its cache entry, ``reason`` why it was skipped or failed.
    """

    trace: tuple[str, ...]
    status: str
    recipe: str = ""
    path: str = ""
    digest: str = ""
    entry_path: str = ""
    duration_s: float = 0.0
    reason: str = ""

    @property
    def label(self) -> str:
        """The step itself."""
        return self.trace[-1]


class RecordedRun(NamedTuple):
    """A journal that was read. ``state``: done, failed, interrupted, ``broken off`` or running.

    ``code`` and ``duration_s`` are None until the run has ended; ``failing`` is the chain of recipes down to the step
    that ended it, ``error`` the first line of why.
    """

    run_id: str
    folder: Path
    request: Mapping[str, Any]
    steps: tuple[RunStep, ...]
    state: str
    code: int | None = None
    duration_s: float | None = None
    failing: tuple[str, ...] = ()
    error: str = ""
    again: str = ""

    @property
    def command(self) -> str:
        """The line that started the run."""
        return str(self.request.get("command", ""))

    @property
    def started_text(self) -> str:
        """When the run began, in UTC: ``2026-11-21 01:02``."""
        return str(self.request.get("started_utc", ""))[:16].replace("T", " ")

    @property
    def state_text(self) -> str:
        """The state with its exit code, when there is one to show."""
        return f"{self.state} ({self.code})" if self.code else self.state

    @property
    def duration_text(self) -> str:
        """How long the run took, as far as its journal says."""
        return "-" if self.duration_s is None else f"{self.duration_s:.1f} s"

    @property
    def row(self) -> dict[str, Any]:
        """The run as JSON."""
        asked = {name: self.request.get(name, "") for name in ("started_utc", "folder")}
        own = {name: getattr(self, name) for name in ("command", "state", "code", "duration_s", "error", "again")}
        return {"id": self.run_id, **asked, **own, "failing": list(self.failing), "journal": str(self.folder)}


def recorded_runs(root: Path) -> list[RecordedRun]:
    """All journals, the oldest first."""
    found = (read_run(folder) for folder in sorted(root.glob("*")))
    return [run for run in found if run is not None]


def runs_of(root: Path, command: str) -> list[RecordedRun]:
    """The journals of one command, with or without ``--quiet``, the oldest first."""
    wanted = _without_quiet(command)
    requests = ((folder, str(_request_in(folder).get("command", ""))) for folder in sorted(root.glob("*")))
    found = [read_run(folder) for folder, asked in requests if _without_quiet(asked) == wanted]
    return [run for run in found if run is not None]


def _without_quiet(command: str) -> list[str]:
    return [word for word in command.split() if word != "--quiet"]


def _request_in(folder: Path) -> Mapping[str, Any]:
    """What was asked for by the run whose journal is in ``folder``; empty when there is none."""
    request = read_json(folder / REQUEST_FILE)
    return request if isinstance(request, dict) and request.get("format") == FORMAT else {}


def read_run(folder: Path) -> RecordedRun | None:
    """The run whose journal is in ``folder``; None when there is none."""
    request = _request_in(folder)
    if not request:
        return None
    is_running = is_locked(folder / JOURNAL_FILE)  # before the file is read: a run that ends now has written its end
    try:
        text = (folder / JOURNAL_FILE).read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    rows = parse_rows(text)
    run = RecordedRun(folder.name, folder, request, steps_of(rows), "running" if is_running else "broken off")
    end = next((row for row in rows if row.get("event") == "end"), None)
    if end is None:
        open_steps = [step.trace for step in run.steps if step.status == "unfinished"]
        return run._replace(failing=max(open_steps, key=len, default=()))
    signal = end.get("signal")
    return run._replace(
        state="interrupted" if signal else "failed" if end.get("code") else "done",
        code=int(end.get("code", 1)),
        duration_s=float(end.get("duration_s", 0.0)),
        failing=tuple(end.get("step", ())),
        error=str(end.get("error") or (f"ended by {signal}" if signal else "")),
        again=str(end.get("again", "")),
    )


def parse_rows(text: str) -> list[dict[str, Any]]:
    """The rows of a journal; a last line that was cut off by a crash is left out."""
    rows = []
    for line in text.splitlines():
        with suppress(ValueError):
            row = json.loads(line)
            if isinstance(row, dict) and isinstance(row.get("step", []), list):
                rows.append(row)
    return rows


def steps_of(rows: Iterable[Mapping[str, Any]]) -> tuple[RunStep, ...]:
    """The steps of a run in the order in which they began."""
    steps: list[RunStep] = []
    open_at: dict[tuple[str, ...], list[int]] = {}
    for row in rows:
        trace, kind = tuple(row.get("step", ())), row.get("event")
        places = open_at.setdefault(trace, [])
        is_only_reused = kind == "done" and row.get("status") == "reused" and not places
        if trace and (kind in ("start", "skip") or is_only_reused):
            places.append(len(steps))
            steps.append(RunStep(trace, "unfinished", row.get("recipe", "")))
        if places:
            steps[places[-1]] = steps[places[-1]]._replace(**_news(row))
        if places and kind in ("skip", "done", "fail", "again"):
            places.pop()
    return tuple(steps)


def _news(row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a step that a row of its journal fills."""
    kind = row.get("event")
    if kind == "run":
        return {"path": row.get("path", ""), "digest": row.get("digest", "")}
    if kind == "done":
        entry, duration_s = str(row.get("entry_path", "")), float(row.get("duration_s", 0.0))
        return {"status": str(row.get("status", "ran")), "entry_path": entry, "duration_s": duration_s}
    ends = {"skip": "skipped", "fail": "failed", "again": "failed"}
    return {"status": ends[kind], "reason": str(row.get("error") or row.get("reason") or "")} if kind in ends else {}


def find_run(root: Path, wanted: str) -> RecordedRun:
    """The run with this id, or with the only id that holds it; raises NothingFound."""
    names = sorted(folder.name for folder in root.glob("*"))
    fitting = [name for name in names if name == wanted] or [name for name in names if wanted in name]
    run = read_run(root / fitting[0]) if len(fitting) == 1 else None
    if run is None:
        several = f"{len(fitting)} runs have '{wanted}' in their id: {', '.join(fitting)}"
        near = nearest(wanted, names, 1)
        none = f"no run has the id '{wanted}'" + (f"; the nearest is {near[0]}" if near else "")
        raise NothingFound(several if len(fitting) > 1 else none, hint=LIST_HINT)
    return run
