"""The journal of a run: what was asked for, and what happened to each step, in a folder below the CM home.

    runs/20261121T010203.456Z-3f9a/request.json    the command as given, without secrets
    runs/20261121T010203.456Z-3f9a/journal.jsonl   one JSON object a line, as things happen

The process that writes a journal holds an ``flock`` on it as long as it lives. So a journal whose last line is not
``end`` belongs to a run that still works (locked) or was broken off (free). The newest 200 are kept.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..disk.files import read_json, remove_tree
from ..disk.locks import is_locked, try_lock
from ..rules.errors import Interrupted, RecipeError
from ..rules.events import StepEvent
from ..rules.rerun import CommandLine, given_line
from ..rules.secrets import hidden_text, hidden_texts, without_secret_flags
from .choose import Engine

logger = logging.getLogger(__name__)

FORMAT = 1
KEPT_RUNS = 200
REQUEST_FILE = "request.json"
JOURNAL_FILE = "journal.jsonl"
NOT_KEPT = ("cmd", "parsed_automation", "parsed_artifact", "parsed_artifacts", "out")
"""Input keys that are of one call of ``cm`` only."""
AT_ONCE = frozenset(["run", "fail", "again"])
"""Events that are on disk before the run goes on; the others wait for the next of these, or for the end."""


class Journal:
    """Writes the journal of the run in this process; trouble with the disk ends the journal, never the run."""

    def __init__(self, root: Path, inputs: Mapping[str, Any], engine: Engine) -> None:
        self.run_id = ""
        self._root = root
        self._engine = engine
        self._handle = -1
        self._waiting: list[tuple[float, StepEvent]] = []
        self._started_s = time.time()
        try:
            folder = self._make_folder(root)
            text = json.dumps(hidden_texts(request_row(inputs, self._started_s, engine)), indent=2, default=str)
            (folder / REQUEST_FILE).write_text(text + "\n")  # as it is: nothing runs before it is there
            self._handle = os.open(folder / JOURNAL_FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
            try_lock(self._handle)
            self.run_id = folder.name
            thin(root, KEPT_RUNS)
        except (OSError, TypeError, ValueError) as error:  # the latter: inputs of a program that are no JSON
            self._give_up(error)

    def _make_folder(self, root: Path) -> Path:
        root.mkdir(parents=True, exist_ok=True)
        while True:
            stamp = iso(self._started_s).replace("-", "").replace(":", "")  # names sort by time
            folder = root / f"{stamp}-{os.urandom(2).hex()}"
            try:
                folder.mkdir(mode=0o700)  # the inputs are the user's own business
            except FileExistsError:
                continue
            return folder

    def add(self, moment_s: float, event: StepEvent) -> None:
        """Notes one event."""
        if self._handle < 0:
            return
        is_reused = event.kind == "done" and event.result is not None and event.result.status == "reused"
        if is_reused and self._waiting and self._waiting[-1][1].trace == event.trace:
            self._waiting.pop()  # its start: a step that was only reused is one row
        self._waiting.append((moment_s, event))
        if event.kind in AT_ONCE or (event.kind == "done" and not is_reused):
            self._flush()

    def rows(self) -> list[dict[str, Any]]:
        """What was noted up to now."""
        self._flush()
        try:
            return parse_rows((self._root / self.run_id / JOURNAL_FILE).read_text(encoding="utf-8", errors="replace"))
        except OSError:
            return []

    def end(self, error: BaseException | None) -> None:
        """Notes how the run ended and sets the journal free."""
        if self._handle < 0:
            return
        now_s = time.time()
        row = {"at": iso(now_s), "event": "end", "duration_s": round(now_s - self._started_s, 3), **end_row(error)}
        self._flush(row)
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _flush(self, last: Mapping[str, Any] | None = None) -> None:
        """Writes what waits, and a ``last`` row after it, with one call of the system."""
        waiting, self._waiting = self._waiting, []
        if self._handle < 0:
            return
        try:
            rows = [{"at": iso(moment_s), **event_row(event, self._engine)} for moment_s, event in waiting]
            encode = json.JSONEncoder(default=str).encode
            lines = (encode(hidden_texts(row)) for row in (*rows, *([last] if last else ())))
            block = "".join(line + "\n" for line in lines).encode()
            while block:
                block = block[os.write(self._handle, block) :]
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        logger.warning("! no journal of this run is kept: %s", error)
        if self._handle >= 0:
            os.close(self._handle)
        self._handle = -1


def request_row(inputs: Mapping[str, Any], started_s: float, engine: Engine) -> dict[str, Any]:
    """What was asked for, as JSON."""
    line: CommandLine = given_line(inputs)
    kept = {name: value for name, value in inputs.items() if name not in NOT_KEPT}
    return {
        "format": FORMAT,
        "started_utc": iso(started_s),
        "command": line.text,
        "secrets": [name.partition(" ")[0].lstrip("-") for name in line.left_out],
        "inputs": without_secret_flags(kept),
        "folder": engine.top_folder,
        "cache": str(engine.store.root),
        "pid": os.getpid(),
        "host": os.uname().nodename,
    }


def event_row(event: StepEvent, engine: Engine) -> dict[str, Any]:
    """An event as JSON. A step that runs notes its recipe's digest, one that is done its cache entry."""
    row: dict[str, Any] = {"event": event.kind, "step": list(event.trace)}
    if event.configured is not None:
        row["recipe"] = event.configured.recipe.id.text
    if event.kind == "run" and event.configured is not None:
        row["path"] = str(event.configured.recipe.path)
        row["digest"] = engine.source.digest(event.configured.recipe)
    if event.result is not None:
        row.update(status=event.result.status, duration_s=round(event.result.duration_s, 3))
        if event.result.version:
            row["version"] = event.result.version
        if event.result.entry is not None:
            row.update(entry=event.result.entry.uid, entry_path=str(event.result.entry.path))
    if event.error is not None:
        row.update(error=_first_line(event.error), code=event.error.code, log=event.error.log_path)
    if event.reason:
        row["reason"] = event.reason
    return row


def end_row(error: BaseException | None) -> dict[str, Any]:
    """How a run ended: exit code, and the error or signal that ended it."""
    if error is None:
        return {"code": 0}
    if isinstance(error, Interrupted):
        return {"code": error.code, "signal": error.signal_name, "step": list(error.trace)}
    if isinstance(error, KeyboardInterrupt):
        return {"code": 130, "signal": "SIGINT"}
    if isinstance(error, RecipeError):
        return {"code": error.code, "error": _first_line(error), "step": list(error.trace), "again": error.rerun}
    return {"code": 1, "error": hidden_text(f"{type(error).__name__}: {error}")}


def _first_line(error: RecipeError) -> str:
    return (error.message.splitlines() or [""])[0]


def iso(moment_s: float) -> str:
    """A time as ``2026-11-21T01:02:03.456Z``."""
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment_s))
    return f"{whole}.{int(moment_s % 1 * 1000):03d}Z"


def thin(root: Path, kept: int) -> None:
    """Removes the oldest journals beyond ``kept``; those of runs that still work stay."""
    for name in sorted(os.listdir(root))[:-kept]:
        if not is_locked(root / name / JOURNAL_FILE):
            remove_tree(root / name)


# --- reading ---


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

    ``code`` and ``duration_s`` are None while nothing is known of an end; ``failing`` is the chain of recipes down to
    the step that ended the run, ``error`` the first line of why.
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


def read_run(folder: Path) -> RecordedRun | None:
    """The run whose journal is in ``folder``; None when there is none."""
    request = read_json(folder / REQUEST_FILE)
    if not isinstance(request, dict) or request.get("format") != FORMAT:
        return None
    is_running = is_locked(folder / JOURNAL_FILE)  # before the file is read: who ends meanwhile has written its end
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
    state = "interrupted" if end.get("signal") else "failed" if end.get("code") else "done"
    return run._replace(
        state=state,
        code=int(end.get("code", 1)),
        duration_s=float(end.get("duration_s", 0.0)),
        failing=tuple(end.get("step", ())),
        error=str(end.get("error") or (f"ended by {end['signal']}" if end.get("signal") else "")),
        again=str(end.get("again", "")),
    )


def parse_rows(text: str) -> list[dict[str, Any]]:
    """The rows of a journal; a last line that was cut off by a crash is left out."""
    rows = []
    for line in text.splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and isinstance(row.get("step", []), list):
            rows.append(row)
    return rows


def steps_of(rows: list[dict[str, Any]]) -> tuple[RunStep, ...]:
    """The steps of a run in the order in which they began."""
    steps: list[RunStep] = []
    open_at: dict[tuple[str, ...], list[int]] = {}
    for row in rows:
        trace, kind = tuple(row.get("step", ())), row.get("event")
        if not trace:
            continue
        if kind in ("start", "skip"):
            status = "skipped" if kind == "skip" else "unfinished"
            steps.append(RunStep(trace, status, row.get("recipe", ""), reason=row.get("reason", "")))
            if kind == "start":
                open_at.setdefault(trace, []).append(len(steps) - 1)
        elif kind == "done" and row.get("status") == "reused" and not open_at.get(trace):
            steps.append(_changed(RunStep(trace, "reused", row.get("recipe", "")), row))
        elif open_at.get(trace):
            place = open_at[trace][-1]
            steps[place] = _changed(steps[place], row)
            if kind != "run":
                open_at[trace].pop()
    return tuple(steps)


def _changed(step: RunStep, row: Mapping[str, Any]) -> RunStep:
    if row["event"] == "run":
        return step._replace(path=row.get("path", ""), digest=row.get("digest", ""))
    if row["event"] == "done":
        entry, duration_s = str(row.get("entry_path", "")), float(row.get("duration_s", 0.0))
        return step._replace(status=str(row.get("status", "ran")), entry_path=entry, duration_s=duration_s)
    return step._replace(status="failed", reason=str(row.get("error") or row.get("reason") or ""))


def recorded_runs(root: Path) -> list[RecordedRun]:
    """All journals, the oldest first."""
    try:
        names = sorted(os.listdir(root))
    except OSError:
        return []
    found = (read_run(root / name) for name in names)
    return [run for run in found if run is not None]
