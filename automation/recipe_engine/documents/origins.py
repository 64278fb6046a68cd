"""Who decided what in one step: the history of each env key, and who declared and changed each dependency entry.

A ``StepTrace`` is told by ``configure`` (see ``Witness`` in model.py) and by the frames of ``cm explain``. It applies
no rule of merging itself: it compares the env before and after each block with what the block offered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from ..rules.conditions import NOTHING_UNKNOWN, Unknown, decide, has_symbol
from ..rules.env import Env, expand_value
from ..rules.model import PHASES, ConditionalLayer, Dependency, Layer, Overrides, Phase, Request, Witness
from ..rules.query import split_words
from ..rules.schema import parse_condition_blocks

Effect = Literal["set", "replaced", "extended", "may set", "may change", "same", "not taken", "removed", "handed down"]
MISSING = object()
OWN_KEYS = ("CM_TMP_CURRENT_", "MLC_TMP_CURRENT_")
"""Keys that the engine writes for hooks when a step begins to act."""
ACTING = frozenset(["native script", "dependency", "dependency that cannot be chosen yet"])
"""Sources that give their values when they run; so do hooks."""


class Origin(NamedTuple):
    """One entry of a key's history: in ``step``, ``kind`` of ``where`` offered ``value``, with this ``effect``.

    ``value`` is what holds afterwards, except for "not taken": then it is what was offered in vain. ``detail`` tells
    for the value of a dependency where that one had it from.
    """

    step: str
    kind: str
    where: str
    value: Any
    effect: Effect
    detail: str = ""

    @property
    def text(self) -> str:
        """The source in words."""
        return f"{self.kind} of {self.where}" if self.where else self.kind


class Source(NamedTuple):
    """What offers a value; see ``Origin``."""

    kind: str
    where: str = ""
    detail: str = ""


class Change(NamedTuple):
    """A key of a dependency entry that ``by`` changed; ``words`` are the tags it added."""

    key: str
    by: str
    value: Any
    words: tuple[str, ...] = ()


class EntryOrigin(NamedTuple):
    """Who declared a dependency entry, and who changed it since."""

    declared_by: str
    changes: tuple[Change, ...] = ()

    def of_key(self, key: str) -> str:
        """Who gave the entry its value of ``key``."""
        return next((change.by for change in reversed(self.changes) if change.key == key), self.declared_by)

    def of_word(self, word: str) -> str:
        """Who put a word into the entry's tags."""
        return next((change.by for change in self.changes if word in change.words), self.declared_by)


class Asked(NamedTuple):
    """Where a step comes from: a dependency of ``parent``, a run that its hook starts, or the command line (None)."""

    parent: StepTrace | None = None
    dependency: Dependency | None = None
    phase: Phase | None = None
    entry: EntryOrigin = EntryOrigin("")
    words: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str:
        """The asker in words."""
        if self.parent is None:
            return "command line"
        if self.dependency is None:
            return f"run started by customize.py of {self.parent.label}"
        return f"dependency '{self.dependency.label}' of {self.parent.label}"


class Wish(NamedTuple):
    """A block of ``ad`` or ``adr`` and whose it is."""

    by: str
    overrides: Overrides


class StepTrace(Witness):
    """The histories of one step; grows while the step is thought through."""

    def __init__(self, label: str, asked: Asked) -> None:
        self.label = label
        self.asked = asked
        self.items: dict[str, list[Origin]] = {}
        self.inherited: dict[str, tuple[Origin, ...]] = {}
        self.handed_env: Env = {}
        self.last: Env = {}
        self.entries: dict[tuple[Phase, int], EntryOrigin] = {}
        self.default_version_by = ""
        self.is_narrowed = False
        self.unknown: Unknown = NOTHING_UNKNOWN
        self.recursive_wishes: list[Wish] = []
        self._own_wishes: list[Wish] = []
        self._recursive_asked: list[Wish] = []
        self._asked_wishes: list[Wish] = []
        self._lists: dict[Phase, tuple[Dependency, ...]] = dict.fromkeys(PHASES, ())
        self._where = ""
        self._const_homes: dict[str, Source] = {}
        self._block_homes: dict[int, str] = {}
        self._configured: tuple[Env, dict[str, list[Origin]]] = ({}, {})

    def history(self, key: str) -> tuple[Origin, ...]:
        """All that happened to a key, from the outermost step on."""
        return (*self.inherited.get(key, ()), *self.items.get(key, ()))

    def begins(self, request: Request, env: Env) -> None:
        """``env`` is what was handed over, before anything of the recipe."""
        parent, asker = self.asked.parent, self.asked.text
        self.handed_env = request.env
        if parent is not None:
            self.inherited = {key: parent.history(key) for key in request.env}
        is_asked_for = parent is None or self.asked.dependency is None
        for key, value in request.env.items():
            if is_asked_for:
                self._add(key, value, Source("--env or a flag", asker), "set")
            else:
                known = parent is not None and parent.last.get(key, MISSING) == value
                kind = "env" if known else "a default here, or what an earlier step may set: env"
                self._add(key, value, Source(kind, parent.label if parent else ""), "handed down")
        for key, value in request.local_env.items():
            source = Source("flag or entry" if is_asked_for else "env", self._entry_text("env", key))
            self._note(key, value, env, source)
        for key in request.const:
            handed = parent is not None and not is_asked_for and key in parent.const_keys
            by = f"{parent.label}, handed down" if handed and parent else self._entry_text("const", key)
            self._const_homes[key] = Source("const", by)
        self._rest(env, "engine", "")
        self._take_wishes(request)

    @property
    def const_keys(self) -> frozenset[str]:
        """The keys that hold a constant by now."""
        return frozenset(self._const_homes)

    def _entry_text(self, block: str, key: str) -> str:
        if self.asked.dependency is None:
            return self.asked.text
        by = self.asked.entry.of_key(f"{block}.{key}")
        return f"{self.asked.text} ({by})"

    def _take_wishes(self, request: Request) -> None:
        parent = self.asked.parent
        self._asked_wishes = [Wish(f"ad of {self.asked.text}", request.overrides)] if request.overrides else []
        if parent is not None and self.asked.dependency is not None:
            own = {name: request.inputs.get(name) for name in ("adr", "add_deps_recursive")}
            wishes = [Wish(f"{name} of {self.asked.text}", value) for name, value in own.items() if value]
            self._recursive_asked = [*wishes, *parent.recursive_wishes]
        else:
            wishes = [Wish(f"adr of {self.asked.text}", request.recursive_overrides)]
            self._recursive_asked = wishes if request.recursive_overrides else []
        self.recursive_wishes = list(self._recursive_asked)

    def enters(self, where: str, layer: Layer) -> None:
        """The block that ``where`` names is merged next."""
        self._where = where
        self._block_homes.update({id(block): where for block in layer.conditional})
        self._const_homes.update(dict.fromkeys(layer.const, Source("const", where)))
        self._add_wishes(where, layer)
        if layer.default_version:
            self.default_version_by = where

    def _add_wishes(self, where: str, layer: Layer) -> None:
        name = f"{where} of {self.label}"
        if layer.overrides:
            self._own_wishes.append(Wish(f"ad of {name}", layer.overrides))
        if layer.recursive_overrides:
            self._own_wishes.append(Wish(f"adr of {name}", layer.recursive_overrides))
            position = len(self.recursive_wishes) - len(self._recursive_asked)
            self.recursive_wishes.insert(position, Wish(f"adr of {name}", layer.recursive_overrides))

    def sees(self, kind: str, offered: Mapping[str, Any], env: Env) -> None:
        """The block at hand offered these values for env keys; ``env`` is what holds now."""
        for key, value in offered.items():
            if kind == "held const":
                if env.get(key, MISSING) != self.last.get(key, MISSING):
                    self._note(key, value, env, self._const_homes.get(key, Source("const", self._where)))
            elif kind.startswith("input"):
                self._const_homes[key] = Source(kind, self.asked.text)
                self._note(key, value, env, self._const_homes[key])
            elif kind == "version":
                self._note(key, value, env, Source("the version that holds"))
            else:
                self._note(key, value, env, Source(kind, self._where))

    def sees_conditional(self, block: ConditionalLayer, env: Env) -> None:
        """A block of ``update_meta_if_env`` holds and was merged."""
        condition = " and ".join(condition.text for condition in block.conditions)
        where = f"update_meta_if_env ({condition}) in {self._block_homes.get(id(block), self._where)}"
        for kind, offered in (("default_env", block.layer.default_env), ("env", block.layer.env)):
            for key, value in offered.items():
                self._note(key, value, env, Source(kind, where))
        self._const_homes.update(dict.fromkeys(block.layer.const, Source("const", where)))
        if not any(wish.by.endswith(f"{where} of {self.label}") for wish in self._own_wishes):
            self._add_wishes(where, block.layer)

    def sees_dependencies(self, layer: Layer, *, is_override: bool) -> None:
        """The dependencies after a block was merged or its overrides were applied."""
        for phase in PHASES:
            before, after = self._lists[phase], layer.dependencies(phase)
            for position, dependency in enumerate(after):
                old = before[position] if position < len(before) else None
                place = (phase, position)
                if old is dependency:
                    continue
                if old is None or not is_override:
                    self.entries[place] = EntryOrigin(f"{phase} of {self._where}")
                elif old.entry != dependency.entry:
                    known = self.entries.get(place, EntryOrigin(""))
                    changes = tuple(self._changes(old, dependency))
                    self.entries[place] = known._replace(changes=(*known.changes, *changes))
            self._lists[phase] = after

    def _changes(self, old: Dependency, new: Dependency) -> Iterable[Change]:
        for path, value in _differences(old.entry, new.entry):
            words: tuple[str, ...] = ()
            if path == "tags":
                words = tuple(word for word in split_words(value) if word not in split_words(old.tags_text))
            yield Change(path, self._who_wished(new, path, value, words), value, words)

    def _who_wished(self, dependency: Dependency, path: str, value: Any, words: tuple[str, ...]) -> str:
        """The last block of ``ad``/``adr`` that asks for just this of one of the dependency's names."""
        for wish in reversed([*self._own_wishes, *self._asked_wishes, *self._recursive_asked]):
            for handle, changes in wish.overrides.items():
                is_active = decide(parse_condition_blocks(changes, handle), self.last).answer != "no"
                if handle in dependency.names and is_active and _asks_for(changes, path, self.last, (value, words)):
                    return f"{wish.by} for '{handle}'"
        return "an ad or adr"

    def settles(self, env: Env) -> None:
        """``env`` is what configuring gave, placeholders filled in."""
        self._rest(env, "placeholders filled in", "")
        self._configured = (dict(self.last), {key: list(items) for key, items in self.items.items()})

    def restarts(self, env: Env) -> None:
        """The step begins to act, maybe once more, from what ``configure`` gave; ``env`` has the engine's keys too."""
        last, items = self._configured
        self.last, self.items = dict(last), {key: list(known) for key, known in items.items()}
        self._rest(env, "engine", "")

    def offers(
        self, kind: str, where: str, offered: Mapping[str, Any], env: Env, details: Mapping[str, str] | None = None
    ) -> None:
        """A dependency or a cache entry gave ``offered``; ``env`` is what holds now.

        ``details`` tells for a key where the giver had its value from.
        """
        for key, value in offered.items():
            self._note(key, value, env, Source(kind, where, (details or {}).get(key, "")))
        self._rest(env, kind, where)

    def changed(self, kind: str, where: str, env: Env) -> None:
        """Something changed the env into ``env``."""
        self._rest(env, kind, where)

    def _add(self, key: str, value: Any, source: Source, effect: Effect) -> None:
        row = Origin(self.label, source.kind, source.where, _kept(value), effect, source.detail)
        self.items.setdefault(key, []).append(row)
        if effect != "not taken":
            self.last[key] = _kept(value)

    def _note(self, key: str, offered: Any, env: Env, source: Source) -> None:
        now, before = env.get(key, MISSING), self.last.get(key, MISSING)
        if now is MISSING:
            return
        if now != before:
            effect: Effect = "set" if before is MISSING else "replaced"
            if has_symbol(now) and (source.kind in ACTING or source.kind.endswith("customize.py")):
                effect = "may set" if before is MISSING else "may change"
            elif isinstance(now, list) and isinstance(before, list):
                effect = "extended"
            self._add(key, now, source, effect)
            return
        effect = "same" if offered == now else "not taken"
        value = _kept(offered)
        known = self.items.get(key, [])
        if not any((old.kind, old.where, old.value) == (source.kind, source.where, value) for old in known):
            row = Origin(self.label, source.kind, source.where, value, effect, source.detail)
            self.items.setdefault(key, []).append(row)

    def _rest(self, env: Env, kind: str, where: str) -> None:
        for key, value in env.items():
            before = self.last.get(key, MISSING)
            if before is MISSING or before != value:
                self._note(key, value, env, Source(kind, where))
        for key in [key for key in self.last if key not in env and not key.startswith(OWN_KEYS)]:
            self._add(key, "", Source(kind, where), "removed")
            del self.last[key]


def _kept(value: Any) -> Any:
    return list(value) if isinstance(value, list) else value


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """The key paths (two levels) whose values differ."""
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping | None):
            known = before or {}
            yield from ((f"{key}.{inner}", item) for inner, item in value.items() if known.get(inner, MISSING) != item)
        elif before != value:
            yield key, value


def _asks_for(changes: Mapping[str, Any], path: str, env: Env, found: tuple[Any, tuple[str, ...]]) -> bool:
    value, words = found
    key, _, inner = path.partition(".")
    asked = changes.get(key, MISSING)
    if inner:
        asked = asked.get(inner, MISSING) if isinstance(asked, Mapping) else MISSING
    if asked is MISSING:
        return False
    if key == "tags":
        return not set(words).isdisjoint(split_words(expand_value(asked, env) or ""))
    return isinstance(value, list) or expand_value(asked, env) == value
