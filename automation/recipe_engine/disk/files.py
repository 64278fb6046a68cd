"""Safe use of the disk: whole-file writes, hashes, and locks that a crash sets free.

A lock is an ``flock`` on a small JSON file that tells who holds it. The kernel frees it when the holder dies, whatever
the way, so the JSON only serves the message.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from ..rules.errors import CycleError, LockTimeout
from ..rules.secrets import hidden_text, holds_secret
from .flocks import open_existing, open_lock, share_like
from .flocks import try_lock as try_lock  # most who need it know it from here
from .os_errors import NO_LOCKS, naming, no_locks

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger(__name__)

ABANDONED_S = 3600.0
"""A half-written file of this age was left by a process that was killed."""
POLL_S = 0.05
REMIND_S = 30.0
HELD_VARIABLE = "CROWDPERF_HELD_LOCKS"
"""Tells child processes which locks their ancestors hold: a line ``<pid>:<path>`` for each."""
Got = TypeVar("Got")


def write_text(path: Path, text: str | bytes, opener: Callable[[str, int], int] | None = None) -> None:
    """Writes a file as a whole: readers see the old text or the new one, never a part."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}.new")
    content = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")  # paths may hold any bytes
    try:
        with naming(path, len(content)):
            with open(scratch, "wb", opener=opener) as file:
                file.write(content)
            os.replace(scratch, path)
    except BaseException:
        with contextlib.suppress(OSError):
            scratch.unlink()
        raise


def write_index(path: Path, text: bytes, rest: bytes = b"") -> int:
    """Writes what can be made again: a ``text`` with a checksum, and a ``rest`` of which parts are read later.

    Gives the offset of the rest; 0 when the file could not be written, which costs only time.
    """
    import zlib  # here, because most calls write none

    first = f"{zlib.crc32(text)} {len(text)}\n".encode()
    try:
        make_folder(path.parent)
        for left in path.parent.glob(f".{path.name}.*.new"):  # of processes that were killed while they wrote
            if time.time() - left.stat().st_mtime > ABANDONED_S:
                left.unlink()
        write_text(path, first + text + rest)
    except OSError as error:
        logger.debug("%s is not written: %s", path, error)
        return 0
    return len(first) + len(text)


def read_index(path: Path) -> tuple[bytes, int]:
    """The text that ``write_index`` wrote, and the offset of the rest; nothing when it is missing or damaged."""
    import zlib  # here, because small caches have none

    try:
        with open(path, "rb", opener=not_waiting) as file:
            first = file.readline(100)
            checksum, size_bytes = map(int, first.split())
            text = file.read(max(0, size_bytes))
    except (OSError, ValueError):
        return b"", 0
    return (text, len(first) + size_bytes) if zlib.crc32(text) == checksum else (b"", 0)


def not_waiting(path: str, flags: int) -> int:
    """Opens a file; not blocked by a FIFO in its place."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def private_opener(path: str, flags: int) -> int:
    """Opens a file that, when it is new, nobody but its owner can read: it may hold parts of the user's env."""
    return os.open(path, flags, 0o600)


def write_json(path: Path, value: Any, *, indent: int | None = 2) -> None:
    """Writes JSON as a whole; values that JSON lacks become their text."""
    write_text(path, json.dumps(value, indent=indent, sort_keys=True, default=str) + "\n")


def read_json(path: Path) -> Any:
    """The value in a JSON file; None when it is missing, not a regular file, not JSON, or nested too deeply."""
    try:
        return json.loads(read_regular(path))
    except (OSError, ValueError, RecursionError):
        return None


def read_regular(path: Path) -> bytes:
    """The content of a regular file; raises OSError for anything else, such as a FIFO, which would block."""
    with open(path, "rb", buffering=0, opener=not_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        return file.read()


def make_folder(path: Path) -> None:
    """Makes a folder; in a shared one so that its other users can write to it too."""
    try:
        path.mkdir(parents=True)
    except FileExistsError:
        return
    share_like(path.parent, path, 0o7777)


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's content, 64 hex digits."""
    import hashlib  # here, because most calls never need it

    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def tree_size(path: Path) -> int:
    """The bytes of all regular files below a folder, links not followed."""
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(folder, name)).st_size
    return total


@contextlib.contextmanager
def working_folder(path: Path) -> Iterator[None]:
    """The current folder is ``path`` inside the block and the old one after it."""
    before = os.getcwd()
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(before)


_held: dict[str, int] = {}


def held_descriptors() -> tuple[int, ...]:
    """The open lock files of this process.

    Children inherit them: should this process be killed while a script runs on, the entry stays locked until the
    script has ended too, and nobody else writes into it meanwhile.
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
    hint = "let it finish, or give a longer --lock_timeout=SECONDS"
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
    folder, and since whoever holds an entry never waits for a folder, no two processes wait for each other. Does
    nothing either on a file system that cannot lock a folder. Raises LockTimeout after ``timeout_s`` seconds.
    """
    if fcntl is None or os.environ.get(HELD_VARIABLE):
        yield
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        hint = "let it finish, run from another folder, or give a longer --lock_timeout=SECONDS"
        with contextlib.suppress(OSError):
            _wait(lambda: try_lock(handle) or None, f"the folder {path}", lambda: "another run", hint, timeout_s)
        with _marked_as_held(path, handle):
            yield
    finally:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)  # also for what a script left running in the background
        os.close(handle)


@contextlib.contextmanager
def _marked_as_held(path: Path, handle: int) -> Iterator[None]:
    """Lets children inherit the lock, and tells them of it."""
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
    handle = open_existing(path)
    if handle is None:
        return False
    try:
        return not try_lock(handle, is_shared=True)  # two looks at once do not disturb each other
    except OSError:  # a file system without locks
        return False
    finally:
        os.close(handle)


def _wait(
    attempt: Callable[[], Got | None], what: str, holder: Callable[[], str], hint: str, timeout_s: float | None
) -> Got:
    """What ``attempt`` gives once it gives something; tells who is waited for."""
    started_s = time.monotonic()
    told_s = -REMIND_S
    while (got := attempt()) is None:
        waited_s = time.monotonic() - started_s
        if timeout_s is not None and waited_s > timeout_s:
            raise LockTimeout(f"{what} is held by {holder()}; waited {waited_s:.0f} s", hint=hint)
        if waited_s - told_s >= REMIND_S:
            told_s = waited_s
            logger.info("waiting for %s: held by %s", what, holder())
        time.sleep(POLL_S)
    return got


def _attempt(path: Path, what: str) -> int | None:
    """The open and locked file, or None when another process holds it."""
    with naming(path):
        make_folder(path.parent)
        handle = open_lock(path)
    if handle is None:
        return None
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
    tells the environment of processes (Linux).
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
        "host": platform_node(),
        "user": _user(),
        "what": hidden_text(what),
        "command": hidden_text(" ".join(word for word in sys.argv if not holds_secret("", [word]))),
        "since": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    os.ftruncate(handle, 0)
    os.pwrite(handle, json.dumps(facts).encode(), 0)


def platform_node() -> str:
    """The machine's name."""
    return os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "unknown")


def remove_file(path: Path) -> None:
    """Removes a file; folders and what is not there are left alone, as CM does with names that it cleans."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError):
        if path.is_symlink() or not path.is_dir():
            path.unlink()


def remove_tree(path: Path) -> None:
    """Removes a folder with all it holds, or a link; what cannot be removed stays.

    Folders that their owner may not write, as Go's module cache has them, are removed too.
    """
    import shutil  # here, because most calls never need it

    if path.is_symlink() or path.is_file():
        with contextlib.suppress(OSError):
            path.unlink()
        return
    shutil.rmtree(path, ignore_errors=True)
    if path.is_dir():
        for folder, _, _ in os.walk(path):
            with contextlib.suppress(OSError):
                os.chmod(folder, 0o700)
        shutil.rmtree(path, ignore_errors=True)


def _user() -> str:
    import getpass  # here, because most calls never need it

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def holder_text(path: Path) -> str:
    """Who holds a lock, as far as its file tells."""
    facts = read_json(path)
    if not isinstance(facts, dict):
        return "a process that did not say who it is"
    return "process {pid} of {user} on {host} since {since}: {command}".format_map(
        {key: facts.get(key, "?") for key in ("pid", "user", "host", "since", "command")}
    )


def _release(handle: int, path: Path) -> None:
    """Frees the lock; the file goes first, so that no second process can hold a lock on a removed file unnoticed."""
    try:
        path.unlink()
    except OSError:  # of another user, in a folder with the sticky bit; facts would look like those of a killed holder
        with contextlib.suppress(OSError):
            os.ftruncate(handle, 0)
    with contextlib.suppress(OSError):
        os.close(handle)
