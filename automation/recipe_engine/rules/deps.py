"""Dependencies: how one block changes those of another, and which request each becomes for its parent.

Lists are appended to, and ``ad``/``adr`` change a dependency by name. The input keys of ``cm run script`` that the
engine itself understands are here too; all others belong to recipes.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .conditions import KINDS, Unknown, Verdict, decide
from .env import (
    DEPENDENT_PATH_KEYS,
    LOCAL_KEYS,
    PREFIX,
    Env,
    EnvValue,
    State,
    append_unique,
    env_for_dependency,
    expand_text,
    expand_value,
    key_matcher,
    merge_state,
    with_placeholders,
)
from .errors import RequestError
from .keys import DEPENDENCY_KEYS
from .model import Configured, Dependency, Overrides, Phase, Request, RunOptions
from .query import BOUND_KEYS, VersionRange, merge_tag_texts, parse_query, split_words
from .schema import is_yes, parse_condition_blocks, parse_dependency, parse_overrides


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


REUSED_VERSION_KEYS = ("CM_VERSION", "CM_VERSION_*", "MLC_VERSION", "MLC_VERSION_*")


if TYPE_CHECKING:
    from typing import Protocol

    class Parent(Protocol):
        """What the parent of a dependency knows when the dependency is resolved; ``running.context`` has it."""

        configured: Configured
        env: Env
        state: State
        const: Env
        const_state: State
        unknown: Unknown

        @property
        def trace(self) -> tuple[str, ...]:
            """The labels of the recipes that led here, the parent last."""


def should_run(
    dependency: Dependency,
    env: Mapping[str, EnvValue],
    unknown: Container[str] = (),
    *,
    only_dynamic: bool,
    is_fake: bool,
) -> Verdict:
    """Whether the dependency runs now; the reason says what kept it from running."""
    if not dependency.tags_text:
        return Verdict("no", "it has no tags")
    if only_dynamic and not dependency.is_dynamic:
        return Verdict("no", "its parent comes from the cache")
    if is_fake and dependency.skip_if_fake_run:
        return Verdict("no", "fake run")
    return decide(dependency.conditions, env, unknown)


def hidden_keys(configured: Configured, phase: Phase) -> tuple[str, ...]:
    """The env keys that dependencies of this phase do not see."""
    return (*_local_keys(configured, phase), *DEPENDENT_PATH_KEYS)


def _local_keys(configured: Configured, phase: Phase) -> tuple[str, ...]:
    own = configured.recipe.local_env_keys
    if phase == "post_deps":
        own = (*own, *configured.recipe.post_deps_clean_env_keys)
    return (*LOCAL_KEYS, *own)


def kept_env(env: Mapping[str, EnvValue], configured: Configured, phase: Phase) -> Env:
    """The part of a parent's env that its dependencies do not change: local keys, and values with open placeholders."""
    is_local = key_matcher(_local_keys(configured, phase))
    still_open = with_placeholders(env)
    return {key: value for key, value in env.items() if is_local(key) or key in still_open}


def dependency_tags(dependency: Dependency, parent: Parent) -> tuple[str, ...]:
    """The words of the dependency's query after everything that adds to them."""
    return tuple(dict.fromkeys(word for word, _ in tag_origins(dependency, parent)))


def tag_origins(dependency: Dependency, parent: Parent) -> list[tuple[str, str]]:
    """The words of the dependency's query, maybe with repeats, each with the key of the entry that adds it."""
    own_env = effective(dependency, parent.env).env

    def values(key: str, *, own: bool) -> list[str]:
        """The texts of an env key of the dependency, where ``own`` and set, else of its parent."""
        mine = _texts(expand_value(own_env.get(key, ""), parent.env)) if own else []
        return mine or _texts(parent.env.get(key, ""))

    found = [(word, "tags") for word in split_words(str(expand_text(dependency.tags_text, parent.env)))]
    for prefix, keys in dependency.update_tags_from_env_with_prefix.items():
        for key in keys:
            origin = f"update_tags_from_env_with_prefix {key}"
            found += [(f"{prefix}{item}", origin) for item in values(key, own=True)]
    for key in dependency.update_tags_from_env:
        words = split_words(values(key, own=parent.configured.recipe.is_successor))
        found += [(word, f"update_tags_from_env {key}") for word in words]
    for tag, conditions in dependency.update_tags_if_env.items():
        if decide(conditions, parent.env).answer == "yes":
            found += [(word, "update_tags_if_env") for word in split_words(tag)]
    if dependency.inherit_variation_tags:
        inherited = inherited_variations(dependency, parent.configured, [word for word, _ in found])
        found += [(word, "inherit_variation_tags") for word in inherited]
    return found


def effective(dependency: Dependency, env: Mapping[str, EnvValue]) -> Dependency:
    """The dependency with the blocks of its ``update_meta_if_env`` whose conditions hold."""
    for layer in (part.layer for part in dependency.conditional if decide(part.conditions, env).answer == "yes"):
        dependency = dependency._replace(
            env=merge_state(dependency.env, layer.env),
            const=merge_state(dependency.const, layer.const),
            state=merge_state(dependency.state, layer.state),
            const_state=merge_state(dependency.const_state, layer.const_state),
        )
    return dependency


def _texts(value: EnvValue) -> list[str]:
    items = value if isinstance(value, list) else [value]
    return [str(item).strip() for item in items if item is not None and str(item).strip()]


def inherited_variations(dependency: Dependency, configured: Configured, words: Sequence[str]) -> list[str]:
    """The parent's variations as tags, without skipped groups and those that the dependency excludes."""
    variations = configured.recipe.variations
    inherited = []
    for applied in configured.applied:
        declared = variations.get(applied.name) or variations.get(applied.name.partition(".")[0] + ".#")
        is_skipped = declared is not None and declared.group in dependency.skip_inherit_variation_groups
        if not is_skipped and f"-_{applied.name}" not in words and f"_-{applied.name}" not in words:
            inherited.append("_" + applied.name)
    return inherited


def dependency_request(dependency: Dependency, parent: Parent, phase: Phase) -> Request:
    """The request that runs ``dependency`` for ``parent``.

    The child sees the parent's env without hidden keys; the entry's own ``env`` is seen by the child alone.
    """
    own = effective(dependency, parent.env)
    shown = own.force_env_keys + (REUSED_VERSION_KEYS if own.reuse_version else ())
    inputs = {key: value for key, value in own.entry.items() if key not in DEPENDENCY_KEYS}
    if own.inherit_cache_expiration and parent.configured.cache_expiration:
        inputs.setdefault("cache_expiration", parent.configured.cache_expiration)
    options = parent.configured.request.options
    hidden = hidden_keys(parent.configured, phase)
    request = request_from_inputs(inputs, options=RunOptions(**{name: getattr(options, name) for name in _INHERITED}))
    return request._replace(
        query=parse_query(dependency_tags(dependency, parent)),
        env=env_for_dependency(parent.env, hidden, shown),
        state=merge_state(parent.state, own.state),
        const={**parent.const, **expand_value(own.const, parent.env)},
        const_state={**parent.const_state, **own.const_state},
        local_env={**request.local_env, **expand_value(own.env, parent.env)},
        recursive_overrides=merge_overrides(request.recursive_overrides, parent.configured.recursive_overrides),
        trace=parent.trace,
        phase=phase,
        asked_by=parent.configured.recipe,
        dependency=dependency,
        parent=parent.configured.request,
        unknown=parent.unknown.hiding(hidden, shown),
    )


def replacement_request(inputs: Mapping[str, Any], step: Parent) -> Request:
    """The request that runs what a preprocess named in place of its own recipe."""
    request = request_from_inputs(inputs, options=step.configured.request.options)
    return request._replace(
        query=parse_query(inputs.get("tags", "")),
        alias=str(inputs.get("artifact", "") or ""),
        env=step.env,
        state=step.state,
        const=step.const,
        const_state=step.const_state,
        trace=step.trace,
        unknown=step.unknown,
    )


_INHERITED = (
    "quiet", "silent", "steps_hidden", "verbose", "show_time", "fake_deps", "lock_timeout_s", "mixed_versions",
)  # fmt: skip
"""The flags that hold for the whole tree; the others are meant for the selected recipe alone."""

INPUT_TO_ENV = {
    name: PREFIX + name.upper()
    for name in split_words(
        "input,output,outdirname,outbasename,name,extra_cache_tags,skip_compile,skip_run,accept_license,"
        "skip_system_deps,git_ssh,gh_token,hf_token,search_folder_path,verify_ssl"
    )
}
"""Flags that every recipe gets as env (reference engine, cm4mlops e1d5c7cf0; the last two mlperf-automations, 2025)."""


_FLAGS = {
    "force_cache": "force_cache",
    "skip_cache": "skip_cache",
    "new": "new",
    "renew": "renew",
    "ignore_script_error": "ignore_script_error",
    "only_execute_from_cache": "only_from_cache",
    "fake_run": "fake_run",
}
"""Inputs that switch an option on."""


def request_from_inputs(inputs: Mapping[str, Any], *, options: RunOptions) -> Request:
    """The part of a request that input keys decide, the same for the command line and for a dependency entry.

    Raises MetaError for a malformed ``ad`` or ``adr``.
    """
    local_env: Env = {
        key: str(inputs[name])
        for name, key in INPUT_TO_ENV.items()
        if name in inputs
        and inputs[name] is not None
        and not isinstance(inputs[name], Mapping)  # a recipe in Python hands on all its inputs as ``input``
    }
    if isinstance(inputs.get("extra_cache_tags"), list):
        local_env["CM_EXTRA_CACHE_TAGS"] = ",".join(str(tag) for tag in inputs["extra_cache_tags"])
    given = {option: True for name, option in _FLAGS.items() if name in inputs and is_yes(inputs[name])}
    if "fake_run" in given:
        local_env["CM_TMP_FAKE_RUN"] = "yes"
    paths = inputs.get("path")
    if paths:
        local_env["CM_TMP_PATH"] = ":".join(str(path) for path in paths) if isinstance(paths, list) else str(paths)
    return Request(
        query=parse_query(()),
        inputs=inputs,
        local_env=local_env,
        overrides=_both(inputs, "ad", "add_deps"),
        recursive_overrides=_both(inputs, "adr", "add_deps_recursive"),
        version=VersionRange(*(_text(inputs, key) for key in BOUND_KEYS)),
        extra_cache_tags=split_words(_texts(inputs.get("extra_cache_tags", ""))),
        new_env_keys=_keys(inputs, "force_new_env_keys"),
        new_state_keys=_keys(inputs, "force_new_state_keys"),
        options=options._replace(**given),
    )


def _text(inputs: Mapping[str, Any], key: str) -> str:
    value = inputs.get(key)
    return "" if value is None or isinstance(value, bool) else str(value)


def _keys(inputs: Mapping[str, Any], key: str) -> tuple[str, ...] | None:
    value = inputs.get(key)
    if not value:
        return None
    if not isinstance(value, str | list | tuple):
        raise RequestError(f"--{key}={value!r} names no keys", hint=f"write --{key},=KEY_ONE,KEY_TWO")
    return (value,) if isinstance(value, str) else tuple(str(item) for item in value if item is not None)


def _both(inputs: Mapping[str, Any], short: str, long: str) -> Overrides:
    if short not in inputs and long not in inputs:
        return {}
    first, second = (parse_overrides(inputs.get(name), f"--{name}") for name in (short, long))
    return merge_overrides(first, second)
