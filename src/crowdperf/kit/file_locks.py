"""File locks: only one command at a time works in a folder, and a killed one leaves no lock.

A lock is an flock(2) on a folder, or on an empty file that is not deleted. The kernel frees it when the last process
with an open descriptor has ended, for any reason, so no cleanup is necessary after `kill -9`. A child that inherits the
descriptor (`pass_fds`) keeps the lock if its parent is killed: no other command starts while the child runs.

Without flock (Windows) there is no protection: every lock succeeds at once, and a warning is printed.
"""

import contextlib
import functools
import logging
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger(__name__)

POLL_S = 0.1
UNGUARDED = "this system has no flock(2): two runs in one folder are not protected from each other. Run one at a time"


@contextlib.contextmanager
def file_lock(
    path: Path, in_use: Exception | None = None, *, patience_s: float = 0.0, is_needed: bool = True
) -> Iterator[int]:
    """Lock `path`, a folder, or a file, which is created with its folder. Yields the descriptor.

    in_use: raised if another process still has the lock after `patience_s`. Without it, the function waits for the
    lock. is_needed: whether a file system that cannot lock (Lustre without `-o flock`, NFS without a lock service) is
    an error. If not, there is no protection on it. Raises OSError.
    """
    if not _has_flock():
        with open(os.devnull, "rb") as nothing:
            yield nothing.fileno()
        return
    flags = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
    path.parent.mkdir(parents=True, exist_ok=True)
    is_ours = False
    while not is_ours:
        descriptor = os.open(path, flags, 0o666)
        try:
            try:
                lock_open_file(descriptor, in_use, patience_s=patience_s)
            except OSError as error:
                if is_needed:
                    raise OSError(error.errno, f"cannot be locked: {error.strerror}", str(path)) from error
            is_ours = _is_current(descriptor, path)
            if is_ours:
                yield descriptor
        finally:
            os.close(descriptor)


def lock_open_file(
    descriptor: int,
    in_use: Exception | None = None,
    *,
    patience_s: float = 0.0,
    on_wait: Callable[[], object] = lambda: None,
) -> None:
    """Lock an open file until it is closed, with `in_use` and `patience_s` of `file_lock`. Raises OSError.

    on_wait: called once, before the lock is waited for.
    """
    if not _has_flock() or _try(descriptor, fcntl.LOCK_EX):
        return
    on_wait()
    if in_use is None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return
    end_s = time.monotonic() + patience_s
    while not _try(descriptor, fcntl.LOCK_EX):
        if time.monotonic() >= end_s:
            raise in_use
        time.sleep(POLL_S)


def is_alone(descriptor: int) -> bool:
    """Return whether no other process holds the lock of an open file, and share it from now on with all that ask later.

    Raises OSError.
    """
    if not _has_flock():
        return True
    is_free = _try(descriptor, fcntl.LOCK_EX)
    _try(descriptor, fcntl.LOCK_SH)
    return is_free


def _try(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@functools.cache
def _has_flock() -> bool:
    """Whether the system has flock. Warns once if it does not."""
    if fcntl is None:
        logger.warning(UNGUARDED)
    return fcntl is not None


def _is_current(descriptor: int, path: Path) -> bool:
    """Whether the locked file is still the one of this name: it may have been removed between open and lock."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
