"""Holds a run to a lock: same recipes, same versions, same files, or it stops and says which one differs."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..disk.content import details_of
from ..disk.repos import RecipeSource
from ..disk.store import Store
from ..documents.lockfile import Lock, LockedFile, LockedThing, LockMismatch, differences, parse_lock, portable_thing
from ..rules.cachemodel import CacheEntry, CacheKey, EntryDetails
from ..rules.demands import Demand
from ..rules.errors import RequestError
from ..rules.events import StepEvent
from ..rules.model import Recipe
from ..rules.schema import is_yes
from ..rules.version import VersionRange

logger = logging.getLogger(__name__)

DEFAULT_NAME = "crowdperf.lock"
SEARCHED_BYTES = 16 << 20
"""Larger files are not searched for the path of the cache: what recipes write or build with it (scripts, settings,
lists of files, libraries with an rpath) is smaller, and weights and data sets come from elsewhere."""
_active: list[Guard] = []


class Guard:
    """Compares every step of a run with a lock. ``is_frozen`` refuses what the lock does not know, too."""

    def __init__(self, lock: Lock, name: str, *, is_frozen: bool, source: RecipeSource, store: Store) -> None:
        self.lock = lock
        self.name = name
        self.is_frozen = is_frozen
        self._source = source
        self._store = store
        self._told: set[str] = set()

    def take(self, event: StepEvent) -> None:
        """Checks the recipe of a step that begins; an observer of the engine. Raises LockMismatch."""
        if event.kind == "start" and event.configured:
            self._check_recipe(event.configured.recipe)

    def _check_recipe(self, recipe: Recipe) -> None:
        locked = self.lock.recipes.get(recipe.id.text)
        if locked is None:
            self._miss(f"the recipe {recipe.id.alias}")
        elif locked != self._source.digest(recipe):
            raise LockMismatch(
                f"the recipe {recipe.id.alias} is not the one that {self.name} locks: the files in {recipe.path} have "
                f"the digest {self._source.digest(recipe)}, locked is {locked}",
                hint="check out the version of the repository that the lock was made with, or make a new lock",
            )

    def _miss(self, what: str) -> None:
        """Something that the lock does not know: refused when frozen, else said once."""
        if self.is_frozen:
            raise LockMismatch(
                f"{self.name} says nothing about {what}, and --frozen allows nothing else",
                hint="make a new lock after a run with the same words, or use --locked to allow it",
            )
        if what not in self._told:
            self._told.add(what)
            logger.warning("! %s says nothing about %s; it is chosen freely", self.name, what)

    def _locked(self, key: CacheKey) -> list[LockedThing]:
        return [thing for thing in self.lock.find(portable_thing(key, places(self._store))) if thing.is_made]

    def bound(self, key: CacheKey, label: str) -> Demand | None:
        """The version that the lock wants; None when it wants none. Raises LockMismatch for what it does not know."""
        found = self._locked(key)
        if not found:
            self._miss(f"{label} with these inputs, or it was not made yet when the lock was written")
            return None
        versions = {thing.version for thing in found}
        if len(versions) != 1 or not found[0].version:
            return None
        return Demand(VersionRange(exact=found[0].version), (f"the lock {self.name}", label))

    def facts(self, key: CacheKey) -> Mapping[str, Any]:
        """What the recipe's hooks may have to keep to, ``i['locked']``; empty when the lock says nothing."""
        found = self._locked(key)
        return found[0].facts if len(found) == 1 else {}

    def verify(self, key: CacheKey, entry: CacheEntry, label: str) -> None:
        """Raises LockMismatch when a finished entry is not what the lock says."""
        found = self._locked(key)
        if not found:
            return
        now = thing_in(self._store, entry, key)
        different = [differences(locked, now) for locked in found]
        if all(different):
            raise LockMismatch(
                "\n  ".join([f"{label} is not what {self.name} locks:", *min(different, key=len)]),
                hint=f"cm rm cache {entry.uid} -f makes it anew; when that does not help, the sources changed",
            )


def guard_of(i: Mapping[str, Any], source: RecipeSource, store: Store) -> Guard | None:
    """What ``--frozen`` and ``--locked=FILE`` hold a run to; else what the run is held to that started this one.

    Raises RequestError when the file cannot be read or is no lock.
    """
    frozen, locked = i.get("frozen"), i.get("locked")
    if not (frozen or locked):
        return outer_guard()
    given = frozen or locked
    name = DEFAULT_NAME if given is True or is_yes(given) else str(given)
    try:
        text = Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(
            f"the lock {os.path.abspath(name)} cannot be read: {error}",
            hint=f"make it with: cm lock script --tags=... > {DEFAULT_NAME}",
        ) from None
    return Guard(parse_lock(text, name), name, is_frozen=bool(frozen), source=source, store=store)


@contextmanager
def guarding(guard: Guard | None) -> Iterator[None]:
    """While it lasts, runs that recipes start themselves are held to the same lock."""
    if guard:
        _active.append(guard)
    try:
        yield
    finally:
        if guard:
            _active.pop()


def outer_guard() -> Guard | None:
    """The lock that the run is held to which started this one."""
    return _active[-1] if _active else None


def places(store: Store) -> list[tuple[str, str]]:
    """The paths of this machine that a lock must not name."""
    return [(str(store.root), "<cache>"), (os.path.expanduser("~"), "<home>")]


def thing_in(store: Store, entry: CacheEntry, key: CacheKey) -> LockedThing:
    """What a finished entry holds, as a lock notes it."""
    thing = portable_thing(key, places(store))
    facts = (details_of(entry) or EntryDetails()).locked
    commits = _git_commits(entry.path, store.load(entry)[0])
    return LockedThing(
        recipe=entry.recipe,
        variations=thing.variations,
        tags=thing.tags,
        inputs=thing.inputs,
        version=entry.version,
        files=dict(_portable_files(entry, str(store.root))),
        facts={**facts, **({"git": commits} if commits else {})},
        is_made=True,
    )


def _portable_files(entry: CacheEntry, root: str) -> Iterator[tuple[str, LockedFile]]:
    """The declared files that are the same wherever the cache is: no links to elsewhere, no path of the cache."""
    own = os.path.realpath(entry.path) + os.sep
    for record in (details_of(entry) or EntryDetails()).files:
        path = entry.path / record.path
        may_name_it = record.size_bytes <= SEARCHED_BYTES
        if os.path.realpath(path).startswith(own) and not (may_name_it and _holds(path, root.encode())):
            yield record.path, LockedFile(record.size_bytes, record.sha256)


def _holds(path: Path, text: bytes) -> bool:
    """Whether a text file or something that was compiled holds ``text``; other binary files are data and not read."""
    try:
        with open(path, "rb") as file:
            start = file.read(4096)
            is_compiled = path.suffix == ".pyc" or start.startswith((b"\x7fELF", b"!<arch>"))
            return (is_compiled or b"\0" not in start) and text in start + file.read()
    except OSError:
        return False


def _git_commits(folder: Path, new_env: Mapping[str, Any]) -> dict[str, str]:
    """The commit of every git checkout inside an entry that its env names, by its path in the entry."""
    from .process import answer_of  # here, because only locks ask

    found = {}
    for value in new_env.values():
        if isinstance(value, str) and value.startswith(str(folder)) and os.path.exists(os.path.join(value, ".git")):
            commit = answer_of(["git", "-c", "safe.directory=*", "-C", value, "rev-parse", "HEAD"])
            if commit:
                found[os.path.relpath(value, folder)] = commit
    return found
