"""Hooks of the recipe get-generic-python-lib: find a package in the chosen Python, install it where it is missing.

`requirement.py` holds the rules, `pip_tool.py` starts the chosen Python and its pip.
"""

from __future__ import annotations

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine; put it first with: cm use crowdperf:script")

from pathlib import Path
from typing import Any

from . import pip_tool, requirement


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """Installs the package if needed and sets its keys; returns CM's answer with its version."""
    env = i["env"]
    python = Path(str(env.get("CM_PYTHON_BIN_WITH_PATH", "") or ""))
    try:
        asked = requirement.from_env(env)
        locked = i.get("locked", {}).get("python_packages", {})
        way = pip_tool.Way(options=requirement.pip_options(env), proxies=requirement.proxies(env), locked=locked)
        installed = pip_tool.provide(python, asked, way)
    except (requirement.RequirementError, pip_tool.PipError) as error:
        return {"return": 1, "error": str(error)}
    key = f"CM_PYTHONLIB_{requirement.env_name(asked.text)}"
    env[f"{key}_CACHE_TAGS"] = f"version-{installed.version}"
    env[f"{key}_VERSION"] = installed.version
    env[f"{key}_METADATA_PATH"] = installed.metadata_path
    env[f"{key}_PYTHON"] = str(python)
    env[f"CM_{requirement.env_name(asked.name)}_VERSION"] = installed.version  # leaves variations that export it
    env["CM_GET_DEPENDENT_CACHED_PATH"] = installed.metadata_path
    facts = {"python_packages": {name: dict(row) for name, row in installed.packages.items()}}
    return {"return": 0, "version": installed.version, "locked": facts}
