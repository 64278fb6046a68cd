"""What the engine takes from the machine and from the user's process environment."""

from __future__ import annotations

import contextlib
import os
import struct
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..rules.env import fill_env
from ..rules.errors import RequestError
from ..rules.model import Configured, Recipe, Request
from ..rules.version import compare

_PROXIES = ("ftp_proxy", "http_proxy", "https_proxy", "no_proxy", "socks_proxy")
PASSED_ON_KEYS = ("GH_TOKEN", *_PROXIES, *(name.upper() for name in _PROXIES))
"""Process variables that become env of every recipe (reference engine, cm4mlops e1d5c7cf0)."""


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


def with_own_places(recipe: Recipe, request: Request, top_folder: str) -> Request:
    """The request with its relative ``is_path`` inputs counted from ``top_folder``, where the command was given.

    A recipe of CM's successor learns that folder, too.
    """
    given = {name: request.inputs.get(name) for name, described in recipe.inputs.items() if described.is_path}
    paths = {name: path for name, path in given.items() if isinstance(path, str) and path and "<<<" not in path}
    absolute = {name: os.path.abspath(os.path.join(top_folder, os.path.expanduser(paths[name]))) for name in paths}
    if absolute:
        request = request._replace(inputs={**request.inputs, **absolute})
    return (
        request._replace(env=fill_env(request.env, {USER_FOLDER_KEY: top_folder})) if recipe.is_successor else request
    )


def cm_version() -> str:
    """The version of the cmind that called the engine; empty when it was called from elsewhere."""
    return str(getattr(sys.modules.get("cmind"), "__version__", ""))


def free_disk_mb(folder: Path) -> int:
    """The free disk space where ``folder`` is, in units of 10^6 bytes."""
    import shutil  # here, because few recipes ask

    return shutil.disk_usage(folder).free // 1_000_000


def remarks(configured: Configured) -> list[str]:
    """What the user should know of this machine and of the inputs before a step runs, a line each.

    A value that is not one of the choices which the recipe describes may still be taken.

    Raises RequestError when the recipe needs a newer CM.
    """
    wanted, present = configured.recipe.min_cm_version, cm_version()
    if wanted and present and compare(present, wanted) < 0:
        raise RequestError(
            f"{configured.label} needs CM {wanted} or newer (min_cm_version), this is {present}",
            hint="python3 -m pip install --upgrade cmind",
        )
    lines = []
    for name, described in configured.recipe.inputs.items():
        given = configured.request.inputs.get(name)
        is_one = str(given).strip().lower() in {choice.lower() for choice in described.choices}
        if described.choices and isinstance(given, str | bool | int | float) and not is_one:
            lines.append(f"--{name}={given} is not one of its choices: {', '.join(described.choices)}")
    needed_mb = configured.layer.required_disk_space_mb
    if needed_mb:
        lines.append(f"needs about {needed_mb} MB of disk; {free_disk_mb(Path.cwd())} MB are free in {Path.cwd()}")
    return lines
