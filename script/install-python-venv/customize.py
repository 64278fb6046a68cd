"""Hooks of the recipe install-python-venv: make a virtual environment with pip in the current folder.

`environment.py` makes it, `names.py` holds the rules; the recipe's post dependency registers its Python.
"""

from __future__ import annotations

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine; put it first with: cm use crowdperf:script")

import os
import shlex
import time
from pathlib import Path
from typing import Any

from . import environment, names


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """Makes the environment and sets its keys; returns CM's answer with the version of its Python."""
    env = i["env"]
    try:
        name = names.folder_name(str(env.get("CM_NAME", "") or ""))
        folder = Path.cwd() / name
        base = Path(str(env["CM_PYTHON_BIN_WITH_PATH"]))
        environment.check_place(folder, is_entry=Path("_cm.json").is_file())
        has_system = i["values"]["system_packages"] is True
        manager = str(env.get("CM_HOST_OS_PACKAGE_MANAGER", ""))
        version = environment.make(base, folder, manager, has_system_packages=has_system)
    except (names.BadName, environment.VenvError) as error:
        return {"return": 1, "error": str(error)}
    scripts = folder / "bin"
    env["CM_VIRTUAL_ENV_DIR"] = name
    env["CM_VIRTUAL_ENV_ID"] = names.venv_id(time.time_ns() // 1_000_000)
    env["CM_VIRTUAL_ENV_PATH"] = str(folder)
    env["CM_VIRTUAL_ENV_SCRIPTS_PATH"] = str(scripts)
    env["CM_PYTHON_BIN_WITH_PATH"] = str(scripts / "python3")
    env["CM_PYTHON_INSTALLED_PATH"] = str(scripts)
    env["CM_GET_DEPENDENT_CACHED_PATH"] = os.path.realpath(base)
    return {"return": 0, "version": version, "add_extra_cache_tags": [f"name-{name}"]}


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """What preprocess will say of the name; called when a run is planned, makes nothing."""
    try:
        name = names.folder_name(str(i["env"].get("CM_NAME", "") or ""))
    except names.BadName as error:
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
