"""The types of the cache: what an entry must be to serve a request, and what an entry is."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .version import VersionRange


class RecipeId(NamedTuple):
    """The names of a recipe: ``alias`` for people, ``uid`` (16 hex digits) for machines."""

    alias: str
    uid: str

    @property
    def text(self) -> str:
        """``alias,uid``, as CM writes it."""
        return f"{self.alias},{self.uid}"


class CacheKey(NamedTuple):
    """What an entry must be to serve a request.

    ``required_tags`` and ``excluded_tags`` are CM's search; ``variations`` is the whole resolved set and must be equal
    for entries made by this engine; ``extra_tags`` were asked for besides the recipe's own; ``inputs`` are the mapped
    inputs given now: an entry that recorded another value for one of them does not fit.
    ``derived_tags`` come from env values.
    """

    recipe: RecipeId
    required_tags: tuple[str, ...]
    excluded_tags: tuple[str, ...]
    explicit: tuple[str, ...]
    variations: tuple[str, ...]
    extra_tags: tuple[str, ...]
    inputs: Mapping[str, str]
    version: VersionRange
    derived_tags: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        """64 hex digits that are equal for two requests exactly when what either makes serves both; names the lock.

        Excluded tags do not count: what a recipe makes has none of them unless it adds them itself, and who waited for
        the lock looks again.
        """
        import hashlib  # here, because a request that is served from the cache never needs it

        facts = [
            self.recipe.uid,
            self.variations,
            sorted(self.extra_tags),
            sorted(self.derived_tags),
            sorted(self.inputs.items()),
            [self.version.exact, self.version.minimum, self.version.maximum],
        ]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


class FileRecord(NamedTuple):
    """A file that an entry declared: path inside the entry, size in bytes, time in ns, SHA-256 in hex."""

    path: str
    size_bytes: int
    mtime_ns: int
    sha256: str


class EntryDetails(NamedTuple):
    """What the ``entry.json`` of a finished entry records; all of it is empty for entries made by CM itself.

    ``dependencies`` are the uids of the entries that were used while this one was made, ``request`` is what was asked
    for, ``chain`` the labels of the steps that led to it, ``locked`` what a lock adds to the files.
    """

    files: tuple[FileRecord, ...] = ()
    state_sha256: str = ""
    dependencies: tuple[str, ...] = ()
    request: Mapping[str, Any] = {}
    variations: tuple[Mapping[str, Any], ...] = ()
    chain: tuple[str, ...] = ()
    locked: Mapping[str, Any] = {}


class EntryRecord(NamedTuple):
    """What this engine records in an entry in addition to CM's keys; none of it exists in entries made by CM itself.

    ``asked_version`` is the exact version that was asked for; the recipe may have reported a longer one.
    """

    fingerprint: str
    recipe_digest: str
    recipe_stamp: str
    explicit: tuple[str, ...]
    variations: tuple[str, ...]
    extra_tags: tuple[str, ...]
    inputs: Mapping[str, str]
    created_utc: str
    asked_version: str = ""
    replaces: tuple[str, ...] = ()
    """The uids of the entries that stop answering when this one is finished."""


class CacheEntry(NamedTuple):
    """One folder of the store as its ``_cm.json`` describes it.

    ``expires_s`` (since 1970) is when its time is over; ``retired`` says why a once finished entry is never used again.
    """

    uid: str
    path: Path
    tags: tuple[str, ...]
    version: str
    recipe: RecipeId
    dependent_path: str
    record: EntryRecord | None
    expires_s: float | None = None
    retired: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether the entry may be used; CM marks an unfinished one, and this engine a retired one, with ``tmp``."""
        return "tmp" not in self.tags

    def is_expired(self, now_s: float) -> bool:
        """Whether the time that its recipe gave it (``cache_expiration``) is over."""
        return self.expires_s is not None and now_s >= self.expires_s

    def is_left_over_of(self, key: CacheKey) -> bool:
        """Whether an attempt to make an entry for ``key`` began this one and has not finished it."""
        is_unfinished = not self.is_complete and not self.retired
        return is_unfinished and self.record is not None and self.record.fingerprint == key.fingerprint


class Maker(NamedTuple):
    """The recipe that makes an entry: SHA-256 over its files, and their times and sizes as one short text."""

    digest: str
    stamp: str


class Outcome(NamedTuple):
    """What a recipe leaves in its entry in addition to its own files."""

    new_env: Mapping[str, Any]
    new_state: Mapping[str, Any]
    dependencies: Sequence[Mapping[str, Any]]
    version: str
    added_tags: tuple[str, ...]
    files: tuple[str, ...]
    dependent_path: str
    details: Mapping[str, Any]
    lifetime_s: float | None = None
