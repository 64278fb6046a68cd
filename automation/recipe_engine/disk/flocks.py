"""Locks on files and folders that are taken at once or not at all; nothing waits here."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: exclusive creation of the lock file stands in
    fcntl = None  # type: ignore[assignment]


def try_lock(handle: int, *, is_shared: bool = False) -> bool:
    """Locks an open file unless another process holds it; whether it is ours now.

    Looking whether a file is locked locks it for an instant, so one refusal is not enough.
    """
    if fcntl is None:
        return True
    for pause_s in (0.001, 0.004, 0.0):
        try:
            fcntl.flock(handle, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            return True
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES, errno.EINTR):
                raise
        time.sleep(pause_s)
    return False


def open_lock(path: Path) -> int | None:
    """The lock file; in a shared folder made so that its other users can lock it too."""
    handle = None if fcntl is None else open_existing(path)
    if handle is not None:
        return handle
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | (os.O_EXCL if fcntl is None else 0), 0o666)
    except FileExistsError:
        return None
    share_like(path.parent, path, 0o666)
    return handle


def share_like(folder: Path, path: Path, mask: int) -> None:
    """Gives a new file or folder the permissions of the shared folder that it is in, as far as ``mask`` allows.

    The umask would keep other users of a shared cache out. A folder that only its owner may write is not shared.
    """
    with contextlib.suppress(OSError):
        mode = os.stat(folder).st_mode
        if mode & (stat.S_IWGRP | stat.S_IWOTH):
            os.chmod(path, mode & mask)


def open_existing(path: Path) -> int | None:
    """The file, open; for reading only when it belongs to another user, which is enough for a lock."""
    for flags in (os.O_RDWR, os.O_RDONLY):
        with contextlib.suppress(OSError):
            return os.open(path, flags)
    return None


@contextlib.contextmanager
def folder_lock_if_free(path: Path) -> Iterator[bool]:
    """Whether nobody else held a lock on this folder; inside the block this process does, if that can be."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW) if fcntl is not None else None
    except OSError:
        handle = None
    if handle is None:
        yield True
        return
    try:
        try:
            is_free = try_lock(handle)
        except OSError:  # a file system that cannot lock a folder
            is_free = True
        yield is_free
    finally:
        os.close(handle)
