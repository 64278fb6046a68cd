"""Hooks of the recipe install-cuda-prebuilt: the toolkit of NVIDIA's run file into the cache entry, nothing else.

`order.py` decides which run file; the recipe download-file gets and checks it; run.sh starts it.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

from pathlib import Path
from typing import Any

from crowdperf.machine import nvidia, toolkits
from crowdperf.machine.probe import Machine

from . import order

INSTALL_FOLDER = "install"


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """Says which run file to take and from where; CM's answer."""
    env, machine = i["env"], i.get("machine") or Machine()
    if env.get("CM_CUDA_INSTALL_DRIVER") == "yes":
        return {"return": 1, "error": _no_driver()}
    if machine.user.uid == 0 and not i["values"]["as_root"]:
        return {"return": 1, "error": _not_as_root()}
    try:
        name = machine.run(("uname", "-m")).stdout.strip()
        wish = order.Wish.of_call(env, i["values"])
        chosen = order.order(wish, order.known_files(), name, nvidia.look(machine).cuda_version)
    except order.OrderError as error:
        return {"return": 16, "error": str(error)}
    env["CM_CUDA_RUN_FILE_FROM"] = "local" if chosen.local else "url"
    env["CM_CUDA_RUN_FILE_LOCAL"] = chosen.local
    env["CM_CUDA_RUN_FILE_CHOSEN_URL"] = chosen.url
    env["CM_CUDA_RUN_FILE_EXPECTED_SHA256"] = chosen.sha256
    env["CM_CUDA_RUN_FILE_EXPECTED_VERSION"] = chosen.version
    env["CM_CUDA_RUN_FILE_OFFLINE_TEXT"] = "" if chosen.local else order.offline_text(chosen)
    env["CM_CUDA_RUN_FILE_PATH"] = ""
    return {"return": 0}


plan = preprocess


def postprocess(i: dict[str, Any]) -> dict[str, Any]:
    """Checks what was installed and sets the recipe's keys; CM's answer."""
    env, machine = i["env"], i.get("machine") or Machine()
    home = str(Path.cwd() / INSTALL_FOLDER)
    kit = next((kit for kit in toolkits.cuda_toolkits(machine, (home,)) if kit.home == machine.real_path(home)), None)
    if kit is None or not kit.nvcc_version:
        return {
            "return": 1,
            "error": f"the run file succeeded, but {home} contains no working nvcc.\n"
            "  hint: is it NVIDIA's cuda_*_linux.run for this machine? Its log is cuda-installer.log in that entry",
        }
    expected = str(env.get("CM_CUDA_RUN_FILE_EXPECTED_VERSION", "") or "")
    if expected and toolkits.release_of(expected) != kit.release:
        return {
            "return": 1,
            "error": f"the run file's name says CUDA {expected}, it installed {kit.version}.\n"
            "  hint: rename the file to its original name, or use another one",
        }
    env["CM_CUDA_INSTALLED_PATH"] = home
    env["CM_CUDA_INSTALLED_VERSION"] = kit.version
    env["CM_CUDA_INSTALL_ID"] = Path.cwd().name
    env["CM_NVCC_BIN_WITH_PATH"] = f"{home}/bin/nvcc"
    return {"return": 0, "version": expected or kit.version, "files": [f"{INSTALL_FOLDER}/bin/nvcc"]}


def _no_driver() -> str:
    return (
        "this recipe never installs a driver: that changes the system and needs root.\n"
        "  hint: sudo sh cuda_VERSION_linux.run --silent --driver, or the packages of your distribution\n"
        '  hint: the toolkit alone, without root: cm run script "get cuda _prebuilt"'
    )


def _not_as_root() -> str:
    return (
        "for the user root NVIDIA's installer may do more than fill the folder it is given: it may set /usr/local/cuda "
        "and ld.so's settings, and writes /var/log/cuda-installer.log.\n"
        "  hint: run it as an ordinary user, or, in a container that is yours, add --as_root=yes"
    )
