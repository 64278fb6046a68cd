"""What the machine of a run is: processor, memory and GPUs, for result.json and metadata.json. Never a host's name."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlperf_results.backends import BACKENDS
from mlperf_results.logs import Json

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


def processor_name(cpuinfo: str) -> str:
    """Return the processor's name in the text of /proc/cpuinfo; the architecture where there is none (Arm)."""
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "Model", "cpu model") and value.strip():
            return " ".join(value.split())
    return platform.machine()


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
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {
        "processor": processor_name(read_text(proc / "cpuinfo")),
        "core_count": os.cpu_count() or 1,
        "usable_core_count": usable,
        "memory_bytes": memory_value_bytes(read_text(proc / "meminfo"), "MemTotal"),
        "operating_system": f"{platform.system()} {platform.release()}",
        "gpus": [gpu.record() for gpu in gpus],
    }


def system_name(machine: Mapping[str, Json], backend: str) -> str:
    """Return a name of the kind that NVIDIA gives systems: `H100-SXM5x8_TRT`; here of the GPUs or the processor.

    Letters, digits, dot, hyphen and underscore only, because it names folders there.
    """
    gpus = machine.get("gpus")
    names = [str(gpu["name"]) for gpu in gpus if isinstance(gpu, Mapping)] if isinstance(gpus, Sequence) else []
    first = names[0].removeprefix("NVIDIA ") if names else str(machine.get("processor", "unknown"))
    count = len(names) if names else machine.get("usable_core_count", 1)
    stem = "".join(letter if letter.isalnum() or letter in ".-" else "_" for letter in first)
    stem = "_".join(part for part in stem.split("_") if part)
    short = BACKENDS[backend].short_name if backend in BACKENDS else ""
    return f"{stem}x{count}_{short or backend}"
