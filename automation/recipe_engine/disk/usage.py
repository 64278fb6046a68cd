"""Which entries of the cache are used: by running processes, by other entries, and when each was used last.

A process that uses an entry keeps the file ``used`` in it open with a shared lock, which the kernel frees when the
process ends, whatever the way. The time of the file tells when the entry was used last, to the hour.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Container, Iterator
from pathlib import Path

from ..rules.cachemodel import CacheEntry
from .entryfile import EntryPaths
from .files import read_json, try_lock
from .flocks import shared_lock

USE_NOTED_EVERY_S = 3600.0
"""Often enough to tell which entries were used least recently, and no cost to the runs between."""
MOST_HELD = 400
"""Locks of one process; with more, the common limit of 1024 open files (``ulimit -n``) would be within reach."""


class EntriesInUse:
    """The entries that one process uses; they count as used until it ends, or until this object goes."""

    def __init__(self) -> None:
        self._handles: dict[Path, int] = {}

    def __del__(self) -> None:
        for handle in self._handles.values():
            os.close(handle)

    def add(self, entry_folder: Path) -> None:
        """Marks an entry as used now; a cache that cannot be written is left alone."""
        used = EntryPaths(entry_folder).used
        with contextlib.suppress(OSError):
            try:
                if time.time() - os.stat(used).st_mtime > USE_NOTED_EVERY_S:
                    os.utime(used)
            except FileNotFoundError:
                used.touch()
            if used not in self._handles and len(self._handles) < MOST_HELD:
                handle = shared_lock(used)
                if handle is not None:
                    self._handles[used] = handle


@contextlib.contextmanager
def unused(entry_folder: Path) -> Iterator[bool]:
    """Whether no process uses the entry; while the block lasts, nobody is noted as beginning to."""
    try:
        handle = os.open(EntryPaths(entry_folder).used, os.O_RDONLY)
    except OSError:
        yield True
        return
    try:
        yield try_lock(handle)
    finally:
        os.close(handle)


def is_in_use(entry_folder: Path) -> bool:
    """Whether some process uses the entry right now."""
    with unused(entry_folder) as is_free:
        return not is_free


def last_use_s(entry_folder: Path) -> float | None:
    """When the entry was used last (seconds since 1970), to the hour; None when it never was."""
    try:
        return EntryPaths(entry_folder).used.stat().st_mtime
    except OSError:
        return None


_UID = re.compile(r"(?<![0-9a-f])[0-9a-f]{16}(?![0-9a-f])")


def recorded_dependencies(entry: CacheEntry) -> tuple[str, ...]:
    """The uids of the entries that were used while this one was made; none for entries that CM made."""
    details = read_json(EntryPaths(entry.path).details)
    found = details.get("dependencies") if isinstance(details, dict) else None
    return tuple(str(uid) for uid in found) if isinstance(found, list) else ()


def dependencies(entry: CacheEntry, known: Container[str]) -> tuple[str, ...]:
    """The ``known`` entries that this one needs: those recorded, and those whose folder its results name."""
    try:
        text = EntryPaths(entry.path).state.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    named = _UID.findall(f"{text} {entry.dependent_path}")
    found = sorted({*recorded_dependencies(entry), *named} - {entry.path.name, entry.uid})
    return tuple(uid for uid in found if uid in known)
