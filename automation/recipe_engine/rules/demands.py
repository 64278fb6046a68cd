"""Which steps of one run require which version of one artifact, and what suits all of them.

An *artifact* is what a recipe makes for one set of variations, tags and inputs: two steps that ask for it must get the
same version, because each hands it on in the same env keys. When a later step requires something else than was chosen,
the run starts over with the bounds of both (``Restart``); when nothing suits both, ``VersionConflict`` names them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .cachemodel import CacheEntry, CacheKey
from .errors import RecipeError
from .version import ANY_VERSION, VersionRange, intersection

COMMAND_LINE = "the command line"


class Artifact(NamedTuple):
    """What a CacheKey stands for when its version is left aside."""

    recipe_uid: str
    variations: tuple[str, ...]
    tags: tuple[str, ...]
    inputs: tuple[tuple[str, str], ...]


def artifact_of(key: CacheKey) -> Artifact:
    """The artifact that a key asks for."""
    tags = tuple(sorted({*key.extra_tags, *key.derived_tags}))
    return Artifact(key.recipe.uid, key.variations, tags, tuple(sorted(key.inputs.items())))


class Demand(NamedTuple):
    """What one step requires; ``trace`` are the labels from the outermost recipe down to the artifact."""

    version: VersionRange
    trace: tuple[str, ...]

    @property
    def text(self) -> str:
        """The requirement and where it comes from."""
        return f"{self.version.text} for {' -> '.join(self.trace[:-1]) or COMMAND_LINE}"


class Restart(Exception):
    """Not an error: the run has to start over, because a choice made earlier does not suit a later demand."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class VersionConflict(RecipeError):
    """No version suits all steps that need one artifact."""


class Choice(NamedTuple):
    """What a step got: the version that was reported, the exact one that was asked for, and the cache entry."""

    version: str
    asked: str
    entry_uid: str

    def satisfies(self, wanted: VersionRange) -> bool:
        """Whether ``wanted`` allows the version reported, or is the very request that led to it."""
        return (bool(wanted.exact) and wanted.exact == self.asked) or wanted.holds(self.version)


class Demands:
    """The demands of one run, and the bounds that earlier attempts at it ended with."""

    def __init__(self) -> None:
        self._bounds: dict[Artifact, Demand] = {}
        self._demands: dict[Artifact, list[Demand]] = {}
        self._chosen: dict[Artifact, Choice] = {}

    def start_over(self) -> None:
        """Forgets all but the bounds."""
        self._demands.clear()
        self._chosen.clear()

    def knows(self, key: CacheKey) -> bool:
        """Whether the recipe was asked for with these variations before, whatever its tags and inputs were."""
        asked = (key.recipe.uid, key.variations)
        return any(artifact[:2] == asked for artifact in (*self._bounds, *self._chosen))

    def narrowed(self, key: CacheKey, trace: tuple[str, ...], given: Demand | None = None) -> VersionRange:
        """The version that the step at the end of ``trace`` has to ask for: what suits it and all others known so far.

        ``given`` is the version of a lock. An exact request may be reported in full (12.2 as 12.2.140), so it stays as
        it is, and the lock is compared with what comes of it. A recipe that reports a version outside the bounds it was
        asked for is not asked again: each attempt must narrow a bound, so the search ends.

        Raises VersionConflict when nothing suits all, and Restart when a tighter bound may.
        """
        artifact = artifact_of(key)
        bound = self._bounds.get(artifact) or (None if key.version.exact else given)
        demands = self._demands.setdefault(artifact, [bound] if bound else [])
        demand = Demand(key.version, trace)
        if all(known.version != demand.version for known in demands):
            demands.append(demand)
        choice = self._chosen.get(artifact)
        if choice is None or not choice.satisfies(key.version):
            common = _common(demands)
            if common is None:
                raise _conflict(trace[-1], demands)
            if choice and (bound is None or common != bound.version):
                self._bounds[artifact] = Demand(common, trace)
                raise Restart(f"{trace[-1]} {choice.version} was already selected; a later step requires {demand.text}")
        return intersection(key.version, bound.version) or key.version if bound else key.version

    def note(self, key: CacheKey, version: str, entry: CacheEntry | None) -> None:
        """Remembers what a step got; an empty ``version`` is an unknown one."""
        asked = key.version.exact or (entry.record.asked_version if entry and entry.record else "")
        self._chosen.setdefault(artifact_of(key), Choice(version, asked, entry.uid if entry else ""))

    def preferred(self, key: CacheKey, entries: Iterable[CacheEntry]) -> list[CacheEntry]:
        """The entries with the one first that this run took before."""
        choice = self._chosen.get(artifact_of(key))
        return sorted(entries, key=lambda entry: choice is None or entry.uid != choice.entry_uid)


def _common(demands: Iterable[Demand]) -> VersionRange | None:
    common: VersionRange | None = ANY_VERSION
    for demand in demands:
        common = intersection(common, demand.version) if common is not None else None
    return common


def _conflict(label: str, demands: list[Demand]) -> VersionConflict:
    lines = [f"no version of {label} suits all who need it:", *(f"  {demand.text}" for demand in demands)]
    return VersionConflict(
        "\n".join(lines),
        hint="change one of them (--version, --adr.NAME.version), or let each have its own: --mixed_versions",
    )
