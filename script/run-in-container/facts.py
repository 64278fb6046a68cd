"""What a container plan needs to know of the machine, its user and this checkout; this module looks only."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from crowdperf.machine import gpu_bus, nvidia
from crowdperf.machine.probe import Machine

from .image import Account, Source

NVIDIA_DOCKER = "/usr/bin/nvidia-docker"
"""Where NVIDIA's wrapper lies; the Makefile of NVIDIA's MLPerf v0.7 tree looks there."""
MAKEFILE_START = "# Made by crowdperf (cm run script --tags=run,mlperf,make,_init)"
"""How the Makefile of a workspace begins (recipe run-mlperf-make)."""
CDI = ("/etc/cdi", "/var/run/cdi")
"""Folders of CDI specifications (container-device-interface, 2025)."""
ROOTS_STAND_IN = 1000
"""The user in the container when the caller is root, because it must not be root there."""


class Facts(NamedTuple):
    """The machine and its user; ``engines`` as get-docker's state lists them, ``token`` tells containers apart,
    ``neuron`` has the Neuron devices; ``workspace`` is the user's current folder where it is a workspace."""

    account: Account
    is_root: bool
    home: str
    cm_home: str
    host_cache: str
    workspace: str
    source: Source
    engines: tuple[Mapping[str, Any], ...]
    has_gpu: bool
    neuron: tuple[str, ...]
    has_nvidia_docker: bool
    has_cdi: bool
    token: str


def look(machine: Machine, engines: list[Mapping[str, Any]], checkout: Source, folder: Path, token: str) -> Facts:
    """The facts of a machine; ``checkout`` is this repository as it is here, ``folder`` the user's current folder."""
    user, outer = machine.user, machine.environment
    gid = user.uid if machine.is_recorded else os.getgid()
    name = user.name if re.fullmatch(r"[a-z_][a-z0-9_-]{0,30}", user.name) and user.uid else "mlperf"
    is_root = user.uid == 0
    home = outer.get("HOME", "")
    cm_home = outer.get("CM_REPOS", "") or outer.get("CM_HOME", "") or (f"{home}/CM" if home else "")
    return Facts(
        account=Account(name, ROOTS_STAND_IN, ROOTS_STAND_IN) if is_root else Account(name, user.uid, gid or user.uid),
        is_root=is_root,
        home=home,
        cm_home=cm_home,
        host_cache=outer.get("CROWDPERF_CACHE", "") or (f"{cm_home}/local/cache" if cm_home else ""),
        workspace=str(folder) if _is_workspace(folder) else "",
        source=checkout,
        engines=tuple(engines),
        has_gpu=bool(nvidia.look(machine).gpus),
        neuron=tuple(f"/dev/neuron{number}" for number in range(gpu_bus.neuron_devices(machine))),
        has_nvidia_docker=machine.is_file(NVIDIA_DOCKER),
        has_cdi=any(name.endswith((".yaml", ".json")) for folder in CDI for name in machine.names(folder)),
        token=token,
    )


def _is_workspace(folder: Path) -> bool:
    try:
        with open(folder / "Makefile", encoding="utf-8", errors="replace") as stream:
            return stream.readline().startswith(MAKEFILE_START)
    except OSError:
        return False


def source(machine: Machine, folder: str) -> Source:
    """The commit of a git checkout; empty texts where there is none."""
    git = ("git", "-c", f"safe.directory={folder}", "-C", folder)
    head = machine.run((*git, "rev-parse", "--verify", "HEAD")).stdout.strip()
    if not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", head):
        return Source(folder, "")
    changed = machine.run((*git, "status", "--porcelain", "--untracked-files=normal"))
    return Source(folder, head, len(changed.stdout.splitlines()))
