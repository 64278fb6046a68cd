"""Hooks of serve-mlperf-model: check the call; with `_container` print the command for NVIDIA's image instead.

The server is started and ended by `python3 -m crowdperf.harness.backends.triton.serve` (run.sh).
"""

from __future__ import annotations

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine; put it first with: cm use crowdperf:script")

import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crowdperf.call.values import text_of
from crowdperf.kit.numbers import whole_number
from crowdperf.kit.user_paths import users_folder
from crowdperf.machine import choose, gpu_bus, images, neuron, nvidia
from crowdperf.rules.backends import BACKENDS

from . import container

PORTS = ("CM_TRITON_SERVE_HTTP_PORT", "CM_TRITON_SERVE_GRPC_PORT")
SECONDS_KEY = "CM_TRITON_SERVE_SECONDS"
KIND_KEY, IS_PLAN_KEY, MACHINE_KEY = "CM_TRITON_SERVE_KIND", "CM_TRITON_SERVE_IS_PLAN", "CM_RECORDED_MACHINE"
REPOSITORY_KEY = "CM_TRITON_SERVE_REPOSITORY"
SAMPLE_REPOSITORY = "/path/to/repository"


def port_of(env: Mapping[str, Any], key: str) -> int:
    """The port in an env key, 0 for none. Raises container.PlanError."""
    text = text_of(env, key)
    if not text:
        return 0
    port = whole_number(text)
    if port is None or not 1024 <= port <= 65535:
        name = key.removeprefix("CM_TRITON_SERVE_").lower()
        raise container.PlanError(f"--{name}={text!r}; allowed: a whole number from 1024 to 65535")
    return port


def arguments(env: Mapping[str, Any], log: Path) -> list[str]:
    """The words for crowdperf.harness.backends.triton.serve. Raises container.PlanError for a value that cannot be."""
    http_port, grpc_port = (port_of(env, key) for key in PORTS)
    if bool(http_port) != bool(grpc_port) or (http_port and http_port == grpc_port):
        raise container.PlanError("--http_port and --grpc_port: give two different ones, or neither")
    words = [f"--http_port={http_port}", f"--grpc_port={grpc_port}"] if http_port else []
    if seconds := text_of(env, SECONDS_KEY):
        if not re.fullmatch(r"\d+(\.\d+)?", seconds) or not 0 < float(seconds) < math.inf:
            raise container.PlanError(f"--seconds={seconds!r}; allowed: a number above 0")
        words.append(f"--seconds={seconds}")
    return [*words, f"--log={log}"]


def container_plan(env: Mapping[str, Any], folder: Path) -> tuple[str, dict[str, object]]:
    """The banner of a recorded machine, and the plan. Raises ValueError and
    choose.MachineError."""
    chosen = choose.choose(text_of(env, MACHINE_KEY), folder)
    machine, usual = chosen.machine, BACKENDS["triton"].image
    driver = nvidia.look(machine)
    image = text_of(env, "CM_TRITON_SERVE_IMAGE") or container.default_image(usual, driver.cuda_version)
    asked = container.Asked(
        repository=text_of(env, REPOSITORY_KEY) or SAMPLE_REPOSITORY,
        image=images.pinned(image, text_of(env, "CM_TRITON_SERVE_IMAGE_DIGEST")),
        http_port=port_of(env, PORTS[0]) or container.HTTP_PORT,
        grpc_port=port_of(env, PORTS[1]) or container.GRPC_PORT,
        shm_size=text_of(env, "CM_TRITON_SERVE_SHM_SIZE") or "1g",
    )
    names = tuple(f"neuron{number}" for number in range(gpu_bus.neuron_devices(machine)))
    found = container.Accelerators(gpus=len(driver.gpus), neuron=names, sdk=neuron.sdk(machine))
    return chosen.banner, container.plan(asked, found)


def checked(env: Mapping[str, Any]) -> str:
    """Why the call cannot be; empty where it can."""
    is_container = text_of(env, KIND_KEY) == "container"
    folder = users_folder(env)
    try:
        if is_container:
            container_plan(env, folder)
        else:
            arguments(env, folder)
            if text_of(env, MACHINE_KEY):
                return "--machine: a recorded machine can be planned for, with _container"
    except (choose.MachineError, ValueError) as error:
        return str(error)
    return ""


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """Refuses what cannot be; a run is planned first, so that nothing is installed for it then."""
    why = checked(i["env"])
    return {"return": 1, "error": why} if why else {"return": 0}


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: writes the arguments of the server; a plan is printed, and nothing is started."""
    env = i["env"]
    refused = plan(i)
    if refused["return"]:
        return refused
    folder = users_folder(env)
    if text_of(env, KIND_KEY) == "container":
        banner, made = container_plan(env, folder)
        i["state"]["triton_container_plan"] = made
        noted = made["notes"] if isinstance(made["notes"], list) else []
        lines = [
            banner,
            "plan only, nothing is started:",
            f"  {made['line']}",
            f"  {made['stop']}",
            *(f"note: {one}" for one in noted),
        ]
        print("\n".join(line for line in lines if line))
        return {"return": 0, "skip": True}
    words = [
        f"--server={env['CM_TRITON_SERVER_FILE']}",
        f"--repository={env['CM_TRITON_MODEL_REPOSITORY']}",
        *arguments(env, folder / "triton-server.log"),
    ]
    if text_of(env, IS_PLAN_KEY):
        print("plan only, nothing is started:\n  python3 -m crowdperf.harness.backends.triton.serve " + " ".join(words))
        return {"return": 0, "skip": True}
    env["CM_TMP_TRITON_SERVE_WORDS"] = "\n".join(words)
    env["CM_TMP_TRITON_SERVE_OWNER"] = str(os.getpid())
    return {"return": 0}
