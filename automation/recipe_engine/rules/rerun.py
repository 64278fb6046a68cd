"""Writes a request as the ``cm`` line that makes it again, quoted for a shell and without secrets.

A step deep in a run saw env that its parents gave. Its line repeats the part of it that the step's recipe names.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from .deps import INPUT_TO_ENV
from .env import ENGINE_KEYS, is_secret, key_matcher, successor_twins
from .model import Recipe, Request

PLUMBING = frozenset(
    [
        "action",
        "ad",
        "add_deps",
        "add_deps_recursive",
        "adr",
        "artifact",
        "artifacts",
        "automation",
        "cmd",
        "common",
        "out",
        "parsed_artifact",
        "parsed_artifacts",
        "parsed_automation",
        "tags",
        "unparsed_cmd",
        "version",
        "version_max",
        "version_max_usable",
        "version_min",
    ]
)
"""Input keys that are no words of the line, or that the line takes from the request itself."""

VERSION_FLAGS = {
    "version": "exact",
    "version_min": "minimum",
    "version_max": "maximum",
    "version_max_usable": "maximum_usable",
}
LOGIN_IN_ADDRESS = re.compile(r"://(?:[^/@\s:]*:[^/@\s]+|[A-Za-z0-9_-]{16,})@")
TOKEN = re.compile(
    r"(?<![A-Za-z0-9])(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"
    r"|gl(?:pat|dt|rt|cbt|ptt|ft|soat)-[A-Za-z0-9_-]{18,}|hf_[A-Za-z0-9]{30,}|A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])"
    r"|pypi-AgE[A-Za-z0-9_-]{16,}|xox[abeoprs]-[A-Za-z0-9-]{10,}|AIza[A-Za-z0-9_-]{35}|npm_[A-Za-z0-9]{30,}"
    r"|nvapi-[A-Za-z0-9_-]{40,}|dckr_pat_[A-Za-z0-9_-]{20,}|eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,})"
)
"""Access tokens as services shape them. `mlperf_results.secretshapes` looks for the same in files: it works without an
engine, and the engine imports no recipe; tests/results/test_privacy.py compares them."""


class CommandLine(NamedTuple):
    """A line for a shell, and the names of what it had to leave out."""

    text: str
    left_out: tuple[str, ...] = ()


def holds_secret(name: str, value: Any) -> bool:
    """Whether a flag (``hf_token``, ``env.CM_API_KEY``) or its value is secret.

    A value is when it holds an access token or an address with a login, or is a list of words that give a secret flag.
    """
    words = value if isinstance(value, list | tuple) else ()
    flags = [str(word).partition("=")[0] for word in words if str(word).startswith("-")]
    lasts = [text.rpartition(".")[2].lstrip("+-").replace("-", "_") for text in (name, *flags)]
    text = str(value)
    return any(map(is_secret, lasts)) or bool(LOGIN_IN_ADDRESS.search(text) or TOKEN.search(text))


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values of a nested mapping by their dotted names, in order."""
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield prefix + str(name), value


def flag(name: str, value: Any) -> str:
    """One word of a ``cm`` line: ``--name=value``, ``--name``, ``--name-`` for False, ``--name,=a,b`` for a list."""
    if value is True:
        return shlex.quote(f"--{name}")
    if value is False:
        return shlex.quote(f"--{name}-")
    if isinstance(value, list | tuple):
        return shlex.quote(f"--{name},={','.join(str(item) for item in value)}")
    return shlex.quote(f"--{name}={'' if value is None else value}")


def command_line(words: Iterable[str], flags: Iterable[tuple[str, Any]]) -> CommandLine:
    """The line of ``cm`` with these plain words and flags; secret flags are left out and named."""
    shown, hidden = [shlex.quote(word) for word in words], []
    for name, value in flags:
        if holds_secret(name, value):
            hidden.append(f"--{name} (a secret)")
        else:
            shown.append(flag(name, value))
    return CommandLine(" ".join(["cm", *shown]), tuple(hidden))


def without_secret_flags(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The values of a nested mapping that hold no secret."""
    kept: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            kept[str(name)] = without_secret_flags(value, f"{prefix}{name}.")
        elif not holds_secret(f"{prefix}{name}", value):
            kept[str(name)] = value
    return kept


def given_line(inputs: Mapping[str, Any], action: str = "run") -> CommandLine:
    """The line that a user gave, from the input keys that cmind made of it."""
    words = [action, "script", *_plain_words(inputs)]
    names = [name for name in inputs if name not in PLUMBING or name in ("tags", *VERSION_FLAGS, "ad", "adr")]
    kept = {name: inputs[name] for name in sorted(names, key=lambda name: (name != "tags", name))}
    return command_line(words, flat({**kept, **_long_names(inputs)}))


def _long_names(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: inputs[name] for name in ("add_deps", "add_deps_recursive") if inputs.get(name)}


def _plain_words(inputs: Mapping[str, Any]) -> list[str]:
    artifact = str(inputs.get("artifact") or "")
    return [word for word in (artifact, *(inputs.get("artifacts") or ())) if word]


def rerun_line(request: Request, recipe: Recipe, texts: Iterable[str]) -> CommandLine:
    """The line that runs one request of a run again, alone; ``texts`` are the files of its recipe."""
    inputs = {name: value for name, value in request.inputs.items() if name not in PLUMBING and name != "env"}
    versions = {name: getattr(request.version, field) for name, field in VERSION_FLAGS.items()}
    flags: dict[str, Any] = {name: value for name, value in versions.items() if value}
    flags.update({name: value for name, value in inputs.items() if value is not None})
    if request.options.quiet:
        flags.setdefault("quiet", True)
    flags.update({"ad": request.overrides, "adr": request.recursive_overrides})
    given_env = request.inputs.get("env")
    text = "\n".join(texts)
    const = _named_env(request.const, request, recipe, text)
    named = _named_env({**request.env, **request.local_env}, request, recipe, text)
    own_env = {**named, **(given_env if isinstance(given_env, Mapping) else {})}
    flags.update({"env": {key: value for key, value in own_env.items() if const.get(key) != value}, "const": const})
    words = ["run", "script"] if request.query.text else ["run", "script", recipe.id.alias]
    query = {"tags": request.query.text} if request.query.text else {}
    line = command_line(words, flat({**query, **{name: value for name, value in flags.items() if value != {}}}))
    state = tuple(f"state {key}" for key in sorted({**request.state, **request.const_state}))
    return line._replace(left_out=(*line.left_out, *state))


def _named_env(handed: Mapping[str, Any], request: Request, recipe: Recipe, text: str) -> dict[str, Any]:
    """The part of the env that a request was handed which the recipe's files name; the engine's own keys aside.

    What the host is like is left out where the recipe finds it out itself.
    """
    words = set(re.findall(r"[A-Za-z_][A-Za-z0-9_]*", text))
    from_inputs = {INPUT_TO_ENV[name] for name in request.inputs if name in INPUT_TO_ENV}
    is_own = key_matcher((*ENGINE_KEYS, *successor_twins(dict.fromkeys(ENGINE_KEYS, "")), "GH_TOKEN")).match
    detects = any({"detect", "os"} <= set(dependency.tags_text.split(",")) for dependency in recipe.layer.deps)
    host = f"{recipe.prefix}HOST_"
    found = {}
    for key in sorted(handed):
        is_wanted = key.lstrip("+") in words or (key.startswith("+") and not key.startswith("+" + host))
        is_given = key in from_inputs or is_own(key) or (detects and key.lstrip("+").startswith(host))
        if is_wanted and not is_given and handed[key] not in (None, ""):
            found[key] = handed[key]
    return found
