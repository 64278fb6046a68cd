"""Which cores an instance runs on. `share_out` is pure; `at_cores` moves the calling thread.

A core of the machine may show up as several processors (hyper-threads), and belongs to one NUMA node, whose memory is
nearer than the others'. Instances get cores of their own, all on one node where that is possible.
"""

import contextlib
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_SYSTEM = Path("/sys/devices/system")


@dataclass(frozen=True, slots=True)
class Core:
    """A physical core: its NUMA node, and those of its processors that may be used, sorted."""

    node: int
    processors: tuple[int, ...]


def available_cores() -> tuple[int, ...]:
    """Return the numbers of the processors this process may use, sorted; 0 to n - 1 where the system has no such
    list."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def _numbers(path: Path) -> tuple[int, ...]:
    """Return the numbers in a list of the kernel ("0-3,8"); empty where the file does not exist."""
    numbers: list[int] = []
    try:
        for part in path.read_text(encoding="ascii").strip().split(","):
            first, _, last = part.partition("-")
            numbers.extend(range(int(first), int(last or first) + 1))
    except (OSError, ValueError):
        return ()
    return tuple(numbers)


def physical_cores(processors: Sequence[int], system: Path = _SYSTEM) -> tuple[Core, ...]:
    """Return the cores that `processors` are part of, by node and number. Where the system does not describe them
    (macOS, some virtual machines), each processor is a core, all on one node.

    Files: Documentation/ABI/stable/sysfs-devices-system-cpu and -node of the Linux kernel.
    """
    nodes = {
        number: int(folder.name.removeprefix("node"))
        for folder in sorted((system / "node").glob("node[0-9]*"))
        for number in _numbers(folder / "cpulist")
    }
    usable, cores = set(processors), set()
    for number in processors:
        siblings = _numbers(system / "cpu" / f"cpu{number}" / "topology" / "thread_siblings_list")
        together = tuple(sorted(usable.intersection(siblings) | {number}))
        cores.add(Core(nodes.get(number, 0), together))
    return tuple(sorted(cores, key=lambda core: (core.node, core.processors)))


def share_out(cores: Sequence[Core], instances: int, threads: int) -> tuple[tuple[int, ...], ...]:
    """Return the processors of each instance, none shared. Empty where they are too few, or nothing is gained by it
    (one instance).

    Each thread has a core of its own while there are enough; else the processors of a core go to the same instance.
    """
    wanted = instances * threads
    if instances < 2 or wanted > sum(len(core.processors) for core in cores):
        return ()
    if wanted > len(cores):
        every = [number for core in cores for number in core.processors]
        return tuple(tuple(every[number * threads : (number + 1) * threads]) for number in range(instances))
    whole, rest = [], []
    for node in sorted({core.node for core in cores}):
        firsts = [core.processors[0] for core in cores if core.node == node]
        end = len(firsts) // threads * threads
        whole.append([tuple(firsts[start : start + threads]) for start in range(0, end, threads)])
        rest += firsts[end:]
    # Nodes take turns, so that few instances use the memory of all nodes; what is left over straddles them.
    most = max(len(shares) for shares in whole)
    shares = [shares[turn] for turn in range(most) for shares in whole if turn < len(shares)]
    shares += [tuple(rest[start : start + threads]) for start in range(0, len(rest), threads)]
    return tuple(shares[:instances])


@contextlib.contextmanager
def at_cores(cores: Sequence[int]) -> Iterator[None]:
    """Keep the calling thread on `cores` while the block runs; without cores, or where the system cannot (macOS,
    Windows), nothing happens."""
    if not cores or not hasattr(os, "sched_setaffinity"):
        yield
        return
    thread = threading.get_native_id()
    before = os.sched_getaffinity(thread)
    os.sched_setaffinity(thread, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(thread, before)
