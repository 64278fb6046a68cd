"""Processors, NUMA nodes and memory of a machine: what a system description needs, for this machine and recorded ones.

From ``lscpu`` (util-linux), else ``/proc/cpuinfo``; ``/sys/devices/system/node`` and ``/proc/meminfo`` (kernel
documentation). Flags, caches and limits on processors are the recipe detect-cpu's.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import NamedTuple

from .probe import Machine

NODES = "/sys/devices/system/node"
CGROUPS = "/sys/fs/cgroup"
KIB = 1024


class NumaNode(NamedTuple):
    """One NUMA node: its number, its CPUs as the kernel lists them (``0-47``), its memory in bytes (0: not told)."""

    number: int
    cpus: str
    memory_bytes: int


class Cpu(NamedTuple):
    """The processors of a machine. ``cores`` are physical, ``threads`` logical CPUs; 0 and empty: not told."""

    architecture: str
    model_name: str
    sockets: int
    cores: int
    threads: int
    nodes: tuple[NumaNode, ...]
    memory_bytes: int

    @property
    def cores_per_socket(self) -> int:
        """Physical cores of one socket, 0 when one of both is not known."""
        return self.cores // self.sockets if self.sockets else 0


def look(machine: Machine) -> Cpu:
    """Processors, NUMA nodes and memory of a machine."""
    said = machine.run(("lscpu",)).stdout
    fields = dict(re.findall(r"^\s*([^:\n]+?):[ \t]*(.*?)[ \t]*$", said, re.MULTILINE))
    blocks = _blocks(machine.read_text("/proc/cpuinfo"))
    sockets = _number(fields.get("Socket(s)", "")) or len(
        {one["physical id"] for one in blocks if "physical id" in one}
    )
    per_socket = _number(fields.get("Core(s) per socket", "")) or _number(fields.get("Core(s) per cluster", ""))
    placed = {(one["physical id"], one["core id"]) for one in blocks if {"physical id", "core id"} <= set(one)}
    groups = sockets or _number(fields.get("Cluster(s)", ""))  # an Arm machine may have clusters and no sockets
    return Cpu(
        architecture=fields.get("Architecture", ""),
        model_name=fields.get("Model name", "")
        or next((one["model name"] for one in blocks if "model name" in one), ""),
        sockets=sockets,
        cores=per_socket * groups or len(placed),
        threads=_number(fields.get("CPU(s)", "")) or len(blocks),
        nodes=_nodes(machine),
        memory_bytes=memory_bytes(machine),
    )


def memory_bytes(machine: Machine) -> int:
    """The memory that the kernel of a machine manages, in bytes: a little below what is built in; 0: not told."""
    return _kib(machine.read_text("/proc/meminfo"), "MemTotal")


def memory_limit_bytes(machine: Machine) -> int:
    """The least that the control groups of this process and those above allow (versions 1, 2), in bytes; 0: none."""
    rows = (line.split(":", 2) for line in machine.read_text("/proc/self/cgroup").splitlines())
    groups = {name: row[2] for row in rows if len(row) == 3 for name in row[1].split(",")}
    paths = _files_above(f"{CGROUPS}{groups.get('', '/')}", "memory.max")
    paths += _files_above(f"{CGROUPS}/memory{groups.get('memory', '/')}", "memory.limit_in_bytes")
    found = [int(text) for path in paths if (text := machine.read_text(path).strip()).isdigit()]
    # version 1 writes the largest page-aligned 64-bit number for "no limit"; nothing real is near 2^62
    return min((limit for limit in found if limit < 2**62), default=0)


def _files_above(group: str, name: str) -> list[str]:
    """The file of this name of a control group, and of each group above it."""
    folder = PurePosixPath(group)
    return [str(place / name) for place in (folder, *folder.parents) if place.is_relative_to(CGROUPS)]


def _nodes(machine: Machine) -> tuple[NumaNode, ...]:
    found = []
    for folder in machine.glob(f"{NODES}/node[0-9]*"):
        number = folder.rsplit("node", 1)[1]
        if number.isdigit():
            memory = _kib(machine.read_text(f"{folder}/meminfo"), "MemTotal")
            found.append(NumaNode(int(number), machine.read_text(f"{folder}/cpulist").strip(), memory))
    return tuple(sorted(found))


def _kib(text: str, name: str) -> int:
    found = re.search(rf"\b{name}:\s*(\d+) kB", text)
    return int(found[1]) * KIB if found else 0


def _blocks(text: str) -> list[dict[str, str]]:
    blocks = [
        {
            name.strip(): value.strip()
            for name, colon, value in (row.partition(":") for row in part.splitlines())
            if colon
        }
        for part in re.split(r"\n\s*\n", text)
    ]
    return [block for block in blocks if "processor" in block]


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0
