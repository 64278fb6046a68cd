"""Remembers how far a call came, so that the same call goes on after a kill. Effects: one file in the log folder.

{"format": 1, "fingerprint": "<sha256>", "experiment_id": "...", "call_id": "1f0c9a2b", "progress": "running",
 "done": ["0:Dependencies[1]"], "failed": {}, "env": {"CM_MLPERF_SCRATCH_PATH": "..."}}
"""

import uuid
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from crowdperf.kit.file_locks import file_lock
from crowdperf.kit.records import Record
from crowdperf.kit.whole_file import read_object, write_json

NAME, LOCK_NAME, FORMAT = "virtual_client_state.json", ".virtual_client.lock", 1
RUNNING, FINISHED, TIMED_OUT, FAILED = "running", "finished", "timed_out", "failed"


class FolderInUse(Exception):
    """Another call works in the log folder."""


@dataclass(slots=True, kw_only=True)
class State:
    """How far a call came; every change is on disk when its method returns.

    `done` has `<round>:<place of the step>`, rounds from 1 and 0 for dependencies; `failed` the error by the same;
    `env` is what dependencies found for the actions. `call_id` tells calls of the same experiment apart.
    """

    path: Path
    fingerprint: str
    experiment_id: str
    call_id: str
    progress: str = RUNNING
    done: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)

    def step_done(self, key: str, error: str = "", env: Mapping[str, str] | None = None) -> None:
        """Notes that a step ended, with its error where it failed."""
        self.done += (key,)
        self.failed = {**self.failed, key: error} if error else self.failed
        self.env = {**self.env, **(env or {})}
        self.save()

    def ended(self, progress: str) -> None:
        """Notes how the call ended."""
        self.progress = progress
        self.save()

    def save(self) -> None:
        """Writes the file whole."""
        names = ("fingerprint", "experiment_id", "call_id", "progress", "done", "failed", "env")
        content = {"format": FORMAT, **{name: getattr(self, name) for name in names}}
        write_json(self.path, content)


def open_state(folder: Path, fingerprint: str, experiment_id: str) -> tuple[State, bool]:
    """Return the state of the same call that was not ended, or a new one; and whether there was one to go on with."""
    content = read_object(folder / NAME) or {}
    record = Record({**content, "path": str(folder / NAME)})
    found = record.filled(State, every_key=True, is_open=True)
    if found is not None and not record.problems and content.get("format") == FORMAT:
        is_same = (found.fingerprint, found.progress) == (fingerprint, RUNNING)
        if is_same and experiment_id in ("", found.experiment_id):
            return found, True
    call = uuid.uuid4()
    state = State(path=folder / NAME, fingerprint=fingerprint, experiment_id=experiment_id or str(call),
                  call_id=call.hex[:8])  # fmt: skip
    state.save()
    return state, False


def locked(folder: Path) -> AbstractContextManager[int]:
    """Holds the folder for this call. Raises FolderInUse, OSError."""
    in_use = FolderInUse(f"another run is using {folder}. Let it finish, or give another --log-dir")
    return file_lock(folder / LOCK_NAME, in_use)
