"""Hooks of the recipe install-python-venv: make a virtual environment with pip in the current folder.

`environment.py` makes it; the recipe's post dependency registers its Python.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import os
import re
import shlex
import time
from pathlib import Path
from typing import Any

from . import environment

DEFAULT_NAME = "venv"


class BadName(Exception):
    """A name that cannot be the name of an environment."""


def folder_name(name: str) -> str:
    """The folder and tag of an environment: its name in lower case, "venv" for none.

    Raises BadName for a name that is not letters, digits, '.', '_' and '-'.
    """
    lower = name.strip().lower() or DEFAULT_NAME
    if not re.fullmatch(r"[a-z0-9_][a-z0-9._-]{0,99}", lower):
        raise BadName(
            f"{name!r} cannot name an environment, allowed are letters, digits, '.', '_' and '-', "
            'at most 100\nhint: cm run script "install python-venv" --name=my-venv'
        )
    return lower


def venv_id(created_ms: int) -> str:
    """Eleven hexadecimal digits that tell environments of one name apart, from the time in ms since 1970.

    They count down: cache entries are found in the order of their tags, so the newest of a name comes first, and one
    that was damaged and made again never hides the new one.
    """
    return f"{(1 << 44) - 1 - created_ms:011x}"


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """Makes the environment and sets its keys; returns CM's answer with the version of its Python."""
    env = i["env"]
    try:
        name = folder_name(str(env.get("CM_NAME", "") or ""))
        folder = Path.cwd() / name
        base = Path(str(env["CM_PYTHON_BIN_WITH_PATH"]))
        environment.check_place(folder, is_entry=Path("_cm.json").is_file())
        has_system = i["values"]["system_packages"] is True
        manager = str(env.get("CM_HOST_OS_PACKAGE_MANAGER", ""))
        version = environment.make(base, folder, manager, has_system_packages=has_system)
    except (BadName, environment.VenvError) as error:
        return {"return": 1, "error": str(error)}
    scripts = folder / "bin"
    env["CM_VIRTUAL_ENV_DIR"] = name
    env["CM_VIRTUAL_ENV_ID"] = venv_id(time.time_ns() // 1_000_000)
    env["CM_VIRTUAL_ENV_PATH"] = str(folder)
    env["CM_VIRTUAL_ENV_SCRIPTS_PATH"] = str(scripts)
    env["CM_PYTHON_BIN_WITH_PATH"] = str(scripts / "python3")
    env["CM_PYTHON_INSTALLED_PATH"] = str(scripts)
    env["CM_GET_DEPENDENT_CACHED_PATH"] = os.path.realpath(base)
    return {"return": 0, "version": version, "add_extra_cache_tags": [f"name-{name}"]}


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """What preprocess will say of the name; called when a run is planned, makes nothing."""
    try:
        name = folder_name(str(i["env"].get("CM_NAME", "") or ""))
    except BadName as error:
        return {"return": 1, "error": str(error)}
    i["env"]["CM_VIRTUAL_ENV_DIR"] = name
    return {"return": 0, "add_extra_cache_tags": [f"name-{name}"]}


def postprocess(i: dict[str, Any]) -> dict[str, Any]:
    """Puts the line that activates the environment before the scripts of later recipes; declares its files."""
    folder = Path(str(i["env"]["CM_VIRTUAL_ENV_PATH"]))
    activate = folder / "bin" / "activate"
    line = f". {shlex.quote(str(activate))}"
    prefix = list(i["state"].get("script_prefix", []))
    if line not in prefix:
        prefix.append(line)
    i["state"]["script_prefix"] = prefix
    return {"return": 0, "files": [str(folder / "pyvenv.cfg"), str(folder / "bin" / "python3"), str(activate)]}
