"""Reads what the recipe detect-cpu needs from the system: lscpu, /proc, /sys, the cgroup, the mounted disks.

Every function gives "" or 0 or () where a source is missing; what to make of that is decided in the other modules.
"""

import os
import platform
from collections.abc import Mapping
from pathlib import Path

from crowdperf.machine.cpu import cpu_limit, memory_bytes, memory_limit_bytes
from crowdperf.machine.probe import Machine

from . import limits

SYS_CPU = Path("/sys/devices/system/cpu")
SYS_NODE = Path("/sys/devices/system/node")


def read_text(path: str | Path) -> str:
    """The text of a file, "" when it cannot be read."""
    return Machine().read_text(str(path))


def machine() -> str:
    """The kind of processor as `uname -m` says it."""
    return platform.machine()


def lscpu_json() -> str:
    """The output of `lscpu -J`, "" without lscpu or when it fails."""
    return _output(["lscpu", "-J"])


def sysctl_values() -> Mapping[str, str]:
    """macOS: the values of `sysctl hw machdep.cpu` by name. Never run on a Mac."""
    text = _output(["sysctl", "hw", "machdep.cpu"])
    pairs = (line.partition(":") for line in text.splitlines())
    return {name.strip(): value.strip() for name, colon, value in pairs if colon}


def core_cpu_lists() -> tuple[str, ...]:
    """For each logical CPU that is on line, the list of CPUs of its physical core, such as "0,64"."""
    lists: list[str] = []
    for folder in sorted(SYS_CPU.glob("cpu[0-9]*")):
        topology = folder / "topology"
        text = read_text(topology / "core_cpus_list") or read_text(topology / "thread_siblings_list")
        if text.strip():
            lists.append(text.strip())
    return tuple(lists)


def numa_node_count() -> int:
    """The number of NUMA nodes, 0 when the kernel does not tell."""
    return sum(1 for _ in SYS_NODE.glob("node[0-9]*"))


def cache_size_bytes() -> Mapping[str, int]:
    """The size of all caches of a kind together, in bytes, by name: L1D, L1I, L2, L3."""
    sizes: dict[str, int] = {}
    seen: set[tuple[str, str]] = set()
    for folder in sorted(SYS_CPU.glob("cpu[0-9]*/cache/index[0-9]*")):
        kind = {"Data": "D", "Instruction": "I"}.get(read_text(folder / "type").strip(), "")
        name = f"L{read_text(folder / 'level').strip()}{kind}"
        shared_by = read_text(folder / "shared_cpu_list").strip()
        size = limits.parse_size_bytes(read_text(folder / "size"))
        if (name, shared_by) in seen or not size:
            continue
        seen.add((name, shared_by))
        sizes[name] = sizes.get(name, 0) + size
    return sizes


def capacity() -> limits.Capacity:
    """Memory, disk and the limits of the control group that this process runs in."""
    here = Machine()
    return limits.Capacity(
        memory_bytes=memory_bytes(here) or int(sysctl_values().get("hw.memsize", "0") or "0"),
        disk_bytes=_disk_bytes(),
        usable_cpus=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 0,
        cgroup_cpu_limit=cpu_limit(here),
        cgroup_memory_limit_bytes=memory_limit_bytes(here) or None,
    )


def _output(command: list[str]) -> str:
    ran = Machine().run(command)
    return ran.stdout if ran.code == 0 else ""


def _disk_bytes() -> int:
    """The size of all local disks that are mounted, each device once."""
    total = 0
    seen: set[int] = set()
    for mount_point in limits.parse_disk_mounts(read_text("/proc/self/mounts")) or ("/",):
        try:
            device = Path(mount_point).stat().st_dev
            size = os.statvfs(mount_point)
        except OSError:
            continue
        if device not in seen:
            seen.add(device)
            total += size.f_blocks * size.f_frsize
    return total
