"""Writes a request as the ``cm`` line that repeats it, quoted for a shell and without secrets.

A step deep in a run gets env from its parents. Its line repeats the part of it that the step's recipe names.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from .conditions import has_symbol
from .env import ENGINE_KEYS, INPUT_TO_ENV, key_matcher, successor_twins
from .errors import RecipeError
from .model import Recipe, Request
from .query import BOUND_KEYS, further_words
from .secrets import hidden_text, holds_secret

PLUMBING = frozenset(
    [
        *("action", "ad", "add_deps", "add_deps_recursive", "adr", "artifact", "artifacts", "automation"),
        *("cmd", "common", "out", "parsed_artifact", "parsed_artifacts", "parsed_automation", "tags", "unparsed_cmd"),
        *BOUND_KEYS,
    ]
)
"""Input keys that are not words of the line, or that the line takes from the request itself."""


class CommandLine(NamedTuple):
    """A line for a shell, and the names of what was left out of it."""

    text: str
    left_out: tuple[str, ...] = ()


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values of a nested mapping by their dotted names, in order."""
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield prefix + str(name), value


def secret_flags(values: Mapping[str, Any]) -> dict[str, Any]:
    """The secrets in a nested mapping, by the dotted names of their flags."""
    return {name: value for name, value in flat(values) if holds_secret(name, value)}


def flag(name: str, value: Any) -> str:
    """One word of a ``cm`` line: ``--name=value``, ``--name``, ``-n``, ``--name-`` for False, ``--name,=a,b``."""
    if isinstance(value, bool):
        word = f"-{name}" if len(name) == 1 else f"--{name}"
        return shlex.quote(word if value else f"{word}-")
    if isinstance(value, list | tuple):
        return shlex.quote(f"--{name},={','.join(map(str, value))}")
    return shlex.quote(f"--{name}={'' if value is None else value}")


def command_line(words: Iterable[str], flags: Iterable[tuple[str, Any]]) -> CommandLine:
    """The line of ``cm`` with these plain words and flags; secret flags, and unknown values, are left out and named."""
    shown, hidden = [shlex.quote(hidden_text(word)) for word in words], []
    for name, value in flags:
        if holds_secret(name, value):
            hidden.append(f"--{name} (a secret)")
        elif has_symbol(value):
            hidden.append(f"--{name} (not known before the run)")
        else:
            shown.append(flag(name, value))
    return CommandLine(hidden_text(" ".join(["cm", *shown])), tuple(hidden))


def given_line(inputs: Mapping[str, Any], action: str = "run") -> CommandLine:
    """The line that a user gave, from the input keys that cmind made of it."""
    automation = str(inputs.get("automation") or "script").partition(",")[0]
    words = (str(inputs.get("artifact") or ""), *further_words(inputs))
    names = [name for name in inputs if name not in PLUMBING or name in ("tags", *BOUND_KEYS, "ad", "adr")]
    names = sorted(names, key=lambda name: (name != "tags", name))
    names += [name for name in ("add_deps", "add_deps_recursive") if inputs.get(name)]
    flags = flat({name: inputs[name] for name in names})
    return command_line([action, automation, *filter(None, words)], flags)


def name_command(error: RecipeError, inputs: Mapping[str, Any], *, is_verbose: bool) -> None:
    """Gives an error that leaves a run the command of the user, in place of the line for the failed step alone.

    Where another value of an input would do, the hint is that command with it, if the user gave the input.
    """
    action = str(inputs.get("action") or "run")
    if error.rerun:
        error.given, error.given_left_out = given_line(inputs, action)
        error.shows_step = is_verbose
    if error.instead and all(name in inputs for name in error.instead):
        error.hint = given_line({**inputs, **error.instead}, action).text


def request_text(request: Request) -> str:
    """The query of a request as words of a command line."""
    return hidden_text(f"--tags={request.query.text}" if request.query.text else request.alias)


def rerun_line(request: Request, recipe: Recipe, texts: Iterable[str]) -> CommandLine:
    """The line that runs one request of a run again, alone; ``texts`` are the files of its recipe."""
    is_by_tags = bool(request.query.text) and not has_symbol(request.query.text)
    words, given_env = ["run", "script"], request.inputs.get("env")
    flags: dict[str, Any] = {}
    if is_by_tags:
        flags["tags"] = request.query.text
    else:
        words.append(recipe.id.alias)
    flags.update({name: value for name, value in zip(BOUND_KEYS, request.version.bounds, strict=True) if value})
    inputs = {name: value for name, value in request.inputs.items() if name not in PLUMBING and name != "env"}
    flags.update({name: value for name, value in inputs.items() if value is not None})
    if request.options.quiet:
        flags.setdefault("quiet", True)
    known = set(re.findall(r"[A-Za-z_][A-Za-z0-9_]*", "\n".join(texts)))
    const = _named_env(request.const, request, recipe, known)
    env = _named_env({**request.env, **request.local_env}, request, recipe, known)
    env.update(given_env if isinstance(given_env, Mapping) else {})
    env = {key: value for key, value in env.items() if const.get(key) != value}
    nested = {"ad": request.overrides, "adr": request.recursive_overrides, "env": env, "const": const}
    line = command_line(words, flat({name: value for name, value in {**flags, **nested}.items() if value != {}}))
    state = tuple(f"state {key}" for key in sorted({**request.state, **request.const_state}))
    return line._replace(left_out=(*line.left_out, *state))


def _named_env(handed: Mapping[str, Any], request: Request, recipe: Recipe, words: set[str]) -> dict[str, Any]:
    """The part of the env that a request was handed whose keys are ``words`` of the recipe's files.

    Left out are the engine's own keys, and what the host is like where the recipe finds it out itself.
    """
    from_inputs = {INPUT_TO_ENV[name] for name in request.inputs if name in INPUT_TO_ENV}
    is_own = key_matcher((*ENGINE_KEYS, *successor_twins(dict.fromkeys(ENGINE_KEYS, "")), "GH_TOKEN"))
    detects = any({"detect", "os"} <= set(dependency.tags_text.split(",")) for dependency in recipe.layer.deps)
    host = f"{recipe.prefix}HOST_"
    found = {}
    for key in sorted(handed):
        is_wanted = key.lstrip("+") in words or (key.startswith("+") and not key.startswith("+" + host))
        is_given = key in from_inputs or is_own(key) or (detects and key.lstrip("+").startswith(host))
        if is_wanted and not is_given and handed[key] not in (None, ""):
            found[key] = handed[key]
    return found
