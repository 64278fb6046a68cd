"""Native scripts: chooses ``run-<os>.sh``, writes ``tmp-run.sh``, runs it, and reads what it left.

rules/env.py says what a script sees of a value; no value ever runs. A value that is secret, or has a secret in it,
travels in the process environment and in no file.

So does what git needs for private repositories: CM's ``CM_GIT_AUTH``, with a token or over SSH. The address in the env
stays as it is. Git itself gets its settings in its environment variables for configuration
(https://git-scm.com/docs/git-config#ENVIRONMENT, 2.31 of March 2021): with ``CM_GH_TOKEN`` a credential helper reads
the token out of the process environment, so that it is in no address, file or log; with ``CM_GIT_SSH`` the https
address is replaced by the SSH one. A login in the address itself is given to git in the same way, so that the clone's
own configuration does not hold it either.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shlex
from collections.abc import Container, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..disk.files import PRIVATE_MODE, is_file, read_json, remove_tree, write_text
from ..rules.env import (
    PREFIX,
    SUCCESSOR_PREFIX,
    Env,
    EnvValue,
    State,
    ValueRule,
    merge_env,
    merge_state,
    quoted,
    with_lists,
)
from ..rules.errors import RequestError, ScriptFailed, ScriptNotFound
from ..rules.frozen import Frozen
from ..rules.schema import is_yes
from ..rules.secrets import hidden, hidden_text, holds_secret, learn, stored

if TYPE_CHECKING:
    from .process import Ended

logger = logging.getLogger(__name__)

ENV_OUT = "tmp-run-env.out"
STATE_OUT = "tmp-run-state.json"
STATE_IN = "tmp-state.json"
RUN_FILE = "tmp-run.sh"
VERSION_OUT = "tmp-ver.out"
PREFIX_VARIABLE = "CROWDPERF_SCRIPT_PREFIX"
"""Holds the lines that recipes put before a script when there is a secret in them."""
SHELL_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
ADDRESS = r"https://(?P<place>(?P<host>[^/@:\s]+)(?::\d+)?)/"
"""An https address without a user in it; ``place`` is the host with its port. Compiled at its first use."""
WITH_LOGIN = r"(?P<scheme>https?://)(?:[^/?#@\s:]*:[^/?#\s]+|[A-Za-z0-9_-]{16,})@(?P<place>[^/@\s]+/)"
GIT_KEYS = r"(?:CM|MLC)_(?:TMP_)?GIT_"
"""Env keys that git commands are made of (get-git-repo of cm4mlops e1d5c7cf0)."""
HELPER = '!f() {{ echo username=git; echo "password=${{{key}}}"; }}; f'  # words: ok P23
"""A git credential helper (gitcredentials(7)): the token is filled in by the shell that runs it."""


class ScriptCall(Frozen):
    """One native script to run: where it is, where it runs, and with what.

    ``scratch`` is where tmp-run.sh and tmp-state.json lie; the folder itself without one. ``is_check``: nothing of what
    it writes is shown, because who asked says why it failed. ``packages`` is the folder with the Python packages of the
    script's repository, empty for none.
    """

    label: str
    script: Path
    folder: Path
    env: Env
    state: State
    log_path: Path | None
    shown_if_error: tuple[str, ...] = ()
    values: ValueRule = "literal"
    ignores_failure: bool = False
    is_silent: bool = False
    is_check: bool = False
    scratch: Path | None = None
    packages: str = ""

    @property
    def run_file(self) -> Path:
        """The file that sets the env and runs the script."""
        return (self.scratch or self.folder) / RUN_FILE

    @property
    def source(self) -> str:
        """That file for a shell in the folder."""
        return shlex.quote(str(self.run_file)) if self.scratch else f"./{RUN_FILE}"


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
            if is_file(path):  # a name that is too long, too, is none: in a plan it may hold unknown values
                return path
    if name in ("", "run"):
        return None
    present = ", ".join(sorted(path.name for path in recipe_path.glob("*.sh"))) or "none"
    raise ScriptNotFound(f"recipe folder {recipe_path} has no native script '{name}.sh'. It has: {present}")


def export_line(key: str, value: EnvValue, rule: ValueRule = "literal", known: Container[str] = ()) -> str:
    """The shell line that sets one env key, or an empty text when its name is none a shell can hold.

    ``+NAME`` lists are joined with ``:`` (or with the character after ``+`` when it is no letter or digit) in front of
    the variable's old value.
    """
    name, separator = variable_of(key)
    if not name:
        return ""
    if not separator:
        return f"export {name}={quoted(passable(key, value), rule, known)}"
    items = quoted(separator.join(passable(key, item) for item in value), rule, known)
    return f'export {name}={items}${{{name}:+{shlex.quote(separator)}"${name}"}}'


@lru_cache(maxsize=8192)
def variable_of(key: str) -> tuple[str, str]:
    """The variable that an env key sets, and what joins the items of a ``+KEY``; no name when no shell can hold it."""
    name, separator = key, ""
    if key.startswith("+"):
        name, separator = key[1:], ":"
        if name and not (name[0].isalnum() or name[0] == "_"):
            name, separator = name[1:].strip(), name[0]
    return (name, separator) if re.fullmatch(SHELL_NAME, name) else ("", "")


def passable(key: str, value: EnvValue) -> str:
    """An env value as the text that a process gets; raises RequestError for what no process can be given."""
    text = "" if value is None else str(value)
    problem = "a NUL character" if "\0" in text else ""
    try:
        if not text.isascii():
            os.fsencode(text)
    except UnicodeEncodeError:
        problem = "half a character"  # a lone surrogate: \ud800 in JSON
    if problem:
        raise RequestError(f"the value of the env key '{key}' contains {problem}, which cannot be passed to a program")
    return text


def export_lines(env: Mapping[str, EnvValue], rule: ValueRule = "literal") -> list[str]:
    """The export lines of all keys that hold no secret, in order of their names."""
    known = {*env, *os.environ} if rule == "cm" else ()
    keys = [key for key in sorted(env) if not holds_secret(key, env[key])]
    return [line for key in keys if (line := export_line(key, env[key], rule, known))]


def secret_variables(env: Mapping[str, EnvValue]) -> dict[str, str]:
    """The process variables for what ``export_lines`` leaves out."""
    found = {}
    for key, value in env.items():
        name, separator = variable_of(key)
        if name and value and holds_secret(key, value):
            before = [os.environ[name]] if separator and os.environ.get(name) else []
            found[name] = separator.join(passable(key, item) for item in (*(value if separator else [value]), *before))
    return found


def writable_code(lines: Iterable[Any], variable: str, secrets: dict[str, str]) -> list[str]:
    """Lines for a script file; with a secret in them they go into ``variable`` of ``secrets``, which the file runs."""
    code = [str(line) for line in lines]
    learn(code)
    if not holds_secret("", code):
        return code
    secrets[variable] = "\n".join(code)
    return [f'eval "${variable}"']


def _remove(path: Path) -> None:
    """Removes what an earlier run left, also a folder, which no script could write a file over."""
    if path.is_dir() and not path.is_symlink():
        remove_tree(path)
    else:
        path.unlink(missing_ok=True)


def run_script(call: ScriptCall) -> tuple[Env, State]:
    """Runs a native script in ``call.folder``; env and state as the script changed them.

    Writes tmp-state.json and tmp-run.sh, reads tmp-run-env.out and tmp-run-state.json. Raises ScriptFailed, with the
    decoded exit and the last lines of output, when the script does not end with 0.
    """
    from .process import run_process  # here, because a call that reuses everything starts no process

    for name in (ENV_OUT, STATE_OUT):
        _remove(call.folder / name)
    learn(call.state)
    secrets = _write_run_file(call)
    shown_state = stored(call.state)
    _write_private(call.run_file.with_name(STATE_IN), json.dumps(shown_state, indent=2, sort_keys=True, default=str))
    try:
        ended = run_process(
            ["bash", "-c", f". {call.source}{' 2>&1' if call.is_check else ''}"],
            call.folder,
            extra_env=secrets,
            log_path=call.log_path,
            is_silent=call.is_silent or call.is_check,
        )
        env = merge_env(call.env, read_env_file(call.folder / ENV_OUT))
        written = read_json(call.folder / STATE_OUT)
        learn([env, written])
    finally:
        for name in (ENV_OUT, STATE_OUT, VERSION_OUT):
            _clean(call.folder / name)
    if ended.status != 0:
        error = _failure(call, ended)
        if not call.ignores_failure:
            raise error
        logger.warning("! %s\n  continuing because of --ignore_script_error", error.message)
    if isinstance(written, dict):
        return env, merge_state(call.state, _restored(written, shown_state, call.state))
    if (call.folder / STATE_OUT).exists():
        raise ScriptFailed(f"{call.label}: {call.script.name} wrote a {STATE_OUT} that is not a JSON object")
    return env, dict(call.state)


def _write_run_file(call: ScriptCall) -> dict[str, str]:
    """Writes tmp-run.sh; what its script gets in the process environment instead."""
    access = git_access(call.env, os.environ.get("GIT_CONFIG_COUNT", ""))
    secrets = secret_variables({**call.env, **access})
    prefix = writable_code(call.state.get("script_prefix", ()), PREFIX_VARIABLE, secrets)
    lines = [
        "#!/bin/bash",
        "",
        *prefix,
        "",
        *export_lines(call.env, call.values),
        *export_lines(access),
        *_library_lines(call),
        "",
        f". {shlex.quote(str(call.script))}",
        "",
    ]
    _write_private(call.run_file, "\n".join(lines))
    return secrets


def git_access(env: Mapping[str, EnvValue], count_before: str) -> Env:
    """The env keys that let git at ``CM_GIT_URL``, those with its login without it; none when the address has no login,
    and ``CM_GIT_AUTH`` is not on or nothing is given for it.

    ``count_before`` is the user's own ``GIT_CONFIG_COUNT``, maybe empty; the settings that it counts stay.
    """
    number = int(count_before) if count_before.isdecimal() else 0
    for prefix in (PREFIX, SUCCESSOR_PREFIX):
        address = str(env.get(prefix + "GIT_URL") or "")
        if not address:
            continue
        login, plain = re.match(WITH_LOGIN, address), re.match(ADDRESS, address)
        has_auth = is_yes(str(env.get(prefix + "GIT_AUTH")))
        without_login: Env = {}
        if login:
            setting, value = f"url.{login[0]}.insteadOf", login["scheme"] + login["place"]
            texts = {key: text for key, text in env.items() if isinstance(text, str) and re.match(GIT_KEYS, key)}
            without_login = {key: text.replace(login[0], value) for key, text in texts.items() if login[0] in text}
        elif plain and has_auth and env.get(prefix + "GH_TOKEN"):
            setting, value = f"credential.https://{plain['place']}.helper", HELPER.format(key=prefix + "GH_TOKEN")
        elif plain and has_auth and is_yes(str(env.get(prefix + "GIT_SSH"))):
            setting, value = f"url.ssh://git@{plain['host']}/.insteadOf", f"https://{plain['place']}/"
        else:
            continue
        settings = {f"GIT_CONFIG_KEY_{number}": setting, f"GIT_CONFIG_VALUE_{number}": value}
        return {"GIT_CONFIG_COUNT": str(number + 1), **settings, **without_login}
    return {}


def _library_lines(call: ScriptCall) -> list[str]:
    """The line that puts the packages of the script's repository at the end of PYTHONPATH.

    Raises ScriptFailed when Python would find another package of the same name.
    """
    if not call.packages:
        return []
    given = [call.env.get("PYTHONPATH", os.environ.get("PYTHONPATH", "")), *call.env.get("+PYTHONPATH", ())]
    rival = rival_package(call.packages, [place for text in given for place in str(text or "").split(os.pathsep)])
    if rival:
        raise ScriptFailed(f"{call.label}: {rival}", hint="remove that folder from PYTHONPATH")
    return [f'export PYTHONPATH="${{PYTHONPATH:+$PYTHONPATH:}}"{shlex.quote(call.packages)}']


def rival_package(packages: str, places: Iterable[str]) -> str:
    """What is wrong when one of ``places``, where Python looks first, has a package of this folder too; else empty."""
    names = sorted(package_names(packages))
    for place, name in ((place, name) for place in places if place for name in names):
        found = [name + end for end in (".py", "/__init__.py") if os.path.isfile(os.path.join(place, name + end))]
        if found and not _is_same(os.path.join(place, found[0]), os.path.join(packages, found[0])):
            return f"Python finds the package {name} in {place}, before that of the recipe's repository in {packages}"
    return ""


def _is_same(path: str, other: str) -> bool:
    """Whether both are one file, as of a wheel and its repository, which leads to the wheel's packages by a link."""
    return os.path.exists(other) and os.path.samefile(path, other)


def package_names(packages: str) -> set[str]:
    """The names by which what lies in a folder of packages is imported; none if its repository is gone by now."""
    try:
        with os.scandir(packages) as items:
            return {item.name.removesuffix(".py") for item in items if item.name.endswith(".py") or item.is_dir()}
    except FileNotFoundError:
        return set()


def _write_private(path: Path, text: str) -> None:
    write_text(path, text if text.endswith("\n") else text + "\n", PRIVATE_MODE)


def _clean(path: Path) -> None:
    """Hides the secrets in what a script left for the engine, once that has read it."""
    if not path.is_file() or not os.access(path, os.R_OK):
        return
    text = path.read_bytes().decode(errors="surrogateescape")
    lines = (line.partition("=") for line in text.split("\n")) if path.name == ENV_OUT else ()
    rows = [f"{key}{sign}{hidden(value, key.strip()) if sign else ''}" for key, sign, value in lines]
    clean = hidden_text("\n".join(rows) if rows else text)
    if clean != text:
        write_text(path, clean, PRIVATE_MODE)


def _restored(written: Any, shown: Any, state: Any) -> Any:
    """What a script wrote, with the secrets of ``state`` where it repeats the text that it was ``shown`` instead."""
    if isinstance(written, dict) and isinstance(shown, Mapping) and isinstance(state, Mapping):
        return {key: _restored(item, shown.get(key), state.get(key)) for key, item in written.items()}
    if isinstance(written, list) and isinstance(shown, list) and isinstance(state, list):
        pairs = list(zip(shown, state, strict=True))
        return [next((real for text, real in pairs if text == item), item) for item in written]
    return state if written == shown and shown is not None else written


def _failure(call: ScriptCall, ended: Ended) -> ScriptFailed:
    from .failure import script_failure

    error = script_failure(call.label, call.script, call.folder, ended, call.shown_if_error)
    folder, script = shlex.quote(str(call.folder)), shlex.quote(str(call.script))
    error.command = f"cd {folder} && bash {call.source}   # runs {script}"
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
    return with_lists(env)


def write_env_file(
    path: Path, env: Mapping[str, Any], rule: ValueRule = "literal", lines_before: Iterable[str] = ()
) -> None:
    """Leaves a file that sets ``env`` in the shell that sources it; it holds no secrets."""
    before = [line for line in map(str, lines_before) if not holds_secret("", [line])]
    _write_private(path, "\n".join(["#!/bin/bash", "", *before, *export_lines(env, rule), ""]))
