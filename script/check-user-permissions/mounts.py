"""Which file system a path lies on, how it is mounted, and what /etc/fstab says of it (fstab(5), proc_mounts(5))."""

from __future__ import annotations

import os
from typing import NamedTuple

from machine_facts.probe import Machine

NETWORK_KINDS = (
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "lustre",
    "beegfs",
    "ceph",
    "glusterfs",
    "gpfs",
    "9p",
    "sshfs",
    "fuse.sshfs",
)


class Mount(NamedTuple):
    """A mounted file system, or a line of fstab; ``line`` is its number there, 0 for a mounted one."""

    place: str
    kind: str
    options: tuple[str, ...]
    line: int = 0

    @property
    def is_read_only(self) -> bool:
        """Whether it is mounted for reading only."""
        return "ro" in self.options

    @property
    def is_network(self) -> bool:
        """Whether another machine holds the files, and decides about rights as well."""
        return self.kind in NETWORK_KINDS


def mounted(machine: Machine, path: str) -> Mount | None:
    """The mounted file system that holds a path; of several at one place the last one, which covers the others."""
    return _nearest(_read(machine, "/proc/mounts"), path)


def in_fstab(machine: Machine, path: str) -> Mount | None:
    """The line of fstab that a path belongs to, other than that of the root file system."""
    return _nearest([one for one in _read(machine, "/etc/fstab") if one.place != "/"], path)


def _read(machine: Machine, path: str) -> list[Mount]:
    found = []
    for number, line in enumerate(machine.read_text(path).splitlines(), start=1):
        fields = line.split()
        if len(fields) > 3 and not line.lstrip().startswith("#") and fields[1].startswith("/"):
            place = fields[1].replace("\\040", " ")
            found.append(Mount(place, fields[2], tuple(fields[3].split(",")), number if "fstab" in path else 0))
    return found


def _nearest(known: list[Mount], path: str) -> Mount | None:
    holding = [one for one in known if os.path.commonpath([one.place, path]) == one.place]
    return max(enumerate(holding), key=lambda row: (len(row[1].place), row[0]))[1] if holding else None
