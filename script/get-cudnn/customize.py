"""Hooks of the recipe get-cudnn: find cuDNN, or take it from NVIDIA's archive or from PyPI's wheels.

`crowdperf/machine/nvidia_libraries` holds what get-tensorrt needs too; the archive is unpacked by
the recipe extract-file between the two hooks. Nothing is put into the system's CUDA.
"""

import os
from pathlib import Path
from typing import Any

from crowdperf.machine import nvidia, pythons, toolkits
from crowdperf.machine.nvidia_libraries import archive, request, steps
from crowdperf.machine.nvidia_libraries.kinds import CUDNN
from crowdperf.machine.probe import Machine

WHEELS = ("_cu12", "_cu13")
ELSEWHERE = 'cm run script "get cudnn" --input=FOLDER  (one in another place)'


def more_hints(env: dict[str, Any]) -> tuple[str, str]:
    """Further ways to a cuDNN: the wheels for the CUDA that was found come first."""
    cuda = str(env.get("CM_CUDA_VERSION", "") or "")
    first, other = sorted(WHEELS, key=lambda name: name != f"_cu{cuda.split('.')[0]}")
    wheels = f'cm run script "get cudnn _pip,{first}"  (or {other}: NVIDIA\'s PyPI wheels, 1 to 1.3 GB, no root)'
    return wheels, ELSEWHERE


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """The same when a run is only planned, except that the archive's SHA-256 is not computed."""
    return steps.prepare(i, CUDNN, _own(), is_plan=True)


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """Takes an installed cuDNN, or says what the dependencies that follow have to unpack or to install."""
    return steps.prepare(i, CUDNN, _own(), is_plan=False)


def _own() -> steps.Own:
    return steps.Own(more_hints, _give, _judge_wheels)


def postprocess(i: dict[str, Any]) -> dict[str, Any]:
    """Checks what was unpacked or installed and sets the recipe's keys; CM's answer."""
    env, machine = i["env"], i.get("machine") or Machine()
    asked = request.asked_in(env, i["values"], CUDNN)
    try:
        if asked.source == "tar":
            return _take_archive(env, machine, asked)
        if asked.source == "pip":
            return _take_wheels(env, machine)
    except archive.ArchiveError as error:
        return {"return": 1, "error": str(error)}
    return {"return": 0}


def _take_archive(env: dict[str, Any], machine: Machine, asked: request.Request) -> dict[str, Any]:
    """The keys for what was unpacked; CM's answer. Raises ArchiveError."""
    whole, taken = steps.take_archive(machine, CUDNN, asked, steps.loader_folders(env))
    made_for = archive.parse(Path(asked.tar_file).name, CUDNN).cuda or archive.parse(Path(whole.home).name, CUDNN).cuda
    cuda = str(env.get("CM_CUDA_VERSION", "") or "")
    if made_for and cuda and made_for.split(".")[0] != cuda.split(".")[0]:
        steps.tell(CUDNN, f"WARNING: this cuDNN is made for CUDA {made_for}, the toolkit found is CUDA {cuda}")
    env["CM_CUDNN_CUDA_VERSION"] = made_for
    files = [machine.real_path(taken.library), machine.real_path(whole.library.header)]
    return {**_give(env, machine, taken), "files": files}


def _judge_wheels(env: dict[str, Any], machine: Machine) -> None:
    """Warns where the driver is too old for the CUDA of the wheels."""
    made_for = str(env.get("CM_CUDNN_PIP_PACKAGE", "")).rpartition("cu")[2]
    driver = nvidia.look(machine)
    if driver.cuda_version and made_for.isdigit() and int(driver.cuda_version.split(".")[0]) < int(made_for):
        line = f"WARNING: these wheels are made for CUDA {made_for}, the driver {driver.version} runs CUDA up to "
        hint = 'hint: cm run script "get cudnn _pip,_cu12", or a newer driver'
        steps.tell(CUDNN, f"{line}{driver.cuda_version}. {hint}")


def _take_wheels(env: dict[str, Any], machine: Machine) -> dict[str, Any]:
    """The keys for what pip installed; CM's answer. Raises ArchiveError."""
    venv, package = os.path.dirname(os.path.dirname(str(env["CM_PYTHON_BIN_WITH_PATH"]))), env["CM_CUDNN_PIP_PACKAGE"]
    sites = pythons.site_folders(machine, f"{venv}/bin/python3")
    homes = tuple(home for site in sites for home in machine.glob(f"{site}/nvidia/cudnn*") if machine.is_dir(home))
    found = [one for one in toolkits.cudnn_versions(machine, homes) if one.prefix in homes and one.lib]
    if not found:
        raise archive.ArchiveError(
            f"pip installed {package}, but there is no cuDNN below {venv} in site-packages/nvidia/.\n"
            f"  hint: {archive.command(CUDNN)}, and please report the version of {package}"
        )
    told = str(env.get(f"CM_PYTHONLIB_{package.upper().replace('-', '_')}_VERSION", "") or "")
    taken = steps.checked(machine, CUDNN, found[0], told or found[0].version, steps.loader_folders(env))
    env["CM_CUDNN_CUDA_VERSION"] = package.rpartition("cu")[2]
    return _give(env, machine, taken)


def _give(env: dict[str, Any], machine: Machine, taken: steps.Taken) -> dict[str, Any]:
    """Sets the recipe's keys; CM's answer."""
    place = taken.place
    env["CM_CUDNN_VERSION"] = taken.version
    env["CM_CUDNN_LOADS"] = taken.loads
    env["CM_CUDNN_LIBRARY_WITH_PATH"] = taken.library
    env["CM_CUDA_PATH_LIB_CUDNN"] = place.lib
    env["CM_CUDA_PATH_LIB_CUDNN_EXISTS"] = "yes"
    if place.include:
        env["CM_CUDA_PATH_INCLUDE_CUDNN"] = place.include
    env.update(toolkits.search_paths(place.include, place.lib))
    env["CM_GET_DEPENDENT_CACHED_PATH"] = machine.real_path(taken.library)
    return {"return": 0, "version": taken.version}
