"""One ``_cm.yaml`` mapping becomes one ``Recipe``, and how one of its blocks changes what another says.

This is the only door for recipe files: it checks types and names the key path in each error. The table in keys.py says
what kind of value a key holds; keys that are not in it are left alone (the audit lists them). Lists of dependencies are
appended to, and ``ad``/``adr`` change a dependency by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .conditions import FALSE_WORDS, KINDS, TRUE_WORDS, Condition, decide
from .env import EnvValue, append_unique, expand_value, merge_state
from .errors import MetaError
from .keys import DEPENDENCY_KEYS, INPUT_TYPES, LIST_OF, RECIPE_KEYS, VARIATION_KEYS, Keys
from .model import (
    PHASES,
    SUCCESSOR_FILE,
    ConditionalLayer,
    Dependency,
    InputDescription,
    Layer,
    Overrides,
    Recipe,
    RecipeId,
    Variation,
)
from .query import BOUND_KEYS, VersionRange, merge_tag_texts, split_words


def text_of(value: Any) -> str:
    """A scalar of YAML as text: None is empty, true and false are ``True`` and ``False`` as CM writes them."""
    return "" if value is None else str(value)


def is_yes(value: Any) -> bool:
    """Whether a flag value means yes; texts count by CM's words."""
    return value.strip().lower() in TRUE_WORDS if isinstance(value, str) else bool(value)


class Reader:
    """Typed access to one mapping; an absent key and one without a value are empty. Errors carry file and key path."""

    def __init__(self, source: Any, path: str) -> None:
        if source is None or source == "":
            source = {}
        if not isinstance(source, Mapping):
            raise MetaError(f"{path}: expected a mapping, found {type(source).__name__} {source!r}")
        self.source = source
        self.path = path

    def at(self, key: str) -> str:
        """The key path of ``key``."""
        return f"{self.path}: {key}" if ": " not in self.path else f"{self.path}.{key}"

    def _wrong(self, key: str, wanted: str) -> MetaError:
        value = self.source[key]
        return MetaError(f"{self.at(key)}: expected {wanted}, found {type(value).__name__} {value!r}")

    def _value(self, key: str, kind: type, wanted: str) -> Any:
        """A value of this kind; None when it is empty."""
        value = self.source.get(key)
        if value is None or value == "":
            return None
        if not isinstance(value, kind):
            raise self._wrong(key, wanted)
        return value

    def text(self, key: str) -> str:
        """A scalar as text."""
        value = self.source.get(key)
        if isinstance(value, Mapping | list):
            raise self._wrong(key, "a text")
        return text_of(value)

    def flag(self, key: str) -> bool:
        """A yes/no value; empty is no."""
        value = self.source.get(key)
        is_word = not isinstance(value, str) or value.strip().lower() in (*TRUE_WORDS, *FALSE_WORDS, "")
        if not is_word or isinstance(value, Mapping | list):
            raise self._wrong(key, "yes or no")
        return is_yes(value)

    def number(self, key: str) -> int:
        """A whole number; empty is 0."""
        value = self.source.get(key)
        try:
            return 0 if value is None or value == "" else int(str(value))
        except ValueError:
            raise self._wrong(key, "a whole number") from None

    def lifetime(self, key: str) -> str:
        """A text that ``lifetime_s`` understands, or one with a placeholder."""
        text = self.text(key)
        if text and "<<<" not in text and lifetime_s(text) is None:
            raise MetaError(f"{self.at(key)}: expected a lifetime like 90m, 2h, 3d or 0, found {text!r}")
        return text

    def mapping(self, key: str) -> dict[str, Any]:
        """A mapping with text keys."""
        return {text_of(name): item for name, item in (self._value(key, Mapping, "a mapping") or {}).items()}

    def names(self, key: str) -> dict[str, str]:
        """A mapping of texts to texts."""
        return {name: text_of(item) for name, item in self.mapping(key).items()}

    def blocks(self, key: str) -> dict[str, Reader]:
        """A mapping of names to mappings."""
        return {name: Reader(block, f"{self.at(key)}.{name}") for name, block in self.mapping(key).items()}

    def items(self, key: str) -> list[Any]:
        """A list."""
        return self._value(key, list, "a list") or []

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; one text counts as a list of one."""
        value = self.source.get(key)
        items = [value] if isinstance(value, str) and value else self.items(key)
        for number, item in enumerate(items):
            if isinstance(item, Mapping | list):
                raise MetaError(f"{self.at(key)}[{number}]: expected a text, found {type(item).__name__} {item!r}")
        return tuple(text_of(item) for item in items)

    def rows(self, key: str) -> list[Reader]:
        """A list of mappings."""
        return [Reader(item, f"{self.at(key)}[{number}]") for number, item in enumerate(self.items(key))]

    def fields(self, plan: Plan) -> dict[str, Any]:
        """The values of those keys of ``plan`` that are written here, by the field that takes each."""
        return {field: READERS[kind](self, key) for key, (field, kind) in plan.items() if key in self.source}


LIFETIME_UNITS_S = {"m": 60, "h": 3600, "d": 86400}


def lifetime_s(text: str) -> int | None:
    """The seconds in ``90m``, ``2h``, ``3d`` or ``0`` (at once); None for any other text."""
    if text.strip() == "0":
        return 0
    number, unit = text.strip()[:-1], text.strip()[-1:].lower()
    return int(number) * LIFETIME_UNITS_S[unit] if number.isascii() and number.isdigit() and unit in "mhd" else None


def parse_condition_blocks(source: Mapping[str, Any], path: str) -> tuple[Condition, ...]:
    """The condition blocks of a dependency or of ``update_meta_if_env``."""
    conditions = []
    for kind in KINDS:
        if kind in source:
            reader = Reader(source, path)
            pairs = []
            for key, accepted in reader.mapping(kind).items():
                values = accepted if isinstance(accepted, list) else [accepted]
                if any(isinstance(value, Mapping | list) for value in values):
                    if SUCCESSOR_FILE in path:  # its engine takes such a value, which then equals nothing
                        values = []
                    else:
                        raise MetaError(f"{reader.at(kind)}.{key}: expected values, found {accepted!r}")
                pairs.append((key, tuple(text_of(value).strip().lower() for value in values)))
            conditions.append(Condition(kind, tuple(pairs)))
    return tuple(conditions)


def parse_dependency(entry: Any, path: str) -> Dependency:
    """One entry of a deps-like list."""
    reader = Reader(entry, path)
    reader.lifetime("cache_expiration")
    return Dependency(
        entry=reader.source,
        tags_text=",".join(split_words(reader.texts("tags"))),
        conditions=parse_condition_blocks(reader.source, path),
        **reader.fields(_DEPENDENCY),
    )


def parse_overrides(source: Any, path: str) -> dict[str, dict[str, Any]]:
    """An ``ad``/``adr`` block: handle to changes."""
    blocks = {text_of(handle): changes for handle, changes in Reader(source, path).source.items()}
    readers = {handle: Reader(changes, f"{path}.{handle}") for handle, changes in blocks.items()}
    for reader in readers.values():
        reader.texts("tags")
    return {handle: {text_of(key): item for key, item in reader.source.items()} for handle, reader in readers.items()}


def both_overrides(source: Mapping[str, Any], short: str, long: str, at: Callable[[str], str]) -> Overrides:
    """The overrides under two names of one key, ``ad`` and ``add_deps`` or ``adr`` and ``add_deps_recursive``.

    ``at`` gives the key path of a key.
    """
    if short not in source and long not in source:
        return {}
    first, second = (parse_overrides(source.get(key), at(key)) for key in (short, long))
    return merge_overrides(first, second)


def _conditional(row: Reader) -> ConditionalLayer:
    return ConditionalLayer(parse_condition_blocks(row.source, row.path), parse_layer(row.source, row.path))


def parse_layer(source: Any, path: str) -> Layer:
    """The block that recipes, variations, versions and conditional blocks share."""
    reader = Reader(source, path)
    return Layer(
        **reader.fields(_LAYER),
        overrides=both_overrides(reader.source, "ad", "add_deps", reader.at),
        recursive_overrides=both_overrides(reader.source, "adr", "add_deps_recursive", reader.at),
        warnings=(*reader.texts("warnings"), *reader.texts("warning")),
    )


def _combination(item: Any) -> tuple[str, ...]:
    return tuple(text_of(name) for name in (item if isinstance(item, list) else [item]))


def _inputs(reader: Reader, key: str) -> dict[str, InputDescription]:
    described = {
        name: {"desc": block} if isinstance(block, str) else block for name, block in reader.mapping(key).items()
    }
    blocks = Reader({key: described}, reader.path).blocks(key)
    made = {name: _input(block) for name, block in blocks.items()}
    for name, one in made.items():
        named = {*one.together_with, *(wanted.partition("=")[0] for wanted in one.only_with)}
        if unknown := sorted(named - made.keys()):
            raise MetaError(f"{blocks[name].path}: only_with or together_with has the unknown input '{unknown[0]}'")
    return made


def _input(block: Reader) -> InputDescription:
    """One described input. Raises MetaError for a type that there is not, a choice without choices, and bounds that are
    no numbers."""
    fields = block.fields(_INPUT)
    if not fields.get("kind"):
        older = {"boolean": "yes_no", "choices": f"{LIST_OF}choice", "is_path": "path"}
        fields["kind"] = next((kind for key, kind in older.items() if is_yes(bool(block.source.get(key)))), "")
    kind = fields["kind"].removeprefix(LIST_OF)
    if kind and kind not in INPUT_TYPES:
        allowed = f"{', '.join(INPUT_TYPES)}, or {LIST_OF}one of them"
        raise MetaError(f"{block.at('type')}: found {fields['kind']!r}; allowed: {allowed}")
    if kind == "yes_no":
        fields["choices"] = ("yes", "no")
    if kind == "choice" and not fields.get("choices"):
        raise MetaError(f"{block.at('choices')}: missing for the type choice")
    for bound in ("minimum", "maximum", "above"):
        if fields.get(bound) and not re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", fields[bound]):
            raise MetaError(f"{block.at(bound)}: expected a number, found {fields[bound]!r}")
    if fields.get("may_be_empty") and kind != "text":
        raise MetaError(f"{block.at('may_be_empty')}: the type is {kind or 'missing'}; allowed: text, {LIST_OF}text")
    return InputDescription(**fields)


def _variation(name: str, block: Reader) -> Variation:
    is_default = "default" in block.source  # as in CM, whatever its value is
    return Variation(name=name, source=block.source, is_default=is_default, **block.fields(_VARIATION))


def _tags_by_prefix(reader: Reader, key: str) -> dict[str, tuple[str, ...]]:
    inner = Reader(reader.mapping(key), reader.at(key))
    return {prefix: inner.texts(prefix) for prefix in inner.source}


READERS: Mapping[str, Callable[[Reader, str], Any]] = {
    **dict.fromkeys(("text", "version"), Reader.text),
    "texts": Reader.texts,
    "tags": lambda reader, key: split_words(text) if isinstance(text := reader.source[key], str) else reader.texts(key),
    **dict.fromkeys(("env", "mapping", "docker", "needs"), Reader.mapping),
    **dict.fromkeys(("env_names", "members"), Reader.names),
    "flag": Reader.flag,
    "whole": Reader.number,
    "lifetime": Reader.lifetime,
    "inputs": _inputs,
    "tags_by_prefix": _tags_by_prefix,
    "tags_by_condition": lambda reader, key: {
        tag: parse_condition_blocks(block.source, block.path) for tag, block in reader.blocks(key).items()
    },
    "deps": lambda reader, key: tuple(parse_dependency(row.source, row.path) for row in reader.rows(key)),
    "conditional": lambda reader, key: tuple(map(_conditional, reader.rows(key))),
    "combinations": lambda reader, key: tuple(map(_combination, reader.items(key))),
    "cache_tags": lambda reader, key: tuple((row.text("env"), row.text("prefix")) for row in reader.rows(key)),
    "variations": lambda reader, key: {name: _variation(name, block) for name, block in reader.blocks(key).items()},
    "versions": lambda reader, key: {name: block.source for name, block in reader.blocks(key).items()},
}
"""How the value of a key is read, by its kind."""

FIELDS = {
    "cache": "is_cached",
    "clean_env_keys_post_deps": "post_deps_clean_env_keys",
    "dynamic": "is_dynamic",
    "input_description": "inputs",
    "invalid_variation_combinations": "invalid_combinations",
    "predeps": "has_predeps",
    "required_disk_space": "required_disk_space_mb",
    "update_meta_if_env": "conditional",
    "valid_variation_combinations": "valid_combinations",
}
"""Key to the field that takes its value, where their names differ."""

Plan = Mapping[str, tuple[str, str]]
"""Key to its field and its kind."""


def _plan(keys: Keys, fields: tuple[str, ...]) -> Plan:
    """The keys of a place whose value is a field as it is; the fields for versions and warnings take several keys."""
    rows = {key: (FIELDS.get(key, key), kind) for key, (kind, _) in keys.items()}
    return {key: row for key, row in rows.items() if row[0] in fields and key not in ("version", "warnings")}


_LAYER = _plan(VARIATION_KEYS, Layer._fields)
_VARIATION = _plan(VARIATION_KEYS, Variation._fields)
_DEPENDENCY = _plan(DEPENDENCY_KEYS, Dependency._fields)
_RECIPE = _plan(RECIPE_KEYS, Recipe._fields)
_INPUT: Plan = {
    "desc": ("description", "text"),
    "choices": ("choices", "texts"),
    "refused": ("refused", "env_names"),
    "default": ("default", "text"),
    "env_default": ("default", "text"),
    "type": ("kind", "text"),
    "env": ("env_key", "text"),
    "unit": ("unit", "text"),
    "minimum": ("minimum", "text"),
    "maximum": ("maximum", "text"),
    "above": ("above", "text"),
    "only_with": ("only_with", "texts"),
    "together_with": ("together_with", "texts"),
    "aliases": ("aliases", "texts"),
    "may_be_empty": ("may_be_empty", "flag"),
}


def with_described_keys(meta: dict[str, Any]) -> dict[str, Any]:
    """Metadata whose ``input_mapping`` and ``default_env`` also have what inputs say as ``env`` and ``env_default``."""
    described = meta.get("input_description")
    rows = described.items() if isinstance(described, Mapping) else ()
    blocks = {name: block for name, block in rows if isinstance(block, Mapping) and block.get("env")}
    if not blocks:
        return meta
    keys = {name: block["env"] for name, block in blocks.items()}
    found = {**meta, "input_mapping": {**keys, **(meta.get("input_mapping") or {})}}
    defaults = {block["env"]: str(block["env_default"]) for block in blocks.values() if "env_default" in block}
    return {**found, "default_env": {**(meta.get("default_env") or {}), **defaults}} if defaults else found


def parse_recipe(meta: Mapping[str, Any], folder: Path, repo_path: Path, file_name: str = "_cm.yaml") -> Recipe:
    """The recipe that ``meta`` describes, read from ``file_name`` in ``folder``.

    Raises MetaError with file and key path where a value has the wrong type, or when ``uid`` is missing.
    """
    reader = Reader(meta, str(folder / file_name))
    recipe_id = RecipeId(reader.text("alias") or folder.name, reader.text("uid"))
    if not recipe_id.uid or not isinstance(meta["uid"], str):
        problem = f"expected a text in quotes, found {meta['uid']!r}" if recipe_id.uid else "missing"
        raise MetaError(f"{reader.at('uid')}: {problem}", hint="give the recipe 16 quoted hex digits as uid")
    fields, layer = reader.fields(_RECIPE), parse_layer(meta, reader.path)
    fields["inputs"] = {
        name: one._replace(env_key=layer.input_mapping.get(name, one.env_key))
        for name, one in fields.get("inputs", {}).items()
    }
    return Recipe(
        id=recipe_id,
        path=folder,
        repo_path=repo_path,
        layer=layer,
        version=VersionRange(*map(reader.text, BOUND_KEYS)),
        meta=meta,
        file_name=file_name,
        **fields,
    )


# --- one block over another ---


def merge_layers(first: Layer, second: Layer) -> Layer:
    """Two blocks as one, ``second`` over ``first``; leaves aside what they do to env and state, and ``conditional``."""
    lists: dict[str, Any] = {
        phase: append_dependencies(first.dependencies(phase), second.dependencies(phase)) for phase in PHASES
    }
    return first._replace(
        **lists,
        input_mapping={**first.input_mapping, **second.input_mapping},
        new_env_keys=tuple(dict.fromkeys((*first.new_env_keys, *second.new_env_keys))),
        new_state_keys=tuple(dict.fromkeys((*first.new_state_keys, *second.new_state_keys))),
        docker=merge_state(first.docker, second.docker),
        script_name=second.script_name or first.script_name,
        default_version=second.default_version or first.default_version,
        warnings=(*first.warnings, *(line for line in second.warnings if line not in first.warnings)),
        required_disk_space_mb=first.required_disk_space_mb + second.required_disk_space_mb,
        needs=merge_needs(first.needs, second.needs),
        cache_expiration=second.cache_expiration or first.cache_expiration,
        is_cached=first.is_cached if second.is_cached is None else second.is_cached,
    )


def append_dependencies(first: Sequence[Dependency], second: Sequence[Dependency]) -> tuple[Dependency, ...]:
    """``first`` followed by ``second``; an entry with the same set of names, or without names the same set of tags,
    replaces the earlier one. Entries of one list never replace each other: those of one name with different
    conditions are alternatives.
    """
    merged = list(first)
    replaced: set[int] = set()
    for new in second:
        places = (at for at, old in enumerate(first) if at not in replaced and _takes_place_of(new, old))
        position = next(places, None)
        if position is None:
            merged.append(new)
        else:
            merged[position] = new
            replaced.add(position)
    return tuple(merged)


def _takes_place_of(new: Dependency, old: Dependency) -> bool:
    if new.names:
        return set(new.names) == set(old.names)
    return set(split_words(new.tags_text)) == set(split_words(old.tags_text))


def apply_overrides(
    dependencies: Sequence[Dependency], overrides: Overrides, env: Mapping[str, EnvValue]
) -> tuple[Dependency, ...]:
    """``dependencies`` changed by the overrides whose handle is one of their names and whose own condition holds."""
    if not overrides:
        return tuple(dependencies)
    active = {
        handle: changes
        for handle, changes in overrides.items()
        if decide(parse_condition_blocks(changes, handle), env).answer == "yes"
    }
    return tuple(_changed(dependency, active, env) for dependency in dependencies)


def _changed(dependency: Dependency, overrides: Overrides, env: Mapping[str, EnvValue]) -> Dependency:
    own = [changes for handle, changes in overrides.items() if handle in dependency.names]
    if not own:
        return dependency
    entry = dependency.entry
    for changes in own:
        entry = change_entry(entry, changes, env)
    rest = {key: value for key, value in entry.items() if key not in KINDS}  # conditions are read and never changed
    return parse_dependency(rest, dependency.label)._replace(entry=entry, conditions=dependency.conditions)


def change_entry(entry: Mapping[str, Any], changes: Mapping[str, Any], env: Mapping[str, EnvValue]) -> dict[str, Any]:
    """A dependency entry with ``changes``: tags are added, mappings deep-merged, lists extended, the rest replaced.

    Tags that still hold a placeholder are dropped; conditions are never changed.
    """
    wanted = {
        key: expand_value(raw, env) for key, raw in changes.items() if not key.startswith(("enable_if", "skip_if"))
    }
    for key, value in wanted.items():
        if key == "tags":
            wanted[key] = [word for word in split_words(value or "") if "<<<" not in word]
        elif isinstance(value, list) and isinstance(entry.get(key), list):
            wanted[key] = append_unique(entry[key], value)
    return change_merge(entry, wanted)


def merge_overrides(first: Overrides, second: Overrides) -> Overrides:
    """Two override blocks as one: ``second`` wins, tags are united, mappings deep-merged."""
    return {**first, **{handle: change_merge(first.get(handle, {}), changes) for handle, changes in second.items()}}


def change_merge(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """The changes of one handle, ``second`` over ``first``."""
    merged = dict(first)
    for key, value in second.items():
        old = merged.get(key)
        if key == "tags":
            merged[key] = merge_tag_texts(old or "", value or "")
        elif isinstance(value, Mapping) and isinstance(old, Mapping):
            merged[key] = merge_state(old, value)
        else:
            merged[key] = value
    return merged


def unknown_handles(overrides: Overrides, *lists: Sequence[Dependency]) -> list[str]:
    """The handles that are a name of no dependency in ``lists``."""
    known = {name for dependencies in lists for dependency in dependencies for name in dependency.names}
    return [handle for handle in overrides if handle not in known]


def merge_needs(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Two ``needs`` blocks as one: numbers add up, lists grow, texts of the second replace those of the first."""
    merged = dict(first)
    for key, value in second.items():
        old = merged.get(key)
        if isinstance(old, list) and isinstance(value, list):
            merged[key] = [*old, *(item for item in value if item not in old)]
        elif type(old) is type(value) is int:  # not two flags, such as sudo: true
            merged[key] = max(old, value) if key == "memory_mb" else old + value
        else:
            merged[key] = value
    return merged
