"""The settings of a machine that the recipe knows, as they are now; the only module of the recipe that looks.

- Transparent huge pages and CPU governors: files of the kernel (Documentation/admin-guide/mm/transhuge.rst and
  pm/cpufreq.rst), so that no package of tools is needed, whose name differs by distribution.
- GPUs: ``nvidia-smi``. It does not tell whether clocks are locked: what was before a lock is taken for "not locked".
"""

import re
from typing import Literal, NamedTuple

from crowdperf.machine import host, nvidia
from crowdperf.machine.probe import Machine

Name = Literal["thp", "governor", "persistence", "clocks"]
THP = "/sys/kernel/mm/transparent_hugepage/enabled"
GOVERNORS = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
GPU_FIELDS = ("index", "name", "persistence_mode", "clocks.gr", "clocks.max.gr")
UNTOLD = ""
UNLOCKED = "not locked"


class Setting(NamedTuple):
    """One setting. ``places`` are files, or the number of a GPU; ``found`` is empty when the machine does not tell it.

    ``allowed`` are the values that the machine takes (empty: not told); ``about`` is a line for people.
    """

    name: Name
    places: tuple[str, ...]
    found: str
    allowed: tuple[str, ...] = ()
    about: str = ""


class Gpu(NamedTuple):
    """A GPU as far as tuning goes; clocks in MHz, 0 when not told; ``persistence`` Enabled, Disabled or empty."""

    index: int
    name: str
    persistence: str
    clock_mhz: int
    max_clock_mhz: int
    supported_mhz: tuple[int, ...] = ()


class System(NamedTuple):
    """All that is looked at. ``lacks`` are lines about settings that this machine does not have."""

    settings: tuple[Setting, ...]
    gpus: tuple[Gpu, ...]
    lacks: tuple[str, ...]
    container: str


def look(machine: Machine) -> System:
    """The settings of a machine."""
    found: list[Setting] = []
    lacks: list[str] = []
    pages = re.findall(r"\[?(\w+)\]?", machine.read_text(THP))
    now = re.search(r"\[(\w+)\]", machine.read_text(THP))
    if now:
        found.append(Setting("thp", (THP,), now[1], tuple(pages), "transparent huge pages"))
    else:
        lacks.append("thp: this kernel has no transparent huge pages")
    governors = _governors(machine)
    found += governors
    if not governors:
        lacks.append("governor: the kernel offers no control of the CPU frequency here (usual in virtual machines)")
    cards = gpus(machine)
    for card in cards:
        about = f"GPU {card.index}, {card.name}"
        at = (str(card.index),)
        found.append(Setting("persistence", at, card.persistence, ("Enabled", "Disabled"), about))
        mhz = f"{about}: {card.clock_mhz or '?'} of at most {card.max_clock_mhz or '?'} MHz now"
        found.append(Setting("clocks", at, UNLOCKED, (), mhz))
    if not cards:
        driver = nvidia.look(machine)
        lacks.append(f"persistence, clocks: {driver.trouble or 'no NVIDIA driver answers'}")
    return System(tuple(found), cards, tuple(lacks), host.look(machine).container)


def gpus(machine: Machine) -> tuple[Gpu, ...]:
    """The GPUs that the driver shows; what its nvidia-smi does not tell is empty or 0."""
    told = nvidia.query(machine, GPU_FIELDS)
    if told:
        return tuple(_gpu(machine, row) for row in told)
    return tuple(Gpu(one.number, one.name, UNTOLD, 0, 0) for one in nvidia.look(machine).gpus)


def _gpu(machine: Machine, row: dict[str, str]) -> Gpu:
    listed = machine.run(
        ("nvidia-smi", "--query-supported-clocks=graphics", "--format=csv,noheader,nounits", "-i", row["index"])
    )
    clocks = {int(text) for text in listed.stdout.split() if text.isdigit()} if listed.code == 0 else set()
    return Gpu(
        index=int(row["index"]),
        name=row["name"],
        persistence=row["persistence_mode"] if row["persistence_mode"] in ("Enabled", "Disabled") else UNTOLD,
        clock_mhz=_number(row["clocks.gr"]),
        max_clock_mhz=_number(row["clocks.max.gr"]),
        supported_mhz=tuple(sorted(clocks)),
    )


def _governors(machine: Machine) -> list[Setting]:
    """One setting for each governor that some CPUs have now: the usual machine has one."""
    by_value: dict[str, list[str]] = {}
    allowed: set[str] = set()
    for path in machine.glob(GOVERNORS):
        by_value.setdefault(machine.read_text(path).strip(), []).append(path)
        offered = machine.read_text(path.replace("scaling_governor", "scaling_available_governors")).split()
        allowed = set(offered) if not allowed else allowed & set(offered)
    return [
        Setting("governor", tuple(paths), value, tuple(sorted(allowed)), f"frequency governor of {len(paths)} CPUs")
        for value, paths in sorted(by_value.items())
        if value
    ]


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0
