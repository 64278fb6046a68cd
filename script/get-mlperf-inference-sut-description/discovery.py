"""Looks for facts of a system that detect-mlperf-system does not tell: caches, clock, disks, network cards.

Only what the machine says of itself; a virtual disk says its size and not its kind, so its kind stays open.
"""

from collections.abc import Mapping
from typing import Any

from crowdperf.machine.probe import Machine
from crowdperf.rules.names import counted

from .description import Fact

_BLOCK, _NET = "/sys/block", "/sys/class/net"
_SECTOR_BYTES = 512
"""The unit of /sys/block/*/size whatever the disk's own sectors (kernel, Documentation/ABI/stable/sysfs-block)."""
_UNREAL = ("loop", "ram", "zram", "dm-", "md", "sr", "fd", "nbd")


def detected(system: Mapping[str, Any], env: Mapping[str, Any], machine: Machine) -> dict[str, Fact]:
    """The facts by official key that this machine tells."""
    found = {key: Fact(str(value), "detect-mlperf-system") for key, value in system["submission"].items() if str(value)}
    caches = [
        f"{level} {env[key]}"
        for level, key in (
            ("L1d", "CM_HOST_CPU_L1D_CACHE_SIZE"),
            ("L1i", "CM_HOST_CPU_L1I_CACHE_SIZE"),
            ("L2", "CM_HOST_CPU_L2_CACHE_SIZE"),
            ("L3", "CM_HOST_CPU_L3_CACHE_SIZE"),
        )
        if env.get(key)
    ]
    if caches:
        found["host_processor_caches"] = Fact(", ".join(caches), "detect-cpu")
    if env.get("CM_HOST_CPU_MAX_MHZ"):
        found["host_processor_frequency"] = Fact(f"{env['CM_HOST_CPU_MAX_MHZ']} MHz (highest)", "detect-cpu")
    return {**found, **_storage(machine), **_network(machine)}


def _storage(machine: Machine) -> dict[str, Fact]:
    sizes, kinds = [], set()
    for name in machine.names(_BLOCK):
        size = machine.read_text(f"{_BLOCK}/{name}/size").strip()
        if name.startswith(_UNREAL) or not size.isdigit() or size == "0":
            continue
        if machine.read_text(f"{_BLOCK}/{name}/removable").strip() == "1":
            continue
        sizes.append(int(size) * _SECTOR_BYTES)
        kinds.add(_kind_of_disk(name, machine.read_text(f"{_BLOCK}/{name}/queue/rotational").strip()))
    if not sizes:
        return {}
    found = {"host_storage_capacity": Fact(f"{sum(sizes) / 1e9:.0f} GB", f"{_BLOCK} ({counted(len(sizes), 'disk')})")}
    if "" not in kinds:
        found["host_storage_type"] = Fact(", ".join(sorted(kinds)), _BLOCK)
    return found


def _kind_of_disk(name: str, rotational: str) -> str:
    """The kind of a disk; empty for a virtual one, whose host alone knows it."""
    if name.startswith("nvme"):
        return "NVMe SSD"
    if name.startswith(("vd", "xvd")):
        return ""
    return {"0": "SSD", "1": "HDD"}.get(rotational, "")


def _network(machine: Machine) -> dict[str, Fact]:
    """Cards with a device behind them and, where the driver tells it, their speed."""
    cards = [name for name in machine.names(_NET) if machine.names(f"{_NET}/{name}/device")]
    if not cards:
        return {}
    return {"host_network_card_count": Fact(str(len(cards)), _NET)}
