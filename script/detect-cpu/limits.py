"""Rules of the recipe detect-cpu for memory, disk and control groups: text of system files to numbers and CM's keys."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

UNIT_BYTES: Mapping[str, int] = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
# File systems that are disks though their device is not under /dev.
DISK_FILE_SYSTEMS = ("zfs", "btrfs", "overlay", "bcachefs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What a process may use here. The limits are None where none is set."""

    memory_bytes: int
    disk_bytes: int
    usable_cpus: int
    cgroup_cpu_limit: float | None
    cgroup_memory_limit_bytes: int | None


def parse_size_bytes(text: str) -> int:
    """The bytes in a size as /sys writes it ("48K"), 0 when it is not one."""
    found = re.fullmatch(r"(\d+)([KMGT]?)", text.strip())
    return int(found[1]) * UNIT_BYTES[found[2]] if found else 0


def parse_disk_mounts(text: str) -> tuple[str, ...]:
    """The mount points of local disks in the text of /proc/self/mounts."""
    points: list[str] = []
    for line in text.splitlines():
        fields = line.split()
        if len(fields) < 3:
            continue
        device, point, kind = fields[0], fields[1], fields[2]
        if kind == "squashfs":  # snap packages: read-only images, no room for anybody
            continue
        if device.startswith("/dev/") or kind in DISK_FILE_SYSTEMS:
            points.append(re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), point))
    return tuple(points)


def human_size(size_bytes: int, step: int) -> str:
    """A size as `free -h --si` (step 1000) and `df -h` (step 1024) write it: "25G", "7.8G"."""
    value, unit = float(size_bytes), ""
    for unit in ("", "K", "M", "G", "T", "P"):
        if value < step or unit == "P":
            break
        value /= step
    if not unit:
        return str(size_bytes)
    return f"{value:.1f}{unit}" if value < 10 else f"{math.floor(value + 0.5)}{unit}"


def env_of_capacity(capacity: Capacity) -> dict[str, str]:
    """CM's keys. A limit that is not set has the value ""."""
    cpu_limit = capacity.cgroup_cpu_limit
    memory_limit = capacity.cgroup_memory_limit_bytes
    return {
        "CM_HOST_MEMORY_CAPACITY": human_size(capacity.memory_bytes, 1000),
        "CM_HOST_MEMORY_CAPACITY_BYTES": str(capacity.memory_bytes),
        "CM_HOST_MEMORY_CGROUP_LIMIT_BYTES": "" if memory_limit is None else str(memory_limit),
        "CM_HOST_DISK_CAPACITY": human_size(capacity.disk_bytes, 1024),
        "CM_HOST_DISK_CAPACITY_BYTES": str(capacity.disk_bytes),
        "CM_HOST_CPU_USABLE_CPUS": str(capacity.usable_cpus),
        "CM_HOST_CPU_CGROUP_LIMIT": "" if cpu_limit is None else f"{cpu_limit:g}",
    }


def state_of_capacity(capacity: Capacity) -> dict[str, int | float | None]:
    """The same as numbers, for the state."""
    return {
        "memory_bytes": capacity.memory_bytes,
        "disk_bytes": capacity.disk_bytes,
        "usable_cpus": capacity.usable_cpus,
        "cgroup_cpu_limit": capacity.cgroup_cpu_limit,
        "cgroup_memory_limit_bytes": capacity.cgroup_memory_limit_bytes,
    }
