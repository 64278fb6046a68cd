"""Whether memory ran out while a program ran, as far as Linux reports: its counters of killed processes, and limits.

A program that the kernel ends for lack of memory dies by SIGKILL and prints nothing. ``oom_kill`` in ``/proc/vmstat``
counts such ends on the machine, the same word in ``memory.events`` those of a control group, which is what a container
has (https://docs.kernel.org/admin-guide/cgroup-v2.html, read November 2026).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")
UNLIMITED_BYTES = 1 << 60
"""Control groups of version 1 write "no limit" as a number near 2^63."""


class MemoryFacts(NamedTuple):
    """What is known of the memory after a program was killed.

    ``is_exhausted`` is whether the kernel killed something for lack of memory while it ran; None where it does not
    count. ``lines`` say it for people, with limits and sizes.
    """

    is_exhausted: bool | None = None
    lines: tuple[str, ...] = ()


class MemoryWatch:
    """Made before a program starts; ``facts`` says afterwards what happened to the memory in between."""

    def __init__(self, proc: Path = PROC, cgroups: Path = CGROUPS) -> None:
        self._proc = proc
        self._cgroups = cgroups
        self._groups = group_folders(_read(proc / "self" / "cgroup"), cgroups)
        self._kills = self._kill_counts()

    def facts(self) -> MemoryFacts:
        """What is known now."""
        from ..rules.amounts import size_text  # here, because only failures need it

        after = self._kill_counts()
        is_exhausted = any(count > self._kills.get(file, 0) for file, count in after.items()) if after else None
        events = {
            None: (),
            True: ("memory: the kernel killed a process for lack of memory while it ran (its oom_kill counter grew)",),
            False: ("memory: the kernel counted no process killed for lack of memory while it ran (oom_kill)",),
        }
        machine = figures(_read(self._proc / "meminfo"))
        sizes = {
            "is the limit of this control group": self._limit_bytes(),
            "in this machine": machine.get("MemTotal"),
            "free now, after its end": machine.get("MemAvailable"),
            "was the most that one program of this run held": largest_child_bytes() or None,
        }
        known = [f"{size_text(size_bytes)} {words}" for words, size_bytes in sizes.items() if size_bytes is not None]
        return MemoryFacts(is_exhausted, (*events[is_exhausted], *(["memory: " + ", ".join(known)] if known else ())))

    def _kill_counts(self) -> dict[Path, int]:
        files = (self._proc / "vmstat", *(folder / "memory.events" for folder in self._groups))
        counts = {file: figures(_read(file)).get("oom_kill") for file in files}
        return {file: count for file, count in counts.items() if count is not None}

    def _limit_bytes(self) -> int | None:
        """The smallest limit of the control groups of this process and of those above them."""
        above = {parent for folder in self._groups for parent in (folder, *folder.parents)}
        groups = [folder for folder in above if folder.is_relative_to(self._cgroups)]
        texts = [_read(folder / name).strip() for folder in groups for name in ("memory.max", "memory.limit_in_bytes")]
        return min((int(text) for text in texts if text.isdigit() and int(text) < UNLIMITED_BYTES), default=None)


def _read(path: Path) -> str:
    """The text of a file of the kernel; empty when it has none."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def figures(text: str) -> dict[str, int]:
    """The numbers of lines ``name value`` or ``name: value kB`` by name, sizes in bytes."""
    rows = [line.replace(":", " ", 1).split() for line in text.splitlines()]
    units = {"kB": 1024}
    return {row[0]: int(row[1]) * units.get(row[-1], 1) for row in rows if len(row) > 1 and row[1].isdigit()}


def group_folders(text: str, root: Path) -> list[Path]:
    """The folders with the memory files of the control group that ``/proc/self/cgroup`` names; inside a container they
    are at the ``root``.
    """
    found = [root]
    for line in text.splitlines():
        number, controllers, path = [*line.split(":", 2), "", ""][:3]
        if number == "0" and not controllers:
            found.append(root / path.lstrip("/"))
        elif "memory" in controllers.split(","):
            found += [root / "memory", root / "memory" / path.lstrip("/")]
    return list(dict.fromkeys(found))


def largest_child_bytes() -> int:
    """The peak memory of the largest program that this process started and saw end; 0 if unknown."""
    try:
        import resource  # here, because only failures ask
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
