"""Compares a submission with what a repository holds: what a push adds, changes and removes. Nothing has effects.

Removed are files of a scenario that the submission holds too (a run that was repeated), nothing else: volunteers share
one submitter, and nobody has the results of all. Only `prune` removes the rest below <division>/<submitter>.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .content import Content, TreeFile, scenario_folder


class Blob(NamedTuple):
    """What git has at a path: the kind of the file and the name of its content."""

    mode: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What a push does; `stays` counts files of the submitter that are not in the submission."""

    added: tuple[TreeFile, ...]
    changed: tuple[TreeFile, ...]
    removed: tuple[str, ...]
    same: int
    stays: int

    @property
    def paths(self) -> frozenset[str]:
        """Every path that becomes another."""
        return frozenset((*(file.path for file in (*self.added, *self.changed)), *self.removed))

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.added or self.changed or self.removed)


def compare(content: Content, blobs: Mapping[str, Blob], there: Mapping[str, Blob], *, is_pruning: bool) -> Changes:
    """Return what makes `there` (paths below the submitter's folders) hold the submission, whose files are `blobs`."""
    scenarios = content.scenario_folders
    others = sorted(set(there) - set(blobs))
    removed = [path for path in others if is_pruning or scenario_folder(path) in scenarios]
    return Changes(
        added=tuple(file for file in content.files if file.path not in there),
        changed=tuple(file for file in content.files if there.get(file.path, blobs[file.path]) != blobs[file.path]),
        removed=tuple(removed),
        same=sum(there.get(path) == blob for path, blob in blobs.items()),
        stays=len(others) - len(removed),
    )


def conflicts(changes: Changes, before: Mapping[str, Blob], now: Mapping[str, Blob]) -> tuple[str, ...]:
    """Return the paths that others changed between `before` and `now` and that the push would change again."""
    return tuple(path for path in sorted(changes.paths) if before.get(path) != now.get(path))


def size_text(size_bytes: int) -> str:
    """Return a size for people."""
    size = float(size_bytes)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


_SOURCES = re.compile(r"([^/]+/[^/]+/(?:src|code)/[^/]+/[^/]+/).+")


def _shown_path(path: str) -> str:
    """The path of a file; for a program's sources, of which there are hundreds, that of the folder."""
    found = _SOURCES.fullmatch(path)
    return found[1] if found else path


def _line(path: str, sign: str, sizes: Sequence[int]) -> str:
    count = f" ({len(sizes)} file{'' if len(sizes) == 1 else 's'})" if path.endswith("/") else ""
    return f"  {sign} {path}{count}" + (f"  {size_text(sum(sizes))}" if sign != "-" else "")


def render(changes: Changes, most: int) -> list[str]:
    """Return the list of files (`+` new, `~` changed, `-` removed; at most `most`) and a line of sums."""
    files = [
        *((file.path, "+", file.size_bytes) for file in changes.added),
        *((file.path, "~", file.size_bytes) for file in changes.changed),
        *((path, "-", 0) for path in changes.removed),
    ]
    groups: dict[tuple[str, str], list[int]] = {}
    for path, sign, size_bytes in sorted(files):
        groups.setdefault((_shown_path(path), sign), []).append(size_bytes)
    lines = [_line(path, sign, sizes) for (path, sign), sizes in groups.items()]
    if len(lines) > most:
        lines = [*lines[:most], f"  ... and {len(lines) - most} more (--out=json lists all)"]
    sums = [
        f"{len(changes.added)} added ({size_text(_total(changes.added))})",
        f"{len(changes.changed)} changed ({size_text(_total(changes.changed))})",
        f"{len(changes.removed)} removed",
        f"{changes.same} there already",
    ]
    stays = f", {changes.stays} other file(s) of the submitter stay" if changes.stays else ""
    return [*lines, f"Files: {', '.join(sums)}{stays}"]


def _total(files: Iterable[TreeFile]) -> int:
    return sum(file.size_bytes for file in files)
