"""What an audit looks at: one recipe folder with everything in it, and all that is registered around it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .env import ENGINE_KEYS, PREFIX, SUCCESSOR_PREFIX, key_matcher
from .errors import MetaError, RecipeError
from .findings import Finding
from .index import IndexEntry, ListedIndex, build_index
from .model import PHASES, Dependency, Layer, Recipe
from .places import Places
from .schema import parse_layer

_WORD = re.compile(r"[A-Z][A-Z0-9_]{2,}")
_WIDE_GLOBS = frozenset({"*", PREFIX + "*", SUCCESSOR_PREFIX + "*"})


class Subject(NamedTuple):
    """One recipe folder. ``problem`` is why its metadata cannot be used (then ``recipe`` is None and ``meta`` holds
    what could be read); ``texts`` are its Python files and native scripts by name, ``files`` all names in the folder.
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

    ``uids`` and ``aliases`` map each to the recipes that have it, as ``repo:alias``; ``handles`` are the names of all
    dependencies; ``set_keys`` and ``set_globs`` are the env keys that anything may set; ``inputs`` what every recipe
    understands.
    """

    recipes: ListedIndex
    uids: Mapping[str, tuple[str, ...]]
    aliases: Mapping[str, tuple[str, ...]]
    handles: frozenset[str]
    set_keys: frozenset[str]
    set_globs: tuple[str, ...]
    inputs: frozenset[str]

    def may_set(self, key: str) -> bool:
        """Whether any recipe or the engine may give an env key a value."""
        return key in self.set_keys or key_matcher(self.set_globs).match(key) is not None


def registered(subjects: Sequence[Subject], inputs: Mapping[str, str]) -> Registered:
    """What ``subjects`` have together; ``inputs`` maps what every recipe understands to env keys (or empty texts)."""
    uids: dict[str, list[str]] = {}
    aliases: dict[str, list[str]] = {}
    handles: set[str] = set()
    keys: set[str] = set(inputs.values())
    globs: set[str] = set(ENGINE_KEYS)
    for subject in subjects:
        if subject.recipe:
            name = f"{subject.repo}:{subject.alias}"
            uids.setdefault(subject.recipe.id.uid, []).append(name)
            aliases.setdefault(subject.alias, []).append(name)
        for text in subject.texts.values():
            keys.update(_WORD.findall(text))
        for block in blocks_of(subject)[0]:
            handles.update(name for _, dependency in block.dependencies() for name in dependency.names)
            keys.update(_keys_set(block))
            globs.update(key for key in block.layer.new_env_keys if "*" in key and key not in _WIDE_GLOBS)
    return Registered(
        recipes=build_index([subject.entry for subject in subjects if subject.entry], {}),
        uids={uid: tuple(names) for uid, names in uids.items()},
        aliases={alias: tuple(names) for alias, names in aliases.items()},
        handles=frozenset(handles),
        set_keys=frozenset(keys),
        set_globs=tuple(sorted(globs)),
        inputs=frozenset(inputs),
    )


def _keys_set(block: Block) -> Iterator[str]:
    layer = block.layer
    for mapping in (layer.default_env, layer.env, layer.const):
        yield from mapping
    yield from layer.input_mapping.values()
    yield from (key for key in layer.new_env_keys if "*" not in key)
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


def parse_problem(subject_path: Path, error: Exception) -> str:
    """The text of why a metadata file cannot be used, without the path that it starts with."""
    text = error.message if isinstance(error, MetaError) else str(error)
    return text.removeprefix(f"{subject_path}: ")
