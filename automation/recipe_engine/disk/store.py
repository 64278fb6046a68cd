"""The cache on disk: one folder per entry, made under a lock, trusted only when it was finished.

Layout of an entry (``EntryPaths`` owns the names)::

    <16 hex digits>/_cm.json               CM's keys, and ours under "crowdperf"
    <16 hex digits>/cm-cached-state.json   what the recipe gave: new_env, new_state, deps, version
    <16 hex digits>/entry.json             ours: declared files with size, time, SHA-256; the request; tool versions
    <16 hex digits>/log.txt                output of the recipe's scripts

An unfinished entry carries the tag ``tmp``. The last act of making one is replacing ``_cm.json`` by one without that
tag, so a process killed at any instant leaves either a finished entry or one that is never used. Nothing is synced to
the disk: that holds for a kill, not for a power loss.

A renewal makes a new entry, whose ``_cm.json`` names the one that it replaces. So the same last act finishes the new
entry and ends the old one: ``find`` leaves out what a finished entry replaces. The old folder is removed after that,
or, while a process or another entry needs it, marked as retired (``tmp``, and the reason) for ``cm gc cache``.

``EntryIndex`` saves reading every ``_cm.json`` at each start. The names in the cache folder are listed at each look, so
that entries of other processes and of CM are seen at once. A file in the cache holds which recipe made which finished
entry, which never changes: only the ``_cm.json`` of entries that are not in it, and of the recipe that is asked for,
are read. A process that had to read many others replaces the file; small caches never get one.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import time
from collections.abc import Container, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from ..rules.cachekey import begun_entry, entry_tags, misfit, preference, replacements
from ..rules.errors import CycleError, LockTimeout, StoreError
from ..rules.model import CacheEntry, CacheKey, EntryDetails, Maker, Outcome
from ..rules.secrets import stored
from .entries import (
    EntriesInUse,
    EntryPaths,
    Stamp,
    checked_state,
    details_of,
    empty_folder,
    file_problem,
    loaded_state,
    meta_row,
    parse_entry,
    relocated,
    stamp_of,
    write_content,
)
from .files import (
    CACHE_MARK,
    DiskFull,
    explained,
    read_index,
    read_json,
    read_regular,
    remove_tree,
    require_writable,
    utc_text,
    write_index,
    write_rows,
    write_text,
)
from .locks import discard, empty_trash, is_locked, lock, unused

logger = logging.getLogger(__name__)


README = """# Cache of CM recipes

Each folder is one result of a recipe: a detected tool, a virtual environment, a data set, a model.
`cm show cache` lists them. `cm rm cache --tags=... -f` removes some. It is safe to remove entries:
recipes rebuild missing entries when they need them. Do not edit entries by hand.
"""
CACHEDIR_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# This folder is a cache of CM recipes.\n"


def prepare_cache(root: Path) -> None:
    """Makes the folder of a cache with the files that say what it is; raises StoreError when that cannot be."""
    with explained():
        root.mkdir(parents=True, exist_ok=True)
    for name, text in (("README.md", README), (CACHE_MARK, CACHEDIR_TAG)):
        if not (root / name).exists():
            with contextlib.suppress(OSError):  # a full or read-only disk
                write_text(root / name, text)


FORMAT = 2
MANY = 8
"""So many entries are read without noting them, which takes about half a millisecond (2026-11-23)."""


class EntryIndex:
    """The entries below one folder as this process knows them; ``refresh`` looks at the disk again."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._file = root / ".index" / f"entries-{FORMAT}.txt"
        self._names: set[str] | None = None
        self._recipes: dict[str, str] = {}
        """Name of a finished entry to the uid of its recipe, as the file has it or will have it."""
        self._stored = ""
        """The rows of the file: name, blank, uid, newline."""
        self._n_unstored = 0
        self._read: dict[str, tuple[Stamp, CacheEntry]] = {}
        self._looked: set[str | None] = set()

    def all(self, *, refresh: bool = False) -> list[CacheEntry]:
        """Every entry, unfinished ones too."""
        self._look(None, refresh=refresh)
        return [entry for _, entry in self._read.values()]

    def of_recipe(self, uid: str, *, refresh: bool = False) -> list[CacheEntry]:
        """The entries that the recipe ``uid`` made, unfinished ones too."""
        self._look(uid, refresh=refresh)
        return [entry for _, entry in self._read.values() if entry.recipe.uid == uid]

    def is_current(self, entry: CacheEntry) -> bool:
        """Whether ``entry`` is what its ``_cm.json`` on disk says right now; raises OSError when that is gone."""
        meta = f"{entry.path}/_cm.json"
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

    def _look(self, recipe: str | None, *, refresh: bool) -> None:
        """Looks at the entries of ``recipe``, or at all."""
        if self._names is None or refresh:
            self._list()
            self._looked.clear()
        if self._looked.isdisjoint((recipe, None)):
            names = self._names or set()
            made = {name for name, (_, entry) in self._read.items() if entry.recipe.uid == recipe}
            self._look_at(names if recipe is None else names & made.union(self._stored_of(recipe)))
            self._looked.add(recipe)

    def _stored_of(self, recipe: str) -> Iterator[str]:
        """The names of the entries that the recipe made, as the file says."""
        end = -1
        while (end := self._stored.find(f" {recipe}\n", end + 1)) >= 0:
            yield self._stored[self._stored.rfind("\n", 0, end) + 1 : end]

    def _list(self) -> None:
        """Takes note of the names in the folder, and reads the entries that the file does not have."""
        try:
            names = {name for name in os.listdir(self.root) if name[0] != "."}
        except (FileNotFoundError, NotADirectoryError):  # a failing disk is not an empty cache
            names = set()
        if len(names) > MANY and not self._recipes:
            self._stored = read_index(self._file)[0].decode()
            words = self._stored.split()
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
            meta = f"{self.root}/{name}/_cm.json"  # a text: joining paths would take as long as the look
            try:
                stamp = stamp_of(meta)
            except OSError:
                self._read.pop(name, None)
                continue
            if name in self._read and self._read[name][0] == stamp:
                continue
            entry = parse_entry(read_json(meta), self.root / name)
            if entry is None:
                self._read.pop(name, None)
                continue
            self._read[name] = (stamp, entry)
            is_plain = f"{name}{entry.recipe.uid}".isalnum() and name.isascii() and entry.recipe.uid.isascii()
            if entry.is_complete and entry.recipe.uid and is_plain and name not in self._recipes:
                self._recipes[name] = entry.recipe.uid
                self._n_unstored += 1


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


_open: dict[Path, Store] = {}
"""The stores of the runs in progress in this process."""


class Store:
    """The entries below one ``cache`` folder; remembers what it read and looks again when asked to."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._index = EntryIndex(root)
        self._in_use = EntriesInUse(root)
        self._used_before: dict[str, int] = {}
        self._checked = root, b""
        """The folder of the entry that ``problem`` looked at last, and the results that it read there."""

    @classmethod
    def current(cls, root: Path) -> Store:
        """The store of the run in progress in this process, which looks at the disk again; else a new one."""
        known = _open.get(root)
        if known is None:
            return cls(root)
        known._index.expire()
        return known

    @classmethod
    @contextlib.contextmanager
    def opened(cls, root: Path) -> Iterator[None]:
        """Until the block ends, ``current`` returns one store: what the runs started by recipes use is in use for the
        whole outer run, and recorded as needed by what that makes.
        """
        if root in _open:
            yield
            return
        _open[root] = store = cls(root)
        try:
            yield
        finally:
            del _open[root]
            store._in_use.close()

    def lock(self, key: CacheKey, what: str, timeout_s: float | None = None) -> AbstractContextManager[None]:
        """Holds the right to make the entry of ``key``."""
        prepare_cache(self.root)
        return lock(self._lock_path(key.fingerprint), what, timeout_s=timeout_s)

    def _lock_path(self, fingerprint: str) -> Path:
        return self.root / ".locks" / f"{fingerprint[:32]}.lock"

    def _lock_of(self, entry: CacheEntry) -> Path:
        """The lock of the process that makes an entry; one that CM made is known by its own name."""
        return self._lock_path(entry.record.fingerprint if entry.record else entry.uid)

    def entries(self, *, refresh: bool = False) -> list[CacheEntry]:
        """All entries, unfinished ones too. ``refresh`` looks at the disk again."""
        return self._index.all(refresh=refresh)

    def entries_of(self, recipe_uid: str, *, refresh: bool = False) -> list[CacheEntry]:
        """The entries that one recipe made, unfinished ones too."""
        return self._index.of_recipe(recipe_uid, refresh=refresh)

    def find(self, key: CacheKey, *, refresh: bool = False) -> list[CacheEntry]:
        """The finished entries that fit ``key`` as far as ``_cm.json`` says, best first."""
        entries = self.entries_of(key.recipe.uid, refresh=refresh)
        replaced = replacements(entries)
        fitting = [entry for entry in entries if entry.uid not in replaced and not misfit(entry, key)]
        return sorted(fitting, key=lambda entry: preference(entry, key))

    def problem(self, entry: CacheEntry, *, is_thorough: bool = False) -> str:
        """What is wrong with a finished entry on disk, in words; empty when nothing is.

        Compares the SHA-256 of its results, the declared files' sizes and times, and their SHA-256 where the time
        differs or when ``is_thorough``.
        """
        if entry.is_expired(time.time()):
            return "it has expired (cache_expiration)"
        if entry.dependent_path and not os.path.exists(relocated(entry.dependent_path, self.root)):
            return f"{entry.dependent_path} (a dependency) is missing"
        change = self._change(entry)
        if change:
            return change
        details = details_of(entry)
        if details is None:
            return f"its file {EntryPaths(entry.path).details} is missing or damaged"
        content, problem = checked_state(entry, details)
        self._checked = entry.path, content
        problems = (file_problem(entry.path / file.path, file, is_thorough=is_thorough) for file in details.files)
        return problem or next((problem for problem in problems if problem), "")

    def _change(self, entry: CacheEntry) -> str:
        """Whether another process changed or removed the entry since it was read, in words; empty when none did."""
        try:
            return "" if self._index.is_current(entry) else "another process has just changed it"
        except OSError:
            return "another process has just removed it"

    def claim(self, entry: CacheEntry) -> str:
        """Marks ``entry`` as in use until this process ends; why that failed, in words, or empty."""
        return self._change(entry) if self._in_use.claim(entry.path) else "another process is removing it"

    def start(self, key: CacheKey, maker: Maker, replaced: CacheEntry | None = None) -> CacheEntry:
        """A new unfinished entry for ``key``, or the one that an earlier, interrupted attempt left, emptied.

        When it is finished, it answers in place of ``replaced``, and keeps the tags that this one was known by. Partial
        downloads (``*.part``) of the earlier attempt stay, so that they are resumed. The caller holds the lock.
        """
        prepare_cache(self.root)
        empty_trash(self.root)
        left = self._left_over(key)
        if left:
            logger.info("cleaning up after an attempt that did not finish: %s", left.path)
            empty_folder(left.path)
        path = left.path if left else self._free_path()
        before = (replaced, *self._replaced_by(replaced)) if replaced else ()
        entry = begun_entry(key, maker, path, utc_text(), before)
        if left:
            self._write_meta(entry)
        else:
            self._place(entry)
        self._used_before[entry.uid] = len(self._in_use.used)
        return entry

    def _place(self, entry: CacheEntry) -> None:
        """Makes the folder of a new entry with its ``_cm.json`` in it, so that no folder is ever there without one.

        Until then its name follows from the lock, so the next attempt clears what a killed one left of it.
        """
        staging = self._lock_of(entry).with_suffix(".new")
        remove_tree(staging)
        staging.mkdir(parents=True)
        write_rows(EntryPaths(staging).meta, meta_row(entry))
        os.rename(staging, entry.path)
        self._index.note(entry)

    def _left_over(self, key: CacheKey) -> CacheEntry | None:
        for known in self.entries_of(key.recipe.uid):
            if known.is_left_over_of(key):
                entry = parse_entry(read_json(EntryPaths(known.path).meta), known.path)  # finished since, maybe
                if entry and entry.is_left_over_of(key) and os.access(known.path, os.W_OK):  # not of another user
                    return entry
        return None

    def _free_path(self) -> Path:
        while True:
            path = self.root / os.urandom(8).hex()
            if any(letter in "abcdf" for letter in path.name) and not path.exists():
                return path  # YAML would read digits, or digits around one e, as a number

    def retire(self, entry: CacheEntry, reason: str) -> None:
        """Marks a finished entry as never to be used again; its files stay."""
        with contextlib.suppress(OSError):  # of another user, or on a full disk: it is not taken anyway
            self._write_meta(entry._replace(tags=tuple(dict.fromkeys(("tmp", *entry.tags))), retired=reason))

    def put_away(self, entry: CacheEntry, reason: str, key: CacheKey | None = None) -> None:
        """Removes an entry that answers no request any more; one that is in use, pinned or needed is only marked.

        Leaves it alone when another request than ``key`` makes it or removes it right now, and where it cannot write.
        """
        with contextlib.suppress(OSError, StoreError), self.held(entry, key) as is_free:
            is_ours = os.access(entry.path, os.W_OK)
            if is_free and is_ours and not self._removed_if_idle(entry):
                self.retire(entry, reason)

    def _removed_if_idle(self, entry: CacheEntry) -> bool:
        is_needed = EntryPaths(entry.path).pinned.exists() or self._is_needed(entry)
        with unused(entry.path) as is_idle:
            if is_idle and not is_needed:
                self.remove(entry)
            return is_idle and not is_needed

    def _is_needed(self, entry: CacheEntry) -> bool:
        """Whether another entry was made with this one."""
        others = (other for other in self.entries(refresh=True) if other.path != entry.path)
        return any(dependencies(other, (entry.uid,)) for other in others)

    def commit(self, entry: CacheEntry, key: CacheKey, outcome: Outcome) -> CacheEntry:
        """Finishes an entry: state and details first, ``_cm.json`` without ``tmp`` last. Puts away what it replaces."""
        write_content(entry, key, outcome, self._used_since(entry))
        tags = entry_tags(key, outcome.version, stored(outcome.added_tags), entry.tags)
        expires_s = None if outcome.lifetime_s is None else time.time() + outcome.lifetime_s
        finished = entry._replace(
            tags=tags, version=outcome.version, dependent_path=outcome.dependent_path, expires_s=expires_s
        )
        self.claim(entry)
        replaced = self._replaced_by(finished)
        pins = [EntryPaths(old.path).pinned for old in replaced if EntryPaths(old.path).pinned.exists()]
        if pins:
            EntryPaths(entry.path).pinned.touch()
        self._write_meta(finished)
        self.note_use(finished)
        for pin in pins:
            pin.unlink(missing_ok=True)
        for old in replaced:
            self.put_away(old, f"replaced by {finished.uid}", key)
        return finished

    def _replaced_by(self, entry: CacheEntry) -> list[CacheEntry]:
        """The finished entries in whose place ``entry`` answers."""
        names = entry.record.replaces if entry.record else ()
        return [old for old in self.entries_of(entry.recipe.uid) if old.uid in names and old.is_complete]

    def _used_since(self, entry: CacheEntry) -> list[str]:
        """The entries that were used, or made, while this one was made: what it depends on, directly or not."""
        used = self._in_use.used
        return sorted(set(used[self._used_before.pop(entry.uid, len(used)) :]) - {entry.uid})

    def _write_meta(self, entry: CacheEntry) -> None:
        write_rows(EntryPaths(entry.path).meta, meta_row(entry))
        self._index.note(entry)

    def load(self, entry: CacheEntry) -> tuple[dict[str, Any], dict[str, Any]]:
        """The new_env and new_state that a finished entry gives.

        Raises StoreError when the file that holds them cannot be read.
        """
        folder, content = self._checked
        return loaded_state(entry, self.root, content if folder == entry.path else None)

    def is_busy(self, entry: CacheEntry) -> bool:
        """Whether a process is making this entry right now; while one is renewed, the process makes another."""
        return not entry.is_complete and is_locked(self._lock_of(entry))

    def note_use(self, entry: CacheEntry) -> None:
        """Records that ``entry``, which was claimed, is used by the runs in progress."""
        self._in_use.note(entry.uid)

    def watch_child_uses(self) -> None:
        """From now on, entries that ``cm`` processes started by this one use count as used by the runs in progress."""
        self._in_use.watch_children()

    @contextlib.contextmanager
    def held(self, entry: CacheEntry, key: CacheKey | None = None) -> Iterator[bool]:
        """Whether ``entry`` is as it was read and no other request than ``key`` makes it, until the block ends."""
        path = self._lock_of(entry)
        with contextlib.ExitStack() as stack:
            try:
                if key is None or path != self._lock_path(key.fingerprint):
                    prepare_cache(self.root)
                    with contextlib.suppress(DiskFull):  # without an inode left no other process can make a lock file
                        stack.enter_context(lock(path, str(entry.path), timeout_s=0))
                is_unchanged = self._index.is_current(entry)
            except (LockTimeout, CycleError, FileNotFoundError):
                is_unchanged = False
            yield is_unchanged

    def remove(self, entry: CacheEntry) -> None:
        """Deletes an entry; it stops being one at once, before its files go. Raises StoreError when it is not ours.

        What it replaced and a killed process left for later goes first, or it would answer again.
        """
        require_writable(entry.path)
        for old in self._replaced_by(entry) if entry.is_complete or entry.retired else ():
            self.put_away(old, f"replaced by {entry.uid}")
        discard(self.root, entry.path)
        self._index.forget(entry)
