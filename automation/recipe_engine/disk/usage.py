"""Whether entries of the cache are in use, by running processes and by other entries, and how unused ones are removed.

``entries.EntriesInUse`` says how a process marks what it uses.

A removed folder goes into ``.trash`` first, under a name of its own: it is gone at once, and a kill in the middle
leaves only trash. A process that deletes it holds a lock on it, and others that empty the trash leave it alone.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Container, Iterator
from pathlib import Path

from ..rules.model import CacheEntry, EntryDetails
from .entries import USES_SUFFIX, EntryPaths, details_of
from .files import folder_lock_if_free, make_folder, read_regular, remove_tree, tried_lock
from .locks import is_locked


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


_UID = r"(?<![0-9a-f])[0-9a-f]{16}(?![0-9a-f])"


def dependencies(entry: CacheEntry, known: Container[str]) -> tuple[str, ...]:
    """The ``known`` entries that this one needs: those recorded, and those whose folder its results name."""
    try:
        text = read_regular(EntryPaths(entry.path).state).decode("utf-8", "replace")
    except OSError:
        text = ""
    named = re.findall(_UID, f"{text} {entry.dependent_path}")
    details = details_of(entry) or EntryDetails()
    found = sorted({*details.dependencies, *named} - {entry.path.name, entry.uid})
    return tuple(uid for uid in found if uid in known)
