"""Rules of the audit about a recipe among others: which are like it, answer its dependencies, set the env it reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..rules.conditions import Condition
from ..rules.env import PLACEHOLDER
from ..rules.errors import RecipeError
from ..rules.model import Dependency
from ..rules.query import TagQuery, nearest_hint, parse_query, split_words
from ..rules.select import IndexEntry
from .context import AuditContext, finds
from .findings import Finding


@finds("uid-repeated", "uid-elsewhere", "alias-repeated", "tags-same")
def likeness(context: AuditContext) -> Iterator[Finding]:
    """Recipes with the same uid, alias or tags."""
    own = context.audited.entry
    for other in context.registered.recipes.entries if own else ():
        if own is None or other.path == own.path:
            continue
        is_near = other.repo_path == own.repo_path
        if own.uid in (other.uid, other.alias):
            code = "uid-repeated" if is_near else "uid-elsewhere"
            yield context.finding(code, f"{other.repo_alias}:{other.alias} has the same uid", "uid")
        if is_near and own.alias in (other.uid, other.alias):
            yield context.finding("alias-repeated", f"{other.path.name} has the same alias", "alias")
        if is_near and own.tags and other.tags == own.tags and other.uid != own.uid:
            text = f"{other.repo_alias}:{other.alias} has exactly the same tags"
            yield context.finding("tags-same", text, "tags", "give each a tag that the other lacks")


@finds("dep-without-tags", "dep-unanswered", "dep-variation-unknown", "dep-open")
def dependencies(context: AuditContext) -> Iterator[Finding]:
    """Whether a recipe answers each dependency."""
    for block in context.blocks:
        for where, dependency in block.dependencies():
            yield from _dependency(context, where, dependency)


def _dependency(context: AuditContext, where: str, dependency: Dependency) -> Iterator[Finding]:
    key, index = f"{where}.tags", context.registered.recipes
    if not dependency.tags_text:
        if not dependency.update_tags_from_env:
            yield context.finding("dep-without-tags", f"'{dependency.label}' has no tags", where)
        return
    words = split_words(dependency.tags_text)
    known = [word for word in words if "<<<" not in word and not (word.startswith("_") and "#" in word)]
    try:
        query = parse_query(known)
    except RecipeError as error:
        yield context.finding("dep-unanswered", error.message, key, error.hint)
        return
    found = index.by_tags(query.all_of, query.none_of) if query.all_of else index.entries
    if not found:
        hint = "each tag exists, but no recipe has all of them together"
        if unknown := [tag for tag in query.all_of if tag not in index.all_tags]:
            near = nearest_hint(unknown[0], index.all_tags)
            hint = f"no recipe at all has the tag '{unknown[0]}'" + (f"; {near}" if near else "")
        yield context.finding("dep-unanswered", f"no recipe has '{query.text}'", key, hint)
        return
    asked = query.variations + query.excluded_variations
    if not any(all(entry.declares(name) for name in asked) for entry in found):
        missing = next(name for name in asked if not found[0].declares(name))
        yield _lacking(context, "dep-variation-unknown", missing, found, key)
    elif len(known) < len(words) and not all("#" in word for word in set(words) - set(known)):
        text = f"whether a recipe has '{dependency.tags_text}' depends on the env"
        yield context.finding("dep-open", text, key)


def _lacking(context: AuditContext, code: str, name: str, found: Sequence[IndexEntry], key: str) -> Finding:
    aliases = dict.fromkeys(entry.alias for entry in found[:3])
    hint = nearest_hint(name, found[0].variations, "_")
    return context.finding(code, f"there is no variation _{name} in {' and '.join(aliases)}", key, hint)


@finds("handle-unknown", "handle-unused", "override-unanswered")
def overrides(context: AuditContext) -> Iterator[Finding]:
    """The dependencies that ``ad`` and ``adr`` change, and the variations that they add to own ones."""
    named: dict[str, list[TagQuery | None]] = {}
    for block in context.blocks:
        for _, dependency in block.dependencies():
            for name in dependency.names:
                named.setdefault(name, []).append(_plain_query(dependency.tags_text))
    for block in context.blocks:
        for short, handle, changes in block.overrides():
            long = {"ad": "add_deps", "adr": "add_deps_recursive"}[short]
            written = f"{block.where}{long}.{handle}"
            key = written if written in context.audited.places.lines else f"{block.where}{short}.{handle}"
            if short == "ad" and handle not in named:
                text = f"no dependency of the recipe is called '{handle}'"
                yield context.finding("handle-unknown", text, key, nearest_hint(handle, named))
            elif short == "adr" and handle not in context.registered.handles:
                text = f"no dependency of any registered recipe is called '{handle}'"
                yield context.finding("handle-unused", text, key, nearest_hint(handle, context.registered.handles))
            asked = _plain_query(str(changes.get("tags") or ""))
            found = _answers(context, named.get(handle, []), asked)
            for name in asked.variations if asked and found else ():
                if not any(entry.declares(name) for entry in found):
                    yield _lacking(context, "override-unanswered", name, found, key)


def _answers(context: AuditContext, own: Sequence[TagQuery | None], asked: TagQuery | None) -> list[IndexEntry]:
    """The recipes that one of the dependencies may mean with more tags; none where that cannot be known."""
    found: list[IndexEntry] = []
    for query in own:
        if asked is None or query is None or not query.all_of:
            return []
        found += context.registered.recipes.by_tags((*query.all_of, *asked.all_of), query.none_of)
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
def conditions(context: AuditContext) -> Iterator[Finding]:
    """Conditions that never hold; keys that conditions and placeholders look at, and that nothing sets."""
    read: dict[str, str] = {}
    for where, condition in _conditions(context):
        for key, accepted in condition.wanted:
            if accepted:
                read.setdefault(key, f"{where}.{condition.kind}.{key}")
            else:
                text = f"no value of '{key}' satisfies the condition"
                yield context.finding("condition-empty", text, f"{where}.{condition.kind}.{key}")
    for block in context.blocks:
        texts = [(f"{block.where}env", block.layer.env), *((w, entry.entry) for w, entry in block.dependencies())]
        for where, value in texts:
            for key in _placeholders(value):
                read.setdefault(key, where)
    for key, where in read.items():
        if not context.registered.may_set(key) and key not in context.registered.promised:
            yield context.finding("env-unset", f"no registered recipe sets '{key}'", where)


def _conditions(context: AuditContext) -> Iterator[tuple[str, Condition]]:
    for block in context.blocks:
        for number, inner in enumerate(block.layer.conditional):
            yield from ((f"{block.where}update_meta_if_env[{number}]", each) for each in inner.conditions)
        for where, dependency in block.dependencies():
            yield from ((where, each) for each in dependency.conditions)


def _placeholders(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from (match[1] for match in PLACEHOLDER.finditer(value) if "#" not in match[1])
    elif isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _placeholders(inner)
