"""What the ``_cm.json`` of every entry says, without reading all of them at each start.

The names in the cache folder are listed at each look, so that entries of other processes and of CM itself are seen at
once. An SQLite file beside them remembers which recipe made which finished entry, which never changes. Of the entries
of the recipe that is asked for, every ``_cm.json`` is looked at, and read where it was written again.

The file is written by whoever had to read many entries that are not in it; small caches never get one. Unfinished
entries and those written within the last tick of the clock are left out: they are read each time.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ..rules.cachemodel import CacheEntry
from .database import DamagedDatabase, Database, UnwritableDatabase
from .entryfile import EntryPaths, Stamp, meta_row, parse_entry, stamp_of
from .files import read_json
from .scan import is_fresh

logger = logging.getLogger(__name__)

FORMAT = 1
SCHEMA = (
    "CREATE TABLE IF NOT EXISTS entries (name TEXT PRIMARY KEY, recipe TEXT, mtime_ns INTEGER, inode INTEGER,"
    " meta TEXT) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS entries_by_recipe ON entries (recipe)",
)
"""``meta`` is the ``_cm.json`` as this engine understands it."""
MANY = 64
"""So many entries are read without noting them: it takes as long as opening the file, about 4 ms (2026-11-21)."""


class Row(NamedTuple):
    """What the file holds of an entry."""

    stamp: Stamp
    meta: str


class EntryIndex:
    """The entries below one folder as this process knows them; ``refresh`` looks at the disk again."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._database = Database(root / ".index" / f"entries-{FORMAT}.sqlite", SCHEMA)
        self._is_usable = True
        self._names: set[str] | None = None
        self._stored: set[str] = set()
        self._unstored: set[str] = set()
        self._read: dict[str, tuple[Stamp, CacheEntry]] = {}
        self._looked: set[str | None] = set()

    def all(self, *, refresh: bool = False) -> list[CacheEntry]:
        """Every entry, unfinished ones too."""
        return self._entries(None, refresh=refresh)

    def of_recipe(self, uid: str, *, refresh: bool = False) -> list[CacheEntry]:
        """The entries that the recipe ``uid`` made, unfinished ones too."""
        return [entry for entry in self._entries(uid, refresh=refresh) if entry.recipe.uid == uid]

    def is_current(self, entry: CacheEntry) -> bool:
        """Whether ``entry`` is what its ``_cm.json`` on disk says right now; raises OSError when that is gone."""
        meta = EntryPaths(entry.path).meta
        stamp = stamp_of(meta)
        known = self._read.get(entry.path.name)
        if known and known[0] == stamp:
            return known[1] is entry or known[1] == entry
        return parse_entry(read_json(meta), entry.path) == entry

    def expire(self) -> None:
        """Makes the next look read the folder again."""
        self._names = None

    def note(self, entry: CacheEntry) -> None:
        """This process wrote the ``_cm.json`` of ``entry``."""
        self._read[entry.path.name] = (stamp_of(EntryPaths(entry.path).meta), entry)

    def forget(self, entry: CacheEntry) -> None:
        """This process removed ``entry``."""
        self._read.pop(entry.path.name, None)

    # --- looking ---

    def _entries(self, recipe: str | None, *, refresh: bool) -> list[CacheEntry]:
        """What is known after a look at the entries of ``recipe``, or at all; others may be among them."""
        try:
            self._look(recipe, refresh=refresh)
        except (DamagedDatabase, UnwritableDatabase, TypeError, ValueError) as error:
            logger.info("reading all entries of %s, because its index cannot be read: %s", self.root, error)
            if not isinstance(error, UnwritableDatabase):
                self._database.discard()
            self._is_usable = False
            self._names = None
            self._look(recipe, refresh=True)
        return [entry for _, entry in self._read.values()]

    def _look(self, recipe: str | None, *, refresh: bool) -> None:
        if self._names is None or refresh:
            self._list()
            self._looked.clear()
        if self._looked.isdisjoint((recipe, None)):
            rows = self._rows(recipe) if self._stored else {}
            own = {name for name, (_, entry) in self._read.items() if recipe in (None, entry.recipe.uid)}
            self._bring_up_to_date((own | rows.keys()) & (self._names or set()), rows)
            self._looked.add(recipe)
        if len(self._unstored) > MANY and self._is_usable:
            self._store()

    def _list(self) -> None:
        """Takes note of the names in the folder, and reads the entries that the file does not know."""
        is_first = self._names is None
        try:
            names = set(os.listdir(self.root))
        except (FileNotFoundError, NotADirectoryError):  # a disk that fails is no empty cache
            names = set()
        names -= {name for name in names if name[0] == "."}
        if is_first:
            self._stored = self._stored_names() if self._is_usable and len(names) > MANY else set()
        for name in self._read.keys() - names:
            del self._read[name]
        self._bring_up_to_date(names - self._stored - self._read.keys(), {})
        self._names = names

    def _bring_up_to_date(self, names: Iterable[str], rows: dict[str, Row]) -> None:
        """Takes what is known of the named entries from ``rows`` where these hold, else from the disk."""
        for name in names:
            path = self.root / name
            try:
                stamp = stamp_of(path / "_cm.json")
            except OSError:
                self._read.pop(name, None)
                continue
            known, row = self._read.get(name), rows.get(name)
            if known and known[0] == stamp:
                continue
            is_stored = row is not None and row.stamp == stamp
            entry = parse_entry(json.loads(row.meta), path) if row and is_stored else None
            entry = entry or parse_entry(read_json(path / "_cm.json"), path)
            if entry is None:
                self._read.pop(name, None)
                continue
            self._read[name] = (stamp, entry)
            if not is_stored and entry.is_complete and entry.recipe.uid and not _is_fresh(stamp):
                self._unstored.add(name)

    # --- the file ---

    def _stored_names(self) -> set[str]:
        ((names,),) = self._database.rows("SELECT group_concat(name, '/') FROM entries") or [(None,)]
        return set(names.split("/")) if names else set()

    def _rows(self, recipe: str | None) -> dict[str, Row]:
        """What the file holds of the entries of one recipe, or of all."""
        question = "SELECT CAST(name AS TEXT), mtime_ns, inode, meta FROM entries"
        where, values = ("", ()) if recipe is None else (" WHERE recipe = ?", (_printable(recipe),))
        rows = self._database.rows(question + where, values)
        return {name: Row((mtime_ns, inode), meta) for name, mtime_ns, inode, meta in rows}

    def _store(self) -> None:
        """Notes what was read, and forgets what is gone. A file that cannot be written stays as it is."""
        rows = []
        for name in self._unstored & self._read.keys():
            stamp, entry = self._read[name]
            if _printable(name) == name:
                rows.append((name, _printable(entry.recipe.uid), *stamp, json.dumps(meta_row(entry))))
        gone = [(name,) for name in self._stored - (self._names or set())]
        self._unstored.clear()
        try:
            with self._database.change() as connection:
                connection.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?)", rows)
                connection.executemany("DELETE FROM entries WHERE name = ?", gone)
        except UnwritableDatabase as error:
            logger.debug("the index of %s is not written: %s", self.root, error)


def _is_fresh(stamp: Stamp) -> bool:
    now_ns = time.time_ns()
    return is_fresh(stamp[0], now_ns, now_ns)


def _printable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
