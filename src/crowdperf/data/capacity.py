"""Says whether a machine has the disk and the memory for something large, before it is begun."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GB = 10**9
_MEMINFO = Path("/proc/meminfo")


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Bytes of free disk and of memory that can be had; memory is None where the system does not tell."""

    disk_bytes: int
    memory_bytes: int | None


def free_room(folder: Path, meminfo: Path = _MEMINFO) -> Room:
    """Return what is free on the disk of `folder` and in this machine's memory."""
    try:
        lines = meminfo.read_text(encoding="ascii").splitlines()
    except OSError:
        lines = []
    kilobytes = [int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    return Room(disk_bytes=shutil.disk_usage(folder).free, memory_bytes=kilobytes[0] * 1024 if kilobytes else None)


def shortage_here(what: str, needed: Room, i: Mapping[str, Any]) -> str | None:
    """Return what `shortage` says of this machine and the disk of the cache; None in a plan for a recorded machine.

    `i` is the dict of a hook.
    """
    if i["env"].get("CM_RECORDED_MACHINE"):
        return None
    cache = Path(getattr(i.get("automation"), "cache_path", "") or Path.cwd())
    existing = next(folder for folder in (cache, *cache.parents) if folder.is_dir())
    return shortage(what, needed, free_room(existing))


def shortage(what: str, needed: Room, free: Room) -> str | None:
    """Return the text that refuses `what`, with each figure, or None when there is room."""
    parts = []
    if needed.disk_bytes > free.disk_bytes:
        parts.append(f"{needed.disk_bytes / GB:.0f} GB of disk ({free.disk_bytes / GB:.0f} GB are free)")
    if needed.memory_bytes is not None and free.memory_bytes is not None and needed.memory_bytes > free.memory_bytes:
        parts.append(f"{needed.memory_bytes / GB:.0f} GB of memory ({free.memory_bytes / GB:.0f} GB available)")
    return f"{what} needs {' and '.join(parts)}" if parts else None
