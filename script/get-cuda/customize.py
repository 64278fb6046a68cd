"""Hooks of the recipe get-cuda: find the toolkits of the machine and take the one that fits, or install one.

`request.py` says what is asked for, `selection.py` decides, `result.py` makes the env, `messages.py` the errors.
`crowdperf/machine` looks at the machine.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import os
import sys
from pathlib import Path
from typing import Any

from crowdperf.machine import nvidia, packages, pythons, toolkits
from crowdperf.machine.probe import Machine

from . import messages, request, result, selection

NOT_FOUND_CODE = 16  # CM's code for "not found"
COMPILE_TIMEOUT_S = 300.0
CHECK_SOURCE = str(Path(__file__).with_name("check.cu"))
WHEEL_HOMES = ("nvidia/cu[0-9]*", "nvidia/cuda_runtime")
"""Where NVIDIA's wheels put CUDA below site-packages: CUDA 13 into one folder, CUDA 12 each part into its own."""


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """Chooses among the toolkits that are there; for _pip and _prebuilt it says which version to install."""
    env, machine = i["env"], i.get("machine") or Machine()
    try:
        asked = request.asked_in(env, i["values"])
        if asked.source == "installed":
            return _choose(i, machine, asked, _homes(machine, asked, str(env.get("CM_TMP_CURRENT_PATH", "") or "/")))
        if asked.source == "pip":
            limits = request.pip_limits(asked, nvidia.look(machine).cuda_version)
            env["CM_CUDA_PIP_VERSION_MIN"], env["CM_CUDA_PIP_VERSION_MAX"] = limits
    except request.RequestError as error:
        return {"return": NOT_FOUND_CODE, "error": str(error)}
    return {"return": 0}


plan = preprocess


def postprocess(i: dict[str, Any]) -> dict[str, Any]:
    """After _pip or _prebuilt: takes what was installed and compiles a small program with it."""
    env, machine = i["env"], i.get("machine") or Machine()
    asked = request.asked_in(env, i["values"])
    if asked.source == "installed":
        return {"return": 0}
    if asked.source == "pip":
        python = str(env["CM_PYTHON_BIN_WITH_PATH"])
        sites = pythons.site_folders(machine, python)
        homes = tuple(home for site in sites for name in WHEEL_HOMES for home in machine.glob(f"{site}/{name}"))
        if not homes:
            return {"return": 1, "error": messages.wheels_missing(os.path.dirname(os.path.dirname(python)))}
    else:
        homes = (str(env["CM_CUDA_INSTALLED_PATH"]),)
    answer = _choose(i, machine, asked._replace(only_in=homes), homes)
    if answer["return"] > 0 or not asked.needs_compiler:
        return answer
    kit = next(kit for kit in toolkits.cuda_toolkits(machine, homes) if kit.home == env["CUDA_HOME"])
    program = Path.cwd() / "check"
    done = machine.run((kit.nvcc, "-o", str(program), CHECK_SOURCE), timeout_s=COMPILE_TIMEOUT_S)
    program.unlink(missing_ok=True)
    if done.code != 0:
        return {"return": 1, "error": messages.does_not_compile(kit, done.stdout + done.stderr)}
    _tell(f"compiled {Path(CHECK_SOURCE).name} with {kit.nvcc}: the toolkit is whole")
    return answer


def _homes(machine: Machine, asked: request.Request, folder: str) -> tuple[str, ...]:
    """The homes of the toolkits that the caller names: each by its folder, its bin folder, its nvcc or a library.

    Relative paths count from ``folder``. Raises RequestError for a path that is not there.
    """
    homes = []
    for path in (os.path.normpath(os.path.join(folder, os.path.expanduser(text))) for text in asked.only_in):
        if machine.is_file(path):
            is_compiler = path.rpartition("/")[2].startswith("nvcc")
            homes.append(
                toolkits.home_of_compiler(machine, path) if is_compiler else os.path.dirname(os.path.dirname(path))
            )
        elif machine.is_dir(path):
            is_bin = machine.is_file(f"{path}/nvcc")
            homes.append(toolkits.home_of_compiler(machine, f"{path}/nvcc") if is_bin else path)
        else:
            raise request.RequestError(f'{path} does not exist.\n  hint: cm run script "get cuda" finds those that do')
    return tuple(homes)


def _choose(i: dict[str, Any], machine: Machine, asked: request.Request, homes: tuple[str, ...]) -> dict[str, Any]:
    """Takes the best of the toolkits, tells why, and sets its keys; CM's answer."""
    env = i["env"]
    driver = nvidia.look(machine)
    choice = selection.choose(toolkits.cuda_toolkits(machine, homes), asked, driver.cuda_version)
    i["state"]["cm_cuda_toolkits"] = result.state_of(choice)
    if choice.chosen is None:
        error = messages.not_found(asked, choice, packages.look(machine).install(messages.PACKAGES))
        return {"return": NOT_FOUND_CODE, "error": error}
    kit = choice.chosen.kit
    for one in choice.judged:
        _tell(one.text)
    _tell(f"# Found artifact in {kit.nvcc or kit.lib} ({choice.reason})")
    _tell(f"Detected version: {kit.release}")
    if choice.chosen.fit.level in ("minor", "too-new"):
        _tell(f"WARNING: {choice.chosen.fit.reason} (driver {driver.version})")
    env.update(result.env_of(machine, kit, asked))
    env["CM_GET_DEPENDENT_CACHED_PATH"] = kit.nvcc or env["CM_CUDA_RT_WITH_PATH"]
    version = result.version_told(kit, asked)
    return {"return": 0, "version": version}


def _tell(line: str) -> None:
    print(f"get-cuda: {line}", file=sys.stderr)
