"""From a dependency and what its parent knows to the request that runs it."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any, NamedTuple

from .conditions import Verdict, decide
from .env import (
    DEPENDENT_PATH_KEYS,
    LOCAL_KEYS,
    Env,
    EnvValue,
    State,
    env_for_dependency,
    expand_text,
    expand_value,
    has_placeholder,
    key_matcher,
    merge_state,
)
from .errors import RequestError
from .keys import DEPENDENCY_KEYS
from .model import Configured, Dependency, Overrides, Phase, Request, RunOptions
from .overrides import merge_overrides
from .schema import is_yes, parse_condition_blocks, parse_overrides
from .symbols import NOTHING_UNKNOWN, Unknown
from .tags import parse_query, split_words
from .version import VersionRange

REUSED_VERSION_KEYS = ("CM_VERSION", "CM_VERSION_*", "MLC_VERSION", "MLC_VERSION_*")


class ParentView(NamedTuple):
    """What the parent of a dependency knows at the moment the dependency is looked at."""

    configured: Configured
    env: Env
    state: State
    const: Env
    const_state: State
    recursive_overrides: Overrides
    trace: tuple[str, ...]
    unknown: Unknown = NOTHING_UNKNOWN


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
    if is_fake and is_yes(dependency.entry.get("skip_if_fake_run")):
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
    is_local = key_matcher(_local_keys(configured, phase)).match
    return {key: value for key, value in env.items() if is_local(key) or has_placeholder(value)}


def dependency_tags(dependency: Dependency, parent: ParentView) -> tuple[str, ...]:
    """The words of the dependency's query after everything that adds to them."""
    return tuple(dict.fromkeys(word for word, _ in tag_origins(dependency, parent)))


def tag_origins(dependency: Dependency, parent: ParentView) -> list[tuple[str, str]]:
    """The words of the dependency's query, maybe with repeats, each with the key of the entry that adds it."""
    entry = effective_entry(dependency, parent.env)
    local_env = entry.get("env") or {}
    found = [(word, "tags") for word in split_words(str(expand_text(dependency.tags_text, parent.env)))]
    for prefix, keys in (entry.get("update_tags_from_env_with_prefix") or {}).items():
        for key in _listed(keys):
            own = _texts(expand_value(local_env.get(key, ""), parent.env))
            items = own or _texts(parent.env.get(key, ""))
            found += [(f"{prefix}{item}", f"update_tags_from_env_with_prefix {key}") for item in items]
    for key in _listed(entry.get("update_tags_from_env")):
        own = _texts(expand_value(local_env.get(key, ""), parent.env)) if parent.configured.recipe.is_successor else []
        words = [word for item in own or _texts(parent.env.get(key, "")) for word in split_words(item)]
        found += [(word, f"update_tags_from_env {key}") for word in words]
    for tag, block in (entry.get("update_tags_if_env") or {}).items():
        if decide(parse_condition_blocks(block, tag), parent.env).answer == "yes":
            found += [(word, "update_tags_if_env") for word in split_words(tag)]
    if is_yes(entry.get("inherit_variation_tags")):
        words = [word for word, _ in found]
        inherited = inherited_variations(dependency, parent.configured, words)
        found += [(word, "inherit_variation_tags") for word in inherited]
    return found


def effective_entry(dependency: Dependency, env: Mapping[str, EnvValue]) -> Mapping[str, Any]:
    """The entry of a dependency with the blocks of its ``update_meta_if_env`` whose conditions hold."""
    blocks = dependency.entry.get("update_meta_if_env")
    if not blocks:
        return dependency.entry
    entry = dict(dependency.entry)
    for block in blocks:
        if decide(parse_condition_blocks(block, dependency.label), env).answer == "yes":
            for key in ("env", "const", "state", "const_state"):
                if block.get(key):
                    entry[key] = merge_state(entry.get(key) or {}, block[key])
    return entry


def _listed(value: Any) -> list[str]:
    """The items of a list; one text stands for a list of one."""
    return [value] if isinstance(value, str) else [str(item) for item in value or () if item is not None]


def _texts(value: EnvValue) -> list[str]:
    items = value if isinstance(value, list) else [value]
    return [str(item).strip() for item in items if item is not None and str(item).strip()]


def inherited_variations(dependency: Dependency, configured: Configured, words: Sequence[str]) -> list[str]:
    """The parent's variations as tags, without skipped groups and those that the dependency excludes."""
    skipped_groups = set(_listed(dependency.entry.get("skip_inherit_variation_groups")))
    variations = configured.recipe.variations
    inherited = []
    for applied in configured.applied:
        declared = variations.get(applied.name) or variations.get(applied.name.partition(".")[0] + ".#")
        is_skipped = declared is not None and declared.group in skipped_groups
        if not is_skipped and f"-_{applied.name}" not in words and f"_-{applied.name}" not in words:
            inherited.append("_" + applied.name)
    return inherited


def dependency_request(dependency: Dependency, parent: ParentView, phase: Phase) -> Request:
    """The request that runs ``dependency`` for ``parent``.

    The child sees the parent's env without hidden keys; the entry's own ``env`` is seen by the child alone.
    """
    entry = effective_entry(dependency, parent.env)
    shown = tuple(_listed(entry.get("force_env_keys")))
    if is_yes(entry.get("reuse_version")):
        shown += REUSED_VERSION_KEYS
    inputs = {key: value for key, value in entry.items() if key not in DEPENDENCY_KEYS}
    if is_yes(entry.get("inherit_cache_expiration")) and parent.configured.cache_expiration:
        inputs.setdefault("cache_expiration", parent.configured.cache_expiration)
    options = parent.configured.request.options
    child_env = env_for_dependency(parent.env, hidden_keys(parent.configured, phase), shown)
    request = request_from_inputs(inputs, options=_inherited_options(options))
    return request._replace(
        query=parse_query(dependency_tags(dependency, parent)),
        env=child_env,
        state=merge_state(parent.state, entry.get("state") or {}),
        const={**parent.const, **expand_value(dict(entry.get("const") or {}), parent.env)},
        const_state={**parent.const_state, **(entry.get("const_state") or {})},
        local_env={**request.local_env, **expand_value(dict(entry.get("env") or {}), parent.env)},
        recursive_overrides=merge_overrides(request.recursive_overrides, parent.recursive_overrides),
        trace=parent.trace,
        phase=phase,
        asked_by=parent.configured.recipe,
        unknown=parent.unknown.hiding(hidden_keys(parent.configured, phase), shown),
    )


def replacement_request(inputs: Mapping[str, Any], step: ParentView) -> Request:
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


def _inherited_options(options: RunOptions) -> RunOptions:
    """The flags that hold for the whole tree; the others are meant for the recipe asked for alone."""
    return RunOptions(
        quiet=options.quiet,
        silent=options.silent,
        verbose=options.verbose,
        show_time=options.show_time,
        fake_deps=options.fake_deps,
        lock_timeout_s=options.lock_timeout_s,
        mixed_versions=options.mixed_versions,
    )


INPUT_TO_ENV = {
    "input": "CM_INPUT",
    "output": "CM_OUTPUT",
    "outdirname": "CM_OUTDIRNAME",
    "outbasename": "CM_OUTBASENAME",
    "name": "CM_NAME",
    "extra_cache_tags": "CM_EXTRA_CACHE_TAGS",
    "skip_compile": "CM_SKIP_COMPILE",
    "skip_run": "CM_SKIP_RUN",
    "accept_license": "CM_ACCEPT_LICENSE",
    "skip_system_deps": "CM_SKIP_SYSTEM_DEPS",
    "git_ssh": "CM_GIT_SSH",
    "gh_token": "CM_GH_TOKEN",
    "hf_token": "CM_HF_TOKEN",
    "search_folder_path": "CM_SEARCH_FOLDER_PATH",
    "verify_ssl": "CM_VERIFY_SSL",
}
"""Flags that every recipe gets as env (reference engine, cm4mlops e1d5c7cf0; the last two mlperf-automations, 2025)."""


def request_from_inputs(inputs: Mapping[str, Any], *, options: RunOptions) -> Request:
    """The part of a request that input keys decide, the same for the command line and for a dependency entry.

    Raises MetaError for a malformed ``ad`` or ``adr``.
    """
    given = {name: inputs[name] for name in INPUT_TO_ENV if inputs.get(name) is not None}
    local_env: Env = {
        INPUT_TO_ENV[name]: str(value)
        for name, value in given.items()
        if not isinstance(value, Mapping)  # a recipe in Python hands on all its inputs as ``input``
    }
    if isinstance(inputs.get("extra_cache_tags"), list):
        local_env["CM_EXTRA_CACHE_TAGS"] = ",".join(str(tag) for tag in inputs["extra_cache_tags"])
    is_fake = is_yes(inputs.get("fake_run"))
    if is_fake:
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
        version=VersionRange(
            exact=_text(inputs, "version"),
            minimum=_text(inputs, "version_min"),
            maximum=_text(inputs, "version_max"),
            maximum_usable=_text(inputs, "version_max_usable"),
        ),
        extra_cache_tags=split_words(_texts(inputs.get("extra_cache_tags", ""))),
        new_env_keys=_keys(inputs, "force_new_env_keys"),
        new_state_keys=_keys(inputs, "force_new_state_keys"),
        options=options._replace(
            force_cache=options.force_cache or is_yes(inputs.get("force_cache")),
            skip_cache=options.skip_cache or is_yes(inputs.get("skip_cache")),
            new=options.new or is_yes(inputs.get("new")),
            renew=options.renew or is_yes(inputs.get("renew")),
            ignore_script_error=options.ignore_script_error or is_yes(inputs.get("ignore_script_error")),
            only_from_cache=options.only_from_cache or is_yes(inputs.get("only_execute_from_cache")),
            fake_run=options.fake_run or is_fake,
        ),
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
    return tuple(_listed(value))


def _both(inputs: Mapping[str, Any], short: str, long: str) -> Overrides:
    first, second = (parse_overrides(inputs.get(name), f"--{name}") for name in (short, long))
    return merge_overrides(first, second)
