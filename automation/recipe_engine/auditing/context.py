"""What the rules of an audit work on: a recipe folder with everything in it, and all that is registered around it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..rules.env import ENGINE_KEYS, PREFIX, SUCCESSOR_PREFIX, key_matcher
from ..rules.errors import RecipeError
from ..rules.model import PHASES, Dependency, Layer, Recipe
from ..rules.schema import parse_layer
from ..rules.select import IndexEntry, RecipeIndex
from .findings import Finding
from .places import Places

_WORD = re.compile(r"[A-Z][A-Za-z0-9_]{2,}")
WIDE_GLOBS = frozenset({"*", "+*", PREFIX + "*", SUCCESSOR_PREFIX + "*"})
"""Globs of ``new_env_keys`` that match every key."""


class Block(NamedTuple):
    """One layer of a recipe and its key path: ``where`` is empty for the recipe's own, else ends with a dot."""

    where: str
    layer: Layer

    def dependencies(self) -> Iterator[tuple[str, Dependency]]:
        """Every dependency entry with its key path."""
        for phase in PHASES:
            for number, dependency in enumerate(self.layer.dependencies(phase)):
                yield f"{self.where}{phase}[{number}]", dependency

    def overrides(self) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        """Every ``ad`` and ``adr`` with the short name of its key and its handle."""
        yield from (("ad", handle, changes) for handle, changes in self.layer.overrides.items())
        yield from (("adr", handle, changes) for handle, changes in self.layer.recursive_overrides.items())

    def env_keys(self) -> Iterator[str]:
        """The env keys that the block may set, its own and those of dependencies."""
        for mapping in (self.layer.default_env, self.layer.env, self.layer.const):
            yield from mapping
        yield from self.layer.input_mapping.values()
        for _, dependency in self.dependencies():
            yield from (*dependency.env, *dependency.const)
        for _, _, changes in self.overrides():
            mappings = (changes.get(name) for name in ("env", "const"))
            yield from (str(key) for mapping in mappings if isinstance(mapping, Mapping) for key in mapping)


def blocks_of(recipe: Recipe) -> tuple[list[Block], list[RecipeError]]:
    """All layers of a recipe (its own, of variations, of versions, conditional ones); the errors of unreadable ones."""
    sources = [(f"variations.{name}.", variation.source) for name, variation in recipe.variations.items()]
    sources += [(f"versions.{name}.", block) for name, block in recipe.versions.items()]
    blocks, errors = [Block("", recipe.layer)], []
    for where, source in sources:
        try:
            blocks.append(Block(where, parse_layer(source, f"{recipe.meta_path}: {where[:-1]}")))
        except RecipeError as error:
            errors.append(error)
    for block in tuple(blocks):
        for number, inner in enumerate(block.layer.conditional):
            blocks.append(Block(f"{block.where}update_meta_if_env[{number}].", inner.layer))
    return blocks, errors


class AuditedRecipe(NamedTuple):
    """One recipe folder.

    ``recipe`` is None when its metadata cannot be used; ``meta`` holds what could be read. ``blocks`` are its layers,
    ``errors`` say what is wrong with the metadata or with other layers. ``texts`` are its Python files and shell
    scripts by path in the folder, ``files`` the names in the folder itself, ``shell_errors`` what bash says of a script
    that it cannot parse: name to (line, text).
    """

    repo: str
    folder: Path
    file_name: str
    meta: Mapping[str, Any]
    recipe: Recipe | None
    blocks: Sequence[Block]
    errors: Sequence[RecipeError]
    places: Places
    texts: Mapping[str, str]
    files: frozenset[str]
    shell_errors: Mapping[str, tuple[int, str]] = {}

    @property
    def alias(self) -> str:
        """The recipe's alias, or the name of its folder."""
        return self.recipe.id.alias if self.recipe else self.folder.name

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


class Registered(NamedTuple):
    """What all registered recipes have together.

    ``handles`` are the names of all dependencies; ``set_keys`` and ``set_globs`` are the env keys that anything may
    set, ``promised`` those that ``new_env_keys`` name; ``inputs`` is what every recipe understands.
    """

    recipes: RecipeIndex
    handles: frozenset[str]
    set_keys: frozenset[str]
    set_globs: tuple[str, ...]
    promised: frozenset[str]
    inputs: frozenset[str]

    def may_set(self, key: str) -> bool:
        """Whether any recipe or the engine may give an env key a value."""
        return key in self.set_keys or key_matcher(self.set_globs).match(key) is not None


def registered(recipes: Sequence[AuditedRecipe], inputs: Mapping[str, str]) -> Registered:
    """What ``recipes`` have together; ``inputs`` maps what every recipe understands to env keys (or empty texts)."""
    blocks = [block for audited in recipes for block in audited.blocks]
    texts = [text for audited in recipes for text in audited.texts.values()]
    promised = {key for block in blocks for key in block.layer.new_env_keys}
    globs = {key for key in promised if "*" in key}
    return Registered(
        recipes=RecipeIndex([audited.entry for audited in recipes if audited.entry], {}),
        handles=frozenset(name for block in blocks for _, entry in block.dependencies() for name in entry.names),
        set_keys=frozenset(inputs.values()).union(
            *(_WORD.findall(text) for text in texts), *(block.env_keys() for block in blocks)
        ),
        set_globs=tuple(sorted({*ENGINE_KEYS, *(globs - WIDE_GLOBS)})),
        promised=frozenset(promised - globs),
        inputs=frozenset(inputs),
    )


class AuditContext(NamedTuple):
    """What a rule works on: one recipe, and all that is registered."""

    audited: AuditedRecipe
    registered: Registered

    @property
    def blocks(self) -> Sequence[Block]:
        """The layers of the recipe."""
        return self.audited.blocks

    @property
    def recipe(self) -> Recipe:
        """The parsed recipe; only for rules that need one."""
        assert self.audited.recipe is not None
        return self.audited.recipe

    def finding(self, code: str, text: str, key: str = "", hint: str = "") -> Finding:
        """A finding in the metadata file."""
        audited = self.audited
        path, line = str(audited.folder / audited.file_name), audited.places.line(key)
        return Finding(code, audited.repo, audited.alias, path, line, key, text, hint)

    def finding_in(self, name: str, line: int, code: str, text: str, hint: str = "") -> Finding:
        """A finding in another file of the folder."""
        path = str(self.audited.folder / name)
        return Finding(code, self.audited.repo, self.audited.alias, path, line, "", text, hint)


Check = Callable[[AuditContext], Iterable[Finding]]


class Rule(NamedTuple):
    """One rule: the codes that ``check`` may find. ``is_of_recipe``: it needs metadata that the engine can read."""

    codes: tuple[str, ...]
    check: Check
    is_of_recipe: bool


def finds(*codes: str, is_of_recipe: bool = True) -> Callable[[Check], Rule]:
    """Makes a function the rule that finds these codes."""
    return lambda check: Rule(codes, check, is_of_recipe)
