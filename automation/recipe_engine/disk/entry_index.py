"""Which entries there are, and which recipe made each, without reading every ``_cm.json`` at each start.

The names in the cache folder are listed at each look, so that entries of other processes and of CM itself are seen at
once. A file in the cache holds which recipe made which finished entry, which never changes: only the ``_cm.json`` of
entries that are not in it, and of the recipe that is asked for, are looked at, and read when they were written again.

The file is replaced by a process that had to read many entries that are not in it; small caches never get one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ..rules.cachemodel import CacheEntry
from .entryfile import EntryPaths, Stamp, parse_entry, stamp_of
from .files import read_index, read_json, write_index

FORMAT = 2
MANY = 64
"""So many entries are read without noting them, which takes about 3 ms (2026-11-22)."""


class EntryIndex:
    """The entries below one folder as this process knows them; ``refresh`` looks at the disk again."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._file = root / ".index" / f"entries-{FORMAT}.txt"
        self._names: set[str] | None = None
        self._recipes: dict[str, str] = {}
        """Name of a finished entry to the uid of its recipe, as the file has it or will have it."""
        self._n_unstored = 0
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

    def _entries(self, recipe: str | None, *, refresh: bool) -> list[CacheEntry]:
        """What is known after a look at the entries of ``recipe``, or at all; others may be among them."""
        if self._names is None or refresh:
            self._list()
            self._looked.clear()
        if self._looked.isdisjoint((recipe, None)):
            made = {name for name, uid in self._recipes.items() if recipe in (None, uid)}
            made |= {name for name, (_, entry) in self._read.items() if recipe in (None, entry.recipe.uid)}
            self._look_at(made & (self._names or set()))
            self._looked.add(recipe)
        return [entry for _, entry in self._read.values()]

    def _list(self) -> None:
        """Takes note of the names in the folder, and reads the entries that the file does not have."""
        try:
            names = {name for name in os.listdir(self.root) if name[0] != "."}
        except (FileNotFoundError, NotADirectoryError):  # a failing disk is not an empty cache
            names = set()
        if len(names) > MANY and not self._recipes:
            words = read_index(self._file)[0].decode().split()
            self._recipes = dict(zip(words[::2], words[1::2], strict=False))
        for name in self._read.keys() - names:
            del self._read[name]
        self._look_at(names.difference(self._recipes, self._read))
        self._names = names
        if self._n_unstored > MANY:
            self._n_unstored = 0
            rows = (f"{name} {uid}\n" for name, uid in self._recipes.items() if name in names)
            write_index(self._file, "".join(rows).encode())

    def _look_at(self, names: Iterable[str]) -> None:
        """Reads the named entries where they are not known as they are now."""
        for name in names:
            path = self.root / name
            try:
                stamp = stamp_of(path / "_cm.json")
            except OSError:
                self._read.pop(name, None)
                continue
            if name in self._read and self._read[name][0] == stamp:
                continue
            entry = parse_entry(read_json(path / "_cm.json"), path)
            if entry is None:
                self._read.pop(name, None)
                continue
            self._read[name] = (stamp, entry)
            is_plain = f"{name}{entry.recipe.uid}".isalnum() and name.isascii() and entry.recipe.uid.isascii()
            if entry.is_complete and entry.recipe.uid and is_plain and name not in self._recipes:
                self._recipes[name] = entry.recipe.uid
                self._n_unstored += 1
