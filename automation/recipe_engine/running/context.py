"""The changing side of one step: its env, state and dependency lists, what the machine adds, and what goes in and out.

A context lives for one step. It changes its own env and state and nothing else, and it reaches nothing outside itself
(effects.py does); what leaves the step is computed at the end, so an error or a skip leaves no trace in the caller.
"""

from __future__ import annotations

import contextlib
import os
import stat
import struct
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..rules.cachekey import applied_tags, entry_lifetime_s, tags_from_env
from ..rules.configure import apply_default_version
from ..rules.deps import dependency_tags, kept_env
from ..rules.env import (
    PREFIX,
    Env,
    State,
    deep_copy,
    expand_env,
    fill_env,
    merge_env,
    merge_state,
    new_items,
    plain_copy,
    select_keys,
    with_lists,
)
from ..rules.errors import RequestError
from ..rules.keys import LIST_OF
from ..rules.model import (
    PHASES,
    CacheEntry,
    CacheKey,
    Configured,
    Dependency,
    HookResult,
    Outcome,
    Phase,
    Recipe,
    Request,
    StepResult,
    StepStatus,
)
from ..rules.query import compare
from ..rules.schema import parse_dependency
from ..rules.secrets import learn

_PROXIES = ("ftp_proxy", "http_proxy", "https_proxy", "no_proxy", "socks_proxy")
PASSED_ON_KEYS = ("GH_TOKEN", *_PROXIES, *(name.upper() for name in _PROXIES))
"""Process variables that become env of every recipe (reference engine, cm4mlops e1d5c7cf0)."""


PIPE = "a pipe"
USER_FOLDER_KEY = "MLC_USER_RUN_DIR"
"""Where the user called, for recipes of CM's successor."""


def machine_kind() -> str:
    """The kind of this machine as uname(1) gives it: ``x86_64``, ``aarch64``; on Windows ``AMD64``."""
    return os.uname().machine if hasattr(os, "uname") else os.environ.get("PROCESSOR_ARCHITECTURE", "")


@lru_cache(maxsize=1)
def os_info() -> dict[str, Any]:
    """CM's ``os_info``: platform, bits, and how scripts are written and started there."""
    return {
        "platform": "darwin" if sys.platform == "darwin" else "linux",
        "bits": "64" if machine_kind().endswith("64") else "32",
        "python_bits": str(struct.calcsize("P") * 8),
        "bat_ext": ".sh",
        "set_env": 'export ${key}="${value}"',
        "env_separator": ":",
        "env_var": "${env_var}",
        "set_exec_file": 'chmod 755 "${file_name}"',
        "bat_rem": "# ${rem}",
        "run_local_bat": ". ./${bat_file}",
        "run_local_bat_from_python": "bash -c '. ./${bat_file}'",
        "run_bat": ". ${bat_file}",
        "start_script": ["#!/bin/bash", ""],
        "env": {},
    }


@lru_cache(maxsize=1)
def foreseen_os_env() -> dict[str, str]:
    """What a recipe with the tags ``detect,os`` will say of this host: the keys that others choose by.

    Keys and values as detect-os of cm4mlops e1d5c7cf0 gives them; the distribution from os-release(5).
    """
    import platform  # here, because only plans ask

    info = os_info()
    release: dict[str, str] = {}
    if info["platform"] == "linux":
        with contextlib.suppress(OSError):
            release = platform.freedesktop_os_release()
    env = {
        "CM_HOST_OS_TYPE": info["platform"],
        "CM_HOST_OS_BITS": info["bits"],
        "CM_HOST_PLATFORM_FLAVOR": machine_kind(),
        "CM_HOST_OS_FLAVOR": release.get("ID", ""),
        "CM_HOST_OS_FLAVOR_LIKE": release.get("ID_LIKE", ""),
        "CM_HOST_OS_VERSION": release.get("VERSION_ID", ""),
    }
    return {key: value for key, value in env.items() if value}


def passed_on_env() -> dict[str, str]:
    """The user's proxy settings and GitHub token, as far as they are set."""
    return {key: os.environ[key] for key in PASSED_ON_KEYS if os.environ.get(key)}


def special_kind(path: str) -> str:
    """What stands there in the place of a file or a folder: a pipe or a device; empty for these, and for nothing."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return ""
    return PIPE if stat.S_ISFIFO(mode) else "" if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else "a device"


def with_own_places(recipe: Recipe, request: Request, top_folder: str) -> Request:
    """The request with its relative ``is_path`` inputs counted from ``top_folder``, where the command was given.

    A recipe of CM's successor learns that folder, too. Raises RequestError for a pipe or a device in such a place,
    which would be waited for, or read, without end.
    """
    given = {name: request.inputs.get(name) for name, described in recipe.inputs.items() if described.is_path}
    paths = {name: path for name, path in given.items() if isinstance(path, str) and path and "<<<" not in path}
    absolute = {name: _absolute(path, recipe.inputs[name].kind, top_folder) for name, path in paths.items()}
    for name, path in absolute.items():
        if kind := special_kind(path):
            from shlex import quote  # here, because a cached call needs it for nothing else

            raise RequestError(
                f"{recipe.id.alias}: --{name}={path} is {kind}, allowed: a regular file or a folder",
                hint=f"save it as a file: cat {quote(path)} > FILE, then --{name}=FILE" if kind == PIPE else "",
            )
    if absolute:
        request = request._replace(inputs={**request.inputs, **absolute})
    return (
        request._replace(env=fill_env(request.env, {USER_FOLDER_KEY: top_folder})) if recipe.is_successor else request
    )


def problems_of_values(configured: Configured) -> list[str]:
    """A line for each input whose value, from the call or the env, is not allowed on its own or with other inputs."""
    if not any(described.kind for described in configured.recipe.inputs.values()):
        return []
    from ..rules.input_types import Values  # here, because a step that the cache serves checks nothing

    return Values(configured.recipe.inputs, configured.env, configured.request.inputs).problems()


def _absolute(path: str, kind: str, top_folder: str) -> str:
    """A path, or the comma list of paths that an input of this kind has."""
    parts = path.split(",") if kind.startswith(LIST_OF) else [path]
    return ",".join(str(user_path(part, top_folder)) for part in parts)


def user_path(text: str, folder: str = "") -> Path:
    """The absolute path that a user means; a relative one counts from ``folder``, or from the current one."""
    return Path(os.path.abspath(os.path.join(folder, os.path.expanduser(text))))


def cm_version() -> str:
    """The version of the cmind that called the engine; empty when it was called from elsewhere."""
    return str(getattr(sys.modules.get("cmind"), "__version__", ""))


def free_disk_mb(folder: Path) -> int:
    """The free disk space where ``folder`` is, in units of 10^6 bytes."""
    import shutil  # here, because few recipes ask

    return shutil.disk_usage(folder).free // 1_000_000


def remarks(configured: Configured) -> list[str]:
    """What the user should know of this machine and of the inputs before a step runs, a line each.

    A recipe that is not strict may still take a value that its input does not allow.

    Raises RequestError when the recipe needs a newer CM, and for such values of a strict one, all at once.
    """
    wanted, present = configured.recipe.min_cm_version, cm_version()
    if wanted and present and compare(present, wanted) < 0:
        raise RequestError(
            f"{configured.label} needs CM {wanted} or newer (min_cm_version), this is {present}",
            hint="python3 -m pip install --upgrade cmind",
        )
    lines = problems_of_values(configured)
    if lines and configured.recipe.has_strict_inputs:
        raise RequestError(
            "\n".join(f"{configured.recipe.id.alias}: {line}" for line in lines),
            hint=f"cm help script {configured.recipe.id.alias} lists its inputs and their values",
        )
    needed_mb = configured.layer.required_disk_space_mb
    if needed_mb:
        lines.append(f"needs about {needed_mb} MB of disk, {free_disk_mb(Path.cwd())} MB are free in {Path.cwd()}")
    return lines


class StepContext:
    """What one step knows; ``folder`` is where it works, ``log_path`` takes its scripts' output, and ``scratch`` holds
    the engine's own files where the folder is the user's.
    """

    def __init__(self, configured: Configured, *, folder: Path, log_path: Path | None, top_folder: str) -> None:
        self.configured = configured
        self.recipe = configured.recipe
        self.folder = folder
        self.log_path = log_path
        self.scratch: Path | None = None
        self.env: Env = dict(configured.env)
        self.state: State = deep_copy(configured.state)
        self.const: Env = plain_copy(configured.const)
        self.const_state: State = plain_copy(configured.const_state)
        self.lists: dict[Phase, tuple[Dependency, ...]] = {p: configured.layer.dependencies(p) for p in PHASES}
        self.version = ""
        self.locked: Mapping[str, Any] = {}
        self.facts: dict[str, Any] = {}
        self.added_tags: tuple[str, ...] = ()
        self.derived_tags: tuple[str, ...] = ()
        self.files: tuple[str, ...] = ()
        self.dependency_tags: list[str] = []
        self.chosen_script = ""
        self.has_run_dynamic = False
        self.unknown = configured.request.unknown
        self.pending = configured.request.pending
        self.exported: tuple[tuple[str, str], ...] = ()
        repo = str(self.recipe.repo_path)
        self.set_own_keys(
            TMP_CURRENT_PATH=top_folder,
            TMP_CURRENT_SCRIPT_PATH=str(self.recipe.path),
            TMP_CURRENT_SCRIPT_WORK_PATH=str(folder),
            TMP_CURRENT_SCRIPT_REPO_PATH=repo,
            TMP_CURRENT_SCRIPT_REPO_PATH_WITH_PREFIX=repo,
        )

    @property
    def env(self) -> Env:
        """The env as it is now; secrets that come into it are hidden from then on."""
        return self._env

    @env.setter
    def env(self, env: Env) -> None:
        learn(env)
        self._env = env

    @property
    def trace(self) -> tuple[str, ...]:
        """The labels of the recipes that led here, this one last."""
        return (*self.configured.request.trace, self.configured.label)

    @property
    def indent(self) -> str:
        """The spaces in front of a recipe's own log lines: none for the one that was asked for, as in CM."""
        return "  " * (len(self.trace) - 1)

    @property
    def script_name(self) -> str:
        """The base name of the native script to run."""
        return self.chosen_script or self.configured.layer.script_name or "run"

    @property
    def has_open_tags(self) -> bool:
        """Whether dynamic dependencies that have not run yet may decide on tags of the cache entry."""
        is_derived = bool(self.recipe.extra_cache_tags_from_env) and not self.has_run_dynamic
        return is_derived and any(dependency.is_dynamic for dependency in self.lists["deps"])

    def set_own_keys(self, **values: str) -> None:
        """Sets keys of the engine's own, named without prefix: with CM's, and with the recipe's where that differs."""
        for prefix in {PREFIX, self.recipe.prefix}:
            self.env.update({prefix + name: value for name, value in values.items()})

    def apply_default_version(self) -> None:
        """The recipe is about to run: its default version counts when no exact one was asked for."""
        configured = apply_default_version(self.configured)
        if configured is not self.configured:
            self.configured = configured
            self.env = {**configured.env, **select_keys(self.env, ("*_TMP_CURRENT_*",))}
            self.lists = {phase: configured.layer.dependencies(phase) for phase in self.lists}

    def note_dependency(self, dependency: Dependency) -> None:
        """Keeps the words by which a dependency is asked for."""
        self.dependency_tags.append(",".join(dependency_tags(dependency, self)))

    def take_entry(self, entry: CacheEntry, new_env: Env, new_state: State) -> None:
        """Adds what a finished cache entry of this very recipe holds."""
        self.env = merge_env(self.env, new_env)
        self.state = merge_state(self.state, new_state)
        self.enforce_const()

    def take(self, result: StepResult, phase: Phase) -> None:
        """Adds what a dependency of this phase gave."""
        kept = kept_env(self.env, self.configured, phase)
        self.env = expand_env({**merge_env(self.env, result.new_env), **kept})
        self.state = merge_state(self.state, result.new_state)
        self.enforce_const()

    def take_hook(self, i: Mapping[str, Any], meta: Mapping[str, Any], result: HookResult) -> None:
        """Adds what a hook changed in its input ``i`` and in ``meta``, and what it answered."""
        self.env, self.state = with_lists(i["env"]), i["state"]
        self.take_lists(meta)
        self.chosen_script = str(i["run_script_input"].get("script_name") or "")
        self.version = result.version or self.version
        self.added_tags = tuple(dict.fromkeys((*self.added_tags, *result.extra_cache_tags)))
        self.files = (*self.files, *result.files)
        self.facts.update(result.locked)

    def meta(self) -> dict[str, Any]:
        """A copy of the recipe's metadata with the dependency lists as they are now, for hooks to read and change."""
        meta: dict[str, Any] = plain_copy(self.recipe.meta)
        for phase in PHASES:
            if self.lists[phase] or phase in meta:
                meta[phase] = [plain_copy(dependency.entry) for dependency in self.lists[phase]]
        return meta

    def take_lists(self, meta: Mapping[str, Any]) -> None:
        """Adds what a hook changed in the dependency lists of ``meta``."""
        for phase in PHASES:
            entries = meta.get(phase) or []
            if entries != [dependency.entry for dependency in self.lists[phase]]:
                where = f"{self.recipe.id.alias}: {phase} after its hook"
                self.lists[phase] = tuple(parse_dependency(entry, where) for entry in entries)

    def map_env_keys(self) -> Env:
        """Copies the keys of ``env_key_mappings`` for the native script; the copies."""
        copies: Env = {}
        for old, new in self.recipe.env_key_mappings.items():
            copies.update({new + key[len(old) :]: value for key, value in self.env.items() if key.startswith(old)})
            self.env.update(copies)
        return copies

    def enforce_const(self) -> None:
        """Puts the constants back over whatever was changed."""
        self.env.update(self.const)
        self.state = merge_state(self.state, self.const_state) if self.const_state else self.state

    def let_out(self, env: Env) -> Env:
        """What of ``env`` the recipe's ``new_env_keys``, or the caller's, let out of the step."""
        own, asked = self.configured.layer.new_env_keys, self.configured.request.new_env_keys
        return new_items(select_keys(env, own if asked is None else asked), self.configured.request.env)

    def results(self) -> tuple[Env, State]:
        """The part of env and state that leaves the step."""
        request, layer = self.configured.request, self.configured.layer
        state_keys = layer.new_state_keys if request.new_state_keys is None else request.new_state_keys
        self.enforce_const()
        return self.let_out(self.env), deep_copy(select_keys(self.state, [key for key in state_keys if key]))

    def result(self, status: StepStatus, new_env: Env, new_state: State, entry: CacheEntry | None = None) -> StepResult:
        """What the step gives to its caller."""
        return StepResult(
            label=self.configured.label,
            status=status,
            new_env=new_env,
            new_state=new_state,
            version=(entry.version if entry else "") or self.version,
            entry=entry,
            dependency_tags=tuple(self.dependency_tags),
            unknown=self.exported,
        )

    def outcome(self, key: CacheKey, result: StepResult, dependent_path: str) -> Outcome:
        """What the finished cache entry of this step holds."""
        configured = self.configured
        return Outcome(
            new_env=result.new_env,
            new_state=result.new_state,
            dependencies=[dict(dependency.entry) for dependency in self.lists["deps"]],
            version=self.version or configured.version.exact,
            added_tags=(*applied_tags(configured), *tags_from_env(configured, self.env), *self.added_tags),
            files=self.files,
            dependent_path=dependent_path,
            lifetime_s=entry_lifetime_s(configured, self.env),
            details={
                "request": {"tags": configured.request.query.text, "inputs": dict(key.inputs)},
                "recipe": configured.recipe.id.text,
                "variations": [{"name": applied.name, "reason": applied.reason} for applied in configured.applied],
                "chain": list(self.trace),
                **({"locked": dict(self.facts)} if self.facts else {}),
            },
        )
