"""The cache as a plan sees it: what is on disk and what earlier steps would have made; nothing is written."""

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..rules.cachekey import Artifact, artifact_of, begun_entry, entry_tags, misfit, preference, replacements
from ..rules.conditions import has_symbol, shown, sources
from ..rules.errors import CycleError
from ..rules.model import CacheEntry, CacheKey, Maker, Outcome
from ..rules.query import ANY_VERSION, VersionRange, intersection
from ..running.effects import Entries

PREFIX = "planned-"


@dataclasses.dataclass
class PlannedEntry:
    """An entry that would be made, finished once it has an ``outcome``.

    ``made_under`` must turn out true for it to be there; ``may_exist`` is what decides whether another entry serves in
    its place, empty when none could. ``rules`` are the keys and globs that it may give in addition to those it surely
    gives, with their step. ``bounds`` is the version asked for, when its recipe finds one that is not known yet.
    """

    entry: CacheEntry
    made_under: tuple[str, ...]
    may_exist: tuple[str, ...]
    outcome: Outcome | None = None
    rules: tuple[tuple[str, str], ...] = ()
    bounds: VersionRange | None = None


class PlannedStore:
    """A cache over the ``real`` one, which it only reads; entries that would be made live in memory.

    ``pending_now`` returns what must turn out true for the current step: an entry made under a condition surely serves
    only steps that happen under the same one. ``doubtful`` has the artifacts of which it is not known which entry
    serves, with the reason. ``on_find`` is called with each key before it is looked for.
    """

    def __init__(self, real: Entries, pending_now: Callable[[], tuple[str, ...]]) -> None:
        self.root = real.root
        self._real = real
        self._pending_now = pending_now
        self._planned: dict[str, PlannedEntry] = {}
        self._count = 0
        self._held: set[str] = set()
        self._reason = ""
        self.doubtful: dict[Artifact, str] = {}
        self.on_find: Callable[[CacheKey], None] = lambda key: None

    def is_planned(self, entry: CacheEntry | None) -> bool:
        """Whether the entry would only be made."""
        return entry is not None and entry.uid in self._planned

    @property
    def is_making(self) -> bool:
        """Whether steps work in the folder of an entry that gets it only when it is made."""
        return bool(self._held)

    def take_reason(self) -> str:
        """Why no entry served the key that was looked for last; returned once."""
        reason, self._reason = self._reason, ""
        return reason

    def planned_in(self, folder: Path) -> PlannedEntry | None:
        """The entry planned in ``folder``, to be read and changed; None when none is."""
        planned = self._planned.get(folder.name)
        return planned if planned and planned.entry.path == folder else None

    def forget_planned(self) -> None:
        """Starts again with what is on disk; what is doubtful stays so."""
        self._planned.clear()
        self._count = 0

    def _finished(self, recipe_uid: str = "") -> list[PlannedEntry]:
        rows = [planned for planned in self._planned.values() if planned.outcome]
        return [planned for planned in rows if recipe_uid in ("", planned.entry.recipe.uid)]

    def has_doubtful(self, recipe_uid: str) -> bool:
        """Whether a planned entry of a recipe may not be there, or may have tags that are not known yet."""
        return any(planned.made_under or planned.bounds for planned in self._finished(recipe_uid))

    @contextmanager
    def lock(self, key: CacheKey, what: str, timeout_s: float | None = None) -> Iterator[None]:
        """Locks nothing; notices a step that needs itself, as a run would."""
        if key.fingerprint in self._held:
            raise CycleError(f"{what} needs, through its dependencies, the entry it is building")
        self._held.add(key.fingerprint)
        try:
            yield
        finally:
            self._held.discard(key.fingerprint)

    @contextmanager
    def held(self, entry: CacheEntry, key: CacheKey | None = None) -> Iterator[bool]:
        """Locks nothing: a plan changes no entry."""
        yield True

    def entries_of(self, recipe_uid: str, *, refresh: bool = False) -> list[CacheEntry]:
        """The entries of one recipe on disk, then the planned ones."""
        return [*self._real.entries_of(recipe_uid), *(planned.entry for planned in self._finished(recipe_uid))]

    def find(self, key: CacheKey, *, refresh: bool = False) -> list[CacheEntry]:
        """The entries that surely fit, best first."""
        self.on_find(key)
        planned = [row.entry for row in self._finished(key.recipe.uid) if not misfit(row.entry, key)]
        sure = [entry for entry in planned if not self._conditions_of(entry, key)]
        replaced = replacements(row.entry for row in self._finished())
        real = [entry for entry in self._real.find(key) if entry.uid not in replaced]
        found = sorted((*real, *sure), key=lambda entry: preference(entry, key))
        if not found and refresh:
            self._reason = self._nearest_text(key)
        return found

    def _conditions_of(self, entry: CacheEntry, key: CacheKey) -> tuple[str, ...]:
        """What must turn out true for an entry to serve ``key``, beyond what the current step needs anyway."""
        planned = self._planned.get(entry.uid)
        if planned is None:
            return ()
        given, bounds = self._pending_now(), planned.bounds
        found = tuple(text for text in planned.made_under if text not in given)
        is_within = bounds is None or intersection(bounds, key.version) == bounds
        return found if is_within else (*found, f"the version that {entry.recipe.alias} finds")

    def _nearest_text(self, key: CacheKey) -> str:
        """Why no entry in the cache serves ``key``: the nearest entry on disk and what differs."""
        rows = [
            (len(set(key.required_tags) - set(entry.tags)), entry.uid, misfit(entry, key))
            for entry in self._real.entries_of(key.recipe.uid)
            if entry.is_complete
        ]
        if not rows:
            return "not in the cache"
        _, uid, difference = min(rows)
        return f"not in the cache, nearest entry {uid}: {shown(difference) or 'it is damaged'}"

    def problem(self, entry: CacheEntry, *, is_thorough: bool = False) -> str:
        """What is wrong with an entry on disk; nothing with a planned one."""
        return "" if self.is_planned(entry) else self._real.problem(entry, is_thorough=is_thorough)

    def load(self, entry: CacheEntry) -> tuple[dict[str, Any], dict[str, Any]]:
        """What an entry gives."""
        planned = self._planned.get(entry.uid)
        outcome = planned.outcome if planned else None
        return (dict(outcome.new_env), dict(outcome.new_state)) if outcome else self._real.load(entry)

    def start(self, key: CacheKey, maker: Maker, replaced: CacheEntry | None = None) -> CacheEntry:
        """A planned entry."""
        self._count += 1
        path = self.root / f"{PREFIX}{self._count}"
        entry = begun_entry(key, maker, path, "", [replaced] if replaced else ())
        self._planned[entry.uid] = PlannedEntry(entry, self._pending_now(), self._waits_for(key))
        return entry

    def _waits_for(self, key: CacheKey) -> tuple[str, ...]:
        """What is unknown in ``key`` or in an entry so that the entry might serve after all; empty when none could."""
        if artifact_of(key) in self.doubtful:
            return (self.doubtful[artifact_of(key)],)
        for entry in self.entries_of(key.recipe.uid):
            if not entry.is_complete:
                continue
            conditions = self._conditions_of(entry, key)
            own_unknown = [tag for tag in entry.tags if has_symbol(tag)]
            asked_unknown = [tag for tag in (*key.required_tags, *key.extra_tags) if has_symbol(tag)]
            lenient = key._replace(
                required_tags=tuple(tag for tag in key.required_tags if not has_symbol(tag)),
                inputs={name: value for name, value in key.inputs.items() if not has_symbol(value)},
            )
            if conditions or own_unknown:  # its hooks may add tags and find any version
                lenient = lenient._replace(required_tags=(), excluded_tags=(), version=ANY_VERSION)
            if (conditions or lenient != key) and not misfit(entry, lenient):
                unknown = sources([*asked_unknown, *own_unknown, *key.inputs.values()])
                return (*conditions, *unknown) or ("its version",)
        return ()

    def commit(self, entry: CacheEntry, key: CacheKey, outcome: Outcome) -> CacheEntry:
        """A planned entry that later steps of the plan find."""
        planned = self._planned[entry.uid]
        planned.outcome = outcome
        version = outcome.version
        if has_symbol(version):
            version, planned.bounds = "", key.version
        tags = entry_tags(key, version, outcome.added_tags, entry.tags)
        if not version:  # not the one that was asked for: a hook may find another
            tags = tuple(tag for tag in tags if not tag.startswith("version-"))
        planned.entry = entry._replace(tags=tags, version=version)
        return planned.entry

    def remove(self, entry: CacheEntry) -> None:
        """Forgets a planned entry."""
        self._planned.pop(entry.uid, None)

    def _nothing(self, *_: Any, **__: Any) -> Any:
        """A run marks, removes and uses entries; a plan does not."""
        return ""

    retire = put_away = claim = note_use = watch_child_uses = _nothing
