"""The cache on disk: one folder per entry, made under a lock, trusted only when it was finished.

Layout of an entry (``EntryPaths`` owns the names)::

    <16 hex digits>/_cm.json               CM's keys, and ours under "crowdperf"
    <16 hex digits>/cm-cached-state.json   what the recipe gave: new_env, new_state, deps, version
    <16 hex digits>/entry.json             ours: declared files with size, time, SHA-256; the request; tool versions
    <16 hex digits>/log.txt                output of the recipe's scripts

An unfinished entry carries the tag ``tmp``. The last act of making one is replacing ``_cm.json`` by one without that
tag, so a process killed at any instant leaves either a finished entry or one that nobody trusts.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

from ..rules.cachekey import entry_tags, misfit, preference
from ..rules.cachemodel import CacheEntry, CacheKey, EntryRecord
from ..rules.env import without_secrets
from ..rules.errors import CycleError, LockTimeout, StoreError
from .entry_index import EntryIndex
from .entryfile import (
    FORMAT,
    EntryPaths,
    declared_files,
    dependency_row,
    empty_folder,
    file_problem,
    file_row,
    key_row,
    meta_row,
    output_files,
    parse_entry,
    record_file,
    relocated,
    stamp_of,
)
from .files import is_locked, lock, read_json, remove_tree, sha256_of, write_json, write_text
from .removal import discard, empty_trash
from .usage import EntriesInUse

logger = logging.getLogger(__name__)

README = """# Cache of CM recipes

Each folder is one result of a recipe: a detected tool, a virtual environment, a data set, a model.
`cm show cache` lists them; `cm rm cache --tags=... -f` removes some. Nothing here is precious:
what is missing is made again by the recipe that needs it. Do not edit entries by hand.
"""
CACHEDIR_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# This folder is a cache of CM recipes.\n"


class Maker(NamedTuple):
    """The recipe that makes an entry: SHA-256 over its files, and their times and sizes as one short text."""

    digest: str
    stamp: str


class Outcome(NamedTuple):
    """What a recipe leaves in its entry besides files of its own."""

    new_env: Mapping[str, Any]
    new_state: Mapping[str, Any]
    dependencies: Sequence[Mapping[str, Any]]
    version: str
    added_tags: tuple[str, ...]
    files: tuple[str, ...]
    dependent_path: str
    details: Mapping[str, Any]
    lifetime_s: float | None = None


class Store:
    """The entries below one ``cache`` folder; remembers what it read and looks again when asked to."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._index = EntryIndex(root)
        self._in_use = EntriesInUse()
        self._used: list[str] = []
        self._used_before: dict[str, int] = {}

    def lock(self, key: CacheKey, what: str, timeout_s: float | None = None) -> AbstractContextManager[None]:
        """Holds the right to make the entry of ``key``."""
        self._prepare()
        return lock(self._lock_path(key.fingerprint), what, timeout_s=timeout_s)

    def _lock_path(self, fingerprint: str) -> Path:
        return self.root / ".locks" / f"{fingerprint[:32]}.lock"

    def _lock_of(self, entry: CacheEntry) -> Path:
        """The lock of whoever makes an entry; one that CM made is known by its own name."""
        return self._lock_path(entry.record.fingerprint if entry.record else entry.uid)

    def _prepare(self) -> None:
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            for name, text in (("README.md", README), ("CACHEDIR.TAG", CACHEDIR_TAG)):
                if not (self.root / name).exists():
                    write_text(self.root / name, text)
        except OSError as error:
            raise StoreError(f"cannot write to the cache {self.root}: {error}") from None

    def entries(self, *, refresh: bool = False) -> list[CacheEntry]:
        """All entries, unfinished ones too. ``refresh`` looks at the disk again."""
        return self._index.all(refresh=refresh)

    def entries_of(self, recipe_uid: str, *, refresh: bool = False) -> list[CacheEntry]:
        """The entries that one recipe made, unfinished ones too."""
        return self._index.of_recipe(recipe_uid, refresh=refresh)

    def find(self, key: CacheKey, *, refresh: bool = False) -> list[CacheEntry]:
        """The finished entries that fit ``key`` as far as ``_cm.json`` tells, best first."""
        fitting = [entry for entry in self.entries_of(key.recipe.uid, refresh=refresh) if not misfit(entry, key)]
        return sorted(fitting, key=lambda entry: preference(entry, key))

    def problem(self, entry: CacheEntry, *, is_thorough: bool = False) -> str:
        """What is wrong with a finished entry on disk, in words; empty when nothing is.

        Compares the declared files' sizes and times, and their SHA-256 where the time differs or when ``is_thorough``.
        """
        paths = EntryPaths(entry.path)
        if entry.expires_s is not None and time.time() >= entry.expires_s:
            return "its time is over (cache_expiration)"
        if entry.dependent_path and not os.path.exists(relocated(entry.dependent_path, self.root)):
            return f"{entry.dependent_path}, on which it depends, is gone"
        try:
            stamp = stamp_of(paths.meta)
        except OSError:
            return "it was removed meanwhile"
        if (self._index.stamp(entry) or stamp) != stamp:
            return "it was changed meanwhile"
        if not paths.state.is_file():
            return f"its file {paths.state} is gone"
        files = declared_files(entry) if entry.record else ()
        if files is None:
            return f"its file {paths.details} is gone or damaged"
        for declared in files:
            trouble = file_problem(entry.path / declared.path, declared, is_thorough=is_thorough)
            if trouble:
                return trouble
        return ""

    def start(self, key: CacheKey, maker: Maker) -> CacheEntry:
        """A new unfinished entry for ``key``, or the one that an earlier, broken-off attempt left, emptied.

        Half-loaded files (``*.part``) of that attempt stay, so that a big download goes on. The caller holds the lock.
        """
        self._prepare()
        empty_trash(self.root)
        record = EntryRecord(
            fingerprint=key.fingerprint,
            recipe_digest=maker.digest,
            recipe_stamp=maker.stamp,
            explicit=key.explicit,
            variations=key.variations,
            extra_tags=key.extra_tags,
            inputs=dict(key.inputs),
            created_utc=utc_now(),
        )
        left = self._left_over(key)
        if left:
            logger.info("cleaning up after an attempt that did not finish: %s", left.path)
            empty_folder(left.path)
        path = left.path if left else self._free_path()
        known_by = left.tags if left else ()
        tags = tuple(dict.fromkeys(("tmp", *(tag for tag in key.required_tags if not tag.startswith("-")), *known_by)))
        entry = CacheEntry(
            uid=path.name, path=path, tags=tags, version="", recipe=key.recipe, dependent_path="", record=record
        )
        if left:
            self._write_meta(entry)
        else:
            self._place(entry)
        self._used_before[entry.uid] = len(self._used)
        return entry

    def _place(self, entry: CacheEntry) -> None:
        """Makes the folder of a new entry with its ``_cm.json`` in it, so that no folder is ever there without one.

        Until then its name follows from the lock, so the next attempt clears what a killed one left of it.
        """
        staging = self._lock_path(entry.record.fingerprint if entry.record else entry.uid).with_suffix(".new")
        remove_tree(staging)
        staging.mkdir(parents=True)
        write_json(EntryPaths(staging).meta, meta_row(entry))
        os.rename(staging, entry.path)
        self._index.note(entry)

    def _left_over(self, key: CacheKey) -> CacheEntry | None:
        for known in self.entries_of(key.recipe.uid):
            if not known.is_complete and known.record and known.record.fingerprint == key.fingerprint:
                entry = parse_entry(read_json(EntryPaths(known.path).meta), known.path)  # maybe finished meanwhile
                if entry and not entry.is_complete and entry.record and entry.record.fingerprint == key.fingerprint:
                    return entry
        return None

    def _free_path(self) -> Path:
        while True:
            path = self.root / os.urandom(8).hex()
            if any(letter in "abcdf" for letter in path.name) and not path.exists():
                return path  # YAML would read digits, or digits around one e, as a number

    def reopen(self, entry: CacheEntry, key: CacheKey, maker: Maker) -> CacheEntry:
        """``entry`` marked unfinished for ``--renew``: same folder, tags and variations, content kept for the recipe.

        It is now made with the inputs of ``key`` and guarded by its lock, which the caller holds.
        """
        record = entry.record and entry.record._replace(
            fingerprint=key.fingerprint,
            inputs=dict(key.inputs),
            recipe_digest=maker.digest,
            recipe_stamp=maker.stamp,
            created_utc=utc_now(),
        )
        reopened = entry._replace(tags=tuple(dict.fromkeys(("tmp", *entry.tags))), record=record)
        self._write_meta(reopened)
        self._used_before[entry.uid] = len(self._used)
        return reopened

    def keeps_identity(self, entry: CacheEntry, key: CacheKey) -> bool:
        """Whether ``entry``, made again for ``key``, still answers the request that it was made for.

        It would not if that gave an input, or a bound of the version, that ``key`` lacks.
        """
        if entry.record is None or entry.record.fingerprint == key.fingerprint:
            return True
        details = read_json(EntryPaths(entry.path).details)
        asked = details.get("request") if isinstance(details, dict) else None
        now = key_row(key)
        bounds = ("version", "version_min", "version_max")
        keeps_version = all((asked or {}).get(name, "") in ("", now[name]) for name in bounds)
        return keeps_version and dict(entry.record.inputs) == dict(key.inputs)

    def reinstate(self, entry: CacheEntry) -> None:
        """Undoes ``reopen`` when the recipe found nothing to do; ``entry`` is the finished one from before."""
        self._write_meta(entry)

    def retire(self, entry: CacheEntry) -> None:
        """Marks a finished entry whose files were changed as not to be trusted; the files stay."""
        self._write_meta(entry._replace(tags=("tmp", "broken", *entry.tags), record=None))

    def commit(self, entry: CacheEntry, key: CacheKey, outcome: Outcome) -> CacheEntry:
        """Finishes an entry: state and details first, ``_cm.json`` without ``tmp`` last."""
        paths = EntryPaths(entry.path)
        records = [
            record_file(path, entry.path) for path in sorted(output_files(entry.path, outcome.files, outcome.new_env))
        ]
        write_json(
            paths.state,
            {
                "new_env": without_secrets(outcome.new_env),
                "new_state": outcome.new_state,
                "deps": [dependency_row(dependency) for dependency in outcome.dependencies],
                "version": outcome.version,
            },
        )
        details = {
            "format": FORMAT,
            "files": [file_row(record) for record in records],
            "state_sha256": sha256_of(paths.state),
            "dependencies": self._used_since(entry),
            "recipe_digest": entry.record.recipe_digest if entry.record else "",
            **outcome.details,
            "request": {**outcome.details.get("request", {}), **key_row(key)},
        }
        write_json(paths.details, details)
        tags = entry_tags(key, outcome.version, outcome.added_tags)
        known_by = (tag for tag in entry.tags if tag != "tmp" and not tag.startswith("version-"))
        tags = tuple(dict.fromkeys((*tags, *known_by)))  # a renewed entry keeps the tags it was known by
        expires_s = None if outcome.lifetime_s is None else time.time() + outcome.lifetime_s
        finished = entry._replace(
            tags=tags, version=outcome.version, dependent_path=outcome.dependent_path, expires_s=expires_s
        )
        self._write_meta(finished)
        self.note_use(finished)
        return finished

    def _used_since(self, entry: CacheEntry) -> list[str]:
        """The entries that were used, or made, while this one was made: what it depends on, directly or not."""
        return sorted(set(self._used[self._used_before.pop(entry.uid, len(self._used)) :]) - {entry.uid})

    def _write_meta(self, entry: CacheEntry) -> None:
        write_json(EntryPaths(entry.path).meta, meta_row(entry))
        self._index.note(entry)

    def load(self, entry: CacheEntry) -> tuple[dict[str, Any], dict[str, Any]]:
        """The new_env and new_state that a finished entry gives.

        Raises StoreError when the file that holds them cannot be read.
        """
        value = relocated(read_json(EntryPaths(entry.path).state), self.root)
        if not isinstance(value, dict):
            raise StoreError(
                f"the cache entry {entry.path} has no readable state",
                hint=f"cm rm cache {entry.uid} -f, then run again",
            )
        return dict(value.get("new_env") or {}), dict(value.get("new_state") or {})

    def is_busy(self, entry: CacheEntry) -> bool:
        """Whether a process is making this entry right now."""
        return is_locked(self._lock_of(entry))

    def note_use(self, entry: CacheEntry) -> None:
        """Remembers that ``entry`` is used from now on, until this process ends."""
        self._in_use.add(entry.path)
        self._used.append(entry.uid)

    @contextlib.contextmanager
    def held(self, entry: CacheEntry, key: CacheKey | None = None) -> Iterator[bool]:
        """Whether ``entry`` is as it was read and no other request than ``key`` makes it, until the block ends."""
        path = self._lock_of(entry)
        with contextlib.ExitStack() as stack:
            try:
                if key is None or path != self._lock_path(key.fingerprint):
                    self._prepare()
                    stack.enter_context(lock(path, str(entry.path), timeout_s=0))
                is_unchanged = self._index.stamp(entry) == stamp_of(EntryPaths(entry.path).meta)
            except (LockTimeout, CycleError, FileNotFoundError):
                is_unchanged = False
            yield is_unchanged

    def remove(self, entry: CacheEntry) -> None:
        """Deletes an entry; it stops being one at once, before its files go."""
        discard(self.root, entry.path)
        self._index.forget(entry)


def utc_now() -> str:
    """The time as ``2026-11-21T01:02:03Z``."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def match_tags(entries: Iterable[CacheEntry], words: Sequence[str]) -> Iterator[CacheEntry]:
    """The entries that have all plain ``words`` as tags and none of those written ``-word``, in order of their tags."""
    need = {word for word in words if not word.startswith("-")}
    avoid = {word[1:] for word in words if word.startswith("-")}
    fitting = [entry for entry in entries if need <= set(entry.tags) and avoid.isdisjoint(entry.tags)]
    return iter(sorted(fitting, key=lambda entry: sorted(entry.tags)))
