"""Hooks of the recipe get-generic-python-lib: find a package in the chosen Python, install it where it is missing.

`requirement.py` holds the rules, `pip_tool.py` starts the chosen Python and its pip.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import glob
from pathlib import Path
from typing import Any

from . import pip_tool, requirement


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """The step runs to its end with the dependencies it has; what it sets is known only then."""
    return {"return": 0}


def plan_reuse(i: dict[str, Any]) -> dict[str, Any]:
    """What validate_cache.sh would say of an entry when a run is planned."""
    env = i["env"]
    key = f"CM_PYTHONLIB_{requirement.env_name(str(env.get('CM_GENERIC_PYTHON_PACKAGE_NAME', '')))}"
    metadata_path = str(env.get(f"{key}_METADATA_PATH", "") or "")
    module_file = str(env.get(f"{key}_MODULE_FILE", "") or "")
    is_same = env.get(f"{key}_PYTHON", "") == env.get("CM_PYTHON_BIN_WITH_PATH", "")
    is_whole = Path(metadata_path).is_file() and (not module_file or Path(module_file).is_file())
    patterns = str(env.get(f"{key}_RIVALS", "") or "").split(":")
    if is_same and is_whole and not any(glob.glob(pattern) for pattern in patterns if pattern):
        return {"return": 0}
    return {
        "return": 1,
        "error": "its package was removed or overwritten by another build, or another Python is requested",
    }


def rival_patterns(asked: requirement.Requirement, metadata_path: Path) -> list[str]:
    """Patterns of the folders that other builds of the package would have beside its own."""
    site = glob.escape(str(metadata_path.parent.parent))
    return [f"{site}/{name.replace('-', '_')}-*.dist-info" for name in asked.replaces]


def last_for_driver(env: dict[str, Any]) -> str:
    """The newest release that this machine's GPU driver runs; asked only for packages that are made for one CUDA."""
    if env.get("CM_GENERIC_PYTHON_FITS_DRIVER") != "yes":
        return ""
    from crowdperf.machine import compatibility, nvidia, probe  # the dependency of the variations that ask

    name = str(env["CM_GENERIC_PYTHON_PACKAGE_NAME"]).partition("[")[0]
    return compatibility.last_release(name, nvidia.look(probe.Machine()).cuda_version)


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """Installs the package if needed and sets its keys; returns CM's answer with its version."""
    env = i["env"]
    python = Path(str(env.get("CM_PYTHON_BIN_WITH_PATH", "") or ""))
    try:
        asked = requirement.from_env(env, last_for_driver(env))
        locked = i.get("locked", {}).get("python_packages", {})
        requirement.check_locked(locked)
        way = pip_tool.Way(
            options=requirement.pip_options(env, i["values"]),
            proxies=requirement.proxies(env),
            locked=locked,
            is_silent=env.get("CM_TMP_SILENT") == "yes",
        )
        installed = pip_tool.provide(python, asked, way)
    except (requirement.RequirementError, pip_tool.PipError) as error:
        return {"return": 1, "error": str(error)}
    key = f"CM_PYTHONLIB_{requirement.env_name(asked.text)}"
    env[f"{key}_CACHE_TAGS"] = f"version-{installed.version}"
    env[f"{key}_VERSION"] = installed.version
    env[f"{key}_METADATA_PATH"] = installed.metadata_path
    env[f"{key}_PYTHON"] = str(python)
    env[f"{key}_MODULE_FILE"] = installed.module_file
    env[f"{key}_RIVALS"] = ":".join(rival_patterns(asked, Path(installed.metadata_path)))
    env[f"CM_{requirement.env_name(asked.name)}_VERSION"] = installed.version  # leaves variations that export it
    env["CM_GET_DEPENDENT_CACHED_PATH"] = installed.metadata_path
    facts = {"python_packages": {name: dict(row) for name, row in installed.packages.items()}}
    return {"return": 0, "version": installed.version, "locked": facts}
