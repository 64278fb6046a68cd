"""Tiny recorded machines for the tests of recipes that look after a machine; also those of ``tests/machine``."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crowdperf.machine import nvidia, probe

MACHINES = Path(__file__).resolve().parents[1] / "machine" / "fixtures"
UBUNTU = 'ID=ubuntu\nID_LIKE=debian\nVERSION_ID="22.04"\nPRETTY_NAME="Ubuntu 22.04.3 LTS"\n'
APT, SUDO = "/usr/bin/apt-get", "/usr/bin/sudo"
BENCH = {"name": "bench", "uid": 1000, "groups": ["bench", "sudo"]}
QUERY = " ".join(nvidia.QUERY)


def build(folder: Path, files: dict[str, str] | None = None, **facts: Any) -> probe.Machine:
    """A recorded machine: an Ubuntu with apt and sudo for the user bench, with these files and keys of machine.json."""
    known = {"note": "made up by a test", "user": BENCH, "environment": {"HOME": "/home/bench"}, **facts}
    return bare(folder, {"/etc/os-release": UBUNTU, APT: "", SUDO: "", **(files or {})}, **known)


def bare(folder: Path, files: Mapping[str, str | bytes] | None = None, **facts: Any) -> probe.Machine:
    """A recorded machine with nothing but these files and keys of machine.json."""
    (folder / "root").mkdir(parents=True, exist_ok=True)
    for path, content in (files or {}).items():
        place = folder / "root" / path.strip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
    (folder / "machine.json").write_text(json.dumps(facts), encoding="utf-8")
    return probe.recorded(folder)


def shipped(name: str) -> probe.Machine:
    """One of the recorded machines of the repository."""
    return probe.recorded(MACHINES / name)


def smi(version: str, *names: str, mode: str = "[N/A]") -> dict[str, Any]:
    """What nvidia-smi of a driver answers that shows these GPUs, as commands of machine.json."""
    rows = "".join(
        f"{index}, GPU-{index}, {name}, 40960, {version}, 8.0, {mode}, 00000000:0{index}:00.0\n"
        for index, name in enumerate(names)
    )
    listing = "".join(f"GPU {index}: {name} (UUID: GPU-{index})\n" for index, name in enumerate(names))
    header = f"| NVIDIA-SMI {version}   Driver Version: {version}   CUDA Version: 12.2     |\n"
    return {QUERY: {"stdout": rows}, "nvidia-smi": {"stdout": header}, "nvidia-smi -L": {"stdout": listing}}


def every_shipped() -> list[str]:
    """The names of all recorded machines of the repository."""
    return sorted(path.parent.name for path in MACHINES.glob("*/machine.json"))


def t4(folder: Path, **facts: Any) -> probe.Machine:
    """An Ubuntu with one T4 and driver 535.161.08."""
    module = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.08  Sat Feb 24 01:24:51 UTC 2024\n"
    files = {"/usr/bin/nvidia-smi": "", nvidia.PROC_VERSION: module, "/proc/bus/pci/devices": "0300\t10de1eb8\t0\n"}
    commands = {**smi("535.161.08", "Tesla T4"), **facts.pop("commands", {})}
    return build(folder, {**files, **facts.pop("files", {})}, commands=commands, **facts)
