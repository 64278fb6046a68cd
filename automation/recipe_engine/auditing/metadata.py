"""Rules of the audit about the metadata of one recipe by itself: identity, tags, keys, inputs, variations."""

from __future__ import annotations

import graphlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..rules.errors import VariationError
from ..rules.keys import unknown_keys
from ..rules.model import Recipe, Variation
from ..rules.query import nearest, nearest_hint
from ..rules.secrets import is_secret
from ..rules.select import dynamic_name
from ..rules.variations import declared_name, groups_of, resolve_variations
from .context import WIDE_GLOBS, AuditContext, finds
from .findings import Finding

UID = re.compile(r"[0-9a-f]{16}")


@finds("no-parse", "wrong-type", is_of_recipe=False)
def readable(context: AuditContext) -> Iterator[Finding]:
    """Whether the engine can use the metadata."""
    meta = context.audited.meta
    for error in context.audited.errors:
        text = error.message.removeprefix(f"{context.audited.folder / context.audited.file_name}: ")
        key, colon, rest = text.partition(": ")
        if not meta:
            yield context.finding("no-parse", text)
        elif isinstance(meta.get("uid"), str) and meta["uid"]:  # else a rule about the uid reports it
            yield context.finding("wrong-type", rest if colon else text, key if colon else "", error.hint)


@finds("uid-missing", "uid-malformed", "uid-unquoted", "uid-plain", "alias-folder", is_of_recipe=False)
def identity(context: AuditContext) -> Iterator[Finding]:
    """The uid, the alias and the folder."""
    meta, folder = context.audited.meta, context.audited.folder.name
    uid, alias = meta.get("uid"), meta.get("alias")
    if uid is None or uid == "":
        yield context.finding("uid-missing", "the recipe has no uid", "uid", "uid: 16 hex digits in quotes")
    elif not isinstance(uid, str):
        yield context.finding("uid-unquoted", f"YAML reads the uid as the number {uid!r}", "uid", "put it in quotes")
    elif not UID.fullmatch(uid):
        yield context.finding("uid-malformed", f"expected 16 lower-case hex digits, found '{uid}'", "uid")
    elif "uid" in context.audited.places.plain:
        yield context.finding("uid-plain", f"the uid {uid} has no quotes", "uid", f'uid: "{uid}"')
    if isinstance(alias, str) and alias and alias != folder:
        yield context.finding("alias-folder", f"the alias is '{alias}', the folder '{folder}'", "alias")


@finds("tags-missing", "tag-unusable", "tag-blank", "tag-repeated")
def tags(context: AuditContext) -> Iterator[Finding]:
    """The recipe's own tags."""
    own = context.recipe.tags
    if not own:
        yield context.finding("tags-missing", "no query finds the recipe", "tags", "tags: [get, NAME]")
    for number, tag in enumerate(own):
        key = f"tags[{number}]"
        if not tag.strip() or "," in tag or tag.startswith(("_", "-")):
            yield context.finding("tag-unusable", f"no query can contain the tag '{tag}'", key)
        elif re.search(r"\s", tag):
            yield context.finding("tag-blank", f"the tag '{tag}' contains whitespace", key)
        if tag in own[:number]:
            yield context.finding("tag-repeated", f"the tag '{tag}' is repeated", key)


@finds("key-repeated", "key-unknown", is_of_recipe=False)
def keys(context: AuditContext) -> Iterator[Finding]:
    """Keys that nothing reads, and repeated keys."""
    for key, line in context.audited.places.repeated:
        text = f"the key '{key}' is repeated; only the last value counts"
        yield context.finding("key-repeated", text, key)._replace(line=line)
    for problem in unknown_keys(context.audited.meta) if context.audited.recipe else ():
        key, _, hint = problem.removesuffix(")").partition(" (")
        yield context.finding("key-unknown", f"nothing reads '{key}'", key, hint)


@finds("readme-missing", is_of_recipe=False)
def readme(context: AuditContext) -> Iterator[Finding]:
    """Whether the recipe is described."""
    if not any(name.lower() == "readme.md" for name in context.audited.files):
        hint = "say what it finds, sets and costs (size, time, licence)"
        yield context.finding("readme-missing", "the folder has no README.md", hint=hint)


@finds("input-undescribed", "input-unread")
def inputs(context: AuditContext) -> Iterator[Finding]:
    """Help for each input, and an input for each help."""
    described = context.recipe.inputs
    mapped = {name: block.where for block in context.blocks for name in block.layer.input_mapping}
    for name, where in mapped.items():
        if name not in described or not described[name].description:
            hint = f"input_description: {{{name}: {{desc: ...}}}}"
            key = f"{where}input_mapping.{name}"
            yield context.finding("input-undescribed", f"the input '{name}' has no help", key, hint)
    for name in described:
        if name not in mapped and name not in context.registered.inputs:
            yield context.finding("input-unread", f"nothing maps the input '{name}'", f"input_description.{name}")


@finds("cache-without-keys", "keys-wide", "promise-empty")
def outputs(context: AuditContext) -> Iterator[Finding]:
    """What leaves the recipe."""
    may_set = context.registered.may_set
    if context.recipe.is_cached and not any(
        block.layer.new_env_keys or block.layer.new_state_keys for block in context.blocks
    ):
        text = "a cache entry is kept, but nothing leaves the recipe"
        yield context.finding("cache-without-keys", text, "cache", "new_env_keys: [CM_...]")
    for block in context.blocks:
        for number, key in enumerate(block.layer.new_env_keys):
            where = f"{block.where}new_env_keys[{number}]"
            if key in WIDE_GLOBS:
                yield context.finding("keys-wide", f"'{key}' exports every env key", where)
            elif not re.search(r"[*?<]", key) and not may_set(re.sub(r"^\+\W?", "", key)) and not may_set(key):
                yield context.finding("promise-empty", f"nothing sets '{key}'", where)


@finds("secret-literal")
def secrets(context: AuditContext) -> Iterator[Finding]:
    """Values of secrets in the metadata."""
    for block in context.blocks:
        mappings: list[tuple[str, Mapping[str, Any]]] = [
            (f"{block.where}{name}", getattr(block.layer, name)) for name in ("default_env", "env", "const")
        ]
        mappings += [(f"{path}.env", dependency.env) for path, dependency in block.dependencies()]
        for where, mapping in mappings:
            for key, value in mapping.items():
                if is_secret(str(key)) and isinstance(value, str) and len(value) > len("false") and "<<<" not in value:
                    text = f"'{key}' has a value in the file"
                    yield context.finding("secret-literal", text, f"{where}.{key}", "take it from the caller")


# --- variations ---


def _is_declared(recipe: Recipe, name: str) -> bool:
    return name in recipe.variations or dynamic_name(name, recipe.variations) != ""


@finds("group-two-defaults", "default-unknown")
def groups(context: AuditContext) -> Iterator[Finding]:
    """Groups of variations and their defaults."""
    recipe = context.recipe
    members = groups_of(recipe)
    for group, names in members.items():
        defaults = [name for name in names if recipe.variations[name].is_default]
        if len(defaults) > 1:
            text = f"the group '{group}' has the defaults {', '.join('_' + name for name in defaults)}"
            yield context.finding("group-two-defaults", text, f"variations.{defaults[1]}.default")
    default = recipe.default_variation
    if default and not _is_declared(recipe, default):
        hint = nearest_hint(default, recipe.variations, "_")
        yield context.finding("default-unknown", f"there is no variation _{default}", "default_variation", hint)
    for block in context.blocks:
        for group, member in block.layer.default_variations.items():
            key = f"{block.where}default_variations.{group}"
            if group not in members:
                text = f"no variation is in the group '{group}'"
                yield context.finding("default-unknown", text, key, nearest_hint(group, members))
            elif member not in members[group] and not dynamic_name(member, members[group]):
                text = f"'{member}' is not in the group '{group}'"
                yield context.finding("default-unknown", text, key, nearest_hint(member, members[group]))


@finds("base-unknown", "alias-unusable", "base-cycle")
def bases(context: AuditContext) -> Iterator[Finding]:
    """``base`` and ``alias`` of variations."""
    recipe = context.recipe
    for name, variation in recipe.variations.items():
        where = f"variations.{name}"
        for base in variation.base:
            if not _is_declared(recipe, base) and "#" not in base:
                text = f"_{name} has the base _{base}, which does not exist"
                hint = nearest_hint(base, recipe.variations, "_")
                if base.startswith("_") and _is_declared(recipe, base[1:]):
                    hint = f"without the underscore: {base[1:]}"
                yield context.finding("base-unknown", text, f"{where}.base", hint)
        if variation.alias and not _is_declared(recipe, variation.alias):
            text = f"_{name} is an alias of _{variation.alias}, which does not exist"
            hint = nearest_hint(variation.alias, recipe.variations, "_")
            yield context.finding("alias-unusable", text, f"{where}.alias", hint)
        elif variation.alias and (variation.group or variation.is_default):
            text = f"_{name} has an alias together with a group or default"
            yield context.finding("alias-unusable", text, f"{where}.alias")
    waiting = {name: set(variation.base) for name, variation in recipe.variations.items()}
    while cycle := _cycle(waiting):
        text = " -> ".join("_" + name for name in cycle)
        yield context.finding("base-cycle", f"bases of each other: {text}", f"variations.{cycle[0]}.base")
        waiting[cycle[0]] = set()


def _cycle(bases: Mapping[str, set[str]]) -> list[str]:
    """Variations that are each the base of the one before, the first of the alphabet first and last; or none."""
    try:
        graphlib.TopologicalSorter(bases).prepare()
    except graphlib.CycleError as error:
        cycle: list[str] = error.args[1][:0:-1]
        start = cycle.index(min(cycle))
        return [*cycle[start:], *cycle[:start], cycle[start]]
    return []


@finds("variation-unusable", "variation-alone", "combination-dead", "combination-unknown")
def names(context: AuditContext) -> Iterator[Finding]:
    """Names that no query can hold, variations that are refused alone, combinations that never apply."""
    recipe = context.recipe
    for name, variation in recipe.variations.items():
        where = f"variations.{name}"
        if not all(variation.parts) or name != name.strip() or any(re.search(r"\s", part) for part in variation.parts):
            yield context.finding("variation-unusable", f"no query can contain '_{name}'", where)
        elif len(variation.parts) > 1:
            if dead := _why_dead(recipe, variation):
                yield context.finding("combination-dead", f"'{name}' never applies: {dead}", where)
        elif not recipe.valid_combinations:
            try:
                resolve_variations(recipe, [name.replace(".#", ".1")], ())
            except VariationError as error:
                text = f"_{name} alone is refused: {error.message.partition(': ')[2] or error.message}"
                yield context.finding("variation-alone", text, where)
    for kind, rows in (("valid", recipe.valid_combinations), ("invalid", recipe.invalid_combinations)):
        for number, row in enumerate(rows):
            for missing in (name for name in row if not _is_declared(recipe, name)):
                key = f"{kind}_variation_combinations[{number}]"
                hint = nearest_hint(missing, recipe.variations, "_")
                yield context.finding("combination-unknown", f"there is no variation _{missing}", key, hint)


def _why_dead(recipe: Recipe, variation: Variation) -> str:
    """Why not all parts of a combined variation can be on; an empty text when they may be."""
    taken: dict[str, str] = {}
    for part in variation.parts:
        if part.endswith(".#"):
            return f"_{part} is never on without a value, and values do not match"
        if not _is_declared(recipe, part):
            close = nearest(part, recipe.variations, 1)
            return f"there is no variation _{part}" + (f" (did you mean _{close[0]}?)" if close else "")
        group = recipe.variations[declared_name(recipe, part)].group
        if group and group in taken:
            return f"_{taken[group]} and _{part} are both in the group '{group}'"
        taken[group] = part
    is_forbidden = any(set(variation.parts).issuperset(forbidden) for forbidden in recipe.invalid_combinations)
    return "the recipe forbids it" if is_forbidden else ""
