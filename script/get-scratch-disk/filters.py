"""Rules of the recipe get-scratch-disk: filters in VirtualClient's words, and which file system is taken.

Words and sizes as in microsoft/VirtualClient, DiskFilters.cs and TextParsingExtensions (00ca4c5b): ``&`` joins several,
units count in 1024 (its tests: ``1gb`` is 1073741824), ``SizeGreaterThan`` admits its own value, ``SizeEqualTo`` has
1 % of play. One thing differs: sizes are those of the space that is free, because nothing is formatted here.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from .mounts import FileSystem

WORDS = (
    "none",
    "BiggestSize",
    "SmallestSize",
    "SizeGreaterThan:1000gb",
    "SizeLessThan:4tb",
    "SizeEqualTo:1tb",
    "OSDisk",
    "OSDisk:false",
    "DiskPath:/dev/sdb,/mnt/data",
    "AccessPath:data",
)
UNITS = {"": 1, "b": 1, "kb": 1024, "mb": 1024**2, "gb": 1024**3, "tb": 1024**4, "pb": 1024**5}
PLAY = 0.01
_KNOWN = {re.split(r":", word)[0].lower(): word for word in WORDS}
_SIZED = ("sizegreaterthan", "sizelessthan", "sizeequalto")
_NAMED = ("diskpath", "accesspath")
_UNMOUNTED_ONLY = ("includeoffline", "diskindex", "logical")


class FilterError(Exception):
    """A filter that cannot be read; the text says what is allowed."""


class Filter(NamedTuple):
    """One condition: its name in lower case, its size in bytes where it has one, else its text."""

    name: str
    text: str = ""
    size_bytes: int = 0


class RatedFileSystem(NamedTuple):
    """A file system, and why it was not taken; empty for the one that was, and for those that would have done."""

    file_system: FileSystem
    against: str


def parse(text: str) -> tuple[Filter, ...]:
    """The conditions of a filter string. Raises FilterError."""
    return tuple(_one(part.strip()) for part in text.split("&") if part.strip())


def _one(part: str) -> Filter:
    name, _, value = part.partition(":")
    name, value = name.strip().lower(), value.strip()
    if name in _UNMOUNTED_ONLY:
        raise FilterError(
            f"the filter {part!r} is about disks that are not mounted, but here only mounted ones count\n{_ALLOWED}"
        )
    if name not in _KNOWN:
        raise FilterError(f"the filter {part!r} is not known\n{_ALLOWED}")
    if name in _SIZED:
        return Filter(name, value, size(value))
    if name in _NAMED and not value:
        raise FilterError(f"the filter {part!r} needs a path behind ':'\n{_ALLOWED}")
    if name == "osdisk" and value and value.lower() not in ("true", "false"):
        raise FilterError(f"the filter {part!r} accepts true or false\n{_ALLOWED}")
    return Filter(name, value.lower() if name == "osdisk" else value)


_ALLOWED = f"  allowed: {', '.join(WORDS)}, several joined by '&'\n  hint: --filter=SizeGreaterThan:1000gb"


def size(text: str) -> int:
    """A size such as ``1000gb`` or ``1.5tb`` in bytes. Raises FilterError."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text.strip().lower())
    if not found or found[2] not in UNITS:
        raise FilterError(f"{text!r} is not a size\n  allowed: a number with one of {', '.join(filter(None, UNITS))}")
    return int(float(found[1]) * UNITS[found[2]])


def choose(
    found: Sequence[FileSystem], filters: Sequence[Filter], *, with_os_disk: bool
) -> tuple[FileSystem | None, tuple[RatedFileSystem, ...]]:
    """The file system with the most free space that fits (of equals the first by name), and a verdict on each.

    The operating system's disk counts only ``with_os_disk`` or where a filter speaks of it.
    """
    judged = {one: one.against for one in found}
    asks_for_os = any(one.name == "osdisk" for one in filters)
    for one in found:
        if not judged[one] and one.is_os and not with_os_disk and not asks_for_os:
            judged[one] = "the operating system is on its disk"
    for condition in filters:
        left = [one for one in found if not judged[one]]
        for one in left:
            judged[one] = _misfit(one, condition, left)
    left = sorted((one for one in found if not judged[one]), key=lambda one: (-one.free_bytes, one.mount_point))
    return (left[0] if left else None), tuple(RatedFileSystem(one, judged[one]) for one in found)


def _misfit(one: FileSystem, condition: Filter, left: Sequence[FileSystem]) -> str:
    free, wanted = one.free_bytes, condition.size_bytes
    if condition.name == "biggestsize" and free < max(each.free_bytes for each in left):
        return "another has more free space"
    if condition.name == "smallestsize" and free > min(each.free_bytes for each in left):
        return "another has less free space"
    if condition.name == "sizegreaterthan" and free < wanted:
        return f"less than {condition.text} is free"
    if condition.name == "sizelessthan" and free > wanted:
        return f"more than {condition.text} is free"
    if condition.name == "sizeequalto" and abs(free - wanted) > wanted * PLAY:
        return f"not {condition.text} are free"
    if condition.name == "osdisk" and one.is_os is (condition.text == "false"):
        return "the operating system is on its disk" if one.is_os else "the operating system is not on its disk"
    if condition.name == "diskpath" and not _is_named(one, condition.text):
        return f"it is not one of {condition.text}"
    if condition.name == "accesspath" and condition.text.lower() not in one.mount_point.lower():
        return f"its mount point has no {condition.text!r} in it"
    return ""


def _is_named(one: FileSystem, text: str) -> bool:
    names = {part.strip().rstrip("/") or "/" for part in text.split(",") if part.strip()}
    return bool(names & {one.device, one.mount_point, *(f"/dev/{disk}" for disk in one.disk.split())})
