"""What the machine of a run is: processor, memory and GPUs, for result.json and metadata.json. Never a host's name."""

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from crowdperf.logs.run_log import Json
from crowdperf.logs.system_names import machine_name
from crowdperf.rules.backends import BACKENDS

_MEGABYTE = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """One GPU of a run, or the MIG slice that it used; `index` is the driver's own, of the whole GPU.

    memory_bytes: of the slice, where it is one. mig_profile: of the slice ("1g.10gb"), empty for a whole GPU;
    mig_parent: the name of the GPU that it is a part of.
    """

    index: int
    name: str
    memory_bytes: int
    mig_profile: str = ""
    mig_parent: str = ""

    def record(self) -> dict[str, Json]:
        """Return what result.json says about it; `mig` only of a slice."""
        mig: dict[str, Json] = {"mig": {"profile": self.mig_profile, "parent": self.mig_parent}}
        facts: dict[str, Json] = {"index": self.index, "name": self.name, "memory_bytes": self.memory_bytes}
        return facts | mig if self.mig_profile else facts


_DETECTED_NAME, _DETECTED_SOCKETS = "CM_HOST_CPU_MODEL_NAME", "CM_HOST_CPU_SOCKETS"
"""What the recipe detect-cpu found, by lscpu: on Arm, /proc/cpuinfo has numbers in the place of names."""


def processor_name(cpuinfo: str, environment: Mapping[str, str]) -> str:
    """Return the processor's name as the recipe detect-cpu found it, else as the text of /proc/cpuinfo has it, else the
    architecture."""
    if name := " ".join(environment.get(_DETECTED_NAME, "").split()):
        return name
    for line in cpuinfo.splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model", "cpu model") and value.strip():
            return " ".join(value.split())
    return platform.machine()


def socket_count(cpuinfo: str, environment: Mapping[str, str]) -> int | None:
    """Return how many processors the machine has, as MLPerf counts them: the sockets. None where nothing says it."""
    detected = environment.get(_DETECTED_SOCKETS, "")
    places = {line for line in cpuinfo.splitlines() if line.startswith("physical id")}
    return int(detected) if detected.isascii() and detected.isdigit() and int(detected) else len(places) or None


def memory_value_bytes(meminfo: str, name: str) -> int | None:
    """Return a value of the text of /proc/meminfo ("MemTotal", "MemAvailable"), None where it has no such line."""
    for line in meminfo.splitlines():
        key, _, value = line.partition(":")
        if key == name and value.split()[:1] and value.split()[0].isdigit():
            return int(value.split()[0]) * 1024
    return None


def read_text(path: Path) -> str:
    """Return the text of a file of the system; empty where the system has none."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def free_memory_bytes() -> int | None:
    """Return the memory that programs can still have; None where the system does not tell."""
    return memory_value_bytes(read_text(Path("/proc/meminfo")), "MemAvailable")


def machine_facts(gpus: Sequence[GpuFacts], proc: Path = Path("/proc")) -> dict[str, Json]:
    """Return what result.json says about the machine; memory is None where the system does not tell.

    gpus: those that the run used, however many the machine has.
    """
    cpuinfo = read_text(proc / "cpuinfo")
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {
        "processor": processor_name(cpuinfo, os.environ),
        "socket_count": socket_count(cpuinfo, os.environ),
        "core_count": os.cpu_count() or 1,
        "usable_core_count": usable,
        "memory_bytes": memory_value_bytes(read_text(proc / "meminfo"), "MemTotal"),
        "operating_system": f"{platform.system()} {platform.release()}",
        "gpus": [gpu.record() for gpu in gpus],
    }


def system_name(machine: Mapping[str, Json], backend: str) -> str:
    """Return a name of the kind that NVIDIA gives systems: `H100-SXM5x8_TRT`; here of the GPUs or the processor;
    unknown for a server that a client asks.

    Letters, digits, dot, hyphen and underscore only, because it names folders there.
    """
    known = BACKENDS.get(backend)
    seen = "" if known is not None and known.is_remote else machine_name(machine)
    return f"{seen or 'unknownx1'}_{(known.short_name if known is not None else '') or backend}"
