"""Locks that are waited for, and that a crash sets free.

A lock is an ``flock`` on a small JSON file with facts about its holder. The kernel frees it when the holder ends, in
whatever way, so the JSON only serves messages.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from ..rules.errors import CycleError, LockTimeout
from ..rules.secrets import hidden_text, holds_secret
from .files import (
    NO_LOCKS,
    make_folder,
    naming,
    no_locks,
    open_existing,
    read_json,
    share_like,
    tried_lock,
    try_lock,
    unlock,
    user_name,
    utc_text,
)

logger = logging.getLogger(__name__)

POLL_S = 0.05
REMIND_S = 30.0
HELD_VARIABLE = "CROWDPERF_HELD_LOCKS"
"""Names to child processes the locks that their ancestors hold: a line ``<pid>:<path>`` for each."""
Got = TypeVar("Got")


def machine_name() -> str:
    """The name of this machine; empty where the system does not give it."""
    return os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")


_held: dict[str, int] = {}


def held_descriptors() -> tuple[int, ...]:
    """The open lock files of this process.

    Children inherit them: should this process be killed while a script runs on, the entry stays locked until the
    script has ended too, and no other process writes into it until then.
    """
    return tuple(_held.values())


@contextlib.contextmanager
def lock(path: Path, what: str, *, timeout_s: float | None = None) -> Iterator[None]:
    """Holds the lock file ``path`` inside the block; waits for another holder and says who it is.

    Raises LockTimeout after ``timeout_s`` seconds, and CycleError when this very process, or one that led to it, holds
    the lock already: then ``what`` needs itself.
    """
    if str(path) in _held:
        raise CycleError(f"{what} needs, through its dependencies, the very entry it is making")
    hint = "let it finish, or give up after a while with --lock_timeout=SECONDS"
    handle = _wait(lambda: _attempt(path, what), what, lambda: holder_text(path), hint, timeout_s)
    try:
        with _marked_as_held(path, handle):
            yield
    finally:
        _release(handle, path)


@contextlib.contextmanager
def lock_folder(path: Path, *, timeout_s: float | None = None) -> Iterator[None]:
    """Keeps other processes of the engine from running scripts in the folder ``path``: scratch names are fixed there.

    Does nothing while any lock is held, by this process or by one that led to it. So a recipe may run ``cm`` in its own
    folder, and since a process that holds an entry never waits for a folder, no two processes wait for each other. Does
    nothing either on a file system that cannot lock a folder. Raises LockTimeout after ``timeout_s`` seconds.
    """
    if os.environ.get(HELD_VARIABLE):
        yield
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        hint = "let it finish, run from another folder, or give up after a while with --lock_timeout=SECONDS"
        with contextlib.suppress(OSError):
            _wait(
                lambda: try_lock(handle) or None, f"the folder {path}", lambda: _folder_holder(handle), hint, timeout_s
            )
        with _marked_as_held(path, handle):
            yield
    finally:
        unlock(handle)
        os.close(handle)


@contextlib.contextmanager
def _marked_as_held(path: Path, handle: int) -> Iterator[None]:
    """Lets children inherit the lock, and names it to them."""
    before = os.environ.get(HELD_VARIABLE)
    _held[str(path)] = handle
    os.environ[HELD_VARIABLE] = f"{before or ''}{os.getpid()}:{path}\n"
    try:
        yield
    finally:
        del _held[str(path)]
        if before is None:
            del os.environ[HELD_VARIABLE]
        else:
            os.environ[HELD_VARIABLE] = before


def is_locked(path: Path) -> bool:
    """Whether some process holds the lock file right now."""
    if str(path) in _held:
        return True
    with tried_lock(open_existing(path), is_shared=True) as is_free:  # two looks at once do not disturb each other
        return not is_free


def _wait(
    attempt: Callable[[], Got | None], what: str, holder: Callable[[], str], hint: str, timeout_s: float | None
) -> Got:
    """The first result of ``attempt`` that is not None; reports who is waited for."""
    started_s = time.monotonic()
    reported_s = -REMIND_S
    while (got := attempt()) is None:
        waited_s = time.monotonic() - started_s
        if timeout_s is not None and waited_s > timeout_s:
            raise LockTimeout(f"{what} is held by {holder()}; waited {waited_s:.0f} s", hint=hint)
        if waited_s - reported_s >= REMIND_S:
            reported_s = waited_s
            logger.info("waiting for %s: held by %s\n  hint: %s", what, holder(), hint)
        time.sleep(POLL_S)
    return got


def _attempt(path: Path, what: str) -> int | None:
    """The open and locked file, or None when another process holds it."""
    with naming(path):
        make_folder(path.parent)
        handle = open_existing(path)
        if handle is None:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            share_like(path.parent, path, 0o666)  # its other users can lock it too
    try:
        if try_lock(handle) and _is_current(handle, path) and not _has_orphans(path):
            with contextlib.suppress(OSError):  # on a full disk: the facts are for messages only
                _note_holder(handle, what)
            return handle
    except OSError as error:
        os.close(handle)
        raise no_locks(error, path.parent) if error.errno in NO_LOCKS else error from None
    os.close(handle)
    facts = read_json(path)
    if isinstance(facts, dict) and f"{facts.get('pid')}:{path}" in os.environ.get(HELD_VARIABLE, "").splitlines():
        raise CycleError(f"{what} needs, through a process that it started, the very entry it is making")
    return None


def _has_orphans(path: Path) -> bool:
    """Whether something still runs that was started by a holder who was killed; only such a one leaves its facts.

    What a script starts inherits the lock itself; what a hook starts inherits only the variable. Looks where the system
    shows the environment of processes (Linux).
    """
    facts = read_json(path)
    if not isinstance(facts, dict) or not os.path.isdir("/proc/self"):
        return False
    mark = f"{facts.get('pid')}:{path}\n".encode()
    others = (name for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid())
    return any(mark in first_environment(name) for name in others)


def first_environment(pid: str) -> bytes:
    """The environment that a process was started with; empty when it has ended or is not ours."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read()
    except OSError:
        return b""


def _is_current(handle: int, path: Path) -> bool:
    """Whether the file that was locked is still the one under that name: its last holder may have removed it."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _note_holder(handle: int, what: str) -> None:
    facts = {
        "pid": os.getpid(),
        "host": machine_name(),
        "user": user_name(os.getuid()),
        "what": hidden_text(what),
        "command": hidden_text(" ".join(word for word in sys.argv if not holds_secret("", [word]))),
        "since": utc_text(),
    }
    if os.fstat(handle).st_size:  # ext4 writes a file that was emptied to the disk when it is closed, which takes ms
        os.ftruncate(handle, 0)
    os.pwrite(handle, json.dumps(facts).encode(), 0)


def holder_text(path: Path) -> str:
    """Who holds a lock, as far as its file says."""
    facts = read_json(path)
    if not isinstance(facts, dict):
        return "a process that did not say who it is"
    return "process {pid} of {user} on {host} since {since}: {command}".format_map(
        {key: facts.get(key, "?") for key in ("pid", "user", "host", "since", "command")}
    )


def _folder_holder(handle: int) -> str:
    """Who holds the lock on an open folder, as far as the system says (Linux, and only processes that we may see)."""
    status = os.fstat(handle)
    with contextlib.suppress(OSError, ValueError, IndexError):
        with open("/proc/locks", encoding="ascii") as file:
            rows = [line.split() for line in file]
        inode = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
        pids = [row[4] for row in rows if row[1] == "FLOCK" and row[5] == inode]
        return _process_text(pids[0])
    return "another run"


def _process_text(pid: str) -> str:
    """A running process: its number, since when, and its command without secrets."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        ticks = int(file.read().rpartition(")")[2].split()[19])  # starttime, field 22 of proc(5)
    with open("/proc/stat", encoding="ascii") as file:
        boot_s = next(int(line.split()[1]) for line in file if line.startswith("btime"))
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        words = file.read().decode(errors="replace").split("\0")[:-1]
    if os.path.basename(words[1]) == "cm":  # behind its Python
        words = ["cm", *words[2:]]
    since = utc_text(boot_s + ticks / os.sysconf("SC_CLK_TCK"))
    command = hidden_text(" ".join(word for word in words if not holds_secret("", [word])))
    return f"process {pid} since {since}: {command}"


def _release(handle: int, path: Path) -> None:
    """Frees the lock; the file goes first, so that no second process can hold a lock on a removed file unnoticed."""
    try:
        path.unlink()
    except OSError:  # of another user, in a folder with the sticky bit; facts would look like those of a killed holder
        with contextlib.suppress(OSError):
            os.ftruncate(handle, 0)
    with contextlib.suppress(OSError):
        os.close(handle)
