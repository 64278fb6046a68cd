"""What the rules of an audit work on: recipe folders with everything in them, and what all recipes have together."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..rules.env import ENGINE_KEYS, PREFIX, SUCCESSOR_PREFIX, key_matcher
from ..rules.errors import RecipeError
from ..rules.keys import LIST_OF
from ..rules.model import PHASES, Dependency, InputDescription, Layer, Recipe
from ..rules.query import IndexEntry, RecipeIndex
from ..rules.schema import parse_layer
from .findings import Finding

_LAST_PART = re.compile(r"(?:\.|^)[^.\[\]]*$|\[\d+\]$")
_WORD = re.compile(r"[A-Z][A-Za-z0-9_]{2,}")
CONDITIONAL = "update_meta_if_env"
WIDE_GLOBS = frozenset({"*", "+*", PREFIX + "*", SUCCESSOR_PREFIX + "*"})
"""Globs of ``new_env_keys`` that match every key."""


class Places(NamedTuple):
    """Positions in a YAML file: ``lines`` maps a key path (``deps[0].tags``) to its line, counted from 1; ``repeated``
    lists (key path, line) of repeated keys; ``plain`` holds the key paths of texts written without quotes.
    """

    lines: dict[str, int]
    repeated: tuple[tuple[str, int], ...] = ()
    plain: frozenset[str] = frozenset()

    def line(self, key: str) -> int:
        """The line of a key path, or of the nearest one around it; 0 when there is none."""
        while key and key not in self.lines:
            shorter = _LAST_PART.sub("", key)
            key = shorter if shorter != key else ""
        return self.lines.get(key, 0)


def places_of(text: str) -> Places:
    """The places in a YAML (or JSON) text; none when it does not parse."""
    import yaml  # here, because only an audit needs it

    try:
        root = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError:
        return Places({})
    nodes = list(_below(root, "", frozenset()))
    return Places(
        lines={path: line for path, line, _, _ in nodes},
        repeated=tuple((path, line) for path, line, _, is_repeated in nodes if is_repeated),
        plain=frozenset(path for path, _, node, _ in nodes if not isinstance(node.value, list) and not node.style),
    )


def _below(parent: Any, path: str, above: frozenset[int]) -> Iterator[tuple[str, int, Any, bool]]:
    """The nodes below another one: key path, line, value, and whether its key was there before. An alias that leads
    back to a node above is not followed.
    """
    if id(parent) in above or not isinstance(getattr(parent, "value", None), list):
        return
    seen: set[str] = set()
    for number, item in enumerate(parent.value):
        key, value = item if parent.id == "mapping" else (item, item)
        name = f"{path}[{number}]" if key is value else f"{path}.{key.value}" if path else str(key.value)
        yield name, key.start_mark.line + 1, value, name in seen
        seen.add(name)
        yield from _below(value, name, above | {id(parent)})


class Block(NamedTuple):
    """One layer of a recipe and its key path: ``where`` is empty for the recipe's own, else ends with a dot.

    ``source`` is the layer as written, ``place`` what keys.py calls such a block.
    """

    where: str
    layer: Layer
    source: Mapping[str, Any]
    place: str

    def dependencies(self) -> Iterator[tuple[str, Dependency]]:
        """Every dependency entry with its key path."""
        for phase in PHASES:
            for number, dependency in enumerate(self.layer.dependencies(phase)):
                yield f"{self.where}{phase}[{number}]", dependency

    def overrides(self) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        """Every ``ad`` and ``adr`` with the short name of its key and its handle."""
        yield from (("ad", handle, changes) for handle, changes in self.layer.overrides.items())
        yield from (("adr", handle, changes) for handle, changes in self.layer.recursive_overrides.items())

    def envs(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Every mapping of env keys to values, the block's own and those of dependencies, with its key path."""
        yield from ((f"{self.where}{name}", getattr(self.layer, name)) for name in ("default_env", "env", "const"))
        for where, dependency in self.dependencies():
            yield f"{where}.env", dependency.env
            yield f"{where}.const", dependency.const

    def env_keys(self) -> Iterator[str]:
        """The env keys that the block may set."""
        yield from self.layer.input_mapping.values()
        changed = [changes.get(name) for _, _, changes in self.overrides() for name in ("env", "const")]
        for env in (*(env for _, env in self.envs()), *changed):
            yield from map(str, env if isinstance(env, Mapping) else ())


def blocks_of(recipe: Recipe) -> tuple[list[Block], list[RecipeError]]:
    """All layers of a recipe (its own, of variations, of versions, conditional ones); the errors of unreadable ones."""
    sources = [("variation", f"variations.{name}.", item.source) for name, item in recipe.variations.items()]
    sources += [("version", f"versions.{name}.", block) for name, block in recipe.versions.items()]
    blocks, errors = [Block("", recipe.layer, recipe.meta, "recipe")], []
    for place, where, source in sources:
        try:
            blocks.append(Block(where, parse_layer(source, f"{recipe.meta_path}: {where[:-1]}"), source, place))
        except RecipeError as error:
            errors.append(error)
    for block in tuple(blocks):
        for number, inner in enumerate(block.layer.conditional):
            source = block.source[CONDITIONAL][number] or {}
            blocks.append(Block(f"{block.where}{CONDITIONAL}[{number}].", inner.layer, source, CONDITIONAL))
    return blocks, errors


class AuditedRecipe(NamedTuple):
    """One recipe folder.

    ``parsed`` is None when its metadata cannot be used; ``meta`` holds what could be read. ``blocks`` are its layers,
    ``errors`` say what is wrong with the metadata or with other layers. ``texts`` are its Python files and shell
    scripts by path in the folder, ``files`` the names in the folder itself, ``shell_errors`` what bash says of a script
    that it cannot parse: name to (line, text), ``unknown_modules`` those that ``library`` names (key, text, hint).
    """

    repo: str
    folder: Path
    file_name: str
    meta: Mapping[str, Any]
    parsed: Recipe | None
    blocks: Sequence[Block]
    errors: Sequence[RecipeError]
    places: Places
    texts: Mapping[str, str]
    files: frozenset[str]
    shell_errors: Mapping[str, tuple[int, str]] = {}
    unknown_modules: Sequence[tuple[str, str, str]] = ()

    @property
    def recipe(self) -> Recipe:
        """The parsed recipe; only for rules that need one."""
        assert self.parsed is not None
        return self.parsed

    @property
    def alias(self) -> str:
        """The recipe's alias, or the name of its folder."""
        return self.parsed.id.alias if self.parsed else self.folder.name

    @property
    def entry(self) -> IndexEntry | None:
        """The recipe as selection sees it."""
        recipe = self.parsed
        if recipe is None:
            return None
        return IndexEntry(
            alias=recipe.id.alias,
            uid=recipe.id.uid,
            path=self.folder,
            repo_path=recipe.repo_path,
            repo_alias=self.repo,
            tags=frozenset(recipe.tags),
            variations=frozenset(recipe.variations),
            sort=0,
            is_cached=recipe.is_cached,
        )

    def finding(self, code: str, text: str, key: str = "", hint: str = "") -> Finding:
        """A finding in the metadata file."""
        return self.finding_in(self.file_name, self.places.line(key), code, text, hint)._replace(key=key)

    def finding_in(self, name: str, line: int, code: str, text: str, hint: str = "") -> Finding:
        """A finding in another file of the folder."""
        return Finding(code, self.repo, self.alias, str(self.folder / name), line, "", text, hint)


class Registered(NamedTuple):
    """What all registered recipes have together.

    ``handles`` are the names of all dependencies; ``set_keys`` and ``set_globs`` are the env keys that anything may
    set, ``promised`` those that ``new_env_keys`` name; ``inputs`` is what every recipe understands; ``kinds`` are the
    types of the inputs that set an env key, by repository and key, each with a recipe that has one.
    """

    recipes: RecipeIndex
    handles: frozenset[str]
    set_keys: frozenset[str]
    set_globs: tuple[str, ...]
    promised: frozenset[str]
    inputs: frozenset[str]
    kinds: Mapping[tuple[str, str], Mapping[str, str]]

    def may_set(self, key: str) -> bool:
        """Whether any recipe or the engine may give an env key a value."""
        return key in self.set_keys or key_matcher(self.set_globs)(key)


def registered(recipes: Sequence[AuditedRecipe], inputs: Mapping[str, str]) -> Registered:
    """What ``recipes`` have together; ``inputs`` maps what every recipe understands to env keys (or empty texts)."""
    blocks = [block for audited in recipes for block in audited.blocks]
    texts = [text for audited in recipes for text in audited.texts.values()]
    promised = {key for block in blocks for key in block.layer.new_env_keys}
    globs = {key for key in promised if "*" in key}
    kinds: dict[tuple[str, str], dict[str, str]] = {}
    for audited in recipes:
        for one in audited.parsed.inputs.values() if audited.parsed else ():
            if one.kind and one.env_key:
                kinds.setdefault((audited.repo, one.env_key), {}).setdefault(kind_of_key(one), audited.alias)
    return Registered(
        recipes=RecipeIndex([audited.entry for audited in recipes if audited.entry], {}),
        handles=frozenset(name for block in blocks for _, entry in block.dependencies() for name in entry.names),
        set_keys=frozenset(inputs.values()).union(
            *(_WORD.findall(text) for text in texts), *(block.env_keys() for block in blocks)
        ),
        set_globs=tuple(sorted({*ENGINE_KEYS, *(globs - WIDE_GLOBS)})),
        promised=frozenset(promised - globs),
        inputs=frozenset(inputs),
        kinds=kinds,
    )


def kind_of_key(described: InputDescription) -> str:
    """What the env key of an input holds: one or several of its type; a choice is a text."""
    kind = described.kind.removeprefix(LIST_OF)
    return "text" if kind == "choice" else kind


Check = Callable[[AuditedRecipe, Registered], Iterable[Finding]]


class Rule(NamedTuple):
    """One rule: the codes that ``check`` may find. ``is_of_recipe``: it needs metadata that the engine can read."""

    codes: tuple[str, ...]
    check: Check
    is_of_recipe: bool


def finds(*codes: str, is_of_recipe: bool = True) -> Callable[[Check], Rule]:
    """Makes a function the rule that finds these codes."""
    return lambda check: Rule(codes, check, is_of_recipe)
