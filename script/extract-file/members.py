"""Rules of the recipe extract-file for the members of an archive: which are taken, under which name, which refused.

An archive is data from somebody else. A member is refused when it could touch anything outside the folder it is
unpacked into: an absolute name, "..", a link that leaves the folder, a name that goes through a link, a device.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePosixPath

SHOWN_REFUSALS = 20


class Kind(Enum):
    """What a member is."""

    FILE = "file"
    FOLDER = "folder"
    SYMLINK = "symbolic link"
    HARDLINK = "hard link"
    OTHER = "device or other special file"


class Refused(Exception):
    """The archive has members that may not be unpacked; nothing of it is."""


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
    path: PurePosixPath
    source: PurePosixPath | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The most that an archive may unpack to."""

    max_size_bytes: int
    max_members: int


def plan(found: Iterable[Member], strip_folders: int, limits: Limits) -> tuple[Planned, ...]:
    """What to unpack, in the archive's order. Raises Refused, naming the members, when any may not be unpacked."""
    planned: list[Planned] = []
    refused: list[str] = []
    links: set[PurePosixPath] = set()
    paths: dict[PurePosixPath, Kind] = {}
    total_bytes = 0
    for count, member in enumerate(found, start=1):
        total_bytes += member.size_bytes
        if total_bytes > limits.max_size_bytes or count > limits.max_members:
            raise Refused(
                f"it unpacks to more than {limits.max_size_bytes} bytes or {limits.max_members} members. "
                "hint: --max_size_bytes=N if that is right"
            )
        path = stripped(member.name, strip_folders)
        reason = objection(member, set() if path is None else links & set(path.parents))
        if reason:
            refused.append(f"{member.name!r}: {reason}")
        elif path is not None:
            source = stripped(member.target, strip_folders) if member.kind is Kind.HARDLINK else None
            if member.kind is Kind.HARDLINK and (source is None or paths.get(source) is not Kind.FILE):
                refused.append(f"{member.name!r}: hard link to {member.target!r}, which is no file before it")
                continue
            planned.append(Planned(member=member, path=path, source=source))
            paths[path] = member.kind
            if member.kind is Kind.SYMLINK:
                links.add(path)
            else:
                links.discard(path)
    if refused:
        raise Refused(refusal_text(refused))
    return tuple(planned)


def objection(member: Member, links_on_the_way: set[PurePosixPath]) -> str:
    """Why a member may not be unpacked, "" when it may."""
    path = PurePosixPath(member.name)
    if member.kind is Kind.OTHER:
        return member.kind.value
    if not member.name or "\0" in member.name or path.is_absolute():
        return "absolute or empty name"
    if ".." in path.parts:
        return "'..' in the name"
    if links_on_the_way:
        return f"goes through the link {sorted(map(str, links_on_the_way))[0]!r}"
    if member.kind is Kind.SYMLINK and leaves(path.parent, member.target):
        return f"link to {member.target!r}, outside of the folder"
    return ""


def leaves(folder: PurePosixPath, target: str) -> bool:
    """Whether a link in `folder` (relative to the root) points above the root or to an absolute path.

    Links that pass through other links are checked again on the disk when all is unpacked.
    """
    if not target or target.startswith("/") or "\0" in target:
        return True
    depth = len(folder.parts)
    for part in PurePosixPath(target).parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return True
    return False


def stripped(name: str, strip_folders: int) -> PurePosixPath | None:
    """The name without its first folders; None when nothing is left, or for the folder itself (".")."""
    parts = [part for part in PurePosixPath(name).parts if part not in ("/", ".")][strip_folders:]
    return PurePosixPath(*parts) if parts else None


def refusal_text(refused: list[str]) -> str:
    """The message that lists what was refused."""
    lines = "".join(f"\n  {line}" for line in refused[:SHOWN_REFUSALS])
    more = f"\n  and {len(refused) - SHOWN_REFUSALS} more" if len(refused) > SHOWN_REFUSALS else ""
    return (
        f"nothing was unpacked, because {len(refused)} members may not be:{lines}{more}\n"
        "hint: is this the right archive? Compare its checksum; unpack it by hand if you trust it"
    )
