"""Hooks of the recipe get-cudnn: find cuDNN, or take it from NVIDIA's archive or from PyPI's wheels.

The package nvidia_library (recipe get-nvidia-library-lib) holds what get-tensorrt needs too; the archive is unpacked by
the recipe extract-file between the two hooks. Nothing is ever copied into the system's CUDA.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from machine_facts import nvidia, toolkits
from machine_facts.probe import Machine
from nvidia_library import archive, choose, find, load, outcome, request
from nvidia_library.kinds import CUDNN

NOT_THERE_CODE = 1  # what cm4mlops' get-cudnn ends with
NONE_FITS_CODE = 16  # CM's code for "not found"
FOLDER = "unpacked"
"""Where the archive goes, in the entry; _cm.yaml names it too."""
MORE_HINTS = (
    'cm run script "get cudnn _pip,_cu12"  (or _cu13; NVIDIA\'s PyPI wheels, 1 to 1.3 GB; no root)',
    'cm run script "get cudnn" --input=FOLDER  (one that lies elsewhere)',
)


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """The same when a run is only planned, except that the archive's SHA-256 is not computed."""
    return _prepare(i, is_plan=True)


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """Takes an installed cuDNN, or says what the dependencies that follow have to unpack or to install."""
    return _prepare(i, is_plan=False)


def _prepare(i: dict[str, Any], *, is_plan: bool) -> dict[str, Any]:
    env, machine = i["env"], i.get("machine") or Machine()
    try:
        asked = request.from_env(env, CUDNN)
        env["CM_CUDNN_SOURCE"] = asked.source
        if asked.source == "tar":
            _look_at_archive(env, machine, asked, is_plan=is_plan)
        elif asked.source == "pip":
            _choose_wheels(env, machine, asked)
        else:
            return _choose(i, machine, asked)
    except request.RequestError as error:
        return {"return": NONE_FITS_CODE, "error": str(error)}
    return {"return": 0}


def postprocess(i: dict[str, Any]) -> dict[str, Any]:
    """Checks what was unpacked or installed and sets the recipe's keys; CM's answer."""
    env, machine = i["env"], i.get("machine") or Machine()
    asked = request.from_env(env, CUDNN)
    if asked.source == "tar":
        return _take_archive(i, machine, asked)
    if asked.source == "pip":
        return _take_wheels(i, machine, asked)
    return {"return": 0}


def _look_at_archive(env: dict[str, Any], machine: Machine, asked: request.Request, *, is_plan: bool) -> None:
    """Checks the archive's name and checksum; the keys that extract-file needs. Raises RequestError."""
    seen = archive.before(asked, CUDNN, machine)
    env["CM_CUDNN_TAR_FILE_ABSOLUTE_PATH"] = seen.path
    env["CM_CUDNN_UNPACK_LIMIT_BYTES"] = str(seen.max_size_bytes)
    if is_plan:
        return
    env["CM_CUDNN_TAR_FILE_STAMP"] = seen.stamp
    env["CM_CUDNN_TAR_FILE_SHA256"] = archive.sha256(asked)
    if archive.is_entry(os.getcwd()):
        shutil.rmtree(FOLDER, ignore_errors=True)  # of an earlier try in this entry
    elif Path(FOLDER).exists():
        raise request.RequestError(
            f"{Path(FOLDER).absolute()} exists already and is left as it is.\n  hint: run without --skip_cache"
        )
    _tell(f"SHA-256 of {seen.path}: {env['CM_CUDNN_TAR_FILE_SHA256']}")
    _tell("unpacking it into the cache entry - can take some time ...")


def _take_archive(i: dict[str, Any], machine: Machine, asked: request.Request) -> dict[str, Any]:
    env, folder = i["env"], str(Path.cwd() / FOLDER)
    try:
        whole = archive.after(machine, CUDNN, folder, Path(asked.tar_file).name, asked)
        answer = _give(env, machine, whole.library, whole.version)
    except archive.ArchiveError as error:
        if archive.is_entry(os.getcwd()):
            shutil.rmtree(FOLDER, ignore_errors=True)
        return {"return": 1, "error": str(error)}
    made_for = archive.parse(Path(asked.tar_file).name, CUDNN).cuda or archive.parse(Path(whole.home).name, CUDNN).cuda
    env["CM_CUDNN_CUDA_VERSION"] = made_for
    cuda = str(env.get("CM_CUDA_VERSION", "") or "")
    if made_for and cuda and made_for.split(".")[0] != cuda.split(".")[0]:
        _tell(f"WARNING: this cuDNN is made for CUDA {made_for}, the toolkit found is CUDA {cuda}")
    answer["files"] = [str(Path(env["CM_CUDNN_LIBRARY_WITH_PATH"]).resolve()), whole.library.header]
    return answer


def _choose_wheels(env: dict[str, Any], machine: Machine, asked: request.Request) -> None:
    """The version limits for pip, and a warning where the driver is too old for the CUDA of the wheels."""
    env["CM_CUDNN_PIP_VERSION"] = asked.exact
    env["CM_CUDNN_PIP_VERSION_MIN"] = asked.minimum
    # the wheels' own last number is not what users say: 9.10 means every 9.10.x.y
    env["CM_CUDNN_PIP_VERSION_MAX"] = asked.maximum + ".9999" if asked.maximum else ""
    made_for = str(env.get("CM_CUDNN_PIP_PACKAGE", "")).rpartition("cu")[2]
    driver = nvidia.look(machine)
    if driver.cuda_version and made_for.isdigit() and int(driver.cuda_version.split(".")[0]) < int(made_for):
        _tell(
            f"WARNING: these wheels are made for CUDA {made_for}, the driver {driver.version} runs CUDA up to "
            f'{driver.cuda_version}. hint: cm run script "get cudnn _pip,_cu12", or a newer driver'
        )


def _take_wheels(i: dict[str, Any], machine: Machine, asked: request.Request) -> dict[str, Any]:
    env = i["env"]
    venv = os.path.dirname(os.path.dirname(str(env["CM_PYTHON_BIN_WITH_PATH"])))
    sites = [site for lib in ("lib", "lib64") for site in machine.glob(f"{venv}/{lib}/python3*/site-packages")]
    homes = tuple(home for site in sites for home in machine.glob(f"{site}/nvidia/cudnn*") if machine.is_dir(home))
    found = [one for one in toolkits.cudnn_versions(machine, homes) if one.prefix in homes and one.lib]
    package = str(env["CM_CUDNN_PIP_PACKAGE"])
    if not found:
        return {
            "return": 1,
            "error": f"pip installed {package}, but no cuDNN lies below {venv} in site-packages/nvidia/.\n"
            f"  hint: {archive.command(CUDNN)}; please report the version of {package}",
        }
    told = str(env.get(f"CM_PYTHONLIB_{package.upper().replace('-', '_')}_VERSION", "") or "")
    try:
        answer = _give(env, machine, found[0], told or found[0].version)
    except archive.ArchiveError as error:
        return {"return": 1, "error": str(error)}
    env["CM_CUDNN_CUDA_VERSION"] = package.rpartition("cu")[2]
    return answer


def _choose(i: dict[str, Any], machine: Machine, asked: request.Request) -> dict[str, Any]:
    """Takes the best of those installed, tells why, and sets its keys; CM's answer."""
    env = i["env"]
    cuda = [str(env[key]) for key in ("CM_CUDA_PATH_LIB",) if env.get(key)]
    found = find.installed(machine, CUDNN, asked, outcome.library_folders(env) + cuda)
    choice = choose.choose(found, asked, cuda)
    i["state"]["cm_cudnn_found"] = outcome.state_of(CUDNN, choice)
    if choice.chosen is None:
        code = NONE_FITS_CODE if choice.judged or asked.only_in else NOT_THERE_CODE
        return {"return": code, "error": outcome.not_found(CUDNN, asked, choice, MORE_HINTS)}
    for one in choice.judged:
        _tell(one.text(CUDNN))
    one = choice.chosen.library
    _tell(f"# Found artifact in {find.library_file(machine, CUDNN, one.lib)} ({choice.reason})")
    try:
        return _give(env, machine, one, one.version)
    except archive.ArchiveError as error:
        return {"return": 1, "error": f'{error}\n  hint: cm run script "get cudnn" --input=ANOTHER_FOLDER'}


def _give(env: dict[str, Any], machine: Machine, one: toolkits.Library, version: str) -> dict[str, Any]:
    """Loads a cuDNN, sets the recipe's keys, and gives CM's answer. Raises ArchiveError for one that is broken."""
    library = find.library_file(machine, CUDNN, one.lib)
    loaded = load.load(machine, CUDNN, library, [one.lib, *filter(None, (str(env.get("CM_CUDA_PATH_LIB") or ""),))])
    _tell(loaded.text)
    trouble = load.contradiction(CUDNN, version, loaded)
    if loaded.level == "broken" or trouble:
        raise archive.ArchiveError(trouble or loaded.text)
    # a file name may say the major version alone
    version = loaded.version if loaded.version.count(".") > version.count(".") else version
    _tell(f"Detected version: {version}")
    env["CM_CUDNN_VERSION"] = version
    env["CM_CUDNN_LOADS"] = loaded.level
    env["CM_CUDNN_LIBRARY_WITH_PATH"] = library
    env["CM_CUDA_PATH_LIB_CUDNN"] = one.lib
    env["CM_CUDA_PATH_LIB_CUDNN_EXISTS"] = "yes"
    if one.include:
        env["CM_CUDA_PATH_INCLUDE_CUDNN"] = one.include
    env.update(outcome.search_paths(one.include, one.lib))
    env["CM_GET_DEPENDENT_CACHED_PATH"] = machine.real_path(library)
    return {"return": 0, "version": version}


def _tell(line: str) -> None:
    print(f"get-cudnn: {line}", file=sys.stderr)
