"""Hooks of the recipe get-tensorrt: find TensorRT, or take it from NVIDIA's archive or from PyPI's wheels.

The package nvidia_library (recipe get-nvidia-library-lib) holds what get-cudnn needs too; the archive is unpacked by
the recipe extract-file between the two hooks; `wheels.py` knows PyPI's packages.
"""

from __future__ import annotations

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine; put it first with: cm use crowdperf:script")

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from machine_facts import toolkits
from machine_facts.probe import Machine
from nvidia_library import archive, choose, find, load, outcome, request
from nvidia_library.kinds import TENSORRT

from . import wheels

NOT_THERE_CODE = 1  # what cm4mlops' get-tensorrt ends with
NONE_FITS_CODE = 16  # CM's code for "not found"
FOLDER = "unpacked"
"""Where the archive goes, in the entry; _cm.yaml names it too."""
MORE_HINTS = (
    wheels.RTX_HINT,
    "cm run script \"get tensorrt _pip\"  (PyPI's packages fetch several GB from NVIDIA's own index; no root)",
    'cm run script "get tensorrt" --input=FOLDER  (one that lies elsewhere)',
)


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """The same when a run is only planned, except that the archive's SHA-256 is not computed."""
    return _prepare(i, is_plan=True)


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """Takes an installed TensorRT, or says what the dependencies that follow have to unpack or to install."""
    return _prepare(i, is_plan=False)


def _prepare(i: dict[str, Any], *, is_plan: bool) -> dict[str, Any]:
    env, machine = i["env"], i.get("machine") or Machine()
    try:
        asked = request.from_env(env, TENSORRT)
        env["CM_TENSORRT_SOURCE"] = asked.source
        if asked.source == "tar":
            _look_at_archive(env, machine, asked, is_plan=is_plan)
        elif asked.source == "pip":
            env.update(wheels.limits(asked))
        else:
            return _choose(i, machine, asked)
    except request.RequestError as error:
        return {"return": NONE_FITS_CODE, "error": str(error)}
    return {"return": 0}


def postprocess(i: dict[str, Any]) -> dict[str, Any]:
    """Checks what was unpacked or installed and sets the recipe's keys; CM's answer."""
    env, machine = i["env"], i.get("machine") or Machine()
    asked = request.from_env(env, TENSORRT)
    try:
        if asked.source == "tar":
            return _take_archive(env, machine, asked)
        if asked.source == "pip":
            return _take_wheel(env, wheels.look(env, machine, asked))
    except (archive.ArchiveError, wheels.WheelError) as error:
        if asked.source == "tar" and archive.is_entry(os.getcwd()):
            shutil.rmtree(FOLDER, ignore_errors=True)
        return {"return": 1, "error": str(error)}
    return {"return": 0}


def _look_at_archive(env: dict[str, Any], machine: Machine, asked: request.Request, *, is_plan: bool) -> None:
    """Checks the archive's name and checksum; the keys that extract-file needs. Raises RequestError."""
    seen = archive.before(asked, TENSORRT, machine)
    env["CM_TENSORRT_TAR_FILE_ABSOLUTE_PATH"] = seen.path
    env["CM_TENSORRT_UNPACK_LIMIT_BYTES"] = str(seen.max_size_bytes)
    if is_plan:
        return
    env["CM_TENSORRT_TAR_FILE_STAMP"] = seen.stamp
    env["CM_TENSORRT_TAR_FILE_SHA256"] = archive.sha256(asked)
    if archive.is_entry(os.getcwd()):
        shutil.rmtree(FOLDER, ignore_errors=True)  # of an earlier try in this entry
    elif Path(FOLDER).exists():
        raise request.RequestError(
            f"{Path(FOLDER).absolute()} exists already and is left as it is.\n  hint: run without --skip_cache"
        )
    _tell(f"SHA-256 of {seen.path}: {env['CM_TENSORRT_TAR_FILE_SHA256']}")
    _tell("unpacking it into the cache entry - can take some time ...")


def _take_archive(env: dict[str, Any], machine: Machine, asked: request.Request) -> dict[str, Any]:
    """The keys for what was unpacked; CM's answer. Raises ArchiveError."""
    name = Path(asked.tar_file).name
    whole = archive.after(machine, TENSORRT, str(Path.cwd() / FOLDER), name, asked)
    answer = _give(env, machine, whole.library, whole.version)
    env["CM_TENSORRT_CUDA_VERSION"] = archive.parse(name, TENSORRT).cuda
    if machine.is_dir(f"{whole.home}/python"):
        env["CM_TENSORRT_PYTHON_WHEELS_PATH"] = f"{whole.home}/python"
        _tell(
            f"its Python wheels are in {whole.home}/python; into an environment of yours: "
            f"pip install --no-index --find-links {whole.home}/python tensorrt"
        )
    answer["files"] = [machine.real_path(env["CM_TENSORRT_LIB_WITH_PATH"]), machine.real_path(whole.library.header)]
    return answer


def _take_wheel(env: dict[str, Any], wheel: wheels.Wheel) -> dict[str, Any]:
    """The keys for a TensorRT in a virtual environment; CM's answer."""
    _tell(wheels.story(wheel))
    _tell(f"Detected version: {wheel.version}")
    env["CM_TENSORRT_VERSION"] = wheel.version
    env["CM_TENSORRT_PYTHON_MODULE"] = wheel.module
    env["CM_TENSORRT_PYTHON_BIN_WITH_PATH"] = env["CM_PYTHON_BIN_WITH_PATH"]
    env["CM_TENSORRT_LOADS"] = "loads"
    if wheel.library:
        lib = os.path.dirname(wheel.library)
        env["CM_TENSORRT_LIB_WITH_PATH"], env["CM_TENSORRT_LIB_PATH"] = wheel.library, lib
        env["CM_TENSORRT_INSTALL_PATH"] = lib
        env.update(outcome.search_paths("", lib))
        env["CM_GET_DEPENDENT_CACHED_PATH"] = wheel.library
    return {"return": 0, "version": wheel.version}


def _choose(i: dict[str, Any], machine: Machine, asked: request.Request) -> dict[str, Any]:
    """Takes the best of those installed, tells why, and sets its keys; CM's answer."""
    env = i["env"]
    found = find.installed(machine, TENSORRT, asked, outcome.library_folders(env))
    choice = choose.choose(found, asked, ())
    i["state"]["cm_tensorrt_found"] = outcome.state_of(TENSORRT, choice)
    if choice.chosen is None:
        code = NONE_FITS_CODE if choice.judged or asked.only_in else NOT_THERE_CODE
        return {"return": code, "error": outcome.not_found(TENSORRT, asked, choice, MORE_HINTS)}
    for one in choice.judged:
        _tell(one.text(TENSORRT))
    one = choice.chosen.library
    _tell(f"# Found artifact in {find.library_file(machine, TENSORRT, one.lib)} ({choice.reason})")
    try:
        return _give(env, machine, one, one.version)
    except archive.ArchiveError as error:
        return {"return": 1, "error": f'{error}\n  hint: cm run script "get tensorrt" --input=ANOTHER_FOLDER'}


def _give(env: dict[str, Any], machine: Machine, one: toolkits.Library, version: str) -> dict[str, Any]:
    """Loads a TensorRT, sets the recipe's keys, and gives CM's answer. Raises ArchiveError for one that is broken."""
    library = find.library_file(machine, TENSORRT, one.lib)
    others = [str(env[key]) for key in ("CM_CUDA_PATH_LIB", "CM_CUDA_PATH_LIB_CUDNN") if env.get(key)]
    loaded = load.load(machine, TENSORRT, library, [one.lib, *others])
    _tell(loaded.text)
    trouble = load.contradiction(TENSORRT, version, loaded)
    if loaded.level == "broken" or trouble:
        raise archive.ArchiveError(trouble or loaded.text)
    # a file name may say the major version alone
    version = loaded.version if loaded.version.count(".") > version.count(".") else version
    _tell(f"Detected version: {version}")
    env["CM_TENSORRT_VERSION"] = version
    env["CM_TENSORRT_FLAVOUR"] = "full"
    env["CM_TENSORRT_LOADS"] = loaded.level
    env["CM_TENSORRT_INSTALL_PATH"] = one.prefix
    env["CM_TENSORRT_LIB_PATH"] = one.lib
    env["CM_TENSORRT_LIB_WITH_PATH"] = library
    if one.include:
        env["CM_TENSORRT_INCLUDE_PATH"] = one.include
    env.update(outcome.search_paths(one.include, one.lib))
    env["+ LDFLAGS"] = [f"-L{_quoted(folder)}" for folder in outcome.searched(one.lib)]
    programs = f"{one.prefix}/bin"
    env["+PATH"] = outcome.searched(programs) if machine.is_file(f"{programs}/trtexec") else []
    env["CM_GET_DEPENDENT_CACHED_PATH"] = machine.real_path(library)
    return {"return": 0, "version": version}


def _quoted(folder: str) -> str:
    return f'"{folder}"' if " " in folder else folder


def _tell(line: str) -> None:
    print(f"get-tensorrt: {line}", file=sys.stderr)
