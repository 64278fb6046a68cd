"""Who decided what in one step: the history of each env key, and who declared and changed each dependency entry.

``configure`` reports to a ``StepTrace`` (see ``Witness`` in model.py), and so do the contexts of ``cm explain``. It
applies no rule of merging itself: it compares the env before and after each block with what the block offered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ..planning.planned_step import OWN_PLACES
from ..rules.conditions import NOTHING_UNKNOWN, Unknown, decide, has_symbol
from ..rules.env import Env, expand_value
from ..rules.model import (
    PHASES,
    CacheEntry,
    CacheKey,
    ConditionalLayer,
    Configured,
    Dependency,
    Layer,
    Overrides,
    Phase,
    Request,
    Witness,
)
from ..rules.query import Choice, split_words
from ..rules.schema import parse_condition_blocks

Effect = Literal["set", "replaced", "extended", "may set", "may change", "same", "not taken", "removed", "handed down"]
MISSING = object()
ACTING = frozenset(["native script", "dependency", "dependency that cannot be chosen yet"])
"""Sources that give their values when they run; so do hooks."""


class Source(NamedTuple):
    """What offers a value; see ``Origin``."""

    kind: str
    where: str = ""
    detail: str = ""


class Origin(NamedTuple):
    """One entry of a key's history: in ``step``, ``kind`` of ``where`` offered ``value``, with this ``effect``.

    ``value`` is what holds afterwards; for "not taken" it is what was offered. ``detail`` is the origin of a
    dependency's value in that dependency.
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

    @property
    def decides(self) -> bool:
        """Whether it gave the key its value, for a while at least."""
        return self.effect not in ("same", "not taken", "handed down")

    @property
    def is_open(self) -> bool:
        """Whether its value is known only once it has run."""
        return self.effect in ("may set", "may change")


def last_source(history: Sequence[Origin]) -> str:
    """Where a value comes from: what changed it last, in words; through dependencies, the step that made it."""
    deciding = [origin for origin in history if origin.decides]
    if not deciding:
        return history[-1].text if history else ""
    last = deciding[-1]
    if last.kind == "dependency":
        return last.detail or last.where
    alias = last.step.partition(",")[0]
    return last.text if alias in last.text else f"{last.text} of {alias}"


class Change(NamedTuple):
    """A key of a dependency entry that ``by`` changed; ``words`` are the tags it added."""

    key: str
    by: str
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


class Asker(NamedTuple):
    """Where a step comes from: a dependency of ``parent``, a run that its hook starts, or the command line (None).

    ``words`` are those of the query, each with the key of the dependency entry that adds it.
    """

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

    def with_part(self, part: str) -> str:
        """The asker, and for a dependency also who gave its entry this part (``version``, ``env.KEY``)."""
        return self.text if self.dependency is None else f"{self.text} ({self.entry.of_key(part)})"


class OverrideBlock(NamedTuple):
    """A block of ``ad``, or of ``adr`` (recursive), and whose it is."""

    by: str
    overrides: Overrides
    is_recursive: bool


class StepTrace(Witness):
    """What decided in one step; grows while the step is planned.

    ``items`` are the histories of the env keys here, ``inherited`` those from the steps above, ``last`` the env now,
    ``entries`` the origins of the step's dependencies by place. ``choice`` is how its recipe was selected; ``key`` and
    ``found`` are the cache key that was looked for first, and the recipe's entries at that time.
    """

    def __init__(self, label: str, asker: Asker, choice: Choice | None = None, *, is_narrowed: bool = False) -> None:
        self.label = label
        self.asker = asker
        self.choice = choice
        self.is_narrowed = is_narrowed
        self.configured: Configured | None = None
        self.key: CacheKey | None = None
        self.found: tuple[CacheEntry, ...] = ()
        self.items: dict[str, list[Origin]] = {}
        self.inherited: dict[str, tuple[Origin, ...]] = {}
        self.last: Env = {}
        self.entries: dict[tuple[Phase, int], EntryOrigin] = {}
        self.default_version_by = ""
        self.unknown: Unknown = NOTHING_UNKNOWN
        self._own_blocks: list[OverrideBlock] = []
        self._given_blocks: list[OverrideBlock] = []
        self._lists: dict[Phase, tuple[Dependency, ...]] = dict.fromkeys(PHASES, ())
        self._where = ""
        self._constants: dict[str, Source] = {}
        self._conditional: dict[int, str] = {}
        self._settled: tuple[Env, dict[str, list[Origin]]] = ({}, {})
        self._finished: StepTrace | None = None

    def history(self, key: str) -> tuple[Origin, ...]:
        """All that happened to a key, from the outermost step on."""
        return (*self.inherited.get(key, ()), *self.items.get(key, ()))

    def begins(self, request: Request, env: Env) -> None:
        """``env`` is what was handed over, before anything of the recipe."""
        asker, parent = self.asker, self.asker.parent
        giver = parent if asker.dependency else None
        self.inherited = {key: parent.history(key) for key in request.env} if parent else {}
        for key, value in request.env.items():
            if giver is None:
                self._add(key, value, Source("--env or a flag", asker.text), "set")
            else:
                is_known = giver.last.get(key, MISSING) == value
                kind = "env" if is_known else "a default here, or what an earlier step may set: env"
                self._add(key, value, Source(kind, giver.label), "handed down")
        for key, value in request.local_env.items():
            self._note(key, value, env, Source("env" if giver else "flag or entry", asker.with_part(f"env.{key}")))
        for key in request.const:
            is_handed = giver is not None and key in giver._constants
            by = f"{giver.label}, inherited" if giver and is_handed else asker.with_part(f"const.{key}")
            self._constants[key] = Source("const", by)
        self.changed("engine", "", env)
        self._given_blocks = [block for block in self._blocks_given_by(giver, request) if block.overrides]

    def _blocks_given_by(self, giver: StepTrace | None, request: Request) -> Iterable[OverrideBlock]:
        text = self.asker.text
        yield OverrideBlock(f"ad of {text}", request.overrides, is_recursive=False)
        if giver is None:
            yield OverrideBlock(f"adr of {text}", request.recursive_overrides, is_recursive=True)
            return
        for name in ("adr", "add_deps_recursive"):
            yield OverrideBlock(f"{name} of {text}", request.inputs.get(name) or {}, is_recursive=True)
        yield from (block for block in (*giver._own_blocks, *giver._given_blocks) if block.is_recursive)

    def enters(self, where: str, layer: Layer) -> None:
        """The block that ``where`` names is merged next."""
        self._where = where
        self._conditional.update({id(block): where for block in layer.conditional})
        self._keep_layer(where, layer)
        if layer.default_version:
            self.default_version_by = where

    def _keep_layer(self, where: str, layer: Layer) -> None:
        self._constants.update(dict.fromkeys(layer.const, Source("const", where)))
        name = f"{where} of {self.label}"
        blocks = [
            OverrideBlock(f"ad of {name}", layer.overrides, is_recursive=False),
            OverrideBlock(f"adr of {name}", layer.recursive_overrides, is_recursive=True),
        ]
        self._own_blocks += [block for block in blocks if block.overrides and block not in self._own_blocks]

    def sees(self, kind: str, offered: Mapping[str, Any], env: Env) -> None:
        """The current block offered these values for env keys; ``env`` is what holds now."""
        for key, value in offered.items():
            if kind == "held const":
                if env.get(key, MISSING) == self.last.get(key, MISSING):
                    continue
                source = self._constants.get(key, Source("const", self._where))
            elif kind.startswith("input"):
                source = self._constants[key] = Source(kind, self.asker.text)
            else:
                source = Source("the version in effect") if kind == "version" else Source(kind, self._where)
            self._note(key, value, env, source)

    def sees_conditional(self, block: ConditionalLayer, env: Env) -> None:
        """A block of ``update_meta_if_env`` holds and was merged."""
        condition = " and ".join(condition.text for condition in block.conditions)
        where = f"update_meta_if_env ({condition}) in {self._conditional.get(id(block), self._where)}"
        for kind, offered in (("default_env", block.layer.default_env), ("env", block.layer.env)):
            for key, value in offered.items():
                self._note(key, value, env, Source(kind, where))
        self._keep_layer(where, block.layer)

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
                    self.entries[place] = known._replace(changes=(*known.changes, *self._changes(old, dependency)))
            self._lists[phase] = after

    def _changes(self, old: Dependency, new: Dependency) -> Iterable[Change]:
        for path, value in _differences(old.entry, new.entry):
            words: tuple[str, ...] = ()
            if path == "tags":
                words = tuple(word for word in split_words(value) if word not in split_words(old.tags_text))
            yield Change(path, self._changed_by(new, path, value, words), words)

    def _changed_by(self, dependency: Dependency, path: str, value: Any, words: tuple[str, ...]) -> str:
        """The last block of ``ad``/``adr`` that asks for just this of one of the dependency's names."""
        for block in reversed([*self._own_blocks, *self._given_blocks]):
            for handle, changes in block.overrides.items():
                if handle not in dependency.names:
                    continue
                if decide(parse_condition_blocks(changes, handle), self.last).answer == "no":
                    continue
                asked = _asked_for(changes, path, self.last)
                if asked is MISSING:
                    continue
                has_word = path == "tags" and not set(words).isdisjoint(split_words(asked or ""))
                if has_word or (path != "tags" and (isinstance(value, list) or asked == value)):
                    return f"{block.by} for '{handle}'"
        return "an ad or adr"

    def settles(self, env: Env) -> None:
        """``env`` is what configuring gave, placeholders filled in."""
        self.changed("placeholders filled in", "", env)
        self._settled = (dict(self.last), {key: list(known) for key, known in self.items.items()})

    def restarts(self, env: Env) -> None:
        """The step begins to act, maybe once more, from what ``configure`` gave; ``env`` has the engine's keys too."""
        last, items = self._settled
        self.last, self.items = dict(last), {key: list(known) for key, known in items.items()}
        self.changed("engine", "", env)

    def gives(self, kind: str, where: str, offered: Env, env: Env, unknown: Unknown) -> None:
        """A dependency or a cache entry gave ``offered``; of the former's values their origin there is kept."""
        child = self._finished if kind == "dependency" else None
        for key, value in offered.items():
            self._note(key, value, env, Source(kind, where, last_source(child.history(key)) if child else ""))
        self.changed(kind, where, env, unknown)

    def ends(self) -> None:
        """The step is over, and its parent takes what it gives."""
        if self.asker.parent:
            self.asker.parent._finished = self

    def copies(self, copies: Env) -> None:
        """These copies of ``env_key_mappings`` were made."""
        for key, value in copies.items():
            self._note(key, value, copies, Source("env_key_mappings", "recipe"))

    def changed(self, kind: str, where: str, env: Env, unknown: Unknown | None = None) -> None:
        """Whatever ``kind`` of ``where`` is changed the env into ``env``; ``unknown`` is what it may set further."""
        self.unknown = unknown or self.unknown
        for key, value in env.items():
            if self.last.get(key, MISSING) != value:
                self._note(key, value, env, Source(kind, where))
        for key in [key for key in self.last if key not in env and not key.startswith(OWN_PLACES)]:
            self._add(key, "", Source(kind, where), "removed")
            del self.last[key]

    def _add(self, key: str, value: Any, source: Source, effect: Effect) -> None:
        kept = list(value) if isinstance(value, list) else value
        origin = Origin(self.label, source.kind, source.where, kept, effect, source.detail)
        self.items.setdefault(key, []).append(origin)
        if effect != "not taken":
            self.last[key] = kept

    def _note(self, key: str, offered: Any, env: Env, source: Source) -> None:
        """Adds what became of an offered value, unless the same source offered it before and changed nothing now."""
        now, before = env.get(key, MISSING), self.last.get(key, MISSING)
        if now is MISSING:
            return
        if now == before:
            known = [(origin.kind, origin.where, origin.value) for origin in self.items.get(key, ())]
            if (source.kind, source.where, offered) not in known:
                self._add(key, offered, source, "same" if offered == now else "not taken")
            return
        effect: Effect = "set" if before is MISSING else "replaced"
        if has_symbol(now) and (source.kind in ACTING or source.kind.endswith("customize.py")):
            effect = "may set" if before is MISSING else "may change"
        elif isinstance(now, list) and isinstance(before, list):
            effect = "extended"
        self._add(key, now, source, effect)


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """The key paths (two levels) whose values differ."""
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping | None):
            known = before or {}
            yield from ((f"{key}.{inner}", item) for inner, item in value.items() if known.get(inner, MISSING) != item)
        elif before != value:
            yield key, value


def _asked_for(changes: Mapping[str, Any], path: str, env: Env) -> Any:
    """The value that ``changes`` ask for at a key path, placeholders filled in; MISSING for none."""
    key, _, inner = path.partition(".")
    asked = changes.get(key, MISSING)
    if inner:
        asked = asked.get(inner, MISSING) if isinstance(asked, Mapping) else MISSING
    return asked if asked is MISSING else expand_value(asked, env)
