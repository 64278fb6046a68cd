"""Hooks of get-triton-server: refuse a machine that the wheel is not made for, and give what assemble.py has made.

With `_container` nothing is installed: the image is named, and how to get it.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import json
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crowdperf.machine import images, neuron
from crowdperf.machine.probe import Machine

from . import packages

KIND_KEY = "CM_TRITON_SERVER_KIND"
IMAGE_KEY = "CM_TRITON_SERVER_IMAGE"
FILE_KEY = "CM_TRITON_SERVER_FILE"
PYTHON_KEY = "CM_TRITON_SERVER_PYTHON"
NEURON_PACKAGES = {
    "torch_neuron": "torch-neuron==1.13.1.2.11.13.0 neuron-cc[tensorflow] protobuf<5",
    "torch_neuronx": "torch-neuronx==2.* neuronx-cc==2.* protobuf<5",
}
"""What AWS's setup pages install from its index, for Inf1 (archived; the last version) and for Inf2 (read 2026-11-23).
PyPI has placeholders of these names, version 1.0, so that a version is always asked for. Not installed here."""
MACHINES = ("x86_64",)
"""What nvidia-pytriton 0.7.0 has wheels for: manylinux_2_35_x86_64 (PyPI)."""


def is_container(env: dict[str, Any]) -> bool:
    """Whether NVIDIA's image is asked for."""
    return env.get(KIND_KEY) == "container"


def image_of(values: Mapping[str, Any]) -> str:
    """The reference of the image that is asked for, with its digest where one is given. Raises ValueError."""
    from crowdperf.rules.backends import BACKENDS

    return images.pinned(values["image"] or BACKENDS["triton"].image, values["image_digest"] or "")


def image_env(image: str) -> dict[str, str]:
    """The image, the command that gets it, and the one that prints its digest where `image` names a tag only."""
    find = "" if images.is_pinned(image) else f"{images.find_digest(image)}  (then --image_digest=)"
    return {
        IMAGE_KEY: image,
        f"{IMAGE_KEY}_PULL": f"docker pull {image}",
        **({f"{IMAGE_KEY}_FIND_DIGEST": find} if find else {}),
    }


def misfit(machine: str) -> str:
    """Why the wheel cannot be used on a machine; empty where it can."""
    if machine in MACHINES:
        return ""
    return (
        f"nvidia-pytriton has no wheel for {machine}, only for {', '.join(MACHINES)}\n"
        "hint: NVIDIA's container runs there: cm run script --tags=serve,mlperf,model,_container,_plan"
    )


def missing_neuron(env: dict[str, Any]) -> str:
    """Why the environment for NeuronCores cannot be made here; empty where it can, or is not asked for."""
    why = neuron.missing(Machine()) if env.get(KIND_KEY) == "neuron" else ""
    return f"{why}\nhint: --simulate=neuron tests the path on the CPU" if why else ""


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """Refuses what preprocess refuses; called when a run is planned, makes nothing. A recorded machine was looked at by
    the recipe that names it."""
    env = i["env"]
    if is_container(env):
        try:
            image_of(i["values"])
        except ValueError as error:
            return {"return": 1, "error": str(error)}
        return {"return": 0}
    why = misfit(platform.machine()) or ("" if env.get("CM_RECORDED_MACHINE") else missing_neuron(env))
    return {"return": 16, "error": why} if why else {"return": 0}


def write_locked(rows: packages.Rows) -> None:
    """Leaves what a lockfile names for run.sh, in locked.txt. Raises ValueError."""
    path = Path("locked.txt")
    path.unlink(missing_ok=True)
    if rows:
        path.write_text(packages.requirements(rows), encoding="utf-8")


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: see `plan`; leaves what run.sh installs, which is nothing with `_container`."""
    env = i["env"]
    refused = plan(i)
    if refused["return"] or is_container(env):
        return refused
    try:
        write_locked(i.get("locked", {}).get("python_packages", {}))
    except ValueError as error:
        return {"return": 1, "error": f"{error}\nhint: make a new lockfile with `cm lock script`"}
    if env.get(KIND_KEY) == "neuron":
        env["CM_TMP_NEURON_PACKAGES"] = NEURON_PACKAGES.get(neuron.sdk(Machine()), "")
        env["CM_TMP_NEURON_INDEX"] = neuron.INDEX
    return {"return": 0}


def postprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: exports where server.json is; its program lies in the virtual environment. With `_container` it names
    the image and the commands for it."""
    env = i["env"]
    if is_container(env):
        env.update(image_env(image_of(i["values"])))
        return {"return": 0, "locked": {"image": env[IMAGE_KEY]}}
    folder = Path.cwd()
    try:
        content = json.loads((folder / "server.json").read_text(encoding="utf-8"))
        version, program = str(content["version"]), str(content["program"])
    except (OSError, ValueError, KeyError) as error:
        return {"return": 1, "error": f"{folder / 'server.json'} cannot be used: {error!r}\nhint: run it with --new"}
    env[FILE_KEY] = str(folder / "server.json")
    env["CM_TRITON_SERVER_VERSION"] = version
    env[PYTHON_KEY] = str(env.get("CM_PYTHON_BIN_WITH_PATH", ""))
    env["CM_GET_DEPENDENT_CACHED_PATH"] = program
    files = ["server.json", *(str(path) for path in sorted(Path("backends").rglob("*")) if path.is_file())]
    locked = {"python_packages": packages.read_rows(folder / "packages.json")}
    return {"return": 0, "version": version, "files": files, "locked": locked}
