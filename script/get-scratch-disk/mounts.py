"""The mounted file systems of a machine, each with what speaks against it as scratch space. Looks, changes nothing.

Formats: /proc/mounts as fstab(5) and proc(5) describe it (octal escapes for blanks), /sys/class/block of the kernel
(Documentation/ABI/stable/sysfs-block: ``partition``, ``slaves``, ``size`` in units of 512 bytes).
"""

import re
from typing import NamedTuple

from crowdperf.machine import mounts
from crowdperf.machine.mounts import NETWORK_KINDS, Mount
from crowdperf.machine.probe import TIMED_OUT, Machine

STAT_TIMEOUT_S = 5.0
"""A network file system whose server is gone blocks whoever asks it, so that one is asked by a child first."""
BLOCK_KINDS = frozenset(
    ["ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "jfs", "reiserfs", "bcachefs", "apfs", "hfsplus"]
)
WITHOUT_LINKS = frozenset(["vfat", "msdos", "exfat"])
IN_MEMORY = frozenset(["tmpfs", "ramfs"])
SECTOR_BYTES = 512


class FileSystem(NamedTuple):
    """A mounted file system; sizes in bytes. ``disk`` is the whole disk below it, empty when that cannot be told.

    ``against`` says why it cannot be scratch space, empty when it can; ``is_os`` whether the system lies on its disk.
    """

    mount_point: str
    device: str
    kind: str
    disk: str
    total_bytes: int
    free_bytes: int
    is_os: bool
    against: str


class Unmounted(NamedTuple):
    """A disk on which nothing is mounted, with its size in bytes."""

    name: str
    size_bytes: int


def rows(text: str) -> tuple[Mount, ...]:
    """The lines of /proc/mounts by place, shortest first; of several at one place the last holds."""
    by_place = {one.place: one for one in mounts.rows(text)}
    return tuple(sorted(by_place.values(), key=lambda one: (len(one.place), one.place)))


def look(machine: Machine) -> tuple[FileSystem, ...]:
    """The file systems of a machine that hold files of users: on disks, on servers, in memory; each device once."""
    mounted = rows(machine.read_text(mounts.MOUNTED))
    root = next((row for row in mounted if row.place == "/"), None)
    os_disks = whole_disks(machine, root.device) if root else frozenset()
    found: dict[str, FileSystem] = {}
    for row in mounted:
        if row.kind not in BLOCK_KINDS | NETWORK_KINDS | WITHOUT_LINKS | IN_MEMORY and row.place != "/":
            continue
        key = row.device if row.device.startswith("/dev/") else row.place
        against = _unsuitable(row) or _silent(machine, row)
        # Containers mount single files, such as /etc/hosts, from the disk of their host.
        if key in found or _is_of_the_kernel(row.place) or not (against or _is_folder(machine, row.place)):
            continue
        found[key] = _file_system(machine, row, os_disks, against)
    return tuple(sorted(found.values(), key=lambda one: one.mount_point))


def unmounted(machine: Machine) -> tuple[Unmounted, ...]:
    """The disks on which nothing is mounted, neither whole nor a part: no recipe of ours formats or mounts them."""
    used: set[str] = set()
    for row in rows(machine.read_text(mounts.MOUNTED)):
        used |= whole_disks(machine, row.device)
    for line in machine.read_text("/proc/swaps").splitlines()[1:]:
        used |= whole_disks(machine, line.split()[0]) if line.split() else frozenset()
    found = []
    for name in machine.names("/sys/class/block"):
        sectors = machine.read_text(f"/sys/class/block/{name}/size").strip()
        is_whole = not machine.is_file(f"/sys/class/block/{name}/partition")
        is_disk = re.match(r"(sd|hd|vd|xvd|nvme|mmcblk)", name) is not None
        if is_whole and is_disk and name not in used and sectors.isdigit() and int(sectors):
            found.append(Unmounted(f"/dev/{name}", int(sectors) * SECTOR_BYTES))
    return tuple(found)


def whole_disks(machine: Machine, device: str) -> frozenset[str]:
    """The names of the whole disks below a device: ``nvme0n1`` for /dev/nvme0n1p2, all members for LVM and RAID."""
    if not device.startswith("/dev/"):
        return frozenset()
    found: set[str] = set()
    todo = [machine.real_path(device).rsplit("/", 1)[-1]]
    while todo:
        name = todo.pop()
        members = machine.names(f"/sys/class/block/{name}/slaves")
        if members:
            todo += [one for one in members if one not in found]
            continue
        found.add(_without_partition(machine, name))
    return frozenset(found)


def _without_partition(machine: Machine, name: str) -> str:
    if machine.is_file(f"/sys/class/block/{name}/partition"):
        return machine.real_path(f"/sys/class/block/{name}").rsplit("/", 2)[-2]
    numbered = re.fullmatch(r"((?:nvme\d+n\d+|mmcblk\d+))p\d+|((?:sd|hd|vd|xvd)[a-z]+)\d+", name)
    return (numbered[1] or numbered[2]) if numbered else name


def _is_folder(machine: Machine, path: str) -> bool:
    """Whether it is a folder that this user can reach; one below a closed folder is none."""
    return machine.owner_uid(path) is not None and machine.is_dir(path)


def _is_of_the_kernel(path: str) -> bool:
    return path.split("/")[1] in ("proc", "sys", "dev", "run")


def _file_system(machine: Machine, row: Mount, os_disks: frozenset[str], against: str) -> FileSystem:
    disks = whole_disks(machine, row.device)
    is_os = row.place == "/" or bool(disks & os_disks) or row.place.split("/")[1] == "boot"
    disk = None if against.startswith("it does not answer") else machine.disk(row.place)
    if not against and disk is None:
        against = "its size cannot be read"
    if not against and not is_writable(machine, row.place):
        against = f"{machine.user.name} may not write there"
    return FileSystem(
        mount_point=row.place,
        device=row.device,
        kind=row.kind,
        disk=" ".join(sorted(disks)),
        total_bytes=disk.total_bytes if disk else 0,
        free_bytes=disk.free_bytes if disk else 0,
        is_os=is_os,
        against=against,
    )


def _unsuitable(row: Mount) -> str:
    if row.kind in IN_MEMORY:
        return "it is in memory"
    if row.is_read_only:
        return "it is mounted read-only"
    return f"{row.kind} has no links, which the folders of a benchmark need" if row.kind in WITHOUT_LINKS else ""


def _silent(machine: Machine, row: Mount) -> str:
    if not row.is_network:
        return ""
    asked = machine.run(("stat", "-f", row.place), timeout_s=STAT_TIMEOUT_S)
    return f"it does not answer within {STAT_TIMEOUT_S:g} s" if asked.code == TIMED_OUT else ""


def is_writable(machine: Machine, mount_point: str) -> bool:
    """Whether this user may make files on it: at its top, or in a folder ``scratch`` that is there already."""
    return any(machine.can_write(path) for path in (mount_point, folder_on(mount_point)))


def folder_on(mount_point: str) -> str:
    """The folder for scratch data on a file system, named as VirtualClient names it."""
    return mount_point.rstrip("/") + "/scratch"
