"""What nvidia-smi tells of the MIG mode, profiles, instances and slices of a GPU; the only module here that looks.

Tables as NVIDIA's MIG user guide and drivers 450 to 570 print them:

    | GPU   Name             ID    Instances   Memory ...    nvidia-smi mig -lgip
    |   0  MIG 1g.5gb        19     7/7        4.75   ...
    | GPU   Name          Profile  Instance   Placement |    nvidia-smi mig -lgi
    |   0  MIG 1g.5gb       19        7          4:1    |
    |  0    7   0   0  |  ...               nvidia-smi, "MIG devices": GPU, instance, compute instance, slice
    |  0    7    0   12345   C  python ...  nvidia-smi, "Processes": GPU, instance, compute instance, process
"""

import re
from typing import Literal, NamedTuple

from crowdperf.machine import nvidia
from crowdperf.machine.probe import Machine

Mode = Literal["Enabled", "Disabled", "unsupported"]


class Profile(NamedTuple):
    """A kind of slice that a GPU can have: name such as ``1g.5gb``, number, and how many fit now and at most."""

    name: str
    number: int
    free: int
    total: int


class Slice(NamedTuple):
    """A slice that CUDA can use: its number on the GPU, profile and UUID. ``processes`` are those that use it."""

    number: int
    profile: str
    uuid: str
    processes: tuple[int, ...]


class Gpu(NamedTuple):
    """A GPU as MIG has it. ``pending`` is the mode after the next reset; ``trouble`` why profiles could not be listed.

    ``instances`` are the profile numbers of its GPU instances; ``tells_processes`` whether nvidia-smi showed which
    process is on which slice.
    """

    index: int
    name: str
    mode: Mode
    pending: Mode
    profiles: tuple[Profile, ...]
    instances: tuple[int, ...]
    slices: tuple[Slice, ...]
    tells_processes: bool
    trouble: str = ""


def look(machine: Machine, driver: nvidia.Driver, index: int) -> Gpu:
    """The GPU with this number, which the driver shows."""
    seen = next(gpu for gpu in driver.gpus if gpu.number == index)
    pending = {row["index"]: row["mig.mode.pending"] for row in nvidia.query(machine, ("index", "mig.mode.pending"))}
    modes = (_mode(seen.mig_mode), _mode(pending.get(str(index), seen.mig_mode)))
    if not seen.is_mig:
        return Gpu(index, seen.name, *modes, (), (), (), False)
    listed = machine.run(("nvidia-smi", "mig", "-lgip", "-i", str(index)))
    made = machine.run(("nvidia-smi", "mig", "-lgi", "-i", str(index)))
    shown = machine.run(("nvidia-smi",)).stdout
    users = processes(shown)
    places = slice_places(shown)
    slices = [part for part in driver.slices if part.gpu_index == index]
    profiles = profiles_in(listed.stdout, index)
    said = (listed.stdout.strip() or listed.stderr.strip() or f"exit code {listed.code}").splitlines()
    return Gpu(
        index=index,
        name=seen.name,
        mode=modes[0],
        pending=modes[1],
        profiles=profiles,
        instances=instances_in(made.stdout, index),
        slices=tuple(
            Slice(number, part.profile, part.uuid, users.get(places.get((index, number), (-1, -1, -1)), ()))
            for number, part in enumerate(slices)
        ),
        tells_processes=bool(places),
        trouble="" if profiles else said[0],
    )


def profiles_in(table: str, index: int) -> tuple[Profile, ...]:
    """The profiles of a GPU in the output of ``nvidia-smi mig -lgip``."""
    rows = re.findall(r"^\|\s+(\d+)\s+MIG (\S+)\s+(\d+)\s+(\d+)/(\d+)\s", table, re.MULTILINE)
    return tuple(Profile(row[1], int(row[2]), int(row[3]), int(row[4])) for row in rows if int(row[0]) == index)


def instances_in(table: str, index: int) -> tuple[int, ...]:
    """The profile numbers of the GPU instances in the output of ``nvidia-smi mig -lgi``."""
    rows = re.findall(r"^\|\s+(\d+)\s+MIG \S+\s+(\d+)\s+(\d+)\s+\d+:\d+\s", table, re.MULTILINE)
    return tuple(sorted(int(row[1]) for row in rows if int(row[0]) == index))


def slice_places(shown: str) -> dict[tuple[int, int], tuple[int, int, int]]:
    """Where each slice (GPU, its number) lies (GPU, GPU instance, compute instance), from ``nvidia-smi``."""
    part = shown.partition("MIG devices:")[2].partition("Processes:")[0]
    rows = re.findall(r"^\|\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+\|", part, re.MULTILINE)
    numbers = [tuple(int(text) for text in row) for row in rows]
    return {(row[0], row[3]): (row[0], row[1], row[2]) for row in numbers}


def processes(shown: str) -> dict[tuple[int, int, int], tuple[int, ...]]:
    """The processes by GPU, GPU instance and compute instance (both -1 on a whole GPU), from ``nvidia-smi``."""
    part = shown.partition("Processes:")[2]
    rows = re.findall(r"^\|\s+(\d+)\s+(\d+|N/A)\s+(\d+|N/A)\s+(\d+)\s+[A-Z+]+\s", part, re.MULTILINE)
    found: dict[tuple[int, int, int], tuple[int, ...]] = {}
    for gpu, instance, compute, process in rows:
        place = (int(gpu), *(int(text) if text.isdigit() else -1 for text in (instance, compute)))
        found[place] = (*found.get(place, ()), int(process))
    return found


def _mode(text: str) -> Mode:
    return text if text in ("Enabled", "Disabled") else "unsupported"  # type: ignore[return-value]
