"""Rules of the recipe extract-file for the members of an archive: which are unpacked, under which path, which refused.

An archive is foreign data, so everything is decided from the list of its members before the first byte is written:
every member gets one path below the folder, a symbolic link is followed through what the other members make, and an
archive with one member that could touch anything outside the folder is refused whole. The order of the members does not
matter.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

SHOWN_REFUSALS = 20
# Limits of Linux: PATH_MAX (with its NUL) and NAME_MAX of <linux/limits.h>.
MAX_PATH_BYTES = 4096
MAX_NAME_BYTES = 255
MAX_STEPS = 256
"""Parts of names that are followed to see where a link leads: more than real archives need, and the end of loops."""
MAX_DEPTH = 128
"""Folders below each other. The data sets of MLPerf have 6; removing a tree opens one descriptor for each."""
WINDOWS_ROOT = re.compile(r"[A-Za-z]:[\\/]|\\")


class Kind(Enum):
    """What a member is."""

    FILE = "file"
    FOLDER = "folder"
    SYMLINK = "symbolic link"
    HARDLINK = "hard link"
    OTHER = "device or other special file"


class Refused(Exception):
    """The archive has members that may not be unpacked, or too many bytes; nothing of it is unpacked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member as the archive states it. `target` is where a link points to, `mode` the permission bits."""

    name: str
    kind: Kind
    size_bytes: int = 0
    mode: int = 0o644
    target: str = ""
    position: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A member that is unpacked, and its path below the folder. For a hard link `source` is the path linked to."""

    member: Member
    path: str
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The most that an archive may unpack to."""

    max_size_bytes: int
    max_members: int


def plan(found: Iterable[Member], strip_folders: int, limits: Limits) -> tuple[Planned, ...]:
    """What to unpack: each path once, no path below a link, in the archive's order.

    Raises Refused, naming the members, when any may not be unpacked.
    """
    tree, refusals = _Tree(), Refusals()
    total_bytes = 0
    for count, member in enumerate(found, start=1):
        total_bytes += member.size_bytes
        if total_bytes > limits.max_size_bytes:
            raise Refused(size_text(total_bytes, limits.max_size_bytes))
        if count > limits.max_members:
            raise Refused(f"no files were unpacked, because it has more than {limits.max_members} members")
        reason = objection(member)
        path = stripped(member.name, strip_folders)
        if not reason and path:
            source = stripped(member.target, strip_folders) if member.kind is Kind.HARDLINK else ""
            reason = tree.add(Planned(member=member, path=path, source=source))
        refusals.add(member.name, reason)
    for planned, reason in tree.objections():
        refusals.add(planned.member.name, reason)
    refusals.check()
    return tree.planned


def objection(member: Member) -> str:
    """Why a member may not be unpacked, whatever the others are; "" when it may."""
    name = member.name
    if member.kind is Kind.OTHER:
        return member.kind.value
    if not name or "\0" in name or name.startswith("/"):
        return "absolute or empty name"
    if ".." in re.split(r"[\\/]", name):
        return "'..' in the name"
    if WINDOWS_ROOT.match(name):
        return "absolute name of Windows"
    parts = name.split("/")
    longest = max(map(_size_bytes, parts))
    if _size_bytes(name) >= MAX_PATH_BYTES or longest > MAX_NAME_BYTES or len(parts) > MAX_DEPTH:
        return f"name too long (at most {MAX_PATH_BYTES - 1} bytes, {MAX_NAME_BYTES} in a part, {MAX_DEPTH} parts)"
    if not 0 < _size_bytes(member.target) < MAX_PATH_BYTES and member.kind is Kind.SYMLINK:
        return f"a target of {_size_bytes(member.target)} bytes (1 to {MAX_PATH_BYTES - 1} are allowed)"
    return ""


def stripped(name: str, strip_folders: int) -> str:
    """The name without its first folders; "" when nothing is left, or for the folder itself (".")."""
    return "/".join([part for part in name.split("/") if part not in ("", ".")][strip_folders:])


class Refusals:
    """The members that were refused: how many, and the first ones with their reasons."""

    def __init__(self) -> None:
        self._count = 0
        self._lines: list[str] = []

    def add(self, name: str, reason: str) -> None:
        """Notes a refusal; an empty reason is none."""
        self._count += bool(reason)
        if reason and len(self._lines) < SHOWN_REFUSALS:
            self._lines.append(f"\n  {name[:MAX_NAME_BYTES]!r}: {reason}")

    def check(self) -> None:
        """Raises Refused when there are any."""
        if self._count:
            more = f"\n  and {self._count - SHOWN_REFUSALS} more" if self._count > SHOWN_REFUSALS else ""
            s = "s" if self._count > 1 else ""
            raise Refused(
                f"no files were unpacked: it has {self._count} member{s} that may not be:{''.join(self._lines)}{more}\n"
                "hint: check that this is the right archive and compare its checksum"
            )


class _Tree:
    """What the members make of each other: one node for each path, and the folders above them."""

    def __init__(self) -> None:
        self._nodes: dict[str, Planned] = {}
        self._folders: set[str] = set()
        self._links: dict[str, str] = {}
        """Targets of the symbolic links by folded path."""

    @property
    def planned(self) -> tuple[Planned, ...]:
        """All nodes, in the archive's order."""
        return tuple(self._nodes.values())

    def add(self, item: Planned) -> str:
        """Takes a member in; returns why it contradicts an earlier one of the same path, "" when it does not.

        Of two files of one name the later one counts.
        """
        earlier = self._nodes.pop(item.path, item)
        self._nodes[item.path] = item
        self._folders.update(_parents(item.path))
        if item.member.kind is Kind.FOLDER:
            self._folders.add(item.path)
        elif item.member.kind is Kind.SYMLINK:
            self._links[_folded(item.path)] = item.member.target
        if earlier.member.kind is not item.member.kind:
            return f"comes twice, as {earlier.member.kind.value} and as {item.member.kind.value}"
        if earlier.source != item.source or (
            item.member.kind is Kind.SYMLINK and earlier.member.target != item.member.target
        ):
            return "a link that comes twice with different targets"
        return ""

    def objections(self) -> Iterator[tuple[Planned, str]]:
        """The nodes that may not be unpacked, with the reason."""
        if self._links:
            for path in {*self._nodes, *self._folders}:
                self._check_spelling(path)
        for path, item in self._nodes.items():
            kind = item.member.kind
            if kind is Kind.SYMLINK and self._links[_folded(path)] == "":
                yield item, "another member has this name, or goes through this link"
            elif kind is not Kind.FOLDER and path in self._folders:
                yield item, f"other members need a folder of the name of this {kind.value}"
            elif kind is Kind.SYMLINK and self._leaves(path):
                yield item, f"link to {item.member.target!r}, outside of the folder"
            elif kind is Kind.HARDLINK and not self._is_earlier_file(item):
                yield item, f"hard link to {item.member.target!r}, which is not an earlier file of the archive"

    def _check_spelling(self, path: str) -> None:
        """Marks the link that some file systems take for this path though it is another one (case, Unicode form)."""
        folded = _folded(path)
        node = self._nodes.get(path)
        is_link = node is not None and node.member.kind is Kind.SYMLINK and path not in self._folders
        if folded in self._links and not (is_link and self._links[folded] == node.member.target):
            self._links[folded] = ""

    def _is_earlier_file(self, item: Planned) -> bool:
        source = self._nodes.get(item.source)
        return source is not None and source.member.kind is Kind.FILE and source.member.position < item.member.position

    def _leaves(self, path: str) -> bool:
        """Whether a link leads, by way of other links too, above the root or where only the disk knows.

        `..` behind anything but a folder of this archive is such a place: what is there may be a link.
        """
        at = path.split("/")
        waiting = [at.pop()]
        for _ in range(MAX_STEPS):
            if not waiting:
                return False
            part = waiting.pop()
            if part == "..":
                if not at or "/".join(at) not in self._folders:
                    return True
                at.pop()
                continue
            at.append(part)
            target = self._links.get(_folded("/".join(at)))
            if target is not None:
                if not target or target.startswith("/") or "\0" in target:
                    return True
                at.pop()
                waiting += [part for part in reversed(target.split("/")) if part not in ("", ".")]
        return True


def size_text(found_bytes: int, limit_bytes: int) -> str:
    """The message for an archive that unpacks to too much."""
    return (
        f"no files were unpacked, because it unpacks to more than {limit_bytes} bytes (at least {found_bytes})\n"
        "hint: --max_size_bytes=N if it is the right archive (--env.CM_EXTRACT_MAX_SIZE_BYTES=N from another recipe)"
    )


def _parents(path: str) -> Iterator[str]:
    """The folders above a path, the nearest first, the root left out."""
    while (end := path.rfind("/")) > 0:
        path = path[:end]
        yield path


def _folded(path: str) -> str:
    """The path as a file system compares it that ignores case and the form of Unicode (APFS, NTFS, vfat)."""
    return path if path.isascii() and path.islower() else _composed(_composed(path).casefold())


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _size_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
