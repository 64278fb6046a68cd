"""Dependencies: whether each runs, and which request it becomes for its parent."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .conditions import Unknown, Verdict, decide
from .env import (
    DEPENDENT_PATH_KEYS,
    LOCAL_KEYS,
    Env,
    EnvValue,
    State,
    env_for_dependency,
    expand_text,
    expand_value,
    key_matcher,
    merge_state,
    texts_of,
    with_placeholders,
)
from .inputs import request_from_inputs
from .keys import DEPENDENCY_KEYS
from .model import Configured, Dependency, Phase, Request, RunOptions
from .query import declared_as, parse_query, split_words
from .schema import merge_overrides

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
        mine = texts_of(expand_value(own_env.get(key, ""), parent.env)) if own else []
        return mine or texts_of(parent.env.get(key, ""))

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


def inherited_variations(dependency: Dependency, configured: Configured, words: Sequence[str]) -> list[str]:
    """The parent's variations as tags, without skipped groups and those that the dependency excludes."""
    variations = configured.recipe.variations
    inherited = []
    for applied in configured.applied:
        declared = variations.get(declared_as(applied.name, variations))
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
        env={**env_for_dependency(parent.env, hidden, shown), **({SILENT_KEY: "yes"} if options.silent else {})},
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


SILENT_KEY = "CM_TMP_SILENT"
"""Tells hooks to show problems only. ``CM_TMP_*`` are not handed down, but this flag holds for the whole tree."""
_INHERITED = ("quiet", "silent", "steps_hidden", "verbose", "fake_deps", "lock_timeout_s", "mixed_versions")
"""The flags that hold for the whole tree; the others are meant for the selected recipe alone."""
