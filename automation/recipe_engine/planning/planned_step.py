"""One step on paper: what is known of its env before anything of it has run.

A plan relies on the recipe format's contract and on no reading of code. What leaves a step is what its ``new_env_keys``
let out. Inside a step, a hook or a native script may change any key that is not const: from then on it is a symbol
(conditions.py), also for later dependencies. A ``preprocess`` may also end the step, replace it or change its lists, so
the later dependencies of the step are *not known yet*. What a finished cache entry holds is known.

A recipe may help with a function ``plan(i)`` in its ``customize.py``: called instead of ``preprocess``, it must change
nothing outside ``i['env']`` and ``i['meta']``, and answers what preprocess would. The keys it sets keep their value to
the end of the step; ``{'return': 0, 'runs': [...]}`` lists inputs of further runs that the recipe will start itself; an
error means that a run would end with that error. When it reads a key that is not known, it does not count.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Protocol

from ..disk.metadata import recipe_texts
from ..rules.conditions import KINDS, Unknown, has_symbol, overlap, sources, symbol, with_unknown
from ..rules.deps import kept_env
from ..rules.env import (
    PLACEHOLDER,
    PREFIX,
    SUCCESSOR_PREFIX,
    Env,
    State,
    expand_env,
    expand_text,
    is_glob,
    key_matcher,
    merge_env,
    merge_state,
)
from ..rules.model import CacheEntry, Configured, Phase, Recipe, StepResult, Witness
from ..running.context import StepContext
from ..running.hooks import FILE_NAME, defines
from .plan import PlanTree
from .planned_store import PlannedStore

OWN_PLACES = (f"{PREFIX}TMP_CURRENT_", f"{SUCCESSOR_PREFIX}TMP_CURRENT_")
"""What the keys start with that the engine sets for each step, whatever hooks do."""
ANY = "*"


class WatchedEnv(MutableMapping[str, Any]):
    """An env that keeps which keys were set (also to the value that they had) and which unknown keys were read.

    ``plain`` are the values; to look there does not count.
    """

    def __init__(self, env: Mapping[str, Any], unknown: Unknown) -> None:
        self.plain = dict(env)
        self._unknown = unknown
        self.changed: set[str] = set()
        self.read_unknown: dict[str, None] = {}

    def knows(self, key: str) -> bool:
        """Whether it is known which value the key has, or that it has none; does not count as a look at it."""
        return not (has_symbol(self.plain[key]) if key in self.plain else self._unknown.source(key))

    def _read(self, key: str) -> None:
        if key not in self.changed and not self.knows(key):
            self.read_unknown[key] = None

    def __getitem__(self, key: str) -> Any:
        self._read(key)
        return self.plain[key]

    def __iter__(self) -> Iterator[str]:
        for key in self.plain:
            self._read(key)
        self.read_unknown.update({rule: None for rule, source in self._unknown.rules if is_glob(rule) and source})
        return iter(self.plain)

    def __len__(self) -> int:
        return len(self.plain)

    def __setitem__(self, key: str, value: Any) -> None:
        self.changed.add(key)
        self.plain[key] = value

    def __delitem__(self, key: str) -> None:
        self.changed.add(key)
        del self.plain[key]

    def setdefault(self, key: str, default: Any = None) -> Any:
        """As ``dict.setdefault``; the key counts as set in any case."""
        self[key] = self.get(key, default)
        return self[key]

    def clear(self) -> None:
        """As ``dict.clear``; does not count as a look at the keys."""
        self.changed.update(self.plain)
        self.plain.clear()

    def copy(self) -> dict[str, Any]:
        """As ``dict.copy``."""
        return dict(self)

    def __or__(self, other: Any) -> Any:
        return self.copy() | other

    def __ror__(self, other: Any) -> Any:
        return other | self.copy()

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self


def env_names(meta: Any) -> Iterator[str]:
    """The env keys that metadata, or a part of it, decides by: conditions, defaults, tags from env, ``<<<KEY>>>``."""
    if isinstance(meta, str):
        if "<<<" in meta:
            yield from re.findall(PLACEHOLDER, meta)
    elif isinstance(meta, Mapping):
        for key, value in meta.items():
            if key in (*KINDS, "default_env") and isinstance(value, Mapping):
                yield from map(str, value)
            elif key == "update_tags_from_env":
                yield from _texts(value)
            elif key == "update_tags_from_env_with_prefix" and isinstance(value, Mapping):
                yield from (name for names in value.values() for name in _texts(names))
            elif key == "extra_cache_tags_from_env" and isinstance(value, list):
                yield from (str(row["env"]) for row in value if isinstance(row, Mapping) and row.get("env"))
            yield from env_names(value)
    elif isinstance(meta, list | tuple):
        for item in meta:
            yield from env_names(item)


def _texts(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else [str(item) for item in value or () if item is not None]


class RecipeTexts:
    """What a plan reads of recipes without running it; read once."""

    def __init__(self) -> None:
        self._texts: dict[Path, dict[str, str]] = {}
        self._names: dict[Path, tuple[str, ...]] = {}
        self._names_of_entries: dict[int, tuple[Any, tuple[str, ...]]] = {}

    def of(self, recipe: Recipe) -> dict[str, str]:
        """File name to text of the recipe's Python files and native scripts."""
        if recipe.path not in self._texts:
            self._texts[recipe.path] = recipe_texts(recipe.path)
        return self._texts[recipe.path]

    def env_names(self, recipe: Recipe) -> tuple[str, ...]:
        """The env keys that the recipe's metadata decides by."""
        if recipe.path not in self._names:
            self._names[recipe.path] = tuple(dict.fromkeys(env_names(recipe.meta)))
        return self._names[recipe.path]

    def names_of_entry(self, entry: Mapping[str, Any]) -> tuple[str, ...]:
        """The env keys that the metadata of a dependency decides by; it is kept, so that its id stays its own."""
        if id(entry) not in self._names_of_entries:
            self._names_of_entries[id(entry)] = entry, tuple(env_names(entry))
        return self._names_of_entries[id(entry)][1]

    def has_function(self, recipe: Recipe, name: str) -> bool:
        """Whether customize.py has a hook of this name."""
        return defines(self.of(recipe).get(FILE_NAME, ""), name)


class Planner(Protocol):
    """What a planned step needs of the engine."""

    top_folder: str
    texts: RecipeTexts
    tree: PlanTree
    planned_store: PlannedStore


class PlannedContext(StepContext):
    """One step on paper.

    ``pending`` must turn out true for it to happen; ``open_for`` is what could make it a reuse instead of a run, or
    change what it is made of. ``promised`` are the keys that ``plan(i)`` set, None when it did not count;
    ``facts_of_host`` are the keys that are known without running anything.
    """

    def __init__(self, planner: Planner, configured: Configured, folder: Path, open_for: tuple[str, ...]) -> None:
        super().__init__(configured, folder=folder, log_path=None, top_folder=planner.top_folder)
        self.planner = planner
        self.has_new_folder = folder != Path.cwd() or planner.planned_store.is_making
        if self.has_new_folder:
            self.set_own_keys(TMP_CURRENT_SCRIPT_WORK_PATH=symbol("folder", self.recipe.id.alias))
        self.open_for = open_for
        self.pending: tuple[str, ...] = (*configured.request.pending, *open_for)
        self.may_end_early = False
        self.promised: set[str] | None = None
        self.facts_of_host: Env = {}
        self._note_undecided()
        self.witness = configured.request.origins or Witness()
        self.witness.restarts(self.env)

    def _note_undecided(self) -> None:
        """A part of the metadata depends on unknown keys, so all that it may set is unknown."""
        if self.configured.undecided:
            request = self.configured.request
            self.const, self.const_state = dict(request.const), dict(request.const_state)
            self.set_unknown([ANY], "update_meta_if_env")

    def apply_default_version(self) -> None:
        """As for a run; the block of a default version may depend on unknown keys."""
        super().apply_default_version()
        self._note_undecided()
        self.open_by(*(key for key in self.configured.undecided if not self.open_for))

    def open_by(self, *texts: str) -> None:
        """What the step is made of, or whether it is reused, depends on ``texts``."""
        new = tuple(text for text in texts if text not in self.open_for)
        self.open_for, self.pending = (*self.open_for, *new), (*self.pending, *new)
        self.planner.tree.explain("", new)

    def source_of(self, key: str) -> str:
        """The step that gives the key, as far as that is known."""
        waiting = sources(self.env.get(key, ""))
        return waiting[0].partition(" from ")[2] if waiting else self.unknown.source(key)

    def set_unknown(self, patterns: Iterable[str], source: str) -> None:
        """Notes that keys may be changed: those that are there become symbols, the others are remembered."""
        for pattern in patterns:
            matches = key_matcher((pattern,))
            keys = [key for key in self.env if matches(key)] if is_glob(pattern) else [pattern]
            self.env.update({key: symbol(key, source) for key in keys if not key.startswith(OWN_PLACES)})
            self.unknown = self.unknown.with_rules([(pattern, source)])
        texts, entries = self.planner.texts, (one.entry for rows in self.lists.values() for one in rows)
        names = (name for entry in entries for name in texts.names_of_entry(entry))
        self.env = with_unknown(self.env, (*texts.env_names(self.recipe), *names), self.unknown)
        self.enforce_const()

    def forget(self, what: str) -> None:
        """Code of the recipe ran that may have changed any key but constants and what ``plan(i)`` promised."""
        kept = {key: self.env[key] for key in self.promised or () if key in self.env}
        self.set_unknown([ANY], what)
        self.env.update(kept)
        self.enforce_const()

    def wait_for(self, text: str, *, may_end_early: bool) -> None:
        """The rest of the step depends on what a hook does."""
        self.pending = (*self.pending, text)
        current = self.planner.tree.current
        current.later_waits_for = (*current.later_waits_for, text)
        self.version = symbol("version", self.recipe.id.alias)
        if may_end_early:
            self.may_end_early = True
            if planned := self.planner.planned_store.planned_in(self.folder):
                planned.made_under = (*planned.made_under, text)

    def take_planned(self, result: StepResult, phase: Phase, *, is_certain: bool) -> None:
        """Adds what a planned dependency gives; when it may not happen, its keys are unknown afterwards."""
        kept = kept_env(self.env, self.configured, phase)
        new_env = self._without_local_guesses(result.new_env, phase)
        if not is_certain:
            same = {key for key, value in new_env.items() if self.env.get(key) == value}
            new_env = {key: value if key in same else symbol(key, result.label) for key, value in new_env.items()}
        self.env = merge_env(self.env, new_env)
        if is_certain:
            self.state = merge_state(self.state, result.new_state)
        for source, rules in groupby(result.unknown, itemgetter(1)):
            self.set_unknown([pattern for pattern, _ in rules], source)
        known = {key: value for key, value in new_env.items() if not (has_symbol(value) or isinstance(value, list))}
        self.env = expand_env({**self.env, **known, **kept})  # a pattern is about keys that the dependency may add
        self.enforce_const()
        self.witness.gives("dependency", result.label, result.new_env, self.env, self.unknown)

    def _without_local_guesses(self, new_env: Env, phase: Phase) -> Env:
        """What a dependency gives; a local key that the parent may have by then is unknown, as its own value wins."""
        maybe = self.unknown.outside(self.env)
        local = kept_env({key: value for key, value in new_env.items() if key in maybe}, self.configured, phase)
        return {**new_env, **{key: symbol(key, self.unknown.source(key)) for key in local}}

    def take_entry(self, entry: CacheEntry, new_env: Env, new_state: State) -> None:
        """Adds what an entry holds, be it on disk or planned."""
        super().take_entry(entry, new_env, new_state)
        planned = self.planner.planned_store.planned_in(entry.path)
        self.unknown = self.unknown.with_rules(planned.rules if planned else ())
        self.witness.gives("cache entry", entry.uid, new_env, self.env, self.unknown)

    def let_out(self, env: Env) -> Env:
        """As for a run; of a list just what the caller's lacks leaves the step, which is unknown when that list is."""
        given = with_unknown(self.configured.request.env, env, self.configured.request.unknown)
        new_env, source = super().let_out(env), self.recipe.id.alias
        lists = [key for key, value in new_env.items() if isinstance(value, list) and has_symbol(given.get(key))]
        return {**new_env, **{key: symbol(key, source) for key in lists}}

    def results(self) -> tuple[Env, State]:
        """What would leave the step; keys that are known only from an entry or a run are symbols."""
        new_env, new_state = super().results()
        request, source = self.configured.request, self.recipe.id.alias
        own = self.configured.layer.new_env_keys if request.new_env_keys is None else request.new_env_keys
        allowed = [ANY if has_symbol(expand_text(key, self.env)) else str(expand_text(key, self.env)) for key in own]
        patterns = [pattern for pattern, _ in self.unknown.rules]
        rules = {rule: self.unknown.source(rule) or source for rule in overlap(patterns, allowed)}
        if self.promised is not None:  # of what leaves the step, just what plan(i) set and constants are known
            rules = {**dict.fromkeys(allowed, source), **rules}
            kept = {*self.promised, *self.const}
            new_env = {key: value if key in kept else symbol(key, source) for key, value in new_env.items()}
        missing = [key for key in rules if key in allowed and key not in self.env and not is_glob(key)]
        new_env.update({key: symbol(key, rules[key]) for key in missing})
        if self.open_for or self.may_end_early:
            for key, value in new_env.items():
                if value not in (request.env.get(key), self.facts_of_host.get(key)):
                    new_env[key] = symbol(key, source)
        self.exported = tuple((rule, origin) for rule, origin in rules.items() if rule not in new_env)
        if planned := self.planner.planned_store.planned_in(self.folder):
            planned.rules = self.exported

        return new_env, new_state
