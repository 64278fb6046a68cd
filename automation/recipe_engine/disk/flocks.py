"""Locks on files and folders that are taken at once or not at all; nobody waits here."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from .files import try_lock

try:
    import fcntl
except ImportError:  # Windows has none of these locks
    fcntl = None  # type: ignore[assignment]


def shared_lock(path: Path) -> int | None:
    """The file, open and locked so that others may do the same but ``try_lock`` fails; None when that cannot be."""
    handle = os.open(path, os.O_RDONLY)
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return handle
    except OSError:
        pass
    os.close(handle)
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
