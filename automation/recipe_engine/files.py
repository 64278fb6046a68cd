"""Safe use of the disk: whole-file writes, hashes, and locks that a crash sets free.

A lock is an ``flock`` on a small JSON file that tells who holds it. The kernel frees it when the holder dies, whatever
the way, so the JSON only serves the message.
"""

from __future__ import annotations

import contextlib
import errno
import getpass
import hashlib
import json
import logging
import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .errors import CycleError, LockTimeout

try:
    import fcntl
except ImportError:  # Windows: exclusive creation of the lock file stands in
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger(__name__)

POLL_S = 0.05
REMIND_S = 30.0


def write_text(path: Path, text: str) -> None:
    """Writes a file as a whole: readers see the old text or the new one, never a part."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        scratch.write_text(text, encoding="utf-8")
        os.replace(scratch, path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def write_json(path: Path, value: Any, *, indent: int | None = 2) -> None:
    """Writes JSON as a whole; values that JSON lacks become their text."""
    write_text(path, json.dumps(value, indent=indent, sort_keys=True, default=str) + "\n")


def read_json(path: Path) -> Any:
    """The value in a JSON file, or None when the file is missing or is no JSON."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's content, 64 hex digits."""
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

    Raises LockTimeout after ``timeout_s`` seconds, and CycleError when this very process holds the lock already: then
    ``what`` needs itself.
    """
    name = str(path)
    if name in _held:
        raise CycleError(f"{what} needs, through its dependencies, the very entry it is making")
    handle = _acquire(path, what, timeout_s)
    _held[name] = handle
    try:
        yield
    finally:
        del _held[name]
        _release(handle, path)


def is_locked(path: Path) -> bool:
    """Whether some process holds the lock file right now."""
    if str(path) in _held:
        return True
    try:
        handle = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        return not _try_lock(handle)
    finally:
        os.close(handle)


def _try_lock(handle: int) -> bool:
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES, errno.EINTR):
            return False
        raise
    return True


def _acquire(path: Path, what: str, timeout_s: float | None) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    started_s = time.monotonic()
    told_s = -REMIND_S
    while True:
        handle = _open_lock(path)
        if handle is not None:
            if _try_lock(handle) and _is_current(handle, path):
                _note_holder(handle, what)
                return handle
            os.close(handle)
        waited_s = time.monotonic() - started_s
        if timeout_s is not None and waited_s > timeout_s:
            raise LockTimeout(
                f"{what} is being made by another process ({holder_text(path)}); waited {waited_s:.0f} s",
                hint="let it finish, or give a longer --lock_timeout=SECONDS",
            )
        if waited_s - told_s >= REMIND_S:
            told_s = waited_s
            logger.info("waiting for %s: held by %s", what, holder_text(path))
        time.sleep(POLL_S)


def _open_lock(path: Path) -> int | None:
    flags = os.O_RDWR | os.O_CREAT | (os.O_EXCL if fcntl is None else 0)
    try:
        return os.open(path, flags, 0o666)
    except FileExistsError:
        return None


def _is_current(handle: int, path: Path) -> bool:
    """Whether the file that was locked is still the one under that name: its last holder may have removed it."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _note_holder(handle: int, what: str) -> None:
    facts = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "user": _user(),
        "what": what,
        "command": " ".join(sys.argv[:1] + [arg for arg in sys.argv[1:] if "token" not in arg.lower()]),
        "since": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    os.ftruncate(handle, 0)
    os.pwrite(handle, json.dumps(facts).encode(), 0)


def _user() -> str:
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
    with contextlib.suppress(OSError):
        path.unlink()
    with contextlib.suppress(OSError):
        os.close(handle)
