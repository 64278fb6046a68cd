"""Whether memory ran out while a program ran, as far as Linux tells: its counters of killed processes, and limits.

A program that the kernel ends for want of memory dies by SIGKILL without a word of its own. ``oom_kill`` in
``/proc/vmstat`` counts such ends on the machine, the same word in ``memory.events`` those of a control group, which is
what a container has (https://docs.kernel.org/admin-guide/cgroup-v2.html, read November 2026).
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")
UNLIMITED_BYTES = 1 << 60
"""Control groups of version 1 write "no limit" as a number near 2^63."""


class MemoryFacts(NamedTuple):
    """What is known of the memory after a program was killed.

    ``is_exhausted`` tells whether the kernel killed something for want of memory meanwhile; None where nobody counts.
    ``lines`` say it for people, with limits and sizes.
    """

    is_exhausted: bool | None = None
    lines: tuple[str, ...] = ()


class MemoryWatch:
    """Made before a program starts; ``facts`` says afterwards what happened to the memory meanwhile."""

    def __init__(self, proc: Path = PROC, cgroups: Path = CGROUPS) -> None:
        self._proc = proc
        self._cgroups = cgroups
        self._kills = self._kill_counts()

    def facts(self) -> MemoryFacts:
        """What is known now."""
        before, after = self._kills, self._kill_counts()
        is_exhausted = any(after[place] > before.get(place, 0) for place in after) if after else None
        lines = []
        if is_exhausted:
            lines.append("memory: the kernel killed a process for want of memory meanwhile (its oom_kill counter grew)")
        elif is_exhausted is False:
            lines.append("memory: the kernel counted no process killed for want of memory meanwhile (oom_kill)")
        limits = self._limits()
        figures = [f"{size_words(limits[-1])} is the limit of this control group"] if limits else []
        machine = meminfo(read(self._proc / "meminfo"))
        if "MemTotal" in machine:
            figures.append(f"{size_words(machine['MemTotal'])} in this machine")
        if "MemAvailable" in machine:
            figures.append(f"{size_words(machine['MemAvailable'])} free now, after its end")
        peak = largest_child_bytes()
        if peak:
            figures.append(f"{size_words(peak)} was the most that one program of this run held")
        if figures:
            lines.append("memory: " + ", ".join(figures))
        return MemoryFacts(is_exhausted, tuple(lines))

    def _kill_counts(self) -> dict[str, int]:
        files = [self._proc / "vmstat", *(folder / "memory.events" for folder in self._groups())]
        counts = {str(file): counter(read(file), "oom_kill") for file in files}
        return {place: count for place, count in counts.items() if count is not None}

    def _groups(self) -> list[Path]:
        """The control group of this process; inside a container its files stand at the top."""
        return group_folders(read(self._proc / "self" / "cgroup"), self._cgroups)

    def _limits(self) -> list[int]:
        """The limits that hold, in bytes, the smallest last."""
        found = []
        for folder in self._groups():
            for own in (folder, *folder.parents):
                for name in ("memory.max", "memory.limit_in_bytes"):
                    text = read(own / name).strip()
                    if text.isdigit() and int(text) < UNLIMITED_BYTES:
                        found.append(int(text))
                if own == self._cgroups:
                    break
        return sorted(found, reverse=True)


def read(path: Path) -> str:
    """The text of a file of the kernel; empty when it has none."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def counter(text: str, name: str) -> int | None:
    """The value of the line ``name value``, or None when there is none."""
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        if key == name and value.strip().isdigit():
            return int(value)
    return None


def meminfo(text: str) -> dict[str, int]:
    """The sizes of /proc/meminfo in bytes, by name."""
    rows = (line.partition(":") for line in text.splitlines())
    values = {name: value.split() for name, _, value in rows}
    return {name: int(words[0]) * 1024 for name, words in values.items() if words and words[0].isdigit()}


def group_folders(text: str, root: Path) -> list[Path]:
    """The folders that hold the memory files of the control group that ``/proc/self/cgroup`` names."""
    found = [root]
    for line in text.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            found.append(root / path.lstrip("/"))
        elif "memory" in controllers.split(","):
            found += [root / "memory", root / "memory" / path.lstrip("/")]
    return list(dict.fromkeys(found))


def size_words(size_bytes: int) -> str:
    """A size in units of 10^9 or 10^6 bytes: ``1.5 GB``, ``26 MB``."""
    return f"{size_bytes / 1e9:.1f} GB" if size_bytes >= 1e9 else f"{size_bytes / 1e6:.0f} MB"


def largest_child_bytes() -> int:
    """The most memory that any program which this process started and saw end has held at once; 0 if unknown."""
    try:
        import resource  # here, because only failures ask
    except ImportError:
        return 0
    import sys

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit
