"""Processors, NUMA nodes and memory of a machine: what a system description needs, for this machine and recorded ones.

From ``lscpu`` (util-linux), else ``/proc/cpuinfo``; ``/sys/devices/system/node`` and ``/proc/meminfo`` (kernel
documentation). Flags and caches are the recipe detect-cpu's.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from crowdperf.machine.probe import Machine

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
    fields = one_processor(re.findall(r"^\s*([^:\n]+?):[ \t]*(.*?)[ \t]*$", said, re.MULTILINE))
    blocks = cpuinfo_blocks(machine.read_text("/proc/cpuinfo"))
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


NAME, CORES, SOCKETS = "Model name", "Core(s) per socket", "Socket(s)"


def one_processor(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The fields of lscpu, name and value, where those of the clusters of a processor of several kinds of cores follow
    each other: as those of one processor.

    Names come with the cores that have them ("10 x Cortex-X925, 10 x Cortex-A725"), cores are added, clocks are the
    highest and the lowest, flags those that all clusters have, and other fields that differ stand side by side. Form:
    sys-utils/lscpu.c of util-linux 2.40 (2026-11), not run on hardware.
    """
    shared: dict[str, str] = {}
    clusters: list[dict[str, str]] = []
    for name, value in pairs:
        if name == NAME:
            clusters.append({})
        (clusters[-1] if clusters else shared)[name] = value
    if len(clusters) < 2:
        return shared | (clusters[0] if clusters else {})
    names = dict.fromkeys(name for cluster in clusters for name in cluster)
    merged = {name: [one[name] for one in clusters if name in one] for name in names}
    return shared | {name: _together(name, values, clusters) for name, values in merged.items()}


def _together(name: str, values: Sequence[str], clusters: Sequence[Mapping[str, str]]) -> str:
    """The value of a field of all clusters."""
    distinct = list(dict.fromkeys(values))
    if name == NAME:
        counts = [_number(one.get(CORES, "")) * max(1, _number(one.get(SOCKETS, ""))) for one in clusters]
        is_counted = len(distinct) > 1 and all(counts)
        return (
            ", ".join(f"{count} x {value}" for count, value in zip(counts, values, strict=True))
            if is_counted
            else (" + ".join(distinct))
        )
    if name == CORES and all(value.isdigit() for value in values):
        return str(sum(map(int, values)))
    if name == "Flags":
        return " ".join(word for word in values[0].split() if all(word in value.split() for value in values))
    if name in ("CPU max MHz", "CPU min MHz"):
        found = [value for value in values if re.fullmatch(r"[\d.]+", value)]
        return (max if "max" in name else min)(found, key=float, default="")
    return ", ".join(distinct)


def memory_bytes(machine: Machine) -> int:
    """The memory that the kernel of a machine manages, in bytes: a little below what is built in; 0: not told."""
    return _kib(machine.read_text("/proc/meminfo"), "MemTotal")


def memory_limit_bytes(machine: Machine) -> int:
    """The least that the control groups of this process and those above allow (versions 1, 2), in bytes; 0: none."""
    texts = [*_limits(machine, "", "memory.max"), *_limits(machine, "memory", "memory.limit_in_bytes")]
    found = [int(text) for text in texts if text.isdigit()]
    # version 1 writes the largest page-aligned 64-bit number for "no limit"; nothing real is near 2^62
    return min((limit for limit in found if limit < 2**62), default=0)


def cpu_limit(machine: Machine) -> float | None:
    """The least number of CPUs that the control groups of this process and those above allow (versions 1, 2): quota by
    period; None without a limit ("max", -1)."""
    first = zip(*(_limits(machine, "cpu", f"cpu.cfs_{name}_us") for name in ("quota", "period")), strict=True)
    pairs = [*(text.split() for text in _limits(machine, "", "cpu.max")), *first]
    found = [[int(text) for text in pair] for pair in pairs if len(pair) == 2 and all(map(str.isdigit, pair))]
    return min((quota_us / period_us for quota_us, period_us in found if quota_us and period_us), default=None)


def _limits(machine: Machine, controller: str, name: str) -> list[str]:
    """The texts of this file of the process' control group, and of each group above it; version 2 has no controller."""
    rows = (line.split(":", 2) for line in machine.read_text("/proc/self/cgroup").splitlines())
    groups = {one: row[2] for row in rows if len(row) == 3 for one in row[1].split(",")}
    root = PurePosixPath(CGROUPS, controller)
    folder = root / groups.get(controller, "/").strip("/")
    above = (place for place in (folder, *folder.parents) if place.is_relative_to(root))
    return [machine.read_text(str(place / name)).strip() for place in above]


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


def cpuinfo_blocks(text: str) -> list[dict[str, str]]:
    """The blocks of /proc/cpuinfo that describe a processor, each as name -> value."""
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
