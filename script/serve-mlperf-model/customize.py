"""Hooks of serve-mlperf-model: check the call; with `_container` print the command for NVIDIA's image instead.

The server is started and ended by `python3 -m crowdperf.harness.backends.triton.serve` (run.sh).
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crowdperf.call.values import text_of
from crowdperf.kit.user_paths import users_folder
from crowdperf.machine import gpu_bus, images, neuron, nvidia, selection
from crowdperf.rules.backends import BACKENDS

from . import container

KIND_KEY = "CM_TRITON_SERVE_KIND"
SAMPLE_REPOSITORY = "/path/to/repository"


def arguments(values: Mapping[str, Any], log: Path) -> list[str]:
    """The words for crowdperf.harness.backends.triton.serve. Raises container.PlanError for two ports that are one."""
    http_port, grpc_port, seconds = (values[name] for name in ("http_port", "grpc_port", "seconds"))
    if http_port and http_port == grpc_port:
        raise container.PlanError("--http_port and --grpc_port: give two different ones, or neither")
    words = [f"--http_port={http_port}", f"--grpc_port={grpc_port}"] if http_port else []
    if seconds:
        words.append(f"--seconds={seconds:g}")
    return [*words, f"--log={log}"]


def container_plan(values: Mapping[str, Any], folder: Path) -> tuple[str, dict[str, object]]:
    """The banner of a recorded machine, and the plan. Raises ValueError and
    choose.MachineError."""
    chosen = selection.choose(values["machine"] or "", folder)
    machine, usual = chosen.machine, BACKENDS["triton"].image
    driver = nvidia.look(machine)
    image = values["image"] or container.default_image(usual, driver.cuda_version)
    asked = container.ContainerRequest(
        repository=values["repository"] or SAMPLE_REPOSITORY,
        image=images.pinned(image, values["image_digest"] or ""),
        http_port=values["http_port"] or container.HTTP_PORT,
        grpc_port=values["grpc_port"] or container.GRPC_PORT,
        shm_size=values["shm_size"] or "1g",
    )
    names = tuple(f"neuron{number}" for number in range(gpu_bus.neuron_devices(machine)))
    found = container.Accelerators(gpus=len(driver.gpus), neuron=names, sdk=neuron.sdk(machine))
    return chosen.banner, container.plan(asked, found)


def checked(env: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    """Why the call cannot be; empty where it can."""
    is_container = text_of(env, KIND_KEY) == "container"
    folder = users_folder(env)
    try:
        if is_container:
            container_plan(values, folder)
        else:
            arguments(values, folder)
            if values["machine"]:
                return "--machine: a recorded machine can be planned for, with _container"
    except (selection.MachineError, ValueError) as error:
        return str(error)
    return ""


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """Refuses what cannot be; a run is planned first, so that nothing is installed for it then."""
    why = checked(i["env"], i["values"])
    return {"return": 1, "error": why} if why else {"return": 0}


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: writes the arguments of the server; a plan is printed, and nothing is started."""
    env = i["env"]
    refused = plan(i)
    if refused["return"]:
        return refused
    folder = users_folder(env)
    if text_of(env, KIND_KEY) == "container":
        banner, made = container_plan(i["values"], folder)
        i["state"]["triton_container_plan"] = made
        noted = made["notes"] if isinstance(made["notes"], list) else []
        lines = [
            banner,
            "plan only, the server is not started:",
            f"  {made['line']}",
            f"  {made['stop']}",
            *(f"note: {one}" for one in noted),
        ]
        print("\n".join(line for line in lines if line))
        return {"return": 0, "skip": True}
    words = [
        f"--server={env['CM_TRITON_SERVER_FILE']}",
        f"--repository={env['CM_TRITON_MODEL_REPOSITORY']}",
        *arguments(i["values"], folder / "triton-server.log"),
    ]
    if i["values"]["plan"]:
        print(
            "plan only, the server is not started:\n  python3 -m crowdperf.harness.backends.triton.serve "
            + " ".join(words)
        )
        return {"return": 0, "skip": True}
    env["CM_TMP_TRITON_SERVE_WORDS"] = "\n".join(words)
    env["CM_TMP_TRITON_SERVE_OWNER"] = str(os.getpid())
    return {"return": 0}
