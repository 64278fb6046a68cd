"""What an audit looks at: one recipe folder with everything in it, and all that is registered around it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..rules.env import ENGINE_KEYS, PREFIX, SUCCESSOR_PREFIX, key_matcher
from ..rules.errors import RecipeError
from ..rules.index import IndexEntry
from ..rules.model import PHASES, Dependency, Layer, Recipe
from ..rules.places import Places
from ..rules.schema import parse_layer
from ..rules.tags import TagQuery
from .findings import Finding

_WORD = re.compile(r"[A-Z][A-Za-z0-9_]{2,}")
WIDE_GLOBS = frozenset({"*", "+*", PREFIX + "*", SUCCESSOR_PREFIX + "*"})
"""Globs of ``new_env_keys`` that hold nothing back."""


class Subject(NamedTuple):
    """One recipe folder. ``problem`` is why its metadata cannot be used (then ``recipe`` is None and ``meta`` holds
    what could be read); ``texts`` are its Python files and shell scripts by path in the folder, ``files`` the names in
    the folder itself, ``shell_errors`` what bash says of a script that it cannot parse: name to (line, text).
    """

    repo: str
    folder: Path
    file_name: str
    meta: Mapping[str, Any]
    recipe: Recipe | None
    problem: str
    places: Places
    texts: Mapping[str, str]
    files: frozenset[str]
    shell_errors: Mapping[str, tuple[int, str]] = {}

    @property
    def alias(self) -> str:
        """The recipe's alias, or the name of its folder."""
        return self.recipe.id.alias if self.recipe else self.folder.name

    def finding(self, code: str, text: str, key: str = "", hint: str = "") -> Finding:
        """A finding in the metadata file."""
        path = str(self.folder / self.file_name)
        return Finding(code, self.repo, self.alias, path, self.places.line(key), key, text, hint)

    def finding_in(self, code: str, text: str, place: tuple[str, int], hint: str = "") -> Finding:
        """A finding in another file; ``place`` is its name and a line."""
        return Finding(code, self.repo, self.alias, str(self.folder / place[0]), place[1], "", text, hint)

    @property
    def entry(self) -> IndexEntry | None:
        """The recipe as selection sees it."""
        if self.recipe is None:
            return None
        return IndexEntry(
            alias=self.recipe.id.alias,
            uid=self.recipe.id.uid,
            path=self.folder,
            repo_path=self.recipe.repo_path,
            repo_alias=self.repo,
            tags=frozenset(self.recipe.tags),
            variations=frozenset(self.recipe.variations),
            sort=0,
            is_cached=self.recipe.is_cached,
        )


class Block(NamedTuple):
    """One layer of a recipe and where it stands: ``where`` is empty for the recipe's own, else ends with a dot."""

    where: str
    layer: Layer

    def dependencies(self) -> Iterator[tuple[str, Dependency]]:
        """Every dependency entry with its key path."""
        for phase in PHASES:
            for number, dependency in enumerate(self.layer.dependencies(phase)):
                yield f"{self.where}{phase}[{number}]", dependency


def blocks_of(subject: Subject) -> tuple[list[Block], list[Finding]]:
    """All layers of a recipe (its own, of variations, of versions, conditional ones); the blocks that do not read."""
    recipe = subject.recipe
    if recipe is None:
        return [], []
    sources = [(f"variations.{name}.", variation.source) for name, variation in recipe.variations.items()]
    sources += [(f"versions.{name}.", block) for name, block in recipe.versions.items()]
    blocks, findings = [Block("", recipe.layer)], []
    for where, source in sources:
        try:
            blocks.append(Block(where, parse_layer(source, f"{recipe.meta_path}: {where[:-1]}")))
        except RecipeError as error:
            findings.append(wrong_value(subject, error))
    for block in tuple(blocks):
        blocks += [
            Block(f"{block.where}update_meta_if_env[{number}].", inner.layer)
            for number, inner in enumerate(block.layer.conditional)
        ]
    return blocks, findings


def wrong_value(subject: Subject, error: RecipeError) -> Finding:
    """The finding for a value that the reader of recipes refused."""
    _, _, rest = error.message.partition(": ")
    key, _, text = rest.partition(": ")
    return subject.finding("wrong-type", text or error.message, key, error.hint)


class Registered(NamedTuple):
    """What all registered recipes have together.

    ``entries`` are the recipes as selection sees them, ``by_tag`` and ``by_name`` the places in it of those with a tag,
    an alias or a uid; ``handles`` are the names of all dependencies; ``set_keys`` and ``set_globs`` are the env keys
    that anything may set, ``promised`` those that ``new_env_keys`` name; ``inputs`` is what every recipe understands.
    """

    entries: tuple[IndexEntry, ...]
    by_tag: Mapping[str, frozenset[int]]
    by_name: Mapping[str, tuple[int, ...]]
    handles: frozenset[str]
    set_keys: frozenset[str]
    set_globs: tuple[str, ...]
    promised: frozenset[str]
    inputs: frozenset[str]

    def may_set(self, key: str) -> bool:
        """Whether any recipe or the engine may give an env key a value."""
        return key in self.set_keys or key_matcher(self.set_globs).match(key) is not None

    def answers(self, query: TagQuery) -> tuple[IndexEntry, ...]:
        """The recipes that have the tags of a query, whatever their variations."""
        places = [self.by_tag.get(tag, NOBODY) for tag in query.all_of]
        found = frozenset.intersection(*places) if places else frozenset(range(len(self.entries)))
        for tag in query.none_of:
            found -= self.by_tag.get(tag, NOBODY)
        return tuple(self.entries[place] for place in sorted(found))

    def named(self, name: str) -> tuple[IndexEntry, ...]:
        """The recipes with this alias or uid."""
        return tuple(self.entries[place] for place in self.by_name.get(name, ()))

    def twins(self, entry: IndexEntry) -> tuple[IndexEntry, ...]:
        """The other recipes that have all tags of a recipe."""
        found = self.answers(TagQuery(all_of=tuple(entry.tags)))
        return tuple(other for other in found if other.path != entry.path)


NOBODY: frozenset[int] = frozenset()


def registered(subjects: Sequence[Subject], inputs: Mapping[str, str]) -> Registered:
    """What ``subjects`` have together; ``inputs`` maps what every recipe understands to env keys (or empty texts)."""
    handles: set[str] = set()
    keys: set[str] = set(inputs.values())
    globs: set[str] = set(ENGINE_KEYS)
    promised: set[str] = set()
    for subject in subjects:
        for text in subject.texts.values():
            keys.update(_WORD.findall(text))
        for block in blocks_of(subject)[0]:
            handles.update(name for _, dependency in block.dependencies() for name in dependency.names)
            keys.update(_keys_set(block))
            globs.update(key for key in block.layer.new_env_keys if "*" in key and key not in WIDE_GLOBS)
            promised.update(key for key in block.layer.new_env_keys if "*" not in key)
    entries = tuple(subject.entry for subject in subjects if subject.entry)
    by_tag: dict[str, set[int]] = {}
    by_name: dict[str, tuple[int, ...]] = {}
    for place, entry in enumerate(entries):
        for name in {entry.alias, entry.uid}:
            by_name[name] = (*by_name.get(name, ()), place)
        for tag in entry.tags:
            by_tag.setdefault(tag, set()).add(place)
    return Registered(
        entries=entries,
        by_tag={tag: frozenset(places) for tag, places in by_tag.items()},
        by_name=by_name,
        handles=frozenset(handles),
        set_keys=frozenset(keys),
        set_globs=tuple(sorted(globs)),
        promised=frozenset(promised),
        inputs=frozenset(inputs),
    )


def _keys_set(block: Block) -> Iterator[str]:
    layer = block.layer
    for mapping in (layer.default_env, layer.env, layer.const):
        yield from mapping
    yield from layer.input_mapping.values()
    for _, dependency in block.dependencies():
        yield from _env_of(dependency.entry)
    for overrides in (layer.overrides, layer.recursive_overrides):
        for changes in overrides.values():
            yield from _env_of(changes)


def _env_of(entry: Mapping[str, Any]) -> Iterable[str]:
    for name in ("env", "const"):
        found = entry.get(name)
        if isinstance(found, Mapping):
            yield from map(str, found)


class Look(NamedTuple):
    """What a rule looks at: one recipe, its layers, and all that is registered."""

    subject: Subject
    blocks: Sequence[Block]
    registered: Registered

    @property
    def recipe(self) -> Recipe:
        """The parsed recipe; only asked for by rules that need one."""
        assert self.subject.recipe is not None
        return self.subject.recipe
