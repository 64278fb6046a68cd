"""Hooks of the recipe get-scratch-disk: choose a mounted file system by its free space. Never formats, never mounts.

`mounts.py` looks at the machine, `filters.py` holds the rules.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import shlex
from collections.abc import Sequence
from typing import Any

from crowdperf.machine import packages, selection
from crowdperf.machine.probe import Machine

from . import filters, mounts

NOT_FOUND_CODE = 16  # CM's code for "not found"


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """Prints each candidate with the verdict on it and sets the keys of the chosen one; code 16 when none fits."""
    env, values = i["env"], i["values"]
    try:
        machine = selection.of_call(i)
        wanted = filters.parse(values["filter"] or "")
    except (selection.MachineError, filters.FilterError) as error:
        return {"return": 1, "error": str(error)}
    with_os_disk = values["include_os_disk"] is True
    taken, judged = filters.choose(mounts.look(machine), wanted, with_os_disk=with_os_disk)
    idle = mounts.unmounted(machine)
    i["state"]["scratch_disk"] = {
        "filter": values["filter"] or "",
        "file_systems": [{**one.file_system._asdict(), "verdict": one.against or "fits"} for one in judged],
        "not_mounted": [one._asdict() for one in idle],
    }
    text = table(judged, taken, idle)
    if taken is None:
        return {
            "return": NOT_FOUND_CODE,
            "error": f"no mounted file system matches:\n{text}\n{_hint(machine, judged, with_os_disk=with_os_disk)}",
        }
    print(text)
    path = mounts.folder_on(taken.mount_point)
    print(f"  chosen: {path} (the folder is not made here)")
    print(f"  next:   cm run script --tags=get,mlperf,scratch,space --path={shlex.quote(path)}")
    env["CM_SCRATCH_DISK_PATH"] = path
    env["CM_SCRATCH_DISK_MOUNT_POINT"] = taken.mount_point
    env["CM_SCRATCH_DISK_DEVICE"] = taken.device
    env["CM_SCRATCH_DISK_FREE_BYTES"] = str(taken.free_bytes)
    return {"return": 0}


plan = preprocess


def table(
    judged: Sequence[filters.RatedFileSystem], taken: mounts.FileSystem | None, idle: Sequence[mounts.Unmounted]
) -> str:
    """The verdict on each file system, a line each; sizes in units of 10^9 bytes."""
    width = max((len(one.file_system.mount_point) for one in judged), default=0)
    lines = []
    for one, against in judged:
        sizes = f"{one.free_bytes / 1e9:>9.1f} GB free of {one.total_bytes / 1e9:.1f} GB"
        verdict = "taken" if one == taken else f"rejected: {against or 'another has more free space'}"
        lines.append(f"  {one.mount_point:<{width}}  {sizes}  {one.kind} on {one.device}: {verdict}")
    lines += [f"  {one.name}  {one.size_bytes / 1e9:.1f} GB, not mounted: left as it is" for one in idle]
    return "\n".join(lines) or "  none: there is no /proc/mounts here, or it names no disk"


def _hint(machine: Machine, judged: Sequence[filters.RatedFileSystem], *, with_os_disk: bool) -> str:
    """The command to try next: give the user a folder, count the system's disk, or ask for less."""
    counted = [one for one in judged if with_os_disk or not one.file_system.is_os]
    closed = [one.file_system for one in counted if one.against.endswith("may not write there")]
    if closed:
        best = max(closed, key=lambda one: one.free_bytes)
        words = ("install", "-d", "-o", str(machine.user.uid), mounts.folder_on(best.mount_point))
        return f"  hint: {packages.look(machine).as_root(words)}"
    if len(counted) < len(judged):
        return "  hint: --include_os_disk counts the operating system's disk too"
    return "  hint: request less, such as --filter=SizeGreaterThan:100gb, or ask an administrator to mount disks"
