"""The cache as a plan sees it: what is on disk and what earlier steps would have made; nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from ..rules.cachekey import Artifact, artifact_of, entry_tags, misfit, preference
from ..rules.conditions import has_symbol, shown, sources
from ..rules.errors import CycleError
from ..rules.model import CacheEntry, CacheKey, EntryRecord, Maker, Outcome
from ..rules.query import ANY_VERSION, VersionRange, intersection
from ..running.effects import Entries

PREFIX = "planned-"


class PlannedStore:
    """A cache over the ``real`` one, which it only reads; entries that would be made live in memory.

    They are called ``planned-<number>``.
    ``pending_now`` tells what must turn out true for the step at hand: an entry made under a condition surely serves
    only steps that happen under the same one.
    """

    def __init__(self, real: Entries, pending_now: Callable[[], tuple[str, ...]]) -> None:
        self.root = real.root
        self._real = real
        self._pending_now = pending_now
        self._made_under: dict[str, tuple[str, ...]] = {}
        self._planned: dict[str, tuple[CacheEntry, Outcome | None]] = {}
        self._rules: dict[str, tuple[tuple[str, str], ...]] = {}
        self._open: dict[str, tuple[str, ...]] = {}
        self._held: set[str] = set()
        self._replaces: dict[str, str] = {}
        self._unknown_versions: dict[str, VersionRange] = {}
        self.doubtful: dict[Artifact, str] = {}
        self._reason = ""
        self.asked: Callable[[CacheKey], None] = lambda key: None

    def is_planned(self, entry: CacheEntry | None) -> bool:
        """Whether the entry would only be made."""
        return entry is not None and entry.uid in self._planned

    @property
    def is_making(self) -> bool:
        """Whether steps work in the folder of an entry that gets it only when it is made."""
        return bool(self._held)

    def take_reason(self) -> str:
        """Why the entry that was started last is not a reused one; told once."""
        reason, self._reason = self._reason, ""
        return reason

    def is_open_for(self, folder: Path) -> tuple[str, ...]:
        """What it depends on whether the entry planned in ``folder`` would be made at all; empty when it surely is."""
        return self._open.get(folder.name, ())

    def forget_planned(self) -> None:
        """Starts again with what is on disk; what is doubtful stays so."""
        for known in (
            self._planned, self._made_under, self._rules, self._open, self._unknown_versions, self._replaces
        ):  # fmt: skip
            known.clear()

    def doubt(self, folder: Path, text: str) -> None:
        """The entry planned in ``folder`` is there for later steps only if ``text`` turns out so."""
        if folder.name in self._planned:
            self._made_under[folder.name] = (*self._made_under[folder.name], text)

    def has_doubtful(self, recipe_uid: str) -> bool:
        """Whether a planned entry of a recipe may not be there, or may have tags that are not known yet."""
        planned = [uid for uid, (entry, outcome) in self._planned.items() if outcome and entry.recipe.uid == recipe_uid]
        return any(self._made_under.get(uid) or uid in self._unknown_versions for uid in planned)

    def rules_of(self, entry: CacheEntry) -> tuple[tuple[str, str], ...]:
        """The keys and globs that a planned entry may give beside those it surely gives, with their step."""
        return self._rules.get(entry.uid, ())

    def keep_rules(self, folder: Path, rules: tuple[tuple[str, str], ...]) -> None:
        """Remembers what ``rules_of`` answers for the entry planned in ``folder``."""
        self._rules[folder.name] = rules

    def lock(self, key: CacheKey, what: str, timeout_s: float | None = None) -> AbstractContextManager[None]:
        """Locks nothing; notices a step that needs itself, as a run would."""
        return self._hold(key.fingerprint, what)

    @contextmanager
    def _hold(self, fingerprint: str, what: str) -> Iterator[None]:
        if fingerprint in self._held:
            raise CycleError(f"{what} needs, through its dependencies, the very entry it is making")
        self._held.add(fingerprint)
        try:
            yield
        finally:
            self._held.discard(fingerprint)

    @contextmanager
    def held(self, entry: CacheEntry, key: CacheKey | None = None) -> Iterator[bool]:
        """Locks nothing: a plan changes no entry."""
        yield True

    def entries(self, *, refresh: bool = False) -> list[CacheEntry]:
        """The entries on disk, then the planned ones."""
        return [*self._real.entries(), *(entry for entry, outcome in self._planned.values() if outcome)]

    def entries_of(self, recipe_uid: str, *, refresh: bool = False) -> list[CacheEntry]:
        """The entries of one recipe on disk, then the planned ones."""
        planned = [entry for entry, outcome in self._planned.values() if outcome and entry.recipe.uid == recipe_uid]
        return [*self._real.entries_of(recipe_uid), *planned]

    def find(self, key: CacheKey, *, refresh: bool = False) -> list[CacheEntry]:
        """The entries that surely fit, best first; ``asked`` is called first."""
        self.asked(key)
        finished = [entry for entry, outcome in self._planned.values() if outcome]
        fitting = [
            entry
            for entry in finished
            if entry.recipe.uid == key.recipe.uid and not misfit(entry, key) and not self._conditions_of(entry, key)
        ]
        replaced = {old for uid, old in self._replaces.items() if self._planned[uid][1]}  # once the new one is finished
        real = [entry for entry in self._real.find(key) if entry.uid not in replaced]
        found = sorted((*real, *fitting), key=lambda entry: preference(entry, key))
        if not found and refresh:
            self._reason = self.nearest_text(key)
        return found

    def _conditions_of(self, entry: CacheEntry, key: CacheKey) -> tuple[str, ...]:
        """What must turn out so for an entry to serve ``key``, beyond what the step at hand needs anyway."""
        given = self._pending_now()
        found = tuple(text for text in self._made_under.get(entry.uid, ()) if text not in given)
        asked = self._unknown_versions.get(entry.uid)
        is_within = asked is None or intersection(asked, key.version) == asked
        return found if is_within else (*found, f"the version that {entry.recipe.alias} finds")

    def nearest_text(self, key: CacheKey) -> str:
        """Why nothing in the cache serves ``key``: the nearest entry on disk and what differs."""
        rows = [
            (len(set(key.required_tags) - set(entry.tags)), entry.uid, misfit(entry, key))
            for entry in self._real.entries_of(key.recipe.uid)
            if entry.is_complete
        ]
        if not rows:
            return "not in the cache"
        _, uid, difference = min(rows)
        return f"not in the cache; nearest entry {uid}: {shown(difference) or 'it is damaged'}"

    def problem(self, entry: CacheEntry, *, is_thorough: bool = False) -> str:
        """What is wrong with an entry on disk; nothing with a planned one."""
        return "" if entry.uid in self._planned else self._real.problem(entry, is_thorough=is_thorough)

    def load(self, entry: CacheEntry) -> tuple[dict[str, Any], dict[str, Any]]:
        """What an entry gives."""
        _, outcome = self._planned.get(entry.uid, (None, None))
        return (dict(outcome.new_env), dict(outcome.new_state)) if outcome else self._real.load(entry)

    def start(self, key: CacheKey, maker: Maker, replaced: CacheEntry | None = None) -> CacheEntry:
        """A planned entry; notes what it depends on whether it would be made."""
        uid = f"{PREFIX}{len(self._planned) + 1}"
        if replaced:
            self._replaces[uid] = replaced.uid
        record = EntryRecord(
            fingerprint=key.fingerprint,
            recipe_digest="",
            recipe_stamp="",
            explicit=key.explicit,
            variations=key.variations,
            extra_tags=key.extra_tags,
            inputs=dict(key.inputs),
            created_utc="",
            asked_version=key.version.exact,
        )
        path = self.root / uid
        entry = CacheEntry(uid, path, ("tmp", *key.required_tags), "", key.recipe, "", record)
        self._made_under[uid] = self._pending_now()
        self._open[uid] = self._waits_for(key)
        self._planned[uid] = (entry, None)
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
        version = "" if has_symbol(outcome.version) else outcome.version
        if has_symbol(outcome.version):
            self._unknown_versions[entry.uid] = key.version
        tags = entry_tags(key, version, outcome.added_tags)
        if not version:  # not the one that was asked for: a hook may find another
            tags = tuple(tag for tag in tags if not tag.startswith("version-"))
        finished = entry._replace(tags=tags, version=version)
        self._planned[entry.uid] = (finished, outcome)
        return finished

    def retire(self, entry: CacheEntry, reason: str) -> None:
        """A run would mark the entry; a plan does not."""

    def put_away(self, entry: CacheEntry, reason: str, key: CacheKey | None = None) -> None:
        """A run would remove the entry; a plan does not."""

    def claim(self, entry: CacheEntry) -> str:
        """A plan uses nothing."""
        return ""

    def note_use(self, entry: CacheEntry) -> None:
        """A plan uses nothing."""

    def watch_child_uses(self) -> None:
        """A plan starts no processes."""

    def remove(self, entry: CacheEntry) -> None:
        """Forgets a planned entry."""
        self._planned.pop(entry.uid, None)
        self._replaces.pop(entry.uid, None)
