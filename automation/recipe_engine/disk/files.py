"""Safe use of the disk: files written whole, read without surprises, hashed, locked, removed; its errors in words.

``explained`` is the one place where an ``OSError`` of the engine becomes a ``StoreError``. Each step of a run and each
action pass through it, so code below may let an ``OSError`` go up.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import stat
import time
from binascii import crc32  # loaded with yaml, unlike zlib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..rules.errors import StoreError

try:
    import fcntl
except ImportError:  # Windows, which docs/compat.md does not promise: the engine starts there, and locks nothing
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger(__name__)


NO_SPACE = frozenset([errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)])
NO_PERMISSION = frozenset([errno.EACCES, errno.EPERM, errno.EROFS])
NO_LOCKS = frozenset([errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP])
"""What flock(2) answers on file systems that cannot lock: Lustre without ``-o flock``, NFS without a lock service."""
CACHE_MARK = "CACHEDIR.TAG"
OTHER_CACHE = "export CROWDPERF_CACHE=/path/of/another/folder"
STANDARD_OUTPUT = "standard output"
"""What ``naming`` calls it."""
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
    if error.errno == errno.EPIPE and path in ("", STANDARD_OUTPUT):
        return StoreError("the program that read standard output ended early (EPIPE)")
    reason = f"{error.strerror or error} ({errno.errorcode.get(error.errno or 0, type(error).__name__)})"
    hints = {
        errno.ENAMETOOLONG: "use a shorter name, or a folder with a shorter path",
        errno.EEXIST: "it is a file (ls -ld) and has to be a folder: choose another path (cache: CROWDPERF_CACHE)",
        errno.ENOTDIR: "the path leads through a file (ls -ld): choose another path (of the cache: CROWDPERF_CACHE)",
        errno.EIO: "the disk or its connection failed: see the kernel's messages with dmesg",
    }
    hint = hints.get(error.errno or 0) or advice([str(error)]) or "rerun the command with --debug for the traceback"
    return StoreError(f"{path}: {reason}" if path else f"the operating system refused: {reason}", hint=hint)


def no_locks(error: OSError, path: Path) -> StoreError:
    """The error for a cache on a file system without locks, where two runs could write one entry at the same time."""
    return StoreError(
        f"cannot lock {path}: {error.strerror}. The file system mounted at {mount_point(path)} does not support flock, "
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
        free = f". {size_text(facts.f_bavail * facts.f_frsize)} of {size_text(facts.f_blocks * facts.f_frsize)}"
        free += f" and {facts.f_favail} of {facts.f_files} inodes" if facts.f_files and not facts.f_favail else ""
        free += f" are free in {folder}"
    hint = "cm gc cache --dry-run shows the entries that can be removed, cm gc cache -f removes it. Or choose "
    other = f"a cache on another disk: {OTHER_CACHE}" if not path or _cache_of(folder) else "a folder on another disk"
    return StoreError(
        f"cannot write {path or 'standard output or a file'}{needed}: {error.strerror}{free if path else ''}",
        hint=f"{hint}{other}",
    )


def _cache_of(folder: Path) -> str:
    """The cache that a folder lies in, empty where it lies in none."""
    return next((str(place) for place in (folder, *folder.parents) if (place / CACHE_MARK).exists()), "")


def _no_permission(error: OSError, path: str) -> StoreError:
    folder = _existing_folder(path)
    cache = _cache_of(folder)
    reason = str(error.strerror)
    if error.errno != errno.EROFS:
        with contextlib.suppress(OSError):
            facts = os.stat(folder)
            reason += f", {folder} belongs to {user_name(facts.st_uid)} ({stat.filemode(facts.st_mode)})"
    if not cache:
        hint = f"use a writable folder: run from another one, or {OTHER_CACHE}"
        return StoreError(f"cannot use {path}: {reason}", hint=hint)
    owner = "unknown"
    with contextlib.suppress(OSError):
        owner = user_name(os.stat(cache).st_uid)
    return StoreError(
        f"cannot write to the cache {cache} of {owner}: {path}: {reason}",
        hint=f"choose your own cache: {OTHER_CACHE}   (or request write permission from {owner})",
    )


@lru_cache(maxsize=16)
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


UTC_FORMAT = "%Y-%m-%dT%H:%M:%SZ"
NO_SUCH_FILE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)
READ_BYTES = 1 << 16
ABANDONED_S = 3600.0
"""A half-written file of this age was left by a process that was killed."""


PRIVATE_MODE = 0o600
"""Only its owner can read such a file: it may hold parts of the user's env."""


def write_text(path: Path, text: str | bytes, mode: int = 0o666) -> None:
    """Writes a file as a whole: readers see the old text or the new one, never a part."""
    scratch = f"{path.parent}/.{path.name}.{os.getpid()}.new"
    content = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")  # paths may hold any bytes
    try:
        with naming(path, len(content)):
            handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
            try:
                rest = content
                while rest:
                    rest = rest[os.write(handle, rest) :]
            finally:
                os.close(handle)
            os.replace(scratch, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(scratch)
        if isinstance(error, OSError) and error.filename == scratch:
            error.filename = str(path)  # the name that the user knows
        raise


def write_index(path: Path, text: bytes, rest: bytes = b"") -> int:
    """Writes what can be made again: a ``text`` with a checksum, and a ``rest`` of which parts are read later.

    Gives the offset of the rest; 0 when the file could not be written, which costs only time.
    """
    first = f"{crc32(text)} {len(text)}\n".encode()
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
    try:
        with open(path, "rb", opener=not_waiting) as file:
            first = file.readline(100)
            checksum, size_bytes = map(int, first.split())
            text = file.read(max(0, size_bytes))
    except (OSError, ValueError):
        return b"", 0
    return (text, len(first) + size_bytes) if crc32(text) == checksum else (b"", 0)


def not_waiting(path: str | Path, flags: int) -> int:
    """Opens a file; not blocked by a FIFO in its place."""
    return os.open(path, flags | os.O_NONBLOCK)


def write_json(path: Path, value: Any) -> None:
    """Writes JSON as a whole; values that JSON lacks become their text."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, default=str) + "\n")


def write_rows(path: Path, values: Mapping[str, Any]) -> bytes:
    """Writes a mapping as ``write_json`` does, but a line for each key: ten times as fast as indenting all levels.

    Gives what was written.
    """
    rows = (f"  {json.dumps(key)}: {json.dumps(values[key], sort_keys=True, default=str)}" for key in sorted(values))
    content = ("{\n" + ",\n".join(rows) + "\n}\n").encode()
    write_text(path, content)
    return content


def read_json(path: Path | str) -> Any:
    """The value in a JSON file; None when it is missing, not a regular file, not JSON, or nested too deeply."""
    try:
        return parse_json(read_regular(path))
    except OSError:
        return None


def parse_json(content: bytes) -> Any:
    """The value that a text in JSON says; None when it is not JSON, or nested too deeply."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def read_regular(path: Path | str) -> bytes:
    """The content of a regular file; raises OSError for anything else, such as a FIFO, which would block."""
    handle = not_waiting(path, os.O_RDONLY)  # no file object, which would take more system calls than the reading
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        content = os.read(handle, status.st_size + 1)
        while len(content) != status.st_size and (more := os.read(handle, READ_BYTES)):
            content += more
        return content
    finally:
        os.close(handle)


def make_folder(path: Path) -> None:
    """Makes a folder; in a shared one so that its other users can write to it too."""
    try:
        path.mkdir(parents=True)
    except FileExistsError:
        return
    share_like(path.parent, path, 0o7777)


def share_like(folder: Path, path: Path, mask: int) -> None:
    """Gives a new file or folder the permissions of the shared folder that it is in, as far as ``mask`` allows.

    The umask would keep other users of a shared cache out. A folder that only its owner may write is not shared.
    """
    with contextlib.suppress(OSError):
        mode = os.stat(folder).st_mode
        if mode & (stat.S_IWGRP | stat.S_IWOTH):
            os.chmod(path, mode & mask)


def is_file(path: Path) -> bool:
    """Whether there is a file of this name; raises OSError when a disk that fails leaves that open.

    There is none of a name that holds a NUL, or that the locale cannot write, such as one with a symbol of a plan.
    """
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except ValueError:
        return False
    except OSError as error:
        if error.errno in NO_SUCH_FILE:
            return False
        raise


def utc_text(time_s: float | None = None) -> str:
    """A time in seconds since 1970, or the present one, as ``2026-11-21T01:02:03Z``."""
    return time.strftime(UTC_FORMAT, time.gmtime(time_s))


def utc_seconds(text: str) -> float:
    """The seconds since 1970 that such a text means; raises ValueError for any other."""
    from datetime import datetime  # here, because most calls never need it; strptime loads the locales

    found = datetime.fromisoformat(text.removesuffix("Z") + "+00:00")
    if found.strftime(UTC_FORMAT) != text:
        raise ValueError(f"time {text!r} is not in the form {UTC_FORMAT}")
    return found.timestamp()


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's content, 64 hex digits."""
    import hashlib  # here, because most calls never need it

    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@contextlib.contextmanager
def working_folder(path: Path) -> Iterator[None]:
    """The current folder is ``path`` inside the block and the old one after it."""
    before = os.getcwd()
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(before)


def remove_below(folder: Path, names: Iterable[str]) -> None:
    """Removes files of a folder; as in CM a name of a folder, of nothing, or that leads out of it is left alone."""
    for name in (one for one in names if not os.path.isabs(one) and ".." not in one.split("/")):
        path = f"{folder}/{name.rstrip('/')}"  # a text: joining paths takes longer than the look
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError):
            if not stat.S_ISDIR(os.lstat(path).st_mode):
                os.unlink(path)


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


# --- locks that are taken at once or not at all ---


def try_lock(handle: int, *, is_shared: bool = False) -> bool:
    """Locks an open file unless another process holds it; whether it is ours now.

    Looking whether a file is locked locks it for an instant, so one refusal is not enough.
    """
    for pause_s in (0.001, 0.004, 0.0):
        if fcntl is None:
            return True
        try:
            fcntl.flock(handle, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            return True
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES, errno.EINTR):
                raise
        time.sleep(pause_s)
    return False


def lock_new_file(handle: int) -> None:
    """Locks an open file that no other process keeps locked. Somebody's look at it may take a while under load: each of
    the tries is 5 ms long.
    """
    any(try_lock(handle) for _ in range(2000))


def unlock(handle: int) -> None:
    """Frees a lock, also for what a script left running in the background."""
    with contextlib.suppress(OSError, AttributeError):
        fcntl.flock(handle, fcntl.LOCK_UN)


def open_existing(path: Path) -> int | None:
    """The file, open; for reading only when it belongs to another user, which is enough for a lock."""
    for flags in (os.O_RDWR, os.O_RDONLY):
        with contextlib.suppress(OSError):
            return os.open(path, flags)
    return None


@contextlib.contextmanager
def tried_lock(handle: int | None, *, is_shared: bool = False) -> Iterator[bool]:
    """Whether an open file could be locked, until the block ends, which closes it.

    It counts as locked when there is no file, and on a file system without locks.
    """
    try:
        try:
            is_ours = handle is None or try_lock(handle, is_shared=is_shared)
        except OSError:
            is_ours = True
        yield is_ours
    finally:
        if handle is not None:
            os.close(handle)


@contextlib.contextmanager
def folder_lock_if_free(path: Path) -> Iterator[bool]:
    """Whether no other process held a lock on this folder; inside the block this one does, if that is possible."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        handle = None
    with tried_lock(handle) as is_free:
        yield is_free
