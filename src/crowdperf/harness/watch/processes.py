"""Reads which processes there are, who started them, and the processor time they used, from /proc/PID/stat."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from crowdperf.harness.watch.machine import read_text

_PARENT_PLACE, GROUP_PLACE, _UTIME_PLACE, _CUSTIME_PLACE = 1, 2, 11, 14
"""After the program's name (proc_stat(5)); user and system time, and those of its children, stand side by side."""

Rows: TypeAlias = "Mapping[int, Sequence[str]]"
"""Process id: what follows the program's name, which may hold blanks and brackets."""


def process_rows(proc: Path) -> Rows:
    found = {int(path.parent.name): read_text(path).rpartition(")")[2].split() for path in proc.glob("[0-9]*/stat")}
    return {number: fields for number, fields in found.items() if len(fields) > _CUSTIME_PLACE}


def family(rows: Rows, roots: Collection[int]) -> frozenset[int]:
    """Return processes and their living descendants."""
    found, size = set(roots), -1
    while size != len(found):
        size = len(found)
        found |= {number for number, fields in rows.items() if int(fields[_PARENT_PLACE]) in found}
    return frozenset(found & rows.keys())


def used_ticks(rows: Rows, numbers: Collection[int]) -> int:
    """Return the clock ticks of processes, with those of the children that they have waited for: none is lost or
    counted twice when one ends."""
    times = slice(_UTIME_PLACE, _CUSTIME_PLACE + 1)
    return sum(int(word) for number in numbers for word in rows[number][times])
