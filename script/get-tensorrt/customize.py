"""Hooks of the recipe get-tensorrt: find TensorRT, or take it from NVIDIA's archive or from PyPI's wheels.

`crowdperf/machine/nvidia_libraries` holds what get-cudnn needs too; the archive is unpacked by
the recipe extract-file between the two hooks; `wheels.py` knows PyPI's packages.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what lies beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import os
from pathlib import Path
from typing import Any

from crowdperf.machine import toolkits
from crowdperf.machine.nvidia_libraries import archive, request, steps
from crowdperf.machine.nvidia_libraries.kinds import TENSORRT
from crowdperf.machine.probe import Machine

from . import wheels

MORE_HINTS = (
    wheels.RTX_HINT,
    "cm run script \"get tensorrt _pip\"  (PyPI's packages fetch several GB from NVIDIA's own index, no root)",
    'cm run script "get tensorrt" --input=FOLDER  (one in another place)',
)


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """The same when a run is only planned, except that the archive's SHA-256 is not computed."""
    return steps.prepare(i, TENSORRT, _own(), is_plan=True)


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """Takes an installed TensorRT, or says what the dependencies that follow have to unpack or to install."""
    return steps.prepare(i, TENSORRT, _own(), is_plan=False)


def _own() -> steps.Own:
    return steps.Own(lambda env: MORE_HINTS, _give)


def postprocess(i: dict[str, Any]) -> dict[str, Any]:
    """Checks what was unpacked or installed and sets the recipe's keys; CM's answer."""
    env, machine = i["env"], i.get("machine") or Machine()
    asked = request.asked_in(env, i["values"], TENSORRT)
    try:
        if asked.source == "tar":
            return _take_archive(env, machine, asked)
        if asked.source == "pip":
            return _take_wheel(env, wheels.look(env, machine, asked))
    except (archive.ArchiveError, wheels.WheelError) as error:
        return {"return": 1, "error": str(error)}
    return {"return": 0}


def _take_archive(env: dict[str, Any], machine: Machine, asked: request.Request) -> dict[str, Any]:
    """The keys for what was unpacked; CM's answer. Raises ArchiveError."""
    whole, taken = steps.take_archive(machine, TENSORRT, asked, steps.loader_folders(env))
    env["CM_TENSORRT_CUDA_VERSION"] = archive.parse(Path(asked.tar_file).name, TENSORRT).cuda
    folder = f"{whole.home}/python"
    if machine.is_dir(folder):
        env["CM_TENSORRT_PYTHON_WHEELS_PATH"] = folder
        command = f"pip install --no-index --find-links {folder} tensorrt"
        steps.tell(TENSORRT, f"its Python wheels, for your own environment: {command}")
    files = [machine.real_path(taken.library), machine.real_path(whole.library.header)]
    return {**_give(env, machine, taken), "files": files}


def _take_wheel(env: dict[str, Any], wheel: wheels.Wheel) -> dict[str, Any]:
    """The keys for a TensorRT in a virtual environment; CM's answer."""
    steps.tell(TENSORRT, wheels.story(wheel))
    steps.tell(TENSORRT, f"Detected version: {wheel.version}")
    env["CM_TENSORRT_VERSION"] = wheel.version
    env["CM_TENSORRT_PYTHON_MODULE"] = wheel.module
    env["CM_TENSORRT_PYTHON_BIN_WITH_PATH"] = env["CM_PYTHON_BIN_WITH_PATH"]
    env["CM_TENSORRT_LOADS"] = "loads"
    if wheel.library:
        lib = os.path.dirname(wheel.library)
        env["CM_TENSORRT_LIB_WITH_PATH"], env["CM_TENSORRT_LIB_PATH"] = wheel.library, lib
        env["CM_TENSORRT_INSTALL_PATH"] = lib
        env.update(toolkits.search_paths("", lib))
        env["CM_GET_DEPENDENT_CACHED_PATH"] = wheel.library
    return {"return": 0, "version": wheel.version}


def _give(env: dict[str, Any], machine: Machine, taken: steps.Taken) -> dict[str, Any]:
    """Sets the recipe's keys for an installed or unpacked TensorRT; CM's answer."""
    place = taken.place
    env["CM_TENSORRT_VERSION"] = taken.version
    env["CM_TENSORRT_FLAVOUR"] = "full"
    env["CM_TENSORRT_LOADS"] = taken.loads
    env["CM_TENSORRT_INSTALL_PATH"] = place.prefix
    env["CM_TENSORRT_LIB_PATH"] = place.lib
    env["CM_TENSORRT_LIB_WITH_PATH"] = taken.library
    if place.include:
        env["CM_TENSORRT_INCLUDE_PATH"] = place.include
    env.update(toolkits.search_paths(place.include, place.lib))
    env["+ LDFLAGS"] = toolkits.linker_flags(place.lib)
    programs = f"{place.prefix}/bin"
    env["+PATH"] = toolkits.searched(programs) if machine.is_file(f"{programs}/trtexec") else []
    env["CM_GET_DEPENDENT_CACHED_PATH"] = machine.real_path(taken.library)
    return {"return": 0, "version": taken.version}
