"""Errors of the operating system in words: which path, whose folder, what is free, and what to try next.

``explained`` is the one place where an ``OSError`` of the engine becomes a ``StoreError``. Each step of a run and each
action pass through it, so code below may let an ``OSError`` go up.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from ..rules.errors import StoreError

NO_SPACE = frozenset([errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)])
NO_PERMISSION = frozenset([errno.EACCES, errno.EPERM, errno.EROFS])
NO_LOCKS = frozenset([errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP])
"""What flock(2) answers on file systems that cannot lock: Lustre without ``-o flock``, NFS without a lock service."""
CACHE_MARK = "CACHEDIR.TAG"
OTHER_CACHE = "export CROWDPERF_CACHE=/path/of/another/folder"
SHOWN_LETTERS = 200
"""Longer paths are cut in the message; file systems allow 255 bytes for one name."""


class DiskFull(OSError):
    """No space, or no quota, is left for a file of ``needed_bytes``."""

    needed_bytes = 0


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Turns an OSError of the block into a StoreError."""
    try:
        yield
    except OSError as error:
        raise store_error(error) from error


@contextlib.contextmanager
def naming(path: object, needed_bytes: int = 0) -> Iterator[None]:
    """Adds ``path``, and the size needed on a full disk, to an OSError of the block that names no path, as of write."""
    try:
        yield
    except OSError as error:
        if error.errno in NO_SPACE and not isinstance(error, DiskFull):
            full = DiskFull(error.errno, error.strerror, error.filename or str(path))
            full.needed_bytes = needed_bytes
            raise full from error
        if error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise


def store_error(error: OSError) -> StoreError:
    """The error for the user: what was refused, the path, facts about it, and a command to try."""
    from ..rules.advice import advice  # here, because only failures need it

    path = _text(error.filename)
    if error.errno in NO_SPACE:
        return _no_space(error, path)
    if error.errno in NO_PERMISSION and path:
        return _no_permission(error, path)
    if error.errno == errno.ENOENT and not path and not _has_current_folder():
        return StoreError("the current folder was deleted", hint='cd to a folder that exists, such as cd "$HOME"')
    if error.errno == errno.EPIPE and not path:
        return StoreError("the program that read standard output ended early (EPIPE)")
    reason = f"{error.strerror or error} ({errno.errorcode.get(error.errno or 0, type(error).__name__)})"
    hints = {
        errno.ENAMETOOLONG: "use a shorter name, or a folder with a shorter path",
        errno.EIO: "the disk or its connection failed: dmesg shows what the kernel reports",
    }
    hint = hints.get(error.errno or 0) or advice([str(error)]) or "give the same command with --debug for the traceback"
    return StoreError(f"{path}: {reason}" if path else f"the operating system refused: {reason}", hint=hint)


def no_locks(error: OSError, path: Path) -> StoreError:
    """The error for a cache on a file system without locks, where two runs could write one entry at the same time."""
    return StoreError(
        f"cannot lock {path}: {error.strerror}; the file system mounted at {mount_point(path)} does not support flock, "
        "so a cache there cannot be protected from other runs",
        hint=f"choose a cache on another file system: {OTHER_CACHE}   (or mount this one with flock support)",
    )


def require_writable(folder: Path) -> None:
    """Raises StoreError when this user may not change what is in ``folder``."""
    if folder.is_dir() and not os.access(folder, os.W_OK):
        raise store_error(PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder / "_cm.json")))


def mount_point(path: Path) -> str:
    """The folder where the file system of ``path`` is mounted."""
    place = os.path.realpath(path)
    while not os.path.ismount(place):
        place = os.path.dirname(place)
    return place


def _no_space(error: OSError, path: str) -> StoreError:
    from ..rules.amounts import size_text  # here, because only failures need it

    folder = _existing_folder(path)
    needed = f" ({size_text(error.needed_bytes)} needed)" if isinstance(error, DiskFull) and error.needed_bytes else ""
    free = ""
    with contextlib.suppress(OSError, AttributeError):
        facts = os.statvfs(folder)
        free = f"; {size_text(facts.f_bavail * facts.f_frsize)} of {size_text(facts.f_blocks * facts.f_frsize)}"
        free += f" and {facts.f_favail} of {facts.f_files} inodes" if facts.f_files and not facts.f_favail else ""
        free += f" are free in {folder}"
    return StoreError(
        f"cannot write {path or 'standard output or a file'}{needed}: {error.strerror}{free if path else ''}",
        hint="cm gc cache --dry-run shows what can be removed, cm gc cache -f removes it; or choose a cache on another "
        f"disk: {OTHER_CACHE}",
    )


def _no_permission(error: OSError, path: str) -> StoreError:
    import stat  # here, because only failures need it

    folder = _existing_folder(path)
    cache = next((str(place) for place in (folder, *folder.parents) if (place / CACHE_MARK).exists()), "")
    reason = str(error.strerror)
    if error.errno != errno.EROFS:
        with contextlib.suppress(OSError):
            facts = os.stat(folder)
            reason += f"; {folder} belongs to {user_name(facts.st_uid)} ({stat.filemode(facts.st_mode)})"
    if not cache:
        hint = f"use a folder that you may write: run from another one, or {OTHER_CACHE}"
        return StoreError(f"cannot use {path}: {reason}", hint=hint)
    owner = "unknown"
    with contextlib.suppress(OSError):
        owner = user_name(os.stat(cache).st_uid)
    return StoreError(
        f"cannot write to the cache {cache} of {owner}: {path}: {reason}",
        hint=f"choose a cache of your own: {OTHER_CACHE}   (or ask {owner} for write permission)",
    )


def user_name(uid: int) -> str:
    """The name of a user; the number of one without a name."""
    import pwd  # here, because only failures and locks ask

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _text(path: object) -> str:
    text = os.fsdecode(path) if isinstance(path, bytes) else "" if path is None else str(path)
    return text if len(text) <= SHOWN_LETTERS else f"{text[:SHOWN_LETTERS]}... ({len(text)} letters)"


def _existing_folder(path: str) -> Path:
    """The nearest folder above ``path`` that exists."""
    try:
        place = Path(path or ".").absolute().parent if path else Path.cwd()
        while not place.is_dir():
            place = place.parent
        return place
    except OSError:
        return Path("/")


def _has_current_folder() -> bool:
    try:
        os.getcwd()
    except OSError:
        return False
    return True
