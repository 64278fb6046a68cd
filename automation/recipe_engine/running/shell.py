"""Native scripts: chooses ``run-<os>.sh``, writes ``tmp-run.sh``, runs it, and reads what it left.

Values reach the shell as data: single-quoted, never expanded; only a ``+KEY``
list is joined with the old value of the variable. Secrets travel in the process environment and in no file.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..disk.files import read_json, write_json, write_text
from ..rules.env import PREFIX, SUCCESSOR_PREFIX, Env, EnvValue, State, is_secret, merge_env, merge_state
from ..rules.errors import RequestError, ScriptFailed, ScriptNotFound

if TYPE_CHECKING:
    from .process import Ended

ENV_OUT = "tmp-run-env.out"
STATE_OUT = "tmp-run-state.json"
STATE_IN = "tmp-state.json"
RUN_FILE = "tmp-run.sh"
SHELL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class ScriptCall(NamedTuple):
    """One native script to run: where it is, where it runs, and with what."""

    label: str
    script: Path
    folder: Path
    env: Env
    state: State
    log_path: Path | None
    shown_if_error: tuple[str, ...] = ()


def find_script(recipe_path: Path, name: str, env: Mapping[str, EnvValue], prefix: str = PREFIX) -> Path | None:
    """The native script for this host: the most special of ``name-<flavor>-<version>-<platform>.sh`` ... ``name.sh``.

    Flavor, version and platform come from detect-os, in keys that start with ``prefix``; a recipe of CM's successor may
    also be special for what the flavor is like (``debian``) or for the kind of system (``linux``). None when the recipe
    has none called ``run``; raises ScriptNotFound for another name.
    """
    flavor, like, kind, version, platform = (
        str(env.get(prefix + key, "") or "")
        for key in ("HOST_OS_FLAVOR", "HOST_OS_FLAVOR_LIKE", "HOST_OS_TYPE", "HOST_OS_VERSION", "HOST_PLATFORM_FLAVOR")
    )
    endings: list[tuple[str, ...]] = [(flavor, version, platform), (flavor, platform), (flavor, version), (flavor,)]
    if prefix == SUCCESSOR_PREFIX:
        endings += [(like, platform), (like,), (kind, platform), (kind,)]
    endings += [(platform,), ()]
    for ending in endings:
        if all(ending):
            path = recipe_path / ("-".join((name, *ending)) + ".sh")
            if path.is_file():
                return path
    if name in ("", "run"):
        return None
    present = ", ".join(sorted(path.name for path in recipe_path.glob("*.sh"))) or "none"
    raise ScriptNotFound(f"recipe folder {recipe_path} has no native script '{name}.sh'; it has: {present}")


def export_line(key: str, value: EnvValue) -> str:
    """The shell line that sets one env key, or an empty text when its name is none a shell can hold.

    ``+NAME`` lists are joined with ``:`` (or with the character after ``+`` when it is no letter or digit) in front of
    the variable's old value.
    """
    if key.startswith("+"):
        name, separator = key[1:], ":"
        if name and not (name[0].isalnum() or name[0] == "_"):
            name, separator = name[1:].strip(), name[0]
        if not SHELL_NAME.fullmatch(name):
            return ""
        items = shlex.quote(separator.join(passable(key, item) for item in value))
        return f'export {name}={items}${{{name}:+{shlex.quote(separator)}"${name}"}}'
    if not SHELL_NAME.fullmatch(key):
        return ""
    return f"export {key}={shlex.quote(passable(key, value))}"


def passable(key: str, value: EnvValue) -> str:
    """An env value as the text that a process gets; raises RequestError for what no process can be given."""
    text = "" if value is None else str(value)
    problem = "a NUL character" if "\0" in text else ""
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        problem = "half a character"  # a lone surrogate: \ud800 in JSON
    if problem:
        raise RequestError(f"the value of the env key '{key}' holds {problem}, which no program can be given")
    return text


def export_lines(env: Mapping[str, EnvValue]) -> list[str]:
    """The export lines of all keys that are no secrets, in order of their names."""
    return [line for key in sorted(env) if not is_secret(key) and (line := export_line(key, env[key]))]


def run_script(call: ScriptCall) -> tuple[Env, State]:
    """Runs a native script in ``call.folder``; env and state as the script changed them.

    Writes tmp-state.json and tmp-run.sh, reads tmp-run-env.out and tmp-run-state.json. Raises ScriptFailed with the
    decoded exit and the last lines of output when the script does not end with 0.
    """
    from ..rules.git_access import git_access  # here, because a call that reuses everything starts no process
    from .process import run_process

    for name in (ENV_OUT, STATE_OUT):
        (call.folder / name).unlink(missing_ok=True)
    write_json(call.folder / STATE_IN, call.state)
    lines = ["#!/bin/bash", "", *(str(line) for line in call.state.get("script_prefix", ())), ""]
    access = git_access(call.env, os.environ.get("GIT_CONFIG_COUNT", ""))
    lines += [*export_lines(call.env), *export_lines(access), "", f". {shlex.quote(str(call.script))}", ""]
    write_text(call.folder / RUN_FILE, "\n".join(lines))
    secrets = {key: passable(key, value) for key, value in call.env.items() if is_secret(key) and value}
    ended = run_process(["bash", "-c", f". ./{RUN_FILE}"], call.folder, extra_env=secrets, log_path=call.log_path)
    if ended.status != 0:
        raise _failure(call, ended)
    env = merge_env(call.env, read_env_file(call.folder / ENV_OUT))
    written = read_json(call.folder / STATE_OUT)
    if isinstance(written, dict):
        return env, merge_state(call.state, written)
    if (call.folder / STATE_OUT).exists():
        raise ScriptFailed(f"{call.label}: {call.script.name} wrote a {STATE_OUT} that is no JSON object")
    return env, dict(call.state)


def _failure(call: ScriptCall, ended: Ended) -> ScriptFailed:
    from .failure import script_failure

    error = script_failure(call.label, call.script, call.folder, ended, call.shown_if_error)
    error.log_path = str(call.log_path or "")
    return error


def read_env_file(path: Path) -> Env:
    """The ``KEY=VALUE`` lines a script left; the value is everything after the first ``=``, later lines win."""
    if not path.is_file():
        return {}
    env: Env = {}
    for line in path.read_bytes().decode(errors="replace").split("\n"):  # not at form feeds and the like
        key, equals, value = line.partition("=")
        if equals and key.strip():
            env[key.strip()] = value.strip()
    return env


def write_env_files(folder: Path, new_env: Mapping[str, Any], env: Mapping[str, Any]) -> None:
    """Leaves ``tmp-env.sh`` (what the recipe gives) and ``tmp-env-all.sh`` (all it saw), to be sourced by a shell."""
    for name, values in (("tmp-env.sh", new_env), ("tmp-env-all.sh", env)):
        write_text(folder / name, "\n".join(["#!/bin/bash", "", *export_lines(values), ""]))
