"""Who makes an entry, works in a folder or uses an entry: locks, which a crash sets free; and how an entry is removed.

A lock that others wait for is an ``flock`` on a small JSON file with facts about its holder. The kernel frees it when
the holder ends, in whatever way, so the JSON only serves messages. ``entries.EntriesInUse`` says how a process marks
the entries that it uses.

A removed folder goes into ``.trash`` first, under a name of its own: it is gone at once, and a kill in the middle
leaves only trash. A process that deletes it holds a lock on it, and others that empty the trash leave it alone.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from ..rules.errors import CycleError, LockTimeout
from ..rules.secrets import hidden_text, holds_secret
from .entries import USES_SUFFIX, EntryPaths
from .files import (
    NO_LOCKS,
    folder_lock_if_free,
    make_folder,
    naming,
    no_locks,
    open_existing,
    read_json,
    read_regular,
    remove_tree,
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
        raise CycleError(f"{what} needs, through its dependencies, the entry it is building")
    hint = "wait until it finishes, or set a limit with --lock_timeout=SECONDS"
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
        hint = "wait until it finishes, run from another folder, or set a limit with --lock_timeout=SECONDS"
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
            os.environ.pop(HELD_VARIABLE, None)  # a hook may have cleared the environment
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
            raise LockTimeout(f"{what} is in use by {holder()}, waited {waited_s:.0f} s", hint=hint)
        if waited_s - reported_s >= REMIND_S:
            reported_s = waited_s
            logger.info("waiting for %s: in use by %s\n  hint: %s", what, holder(), hint)
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
        raise CycleError(f"{what} needs, through a process that it started, the entry it is building")
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
        return Path(f"/proc/{pid}/environ").read_bytes()
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
        "command": command_text(sys.orig_argv),
        "since": utc_text(),
    }
    if os.fstat(handle).st_size:  # ext4 writes a file that was emptied to the disk when it is closed, which takes ms
        os.ftruncate(handle, 0)
    os.pwrite(handle, json.dumps(facts).encode(), 0)


def holder_text(path: Path) -> str:
    """Who holds a lock, as far as its file says."""
    facts = read_json(path)
    if not isinstance(facts, dict):
        return "an unidentified process"
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
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    ticks = int(stat.rpartition(")")[2].split()[19])  # starttime, field 22 of proc(5)
    with open("/proc/stat", encoding="ascii") as file:
        boot_s = next(int(line.split()[1]) for line in file if line.startswith("btime"))
    words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    since = utc_text(boot_s + ticks / os.sysconf("SC_CLK_TCK"))
    return f"process {pid} since {since}: {command_text(words)}"


def command_text(words: Sequence[str]) -> str:
    """A command line without secrets: ``cm`` for a Python that runs CM, and no code of other programs. Pure."""
    at = next((n for n, word in enumerate(words) if n and (word == "-c" or not word.startswith("-"))), 0)
    rest = words[at + 1 :]
    if at and words[at] == "-c" and rest:
        words = ["cm", *rest[1:]] if "cmind" in rest[0] else [*words[: at + 1], "...", *rest[1:]]
    elif at and os.path.basename(words[at]) == "cm":
        words = ["cm", *rest]
    return hidden_text(" ".join(word for word in words if not holds_secret("", [word])))


def _release(handle: int, path: Path) -> None:
    """Frees the lock; the file goes first, so that no second process can hold a lock on a removed file unnoticed."""
    try:
        path.unlink()
    except OSError:  # of another user, in a folder with the sticky bit; facts would look like those of a killed holder
        with contextlib.suppress(OSError):
            os.ftruncate(handle, 0)
    with contextlib.suppress(OSError):
        os.close(handle)


# --- entries in use ---


def _runs_below_which_used(entry_folder: Path) -> list[Path]:
    """The uses files of the runs in progress that started a process that used the entry."""
    folder = entry_folder.parent / ".locks"
    found = []
    with contextlib.suppress(OSError):
        for path in (folder / name for name in os.listdir(folder) if name.endswith(USES_SUFFIX)):
            with contextlib.suppress(OSError):
                if entry_folder.name.encode() in read_regular(path).split() and is_locked(path):
                    found.append(path)
    return found


@contextlib.contextmanager
def unused(entry_folder: Path) -> Iterator[bool]:
    """Whether no process uses the entry; until the block ends, none can begin to."""
    try:
        handle = os.open(EntryPaths(entry_folder).used, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o666)
    except OSError:
        yield not is_in_use(entry_folder)
        return
    with tried_lock(handle) as is_free:  # where files cannot be locked nothing is removed (store.held)
        yield is_free and not _runs_below_which_used(entry_folder)


def is_in_use(entry_folder: Path) -> bool:
    """Whether some process uses the entry right now."""
    try:
        handle = os.open(EntryPaths(entry_folder).used, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return False
    with tried_lock(handle) as is_free:
        return not is_free or bool(_runs_below_which_used(entry_folder))


def users_of(entry_folder: Path) -> list[int]:
    """The processes that use the entry, as far as the system shows which files they have open (Linux)."""
    paths = (EntryPaths(entry_folder).used, *_runs_below_which_used(entry_folder))
    wanted = {os.path.realpath(path) for path in paths}
    found = set()
    for name in os.listdir("/proc") if os.path.isdir("/proc/self/fd") else ():
        with contextlib.suppress(OSError):
            for handle in os.listdir(f"/proc/{name}/fd") if name.isdigit() else ():
                if os.readlink(f"/proc/{name}/fd/{handle}") in wanted:
                    found.add(int(name))
    return sorted(found)


def last_use_s(entry_folder: Path) -> float | None:
    """When the entry was used last (seconds since 1970), to the hour; None when it never was."""
    try:
        return EntryPaths(entry_folder).used.stat().st_mtime
    except OSError:
        return None


# --- what is removed ---


def trash_of(root: Path) -> Path:
    """Where removed folders of a cache go."""
    return root / ".trash"


def discard(root: Path, path: Path) -> None:
    """Removes a folder below ``root``; it stops being an entry before its first file goes.

    If this process is killed before the end, ``empty_trash`` deletes the rest.
    """
    trash = trash_of(root) / f"{path.name}.{os.urandom(4).hex()}"
    with contextlib.ExitStack() as stack:
        try:
            make_folder(trash.parent)
            if path.is_dir() and not path.is_symlink():
                stack.enter_context(folder_lock_if_free(path))  # goes with the folder to its new name
            os.rename(path, trash)
        except FileNotFoundError:
            return
        except OSError:  # another disk is mounted there, or the trash cannot be made
            with contextlib.suppress(OSError):
                EntryPaths(path).meta.unlink()
            trash = path
        remove_tree(trash)


def empty_trash(root: Path) -> list[Path]:
    """Deletes what killed removals left behind; returns what was there and is not being deleted by others."""
    left = []
    for path in trash_in(root):
        with folder_lock_if_free(path) as is_free:
            if is_free:
                remove_tree(path)
                left.append(path)
    return left


def trash_in(root: Path) -> list[Path]:
    """What lies in the trash."""
    try:
        return sorted(trash_of(root) / name for name in os.listdir(trash_of(root)))
    except OSError:
        return []
