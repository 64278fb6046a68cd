"""Rules of the audit about metadata: of one recipe by itself, and of a recipe among all that are registered."""

import graphlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..rules.conditions import Condition
from ..rules.configure import declared_name, groups_of, resolve_variations
from ..rules.env import PLACEHOLDER
from ..rules.errors import RecipeError, VariationError
from ..rules.input_types import allowed_text, converted
from ..rules.inputs import FLAGS, HANDED_ON
from ..rules.keys import FOR_PEOPLE, LIVE_KEYS, UNREAD
from ..rules.model import Dependency, Recipe, Variation
from ..rules.query import IndexEntry, RecipeIndex, TagQuery, declared_as, nearest_hint, parse_query, split_words
from ..rules.secrets import is_secret
from ..rules.spelling import meant
from .findings import Finding
from .recipes import WIDE_GLOBS, AuditedRecipe, Block, Registered, finds

UID = re.compile(r"[0-9a-f]{16}")


@finds("no-parse", "wrong-type", is_of_recipe=False)
def readable(audited: AuditedRecipe, _: Registered) -> Iterator[Finding]:
    """Whether the engine can use the metadata."""
    meta = audited.meta
    for error in audited.errors:
        text = error.message.removeprefix(f"{audited.folder / audited.file_name}: ")
        key, colon, rest = text.partition(": ")
        if not meta:
            yield audited.finding("no-parse", text)
        elif isinstance(meta.get("uid"), str) and meta["uid"]:  # else a rule about the uid reports it
            yield audited.finding("wrong-type", rest if colon else text, key if colon else "", error.hint)


@finds("uid-missing", "uid-malformed", "uid-unquoted", "uid-plain", "alias-folder", is_of_recipe=False)
def identity(audited: AuditedRecipe, _: Registered) -> Iterator[Finding]:
    """The uid, the alias and the folder."""
    meta, folder = audited.meta, audited.folder.name
    uid, alias = meta.get("uid"), meta.get("alias")
    if uid is None or uid == "":
        yield audited.finding("uid-missing", "the recipe has no uid", "uid", "uid: 16 hex digits in quotes")
    elif not isinstance(uid, str):
        yield audited.finding("uid-unquoted", f"YAML reads the uid as the number {uid!r}", "uid", "put it in quotes")
    elif not UID.fullmatch(uid):
        yield audited.finding("uid-malformed", f"expected 16 lower-case hex digits, found '{uid}'", "uid")
    elif "uid" in audited.places.plain:
        yield audited.finding("uid-plain", f"the uid {uid} has no quotes", "uid", f'uid: "{uid}"')
    if isinstance(alias, str) and alias and alias != folder:
        yield audited.finding("alias-folder", f"the alias is '{alias}', the folder '{folder}'", "alias")


@finds("tags-missing", "tag-unusable", "tag-blank", "tag-repeated")
def tags(audited: AuditedRecipe, _: Registered) -> Iterator[Finding]:
    """The recipe's own tags."""
    own = audited.recipe.tags
    if not own:
        yield audited.finding("tags-missing", "no query finds the recipe", "tags", "tags: [get, NAME]")
    for number, tag in enumerate(own):
        key = f"tags[{number}]"
        if not tag.strip() or "," in tag or tag.startswith(("_", "-")):
            yield audited.finding("tag-unusable", f"no query can contain the tag '{tag}'", key)
        elif re.search(r"\s", tag):
            yield audited.finding("tag-blank", f"the tag '{tag}' contains whitespace", key)
        if tag in own[:number]:
            yield audited.finding("tag-repeated", f"the tag '{tag}' is repeated", key)


@finds("key-repeated", "key-unknown", is_of_recipe=False)
def keys(audited: AuditedRecipe, _: Registered) -> Iterator[Finding]:
    """Keys that nothing reads, and repeated keys."""
    for key, line in audited.places.repeated:
        text = f"the key '{key}' is repeated, and only the last value counts"
        yield audited.finding("key-repeated", text, key)._replace(line=line)
    for key, hint in unknown_keys(audited.blocks):
        yield audited.finding("key-unknown", f"'{key}' has no effect", key, hint)


def unknown_keys(blocks: Iterable[Block]) -> Iterator[tuple[str, str]]:
    """The key paths that nothing reads, each with the reason or the key that was probably meant.

    A dependency entry may hold any input of the recipe it names; there only look-alikes of known keys are reported.
    """
    for block in blocks:
        yield from _unknown(block.where, block.source, block.place)
        for where, dependency in block.dependencies():
            found = _unknown(f"{where}.", dependency.entry, "dependency")
            yield from ((key, hint) for key, hint in found if hint)


def _unknown(where: str, source: Mapping[str, Any], place: str) -> Iterator[tuple[str, str]]:
    known = {*LIVE_KEYS[place], *FOR_PEOPLE.get(place, ())}
    for key in (str(key) for key in source if key not in known):
        near = meant(key, known)
        yield where + key, UNREAD.get(place, {}).get(key) or (f"did you mean {near}?" if near else "")


@finds("library-unknown")
def library(audited: AuditedRecipe, _: Registered) -> Iterator[Finding]:
    """The modules that the recipe declares to load by name."""
    yield from (audited.finding("library-unknown", text, key, hint) for key, text, hint in audited.unknown_modules)


@finds("readme-missing", is_of_recipe=False)
def readme(audited: AuditedRecipe, _: Registered) -> Iterator[Finding]:
    """Whether the recipe is described."""
    if not any(name.lower() == "readme.md" for name in audited.files):
        hint = "describe its results, settings and cost (size, time, license)"
        yield audited.finding("readme-missing", "the folder has no README.md", hint=hint)


@finds("input-alias", "input-twice", "input-type")
def input_names(audited: AuditedRecipe, among: Registered) -> Iterator[Finding]:
    """Names and env keys that two inputs have, of one recipe or of several."""
    described = audited.recipe.inputs
    taken: dict[str, str] = {}
    keys: dict[str, str] = {}
    others = {**audited.recipe.refused_inputs, **audited.recipe.unused_inputs}
    for name, one in described.items():
        for alias in one.aliases:
            if alias in described or alias in others or alias in FLAGS - HANDED_ON or alias in taken:
                owner = f"is one of --{taken[alias]}" if alias in taken else "is an input"
                where = f"input_description.{name}.aliases"
                yield audited.finding("input-alias", f"the alias '{alias}' of --{name} {owner}", where)
            taken[alias] = name
        if one.env_key and (first := keys.setdefault(one.env_key, name)) != name:
            text = f"--{name} and --{first} set the same env key, {one.env_key}"
            hint = f"input_description: {{{first}: {{aliases: [{name}]}}}}"
            yield audited.finding("input-twice", text, f"input_description.{name}", hint)
        kinds = among.kinds.get((audited.repo, one.env_key), {})
        if one.kind and len(kinds) > 1:
            said = ", ".join(f"{kind} in {alias}" for kind, alias in sorted(kinds.items()))
            where = f"input_description.{name}.type"
            yield audited.finding(
                "input-type", f"the env key {one.env_key} of --{name} has several types: {said}", where
            )


@finds("input-undescribed", "input-unread", "input-default")
def inputs(audited: AuditedRecipe, among: Registered) -> Iterator[Finding]:
    """Help for each input, and an input for each help."""
    described = audited.recipe.inputs
    mapped = {name: block.where for block in audited.blocks for name in block.layer.input_mapping}
    for name, where in mapped.items():
        if name not in described or not described[name].description:
            hint = f"input_description: {{{name}: {{desc: ...}}}}"
            key = f"{where}input_mapping.{name}"
            yield audited.finding("input-undescribed", f"the input '{name}' has no help", key, hint)
    for name, one in described.items():
        where = f"input_description.{name}"
        if not one.env_key and name not in mapped and name not in among.inputs:
            yield audited.finding("input-unread", f"there is no mapping for the input '{name}'", where)
        if one.kind and one.default and converted(one, one.default) is None:
            text = f"the default {one.default!r} of the input '{name}' is not allowed; allowed: {allowed_text(one)}"
            yield audited.finding(
                "input-default", text, f"{where}.default", "describe it in desc instead, if it is not a value"
            )


@finds("cache-without-keys", "keys-wide", "promise-empty")
def outputs(audited: AuditedRecipe, among: Registered) -> Iterator[Finding]:
    """What leaves the recipe."""
    may_set = among.may_set
    if audited.recipe.is_cached and not any(
        block.layer.new_env_keys or block.layer.new_state_keys for block in audited.blocks
    ):
        text = "the recipe is cached, but exports neither env nor state"
        yield audited.finding("cache-without-keys", text, "cache", "new_env_keys: [CM_...]")
    for block in audited.blocks:
        for number, key in enumerate(block.layer.new_env_keys):
            where = f"{block.where}new_env_keys[{number}]"
            if key in WIDE_GLOBS:
                yield audited.finding("keys-wide", f"'{key}' exports every env key", where)
            elif not re.search(r"[*?<]", key) and not may_set(re.sub(r"^\+\W?", "", key)) and not may_set(key):
                yield audited.finding("promise-empty", f"'{key}' is not set", where)


@finds("secret-literal")
def secrets(audited: AuditedRecipe, _: Registered) -> Iterator[Finding]:
    """Values of secrets in the metadata."""
    for block in audited.blocks:
        for where, env in block.envs():
            for key, value in env.items():
                if is_secret(str(key)) and isinstance(value, str) and len(value) > len("false") and "<<<" not in value:
                    text = f"'{key}' has a value in the file"
                    yield audited.finding("secret-literal", text, f"{where}.{key}", "let the caller pass it")


# --- variations ---


@finds("default-unknown", "base-unknown", "alias-unusable", "combination-unknown")
def references(audited: AuditedRecipe, _: Registered) -> Iterator[Finding]:
    """Variations that the metadata names and does not have."""
    recipe = audited.recipe
    for code, name, key, text in _references(recipe):
        if not declared_as(name, recipe.variations):
            hint = nearest_hint(name, recipe.variations, "_")
            if name.startswith("_") and declared_as(name[1:], recipe.variations):
                hint = f"without the underscore: {name[1:]}"
            yield audited.finding(code, text, key, hint)


def _references(recipe: Recipe) -> Iterator[tuple[str, str, str, str]]:
    """Every place that names a variation: the code if there is none, its name, the key path, the text."""
    if default := recipe.default_variation:
        yield "default-unknown", default, "default_variation", f"variation _{default} does not exist"
    for name, variation in recipe.variations.items():
        where = f"variations.{name}"
        for base in (base for base in variation.base if "#" not in base):
            yield "base-unknown", base, f"{where}.base", f"_{name} has the base _{base}, which does not exist"
        if alias := variation.alias:
            yield "alias-unusable", alias, f"{where}.alias", f"_{name} is an alias of _{alias}, which does not exist"
    for kind, rows in (("valid", recipe.valid_combinations), ("invalid", recipe.invalid_combinations)):
        for number, row in enumerate(rows):
            key = f"{kind}_variation_combinations[{number}]"
            yield from (("combination-unknown", name, key, f"variation _{name} does not exist") for name in row)


@finds("group-two-defaults", "default-unknown", "alias-unusable", "base-cycle")
def groups(audited: AuditedRecipe, _: Registered) -> Iterator[Finding]:
    """Groups of variations and their defaults, and variations that stand for others."""
    recipe = audited.recipe
    members = groups_of(recipe)
    for group, names in members.items():
        defaults = [name for name in names if recipe.variations[name].is_default]
        if len(defaults) > 1:
            text = f"the group '{group}' has the defaults {', '.join('_' + name for name in defaults)}"
            yield audited.finding("group-two-defaults", text, f"variations.{defaults[1]}.default")
    for block in audited.blocks:
        for group, member in block.layer.default_variations.items():
            key = f"{block.where}default_variations.{group}"
            if group not in members:
                text = f"no variation is in the group '{group}'"
                yield audited.finding("default-unknown", text, key, nearest_hint(group, members))
            elif not declared_as(member, members[group]):
                text = f"'{member}' is not in the group '{group}'"
                yield audited.finding("default-unknown", text, key, nearest_hint(member, members[group]))
    for name, variation in recipe.variations.items():
        is_both = variation.alias and (variation.group or variation.is_default)
        if is_both and declared_as(variation.alias, recipe.variations):
            text = f"_{name} has an alias together with a group or default"
            yield audited.finding("alias-unusable", text, f"variations.{name}.alias")
    waiting = {name: set(variation.base) for name, variation in recipe.variations.items()}
    while cycle := _cycle(waiting):
        text = " -> ".join("_" + name for name in cycle)
        yield audited.finding("base-cycle", f"bases of each other: {text}", f"variations.{cycle[0]}.base")
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


@finds("variation-unusable", "variation-alone", "combination-dead")
def names(audited: AuditedRecipe, _: Registered) -> Iterator[Finding]:
    """Names that no query can hold, variations that are refused alone, combinations that never apply."""
    recipe = audited.recipe
    for name, variation in recipe.variations.items():
        where = f"variations.{name}"
        if not all(variation.parts) or name != name.strip() or any(re.search(r"\s", part) for part in variation.parts):
            yield audited.finding("variation-unusable", f"no query can contain '_{name}'", where)
        elif len(variation.parts) > 1:
            if dead := _why_dead(recipe, variation):
                yield audited.finding("combination-dead", f"'{name}' never applies: {dead}", where)
        elif not recipe.valid_combinations:
            try:
                resolve_variations(recipe, [name.replace(".#", ".1")], ())
            except VariationError as error:
                text = f"_{name} alone is refused: {error.message.partition(': ')[2] or error.message}"
                yield audited.finding("variation-alone", text, where)


def _why_dead(recipe: Recipe, variation: Variation) -> str:
    """Why not all parts of a combined variation can be on; an empty text when they may be."""
    taken: dict[str, str] = {}
    for part in variation.parts:
        if part.endswith(".#"):
            return f"_{part} is never on without a value, and values do not match it"
        if not declared_as(part, recipe.variations):
            near = meant(part, recipe.variations)
            return f"variation _{part} does not exist" + (f" (did you mean _{near}?)" if near else "")
        group = recipe.variations[declared_name(recipe, part)].group
        if group and group in taken:
            return f"_{taken[group]} and _{part} are both in the group '{group}'"
        taken[group] = part
    is_forbidden = any(set(variation.parts).issuperset(forbidden) for forbidden in recipe.invalid_combinations)
    return "the recipe forbids it" if is_forbidden else ""


# --- among others ---


@finds("uid-repeated", "uid-elsewhere", "alias-repeated", "tags-same")
def likeness(audited: AuditedRecipe, among: Registered) -> Iterator[Finding]:
    """Recipes with the same uid, alias or tags."""
    own, tags = audited.recipe.id, set(audited.recipe.tags)
    for other in among.recipes.entries:
        if other.path == audited.folder:
            continue
        is_near = other.repo_path == audited.recipe.repo_path
        if own.uid in (other.uid, other.alias):
            code = "uid-repeated" if is_near else "uid-elsewhere"
            yield audited.finding(code, f"{other.repo_alias}:{other.alias} has the same uid", "uid")
        if is_near and own.alias in (other.uid, other.alias):
            yield audited.finding("alias-repeated", f"{other.path.name} has the same alias", "alias")
        if is_near and tags and other.tags == tags and other.uid != own.uid:
            text = f"{other.repo_alias}:{other.alias} has exactly the same tags"
            yield audited.finding("tags-same", text, "tags", "give each a tag that the other does not have")


@finds("dep-without-tags", "dep-unanswered", "dep-variation-unknown", "dep-open")
def dependencies(audited: AuditedRecipe, among: Registered) -> Iterator[Finding]:
    """Whether a recipe answers each dependency."""
    for block in audited.blocks:
        for where, dependency in block.dependencies():
            yield from _dependency(audited, among.recipes, where, dependency)


def _dependency(audited: AuditedRecipe, index: RecipeIndex, where: str, dependency: Dependency) -> Iterator[Finding]:
    key = f"{where}.tags"
    if not dependency.tags_text:
        if not dependency.update_tags_from_env:
            yield audited.finding("dep-without-tags", f"'{dependency.label}' has no tags", where)
        return
    words = split_words(dependency.tags_text)
    known = [word for word in words if "<<<" not in word and not (word.startswith("_") and "#" in word)]
    try:
        query = parse_query(known)
    except RecipeError as error:
        yield audited.finding("dep-unanswered", error.message, key, error.hint)
        return
    found = index.by_tags(query.all_of, query.none_of) if query.all_of else index.entries
    if not found:
        hint = "each tag exists, but no recipe has all of them together"
        if unknown := [tag for tag in query.all_of if tag not in index.all_tags]:
            near = nearest_hint(unknown[0], index.all_tags)
            hint = f"no recipe at all has the tag '{unknown[0]}'" + (f", {near}" if near else "")
        yield audited.finding("dep-unanswered", f"no recipe has '{query.text}'", key, hint)
        return
    asked = query.variations + query.excluded_variations
    if not any(all(entry.declares(name) for name in asked) for entry in found):
        missing = next(name for name in asked if not found[0].declares(name))
        yield _lacking(audited, "dep-variation-unknown", missing, found, key)
    elif len(known) < len(words) and not all("#" in word for word in set(words) - set(known)):
        text = f"whether a recipe has '{dependency.tags_text}' depends on the env"
        yield audited.finding("dep-open", text, key)


def _lacking(audited: AuditedRecipe, code: str, name: str, found: Sequence[IndexEntry], key: str) -> Finding:
    aliases = dict.fromkeys(entry.alias for entry in found[:3])
    hint = nearest_hint(name, found[0].variations, "_")
    return audited.finding(code, f"variation _{name} does not exist in {' and '.join(aliases)}", key, hint)


@finds("handle-unknown", "handle-unused", "override-unanswered")
def overrides(audited: AuditedRecipe, among: Registered) -> Iterator[Finding]:
    """The dependencies that ``ad`` and ``adr`` change, and the variations that they add to own ones."""
    named: dict[str, list[TagQuery | None]] = {}
    for block in audited.blocks:
        for _, dependency in block.dependencies():
            for name in dependency.names:
                named.setdefault(name, []).append(_plain_query(dependency.tags_text))
    for block in audited.blocks:
        for short, handle, changes in block.overrides():
            long = {"ad": "add_deps", "adr": "add_deps_recursive"}[short]
            written = f"{block.where}{long}.{handle}"
            key = written if written in audited.places.lines else f"{block.where}{short}.{handle}"
            if short == "ad" and handle not in named:
                text = f"no dependency of the recipe is called '{handle}'"
                yield audited.finding("handle-unknown", text, key, nearest_hint(handle, named))
            elif short == "adr" and handle not in among.handles:
                text = f"no dependency of any registered recipe is called '{handle}'"
                yield audited.finding("handle-unused", text, key, nearest_hint(handle, among.handles))
            asked = _plain_query(str(changes.get("tags") or ""))
            found = _answers(among.recipes, named.get(handle, []), asked)
            for name in asked.variations if asked and found else ():
                if not any(entry.declares(name) for entry in found):
                    yield _lacking(audited, "override-unanswered", name, found, key)


def _answers(index: RecipeIndex, own: Sequence[TagQuery | None], asked: TagQuery | None) -> list[IndexEntry]:
    """The recipes that one of the dependencies may mean with more tags; none where that cannot be known."""
    found: list[IndexEntry] = []
    for query in own:
        if asked is None or query is None or not query.all_of:
            return []
        found += index.by_tags((*query.all_of, *asked.all_of), query.none_of)
    return found


def _plain_query(text: str) -> TagQuery | None:
    """The query of a text; None when a part of it is filled in later, or when it contradicts itself."""
    if "<<<" in text or "#" in text:
        return None
    try:
        return parse_query(text)
    except RecipeError:
        return None


@finds("condition-empty", "env-unset")
def conditions(audited: AuditedRecipe, among: Registered) -> Iterator[Finding]:
    """Conditions that never hold; keys that conditions and placeholders look at, and that nothing sets."""
    read: dict[str, str] = {}
    for where, condition in _conditions(audited.blocks):
        for key, accepted in condition.wanted:
            if accepted:
                read.setdefault(key, f"{where}.{condition.kind}.{key}")
            else:
                text = f"no value of '{key}' satisfies the condition"
                yield audited.finding("condition-empty", text, f"{where}.{condition.kind}.{key}")
    for block in audited.blocks:
        texts = [(f"{block.where}env", block.layer.env), *((w, entry.entry) for w, entry in block.dependencies())]
        for where, value in texts:
            for key in _placeholders(value):
                read.setdefault(key, where)
    for key, where in read.items():
        if not among.may_set(key) and key not in among.promised:
            yield audited.finding("env-unset", f"no registered recipe sets '{key}'", where)


def _conditions(blocks: Sequence[Block]) -> Iterator[tuple[str, Condition]]:
    for block in blocks:
        for number, inner in enumerate(block.layer.conditional):
            yield from ((f"{block.where}update_meta_if_env[{number}]", each) for each in inner.conditions)
        for where, dependency in block.dependencies():
            yield from ((where, each) for each in dependency.conditions)


def _placeholders(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from (match[1] for match in re.finditer(PLACEHOLDER, value) if "#" not in match[1])
    elif isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _placeholders(inner)
