"""The types of the cache: what an entry must be to serve a request, and what an entry is."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

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


class EntryRecord(NamedTuple):
    """What this engine notes in an entry beside CM's keys; None of it exists in entries made by CM itself."""

    fingerprint: str
    recipe_digest: str
    recipe_stamp: str
    explicit: tuple[str, ...]
    variations: tuple[str, ...]
    extra_tags: tuple[str, ...]
    inputs: Mapping[str, str]
    created_utc: str


class CacheEntry(NamedTuple):
    """One folder of the store as its ``_cm.json`` describes it. ``expires_s`` (since 1970) is when its time is over."""

    uid: str
    path: Path
    tags: tuple[str, ...]
    version: str
    recipe: RecipeId
    dependent_path: str
    record: EntryRecord | None
    expires_s: float | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the recipe that made this entry finished; CM marks an unfinished one with the tag ``tmp``."""
        return "tmp" not in self.tags
