"""The mounted file systems of a machine and the lines of /etc/fstab (fstab(5), proc_mounts(5)), in one form."""

import os
import re
from collections.abc import Iterable
from typing import NamedTuple

MOUNTED, TABLE = "/proc/mounts", "/etc/fstab"
SERVER_KINDS = frozenset(["nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "beegfs", "ceph", "glusterfs", "wekafs"])
NETWORK_KINDS = SERVER_KINDS | {"9p", "fuse.glusterfs", "fuse.sshfs", "sshfs", "virtiofs"}


class Mount(NamedTuple):
    """A line: what is mounted where, the kind of file system and its options; `line` is its number, from 1."""

    device: str
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


def rows(text: str) -> tuple[Mount, ...]:
    """The lines of /proc/mounts or /etc/fstab; comments and what is mounted nowhere, such as swap, are left out."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        fields = [re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), field) for field in line.split()]
        if len(fields) > 3 and not fields[0].startswith("#") and fields[1].startswith("/"):
            found.append(Mount(fields[0], fields[1], fields[2], tuple(fields[3].split(",")), number))
    return tuple(found)


def holding(known: Iterable[Mount], path: str) -> Mount | None:
    """The file system that holds a path; of several at one place the last one, which covers the others."""
    fitting = [one for one in known if os.path.commonpath([one.place, path]) == one.place]
    return max(enumerate(fitting), key=lambda row: (len(row[1].place), row[0]))[1] if fitting else None
