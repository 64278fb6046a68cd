"""Rules of the audit about the metadata of one recipe by itself: identity, tags, keys, inputs, variations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..rules.errors import VariationError
from ..rules.index import dynamic_name
from ..rules.keys import unknown_keys
from ..rules.model import Recipe, Variation
from ..rules.secrets import is_secret
from ..rules.tags import nearest
from ..rules.variations import declared_name, groups_of, resolve_variations
from .findings import Finding
from .subject import WIDE_GLOBS, Look

UID = re.compile(r"[0-9a-f]{16}")


def _hint(word: str, known: Mapping[str, Any] | list[str], mark: str = "") -> str:
    close = nearest(word, known)
    return f"the nearest are: {', '.join(mark + name for name in close)}" if close else ""


def identity(look: Look) -> Iterator[Finding]:
    """The uid, the alias and the folder."""
    subject = look.subject
    uid = subject.meta.get("uid")
    if uid is None or uid == "":
        yield subject.finding("uid-missing", "the recipe has no uid", "uid", "uid: 16 hex digits in quotes")
    elif not isinstance(uid, str):
        yield subject.finding("uid-unquoted", f"YAML reads the uid as the number {uid!r}", "uid", "put it in quotes")
    elif not UID.fullmatch(uid):
        yield subject.finding("uid-malformed", f"expected 16 lower-case hex digits, found '{uid}'", "uid")
    elif "uid" in subject.places.plain:
        yield subject.finding("uid-plain", f"the uid {uid} has no quotes", "uid", f'uid: "{uid}"')
    alias = subject.meta.get("alias")
    if isinstance(alias, str) and alias and alias != subject.folder.name:
        text = f"the alias is '{alias}', the folder '{subject.folder.name}'"
        yield subject.finding("alias-folder", text, "alias")


def tags(look: Look) -> Iterator[Finding]:
    """The recipe's own tags."""
    if not look.recipe.tags:
        yield look.subject.finding("tags-missing", "no query finds the recipe", "tags", "tags: [get, NAME]")
    seen: set[str] = set()
    for number, tag in enumerate(look.recipe.tags):
        key = f"tags[{number}]"
        if not tag.strip() or "," in tag or tag.startswith(("_", "-")):
            yield look.subject.finding("tag-unusable", f"nobody can ask for the tag '{tag}'", key)
        elif re.search(r"\s", tag):
            yield look.subject.finding("tag-blank", f"the tag '{tag}' holds a blank", key)
        if tag in seen:
            yield look.subject.finding("tag-repeated", f"the tag '{tag}' stands twice", key)
        seen.add(tag)


def keys(look: Look) -> Iterator[Finding]:
    """Keys that nothing reads, and keys that stand twice."""
    for key, line in look.subject.places.repeated:
        text = f"the key '{key}' stands twice; only the last one counts"
        yield look.subject.finding("key-repeated", text, key)._replace(line=line)
    for problem in unknown_keys(look.subject.meta) if look.subject.recipe else ():
        key, _, hint = problem.removesuffix(")").partition(" (")
        yield look.subject.finding("key-unknown", f"nothing reads '{key}'", key, hint)


def readme(look: Look) -> Iterator[Finding]:
    """Whether somebody wrote down what the recipe is."""
    if not any(name.lower() == "readme.md" for name in look.subject.files):
        hint = "say what it finds, sets and costs (size, time, licence)"
        yield look.subject.finding("readme-missing", "the folder has no README.md", hint=hint)


def inputs(look: Look) -> Iterator[Finding]:
    """Help for each input, and an input for each help."""
    described = look.recipe.inputs
    mapped = {name: block.where for block in look.blocks for name in block.layer.input_mapping}
    for name, where in mapped.items():
        if name not in described or not described[name].description:
            hint = f"input_description: {{{name}: {{desc: ...}}}}"
            key = f"{where}input_mapping.{name}"
            yield look.subject.finding("input-undescribed", f"the input '{name}' has no help", key, hint)
    for name in described:
        if name not in mapped and name not in look.registered.inputs:
            key = f"input_description.{name}"
            yield look.subject.finding("input-unread", f"nothing maps the input '{name}'", key)


def outputs(look: Look) -> Iterator[Finding]:
    """What leaves the recipe."""
    given = [key for block in look.blocks for key in (*block.layer.new_env_keys, *block.layer.new_state_keys)]
    if look.recipe.is_cached and not given:
        text = "an entry of the cache is kept, but nothing leaves the recipe"
        yield look.subject.finding("cache-without-keys", text, "cache", "new_env_keys: [CM_...]")
    for block in look.blocks:
        for number, key in enumerate(block.layer.new_env_keys):
            where = f"{block.where}new_env_keys[{number}]"
            if key in WIDE_GLOBS:
                yield look.subject.finding("keys-wide", f"'{key}' lets every env key out", where)
            elif not re.search(r"[*?<]", key) and not _is_set(look, key):
                yield look.subject.finding("promise-empty", f"nothing sets '{key}'", where)


def _is_set(look: Look, key: str) -> bool:
    return look.registered.may_set(re.sub(r"^\+\W?", "", key)) or look.registered.may_set(key)


def secrets(look: Look) -> Iterator[Finding]:
    """Values of secrets in the metadata."""
    for block in look.blocks:
        mappings: list[tuple[str, Mapping[str, Any]]] = [
            (block.where + "default_env", block.layer.default_env),
            (block.where + "env", block.layer.env),
            (block.where + "const", block.layer.const),
        ]
        for path, dependency in block.dependencies():
            mappings.append((f"{path}.env", dependency.entry.get("env") or {}))
        for where, mapping in mappings:
            for key, value in mapping.items():
                if is_secret(str(key)) and isinstance(value, str) and len(value) > len("false") and "<<<" not in value:
                    text = f"'{key}' has a value in the file"
                    yield look.subject.finding("secret-literal", text, f"{where}.{key}", "take it from the caller")


# --- variations ---


def _declares(recipe: Recipe, name: str) -> bool:
    return name in recipe.variations or dynamic_name(name, recipe.variations) != ""


def groups(look: Look) -> Iterator[Finding]:
    """Groups of variations and their defaults."""
    recipe = look.recipe
    members = groups_of(recipe)
    for group, names in members.items():
        defaults = [name for name in names if recipe.variations[name].is_default]
        if len(defaults) > 1:
            text = f"the group '{group}' has the defaults {', '.join('_' + name for name in defaults)}"
            yield look.subject.finding("group-two-defaults", text, f"variations.{defaults[1]}.default")
    if recipe.default_variation and not _declares(recipe, recipe.default_variation):
        text = f"there is no variation _{recipe.default_variation}"
        hint = _hint(recipe.default_variation, recipe.variations, "_")
        yield look.subject.finding("default-unknown", text, "default_variation", hint)
    wishes = [(block.where, block.layer.default_variations) for block in look.blocks]
    for where, wish in wishes:
        for group, member in wish.items():
            key = f"{where}default_variations.{group}"
            if group not in members:
                text = f"no variation is in the group '{group}'"
                yield look.subject.finding("default-unknown", text, key, _hint(group, members))
            elif member not in members[group] and dynamic_name(member, members[group]) == "":
                text = f"'{member}' is not in the group '{group}'"
                yield look.subject.finding("default-unknown", text, key, _hint(member, members[group]))


def bases(look: Look) -> Iterator[Finding]:
    """``base`` and ``alias`` of variations."""
    recipe = look.recipe
    for name, variation in recipe.variations.items():
        where = f"variations.{name}"
        for base in variation.base:
            if not _declares(recipe, base) and "#" not in base:
                text = f"_{name} stands on _{base}, which does not exist"
                hint = _hint(base, recipe.variations, "_")
                if base.startswith("_") and _declares(recipe, base[1:]):
                    hint = f"without the underscore: {base[1:]}"
                yield look.subject.finding("base-unknown", text, f"{where}.base", hint)
        if variation.alias and not _declares(recipe, variation.alias):
            text = f"_{name} is an alias of _{variation.alias}, which does not exist"
            hint = _hint(variation.alias, recipe.variations, "_")
            yield look.subject.finding("alias-unusable", text, f"{where}.alias", hint)
        elif variation.alias and (variation.group or variation.is_default):
            text = f"_{name} has an alias together with a group or default"
            yield look.subject.finding("alias-unusable", text, f"{where}.alias")
        circle = _circle(recipe, variation)
        if circle and circle[0] == min(circle):
            text = " -> ".join("_" + member for member in (*circle, circle[0]))
            yield look.subject.finding("base-cycle", f"bases of each other: {text}", f"{where}.base")


def _circle(recipe: Recipe, variation: Variation) -> list[str]:
    """The shortest way along bases from a variation back to itself; empty when there is none."""
    ways = [[variation.name]]
    seen: set[str] = set()
    while ways:
        way = ways.pop(0)
        for base in recipe.variations[way[-1]].base if way[-1] in recipe.variations else ():
            if base == variation.name:
                return way
            if base not in seen:
                seen.add(base)
                ways.append([*way, base])
    return []


def names(look: Look) -> Iterator[Finding]:
    """Names that nobody can ask for, variations that are refused alone, combinations that never apply."""
    recipe = look.recipe
    for name, variation in recipe.variations.items():
        where = f"variations.{name}"
        if not all(variation.parts) or name != name.strip() or any(re.search(r"\s", part) for part in variation.parts):
            yield look.subject.finding("variation-unusable", f"nobody can ask for '_{name}'", where)
        elif len(variation.parts) > 1:
            dead = _why_dead(recipe, variation)
            if dead:
                yield look.subject.finding("combination-dead", f"'{name}' never applies: {dead}", where)
        elif not recipe.valid_combinations:
            try:
                resolve_variations(recipe, [name.replace(".#", ".1")], ())
            except VariationError as error:
                text = f"_{name} alone is refused: {error.message.partition(': ')[2] or error.message}"
                yield look.subject.finding("variation-alone", text, where)
    lists = {"valid": recipe.valid_combinations, "invalid": recipe.invalid_combinations}
    for kind, rows in lists.items():
        for number, row in enumerate(rows):
            for missing in (name for name in row if not _declares(recipe, name)):
                key = f"{kind}_variation_combinations[{number}]"
                hint = _hint(missing, recipe.variations, "_")
                yield look.subject.finding("combination-unknown", f"there is no variation _{missing}", key, hint)


def _why_dead(recipe: Recipe, variation: Variation) -> str:
    """Why not all parts of a combined variation can be on; an empty text when they may be."""
    taken: dict[str, str] = {}
    for part in variation.parts:
        if part.endswith(".#"):
            return f"_{part} is never on without a value, and values do not match"
        if not _declares(recipe, part):
            close = nearest(part, recipe.variations, 1)
            return f"there is no variation _{part}" + (f" (did you mean _{close[0]}?)" if close else "")
        declared = declared_name(recipe, part)
        group = recipe.variations[declared].group
        if group and group in taken:
            return f"_{taken[group]} and _{part} are both of the group '{group}'"
        taken[group] = part
    for forbidden in recipe.invalid_combinations:
        if set(variation.parts).issuperset(forbidden):
            return "the recipe forbids it"
    return ""
