"""What Slurm's own commands say of it: version, partitions, features, limits, whether accounting is there.

Formats as seen with Slurm 22.05.8 (sinfo(1), scontrol(1)).
"""

import re
from typing import NamedTuple

from crowdperf.machine.probe import Machine

CLIENTS = ("sbatch", "squeue", "scontrol", "scancel", "sinfo")
SINFO = ("sinfo", "-h", "-o", "%P|%a|%l|%D|%T|%c|%m|%f|%G")
CONFIG = ("scontrol", "show", "config")


class Partition(NamedTuple):
    """A line of sinfo: nodes of one partition in one state. time_limit as sinfo prints it; memory_mb of one node."""

    name: str
    is_default: bool
    is_up: bool
    time_limit: str
    nodes: int
    state: str
    cpus: str
    memory_mb: str
    features: tuple[str, ...]
    gres: tuple[str, ...]


class Slurm(NamedTuple):
    """A Slurm whose commands are here. trouble: why its controller did not answer; empty if it did.

    has_accounting: whether sacct knows ended jobs. largest_array: MaxArraySize; most_jobs: MaxJobCount; kill_wait_s:
    seconds from SIGTERM to SIGKILL.
    """

    version: str
    path: str
    trouble: str = ""
    partitions: tuple[Partition, ...] = ()
    has_accounting: bool = False
    largest_array: int | None = None
    most_jobs: int | None = None
    kill_wait_s: int | None = None


def missing_clients(machine: Machine) -> tuple[str, ...]:
    """Those of Slurm's commands that a submitting machine needs and this one lacks."""
    return tuple(name for name in CLIENTS if not machine.which(name))


def look(machine: Machine) -> Slurm:
    """What the commands on PATH say, which must be there."""
    path = machine.which("sbatch")
    told = machine.run(("sinfo", "--version"))
    found = re.search(r"slurm(?:-\w+)? (\d+(?:\.\d+)+\S*)", told.stdout)
    known = Slurm(found[1] if found else "", path)
    config = machine.run(CONFIG)
    listed = machine.run(SINFO)
    for ran in (config, listed):
        if ran.code != 0:
            return known._replace(trouble=" ".join(ran.stderr.split()) or f"exit code {ran.code}")
    settings = settings_in(config.stdout)
    return known._replace(
        partitions=partitions_in(listed.stdout),
        has_accounting=not settings.get("AccountingStorageType", "").endswith(("none", "(null)")),
        largest_array=_number(settings.get("MaxArraySize")),
        most_jobs=_number(settings.get("MaxJobCount")),
        kill_wait_s=_number(settings.get("KillWait")),
    )


def settings_in(text: str) -> dict[str, str]:
    """The lines `Key = value` of `scontrol show config`."""
    pairs = (line.partition("=") for line in text.splitlines())
    return {key.strip(): value.strip() for key, mark, value in pairs if mark}


def partitions_in(text: str) -> tuple[Partition, ...]:
    """The lines of SINFO, of which each is a partition and a state of nodes."""
    found = []
    for line in text.splitlines():
        fields = [field.strip() for field in line.split("|")]
        if len(fields) == 9 and fields[3].isdigit():
            name, up, limit, nodes, state, cpus, memory, features, gres = fields
            is_default = name.endswith("*")
            found.append(
                Partition(
                    name.removesuffix("*"),
                    is_default,
                    up == "up",
                    limit,
                    int(nodes),
                    state,
                    cpus,
                    memory,
                    _list(features),
                    _list(gres),
                )
            )
    return tuple(found)


def _list(text: str) -> tuple[str, ...]:
    return () if text in ("", "(null)") else tuple(text.split(","))


def _number(text: str | None) -> int | None:
    digits = re.match(r"\d+", text or "")
    return int(digits[0]) if digits else None
