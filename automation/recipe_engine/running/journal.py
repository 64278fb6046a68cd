"""The journal of a run: what was asked for, and what happened to each step, in a folder below the CM home.

    runs/20261121T010203.456Z-3f9a/request.json    the command as given, without secrets
    runs/20261121T010203.456Z-3f9a/journal.jsonl   one JSON object a line, as things happen

Each run that a user starts has one, from its first step that the cache does not serve (``recorded`` in actions/run.py);
runs that recipes start themselves belong to it. The process that writes a journal holds an ``flock`` on it as long as
it lives. So a journal whose last line is not ``end`` belongs to a run in progress (locked) or one that was broken off
(free). The newest 200 are kept. ``actions/journals.py`` reads them.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..disk.files import lock_new_file, remove_tree
from ..disk.locks import is_locked, machine_name
from ..rules.errors import HookFailed, Interrupted, RecipeError
from ..rules.model import StepEvent
from ..rules.secrets import hidden_text, hidden_texts, without_secret_flags
from .engine import Engine

logger = logging.getLogger(__name__)

RUNS_FOLDER = "runs"
"""Below the CM home: one folder for each run."""
FORMAT = 1
KEPT_RUNS = 200
REQUEST_FILE = "request.json"
JOURNAL_FILE = "journal.jsonl"
NOT_KEPT = ("cmd", "parsed_automation", "parsed_artifact", "parsed_artifacts", "out")
"""Input keys that are of one call of ``cm`` only."""
AT_ONCE = frozenset(["run", "fail", "again"])
"""Events that are on disk before the run continues; the others wait for the next of these, or for the end."""

_current: list[Journal] = []
"""The journal of the run in progress in this process."""


def rows_until_now() -> list[dict[str, Any]]:
    """The journal so far of the run in progress in this process; empty outside of one and before a step ran."""
    return _current[0].rows() if _current else []


class Journal:
    """Writes down one run, of ``engine`` for ``inputs``, from its first step that runs. A disk error never ends it."""

    def __init__(self, root: Path, inputs: Mapping[str, Any], engine: Engine, started_s: float) -> None:
        self.run_id = ""
        self._root = root
        self._inputs = inputs
        self._engine = engine
        self._started_s = started_s
        self._handle = -1
        self._waiting: list[tuple[float, StepEvent]] = []
        self._rows: list[dict[str, Any]] = []
        _current.append(self)

    def start(self) -> None:
        """Makes the files, before the first event is taken."""
        stamp = iso(self._started_s).replace("-", "").replace(":", "")  # names sort by time
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            while not self.run_id:
                folder = self._root / f"{stamp}-{os.urandom(2).hex()}"
                with suppress(FileExistsError):
                    folder.mkdir(mode=0o700)  # the inputs are the user's own business
                    self.run_id = folder.name
            text = json.dumps(hidden_texts(self._request_row()), indent=2, default=str)
            (folder / REQUEST_FILE).write_text(text + "\n")  # as it is: nothing runs before it is there
            self._handle = os.open(folder / JOURNAL_FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
            lock_new_file(self._handle)
            thin(self._root, KEPT_RUNS)
        except (OSError, TypeError, ValueError) as error:  # the latter: inputs of a program that are not JSON
            self._give_up(error)

    def take(self, moment_s: float, event: StepEvent) -> None:
        """Takes an event of this moment."""
        is_reused = event.kind == "done" and event.result is not None and event.result.status == "reused"
        if is_reused and self._waiting and self._waiting[-1][1].trace == event.trace:
            self._waiting.pop()  # its start: a step that was only reused is one row
        self._waiting.append((moment_s, event))
        if event.kind in AT_ONCE or (event.kind == "done" and not is_reused):
            self._flush()

    def rows(self) -> list[dict[str, Any]]:
        """What was noted so far."""
        self._flush()
        return self._rows

    def end(self, error: BaseException | None) -> None:
        """Notes how the run ended, releases the journal, and names it in the error."""
        _current.remove(self)
        if self._handle >= 0:
            now_s = time.time()
            row = {"at": iso(now_s), "event": "end", "duration_s": round(now_s - self._started_s, 3), **end_row(error)}
            self._flush(row)
            self._close()
        if self.run_id and isinstance(error, RecipeError | Interrupted) and not self._has_nothing(error):
            error.run_id = self.run_id

    def _has_nothing(self, error: BaseException) -> bool:
        """Whether the recipe of the request refused it before any step was made that is kept: nothing can resume."""
        is_refused = isinstance(error, HookFailed) and len(error.trace) <= 1
        return is_refused and not any(row.get("entry") and row["status"] != "reused" for row in self._rows)

    def _flush(self, *last: Mapping[str, Any]) -> None:
        """Writes what waits, and a ``last`` row after it, with one system call."""
        waiting, self._waiting = self._waiting, []
        try:
            rows = [{"at": iso(moment_s), **event_row(event, self._engine)} for moment_s, event in waiting]
            rows = hidden_texts([*rows, *last])
            self._rows += rows
            block = "".join(json.dumps(row, default=str) + "\n" for row in rows).encode()
            while block and self._handle >= 0:
                block = block[os.write(self._handle, block) :]
        except OSError as error:
            self._give_up(error)

    def _close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
        self._handle = -1

    def _give_up(self, error: Exception) -> None:
        logger.warning("! this run has no journal: %s", error)
        self._close()

    def _request_row(self) -> dict[str, Any]:
        """What was asked for, as JSON."""
        from ..rules.rerun import given_line, secret_flags  # here, because a run that only reuses writes no journal

        kept = {name: value for name, value in self._inputs.items() if name not in NOT_KEPT}
        return {
            "format": FORMAT,
            "started_utc": iso(self._started_s),
            "command": given_line(self._inputs).text,
            "secrets": list(secret_flags(kept)),
            "inputs": without_secret_flags(kept),
            "folder": self._engine.top_folder,
            "cache": str(self._engine.store.root),
            "pid": os.getpid(),
            "host": machine_name(),
        }


def event_row(event: StepEvent, engine: Engine) -> dict[str, Any]:
    """An event as JSON. A step that runs notes its recipe's digest, one that is done its cache entry."""
    row: dict[str, Any] = {"event": event.kind, "step": list(event.trace)}
    if event.configured:
        recipe = event.configured.recipe
        row["recipe"] = recipe.id.text
        if event.kind == "run":
            variations = event.configured.variations
            row.update(path=str(recipe.path), digest=engine.source.digest(recipe), variations=list(variations))
            row["used"] = engine.source.used(recipe, variations).digest
    if event.result:
        row.update(status=event.result.status, duration_s=round(event.result.duration_s, 3))
        if event.result.version:
            row["version"] = event.result.version
        if event.result.entry:
            row.update(entry=event.result.entry.uid, entry_path=str(event.result.entry.path))
    if event.error:
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
    """Removes the oldest journals beyond ``kept``, but none of a run in progress."""
    for name in sorted(os.listdir(root))[:-kept]:
        if not is_locked(root / name / JOURNAL_FILE):
            remove_tree(root / name)
