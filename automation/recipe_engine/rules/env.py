r"""Rules for the environment that flows between recipes and into their scripts, as pure functions.

An env maps a key to a text, or, when the key starts with ``+``, to a list that is joined into a path-like variable.
No function here changes its arguments.

A value is written into a shell script so that it never runs anything, by one of two rules. ``literal``: the script sees
the value as it is. ``cm``: the script sees what bash makes of the value between double quotes, which is how CM's engine
writes it and what its recipes are written for, except that commands never run:

=========================================  =====================================================================
text of the value                          what the script sees
=========================================  =====================================================================
``\$``, ``\"``, ``\```, ``\\``            the character behind the backslash
a backslash at the end of a line           neither
``$NAME``, ``${NAME}``, NAME is known      the value of NAME, which is not looked at again
``$(...)``, ``$((...))``, ``${...}``,      the same text, to the last character
backticks
everything else, ``"`` and ``$?`` too      the same text
=========================================  =====================================================================
"""

from __future__ import annotations

import copy
import fnmatch
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

from .errors import RequestError

EnvValue = Any
"""A text, a list of texts for ``+KEY``, or what a recipe put there (bool, int); open by nature."""
Env = dict[str, EnvValue]
State = dict[str, Any]

PREFIX = "CM_"
SUCCESSOR_PREFIX = "MLC_"
"""What the engine's own keys start with for recipes of CM's successor (mlcommons/mlperf-automations, 2025)."""

PLACEHOLDER = r"<<<(.*?)>>>"
MAX_PASSES = 8

_LOCAL_NAMES = (
    *("VERSION", "VERSION_MIN", "VERSION_MAX", "VERSION_MAX_USABLE", "DETECTED_VERSION", "INPUT", "OUTPUT"),
    *("OUTBASENAME", "OUTDIRNAME", "NAME", "EXTRA_CACHE_TAGS", "TMP_*", "GIT_*", "RENEW_CACHE_ENTRY"),
)
DEPENDENT_PATH_KEYS = tuple(prefix + "GET_DEPENDENT_CACHED_PATH" for prefix in (PREFIX, SUCCESSOR_PREFIX))
"""Keys in which a recipe names the path outside its entry that the entry depends on; not handed down to dependencies,
because what one dependency depends on says nothing about its siblings."""

LOCAL_KEYS = tuple(prefix + name for prefix in (PREFIX, SUCCESSOR_PREFIX) for name in _LOCAL_NAMES)
"""Keys that a recipe neither hands down to its dependencies nor takes from them when it has a value of its own
(reference engine, cm4mlops e1d5c7cf0, module.py)."""

_FLAG_NAMES = (
    *("QUIET", "VERBOSE", "SKIP_*", "ACCEPT_LICENSE", "GIT_SSH", "GH_TOKEN", "HF_TOKEN", "VERIFY_SSL"),
    *("SEARCH_FOLDER_PATH", "RUN_STATE_DOCKER"),
)
ENGINE_KEYS = tuple(PREFIX + name for name in (*_LOCAL_NAMES, *_FLAG_NAMES) if name != "GIT_*")
"""Keys that the engine itself writes, from its flags and for its hooks."""

_INPUTS = (
    *("input", "output", "outdirname", "outbasename", "name", "extra_cache_tags", "skip_compile", "skip_run"),
    *("accept_license", "skip_system_deps", "git_ssh", "gh_token", "hf_token", "search_folder_path", "verify_ssl"),
)
INPUT_TO_ENV = {name: PREFIX + name.upper() for name in _INPUTS}
"""Flags that every recipe gets as env (reference engine, cm4mlops e1d5c7cf0; the last two mlperf-automations, 2025)."""

_WILDCARDS = frozenset("*?[")


def is_glob(pattern: str) -> bool:
    """Whether a key pattern matches more than one name."""
    return not _WILDCARDS.isdisjoint(pattern)


class _Matches(dict[str, bool]):
    """Whether one of the names or globs matches a whole env key, for each key that was asked for.

    Most globs are a prefix and ``*``: only others are worth a regular expression, which takes a millisecond to make.
    """

    def __init__(self, patterns: tuple[str, ...]) -> None:
        self._names = frozenset(pattern for pattern in patterns if not is_glob(pattern))
        globs = [pattern for pattern in patterns if pattern not in self._names]
        begun = (glob[:-1] for glob in globs if glob[-1] == "*" and not is_glob(glob[:-1]))
        self._beginnings = tuple(begun)
        others = [fnmatch.translate(glob) for glob in globs if glob[:-1] not in self._beginnings]
        self._others = re.compile("|".join(others)) if others else None

    def __missing__(self, key: str) -> bool:
        is_matched = key in self._names or key.startswith(self._beginnings)
        if not is_matched and self._others:
            is_matched = self._others.match(key) is not None
        self[key] = is_matched
        return is_matched


@lru_cache(maxsize=1024)
def key_matcher(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """Returns whether one of the names or globs matches a whole env key; each key is looked at once."""
    return _Matches(patterns).__getitem__


def select_keys(env: Mapping[str, EnvValue], patterns: Sequence[str]) -> Env:
    """The part of ``env`` whose keys match ``patterns``.

    A pattern is a key, a glob, or ``<<<K>>>``: then the value of K is the key.
    """
    resolved = tuple(str(expand_text(pattern, env)) if "<<<" in pattern else pattern for pattern in patterns)
    matches = key_matcher(resolved)
    return {key: value for key, value in env.items() if matches(key)}


def with_lists(env: Mapping[str, EnvValue]) -> Env:
    """``env`` with a list behind every ``+KEY``: a text is a list of one, an empty one an empty list.

    Raises RequestError for what is neither a text, a number nor a list.
    """
    return {key: _as_list(key, value) if key.startswith("+") else value for key, value in env.items()}


def _as_list(key: str, value: EnvValue) -> list[EnvValue]:
    if isinstance(value, list | tuple):
        return list(value)
    if value is None or value == "":
        return []
    if isinstance(value, str | int | float):
        return [value]
    raise RequestError(
        f"env key '{key}' must contain a list, found {type(value).__name__} {value!r}",
        hint=f"write --env.{key},=VALUE1,VALUE2 to give a list",
    )


def texts_of(value: EnvValue) -> list[str]:
    """The text of a value, or those of the items of a list, without surrounding whitespace and empty ones."""
    items = value if isinstance(value, list) else [value]
    return [str(item).strip() for item in items if item is not None and str(item).strip()]


def append_unique(first: Iterable[EnvValue], second: Iterable[EnvValue]) -> list[EnvValue]:
    """The items of ``first``, then those of ``second`` that it lacks."""
    merged = list(first)
    for item in second:
        if item not in merged:
            merged.append(item)
    return merged


def merge_env(env: Mapping[str, EnvValue], new: Mapping[str, EnvValue]) -> Env:
    """``env`` overwritten by ``new``; lists grow at the end instead, so an earlier producer stays first."""
    merged = {**env, **new}
    for key, value in new.items():
        if value.__class__ is not str and isinstance(value, list):
            old = env.get(key)
            merged[key] = append_unique(old, value) if isinstance(old, list) else value
    return merged


def merge_state(state: Mapping[str, Any], new: Mapping[str, Any]) -> State:
    """``state`` deep-merged with ``new``: dicts by key, lists without repeats, anything else overwritten."""
    merged = dict(state)
    for key, value in new.items():
        old = merged.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            merged[key] = merge_state(old, value)
        elif isinstance(old, list) and isinstance(value, list):
            merged[key] = append_unique(old, value)
        else:
            merged[key] = deep_copy(value)
    return merged


def successor_twins(env: Mapping[str, EnvValue]) -> Env:
    """The engine's own keys in ``env`` under the names that recipes of CM's successor know: ``MLC_TMP_PATH`` ..."""
    is_own = key_matcher(ENGINE_KEYS)
    return {SUCCESSOR_PREFIX + key[len(PREFIX) :]: value for key, value in env.items() if is_own(key)}


def fill_env(env: Mapping[str, EnvValue], defaults: Mapping[str, EnvValue]) -> Env:
    """``env`` with those ``defaults`` whose keys it lacks."""
    return {**env, **{key: value for key, value in defaults.items() if key not in env}}


def expand_text(value: EnvValue, *sources: Mapping[str, EnvValue]) -> EnvValue:
    """A text with each ``<<<K>>>`` replaced by the value of K in the first source that has it; unknown ones stay."""
    if not isinstance(value, str) or "<<<" not in value:
        return value

    def replacement(match: re.Match[str]) -> str:
        for source in sources:
            if match[1] in source:
                return str(source[match[1]])
        return match[0]

    return re.sub(PLACEHOLDER, replacement, value)


def filled(value: EnvValue, env: Mapping[str, EnvValue]) -> str:
    """A text with its placeholders filled in from ``env``; empty when one cannot be: it asks for nothing."""
    text = str(expand_text(value, env) or "")
    return "" if has_placeholder(text) else text


def expand_value(value: EnvValue, *sources: Mapping[str, EnvValue]) -> EnvValue:
    """``expand_text`` applied through lists and dicts."""
    return with_texts(value, lambda text: expand_text(text, *sources))


def plain_copy(value: Any) -> Any:
    """A copy of a value of JSON that shares no dict and no list with it; anything else is the same object."""
    if isinstance(value, str):
        return value
    if value.__class__ is dict or isinstance(value, Mapping):
        return {key: plain_copy(item) for key, item in value.items()}
    return [plain_copy(item) for item in value] if isinstance(value, list) else value


def deep_copy(value: Any) -> Any:
    """As ``copy.deepcopy``, several times faster for what JSON knows."""
    kind = value.__class__
    if kind is dict:
        return {key: deep_copy(item) for key, item in value.items()}
    if kind is list:
        return [deep_copy(item) for item in value]
    return value if kind in (str, int, float, bool, type(None)) else copy.deepcopy(value)


def with_texts(value: Any, change: Callable[[str], Any]) -> Any:
    """A copy of a value of JSON with each text in its lists and dicts changed; keys stay."""
    if isinstance(value, str):
        return change(value)
    if value.__class__ is dict or isinstance(value, Mapping):
        return {key: with_texts(item, change) for key, item in value.items()}
    return [with_texts(item, change) for item in value] if isinstance(value, list) else value


def has_placeholder(value: EnvValue) -> bool:
    """Whether a value (or an item of a list) still holds ``<<<...>>>``."""
    if isinstance(value, str):
        return "<<<" in value and re.search(PLACEHOLDER, value) is not None
    return isinstance(value, list) and any(has_placeholder(item) for item in value)


def with_placeholders(env: Mapping[str, EnvValue]) -> list[str]:
    """The keys of ``env`` whose values still hold ``<<<...>>>``."""
    suspects = [key for key, value in env.items() if value.__class__ is not str or "<<<" in value]
    return [key for key in suspects if has_placeholder(env[key])]


def with_own_lists(env: Mapping[str, EnvValue]) -> Env:
    """A copy of ``env`` whose lists are fresh ones."""
    copied = dict(env)
    for key in [key for key, value in env.items() if value.__class__ is not str]:
        if isinstance(copied[key], list):
            copied[key] = list(copied[key])
    return copied


def expand_env(env: Mapping[str, EnvValue]) -> Env:
    """``env`` with placeholders replaced by other values of itself, until nothing changes (``MAX_PASSES`` at most).

    Its lists are fresh ones: hooks append to them in place, which must not show in the env they came from.
    """
    expanded = with_own_lists(env)
    waiting = with_placeholders(env)
    for _ in range(MAX_PASSES):
        changed = False
        for key in waiting:
            value = expand_value(expanded[key], {k: v for k, v in expanded.items() if k != key})
            changed = changed or value != expanded[key]
            expanded[key] = value
        if not changed:
            break
        waiting = [key for key in waiting if has_placeholder(expanded[key])]
    return expanded


def env_for_dependency(env: Mapping[str, EnvValue], hidden: Sequence[str], shown: Sequence[str]) -> Env:
    """The part of ``env`` that a dependency sees: without ``hidden`` keys and open placeholders, with ``shown`` ones.

    ``hidden`` and ``shown`` are key names or globs; ``shown`` wins.
    """
    is_hidden = key_matcher(tuple(hidden))
    is_shown = key_matcher(tuple(shown)) if shown else None
    still_open = with_placeholders(env)
    return with_own_lists(
        {
            key: value
            for key, value in env.items()
            if not (is_hidden(key) or key in still_open) or (is_shown and is_shown(key))
        }
    )


def new_items(env: Mapping[str, EnvValue], before: Mapping[str, EnvValue]) -> Env:
    """``env`` with list values cut down to the items that ``before`` did not hold; empty lists are dropped."""
    result: Env = {}
    for key, value in env.items():
        old = before.get(key)
        if isinstance(value, list) and isinstance(old, list):
            added = [item for item in value if item not in old]
            if added:
                result[key] = added
        else:
            result[key] = value
    return result


ValueRule = Literal["literal", "cm"]
"""``literal`` for recipes of a repository whose ``cmr.yaml`` says ``values: literal``, else ``cm``."""

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_TOKEN = rf'\\(?P<escaped>[$"`\\]|\n)|\$(?P<plain>{_NAME})|\$\{{(?P<braced>{_NAME})\}}|(?P<open>\$[({{]|`)'
_CLOSING = {"$(": r"(?s)\\.|[()]", "${": r"(?s)\\.|[{}]", "`": r"(?s)\\.|`"}


def quoted(text: str, rule: ValueRule, known: Container[str]) -> str:
    """The shell word that stands for a value; ``known`` are the variables that the ``cm`` rule expands."""
    if rule == "literal" or not ("\\" in text or "$" in text or "`" in text):
        return _word(text)
    words: list[str] = []
    plain, position = "", 0
    token = re.compile(_TOKEN)
    while found := token.search(text, position):
        plain += text[position : found.start()]
        position = found.end()
        name = found["plain"] or found["braced"]
        if found["open"]:
            position = _end_of_substitution(text, found["open"], position)
            plain += text[found.start() : position]
        elif name and name in known:
            words += [_word(plain)] if plain else []
            words.append(f'"${{{name}-}}"')
            plain = ""
        elif name:
            plain += found[0]
        elif found["escaped"] != "\n":
            plain += found["escaped"]
    plain += text[position:]
    return "".join([*words, _word(plain)] if plain or not words else words)


@lru_cache(maxsize=8192)
def _word(text: str) -> str:
    """A text as a word for the shell; the env of a step has mostly the values of another."""
    import shlex  # here, because a call that reuses everything writes no script

    return shlex.quote(text)


def _end_of_substitution(text: str, opening: str, position: int) -> int:
    """The position behind the substitution that was opened just before ``position``; the end when it is not closed."""
    depth = 1
    for found in re.compile(_CLOSING[opening]).finditer(text, position):
        if found[0] in ("(", "{"):
            depth += 1
        elif found[0] in (")", "}", "`"):
            depth -= 1
            if depth == 0:
                return found.end()
    return len(text)
