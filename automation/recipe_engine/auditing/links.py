"""Rules of the audit about a recipe among others: who is like it, who answers its dependencies, who sets env."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..rules.conditions import Condition
from ..rules.env import PLACEHOLDER
from ..rules.errors import RecipeError
from ..rules.index import IndexEntry
from ..rules.model import Dependency
from ..rules.tags import TagQuery, nearest, parse_query, split_words
from .findings import Finding
from .subject import Block, Look


def likeness(look: Look) -> Iterator[Finding]:
    """Recipes with the same uid, alias or tags."""
    own = look.subject.entry
    if own is None:
        return
    for other in look.registered.named(own.uid):
        if other.path != own.path:
            code = "uid-repeated" if other.repo_path == own.repo_path else "uid-elsewhere"
            yield look.subject.finding(code, f"{other.repo_alias}:{other.alias} has the same uid", "uid")
    for other in look.registered.named(own.alias):
        if other.path != own.path and other.repo_path == own.repo_path:
            yield look.subject.finding("alias-repeated", f"{other.path.name} has the same alias", "alias")
    for other in look.registered.twins(own) if own.tags else ():
        if other.tags == own.tags and other.repo_path == own.repo_path and other.uid != own.uid:
            text = f"{other.repo_alias}:{other.alias} has exactly these tags too"
            yield look.subject.finding("tags-same", text, "tags", "give each a tag of its own")


def dependencies(look: Look) -> Iterator[Finding]:
    """Whether somebody answers each dependency."""
    for block in look.blocks:
        for where, dependency in block.dependencies():
            yield from _dependency(look, where, dependency)


def _dependency(look: Look, where: str, dependency: Dependency) -> Iterator[Finding]:
    key = f"{where}.tags"
    if not dependency.tags_text:
        if not dependency.entry.get("update_tags_from_env"):
            yield look.subject.finding("dep-without-tags", f"'{dependency.label}' has no tags", where)
        return
    words = split_words(dependency.tags_text)
    known = [word for word in words if "<<<" not in word and not (word.startswith("_") and "#" in word)]
    try:
        query = parse_query(known)
    except RecipeError as error:
        yield look.subject.finding("dep-unanswered", error.message, key, error.hint)
        return
    found = look.registered.answers(query) if query.all_of else look.registered.entries
    if not found:
        yield look.subject.finding("dep-unanswered", f"no recipe has '{query.text}'", key, _unknown(look, query))
        return
    asked = query.variations + query.excluded_variations
    if not any(all(entry.declares(name) for name in asked) for entry in found):
        missing = next(name for name in asked if not any(entry.declares(name) for entry in found[:1]))
        close = nearest(missing, found[0].variations)
        hint = f"the nearest are: {', '.join('_' + name for name in close)}" if close else ""
        text = f"{' and '.join(entry.alias for entry in found[:3])} lacks _{missing}"
        yield look.subject.finding("dep-variation-unknown", text, key, hint)
    elif len(known) < len(words) and not all("#" in word for word in set(words) - set(known)):
        text = f"whether a recipe has '{dependency.tags_text}' depends on the env"
        yield look.subject.finding("dep-open", text, key)


def _unknown(look: Look, query: TagQuery) -> str:
    for tag in query.all_of:
        if tag not in look.registered.by_tag:
            close = nearest(tag, look.registered.by_tag)
            near = f"; the nearest are: {', '.join(close)}" if close else ""
            return f"no recipe at all has the tag '{tag}'{near}"
    return "each tag exists, but no recipe has all of them together"


def handles(look: Look) -> Iterator[Finding]:
    """The dependencies that ``ad`` and ``adr`` change."""
    own = {name for block in look.blocks for _, dependency in block.dependencies() for name in dependency.names}
    for block in look.blocks:
        for handle in block.layer.overrides:
            if handle not in own:
                key = _written(look, block, f"ad.{handle}", f"add_deps.{handle}")
                text = f"no dependency of the recipe is called '{handle}'"
                yield look.subject.finding("handle-unknown", text, key, _near(handle, own))
        for handle in block.layer.recursive_overrides:
            if handle not in look.registered.handles:
                key = _written(look, block, f"adr.{handle}", f"add_deps_recursive.{handle}")
                text = f"no dependency of any registered recipe is called '{handle}'"
                yield look.subject.finding("handle-unused", text, key, _near(handle, look.registered.handles))


def overrides(look: Look) -> Iterator[Finding]:
    """The variations that ``ad`` and ``adr`` add to own dependencies; told when no dependency of that name has them."""
    named: dict[str, list[TagQuery | None]] = {}
    for block in look.blocks:
        for _, dependency in block.dependencies():
            for name in dependency.names:
                named.setdefault(name, []).append(_plain_query(dependency.tags_text))
    for block in look.blocks:
        for short, long, changes in (
            ("ad", "add_deps", block.layer.overrides),
            ("adr", "add_deps_recursive", block.layer.recursive_overrides),
        ):
            for handle, change in changes.items():
                key = _written(look, block, f"{short}.{handle}", f"{long}.{handle}")
                yield from _override(look, key, named.get(handle, []), _plain_query(str(change.get("tags") or "")))


def _override(look: Look, key: str, own: list[TagQuery | None], asked: TagQuery | None) -> Iterator[Finding]:
    if asked is None or not own:
        return
    found: list[IndexEntry] = []
    for query in own:
        if query is None or not query.all_of:
            return
        found += look.registered.answers(TagQuery(all_of=(*query.all_of, *asked.all_of), none_of=query.none_of))
    for name in asked.variations if found else ():
        if not any(entry.declares(name) for entry in found):
            close = nearest(name, found[0].variations)
            aliases = dict.fromkeys(entry.alias for entry in found[:3])
            hint = f"the nearest are: {', '.join('_' + near for near in close)}" if close else ""
            yield look.subject.finding("override-unanswered", f"{' and '.join(aliases)} lacks _{name}", key, hint)


def _plain_query(text: str) -> TagQuery | None:
    """The query of a text; None when a part of it is filled in later, or when it contradicts itself."""
    if "<<<" in text or "#" in text:
        return None
    try:
        return parse_query(text)
    except RecipeError:
        return None


def _written(look: Look, block: Block, short: str, long: str) -> str:
    """The key path of an override in the file, which may hold the short or the long name of the key."""
    return block.where + (long if block.where + long in look.subject.places.lines else short)


def _near(word: str, known: set[str] | frozenset[str]) -> str:
    close = nearest(word, known)
    return f"the nearest are: {', '.join(close)}" if close else ""


def conditions(look: Look) -> Iterator[Finding]:
    """Conditions that never hold; keys that conditions and placeholders look at, and that nobody sets."""
    for where, condition in _conditions(look):
        for key, accepted in condition.wanted:
            if not accepted:
                text = f"no value of '{key}' fulfils the condition"
                yield look.subject.finding("condition-empty", text, f"{where}.{condition.kind}.{key}")
    told: set[str] = set()
    for key, where in _looked_at(look):
        if key in told or look.registered.may_set(key) or key in look.registered.promised:
            continue
        told.add(key)
        yield look.subject.finding("env-unset", f"no registered recipe sets '{key}'", where)


def _conditions(look: Look) -> Iterator[tuple[str, Condition]]:
    for block in look.blocks:
        for number, inner in enumerate(block.layer.conditional):
            yield from ((f"{block.where}update_meta_if_env[{number}]", each) for each in inner.conditions)
        for where, dependency in block.dependencies():
            yield from ((where, each) for each in dependency.conditions)


def _looked_at(look: Look) -> Iterator[tuple[str, str]]:
    for where, condition in _conditions(look):
        yield from ((key, f"{where}.{condition.kind}.{key}") for key, accepted in condition.wanted if accepted)
    for block in look.blocks:
        yield from ((key, block.where + "env") for key in _placeholders(block.layer.env))
        for where, dependency in block.dependencies():
            yield from ((key, where) for key in _placeholders(dependency.entry))


def _placeholders(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from (match[1] for match in PLACEHOLDER.finditer(value) if "#" not in match[1])
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _placeholders(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _placeholders(inner)
