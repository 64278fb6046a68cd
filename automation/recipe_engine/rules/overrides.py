"""How one block changes the dependencies of another: list append, and ``ad``/``adr`` by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .conditions import KINDS, decide
from .env import EnvValue, append_unique, expand_value, merge_state
from .model import Dependency, Overrides
from .schema import parse_condition_blocks, parse_dependency
from .tags import merge_tag_texts, split_words


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
        elif isinstance(old, int) and isinstance(value, int):
            merged[key] = max(old, value) if key == "memory_mb" else old + value
        else:
            merged[key] = value
    return merged
