"""What is looked at before anything is said about the driver of a machine; the only module of the recipe that looks."""

from typing import NamedTuple

from crowdperf.machine import cpu, gpu_bus, host, nvidia, packages
from crowdperf.machine.probe import Machine

SERVICE = ("systemctl", "is-active", "nvidia-fabricmanager")


class Seen(NamedTuple):
    """The driver, the fabric manager and what decides about both. Texts are empty where nothing is there.

    ``fabric_service`` is what systemd says of the fabric manager (``active``, ``failed``, ...).
    """

    driver: nvidia.Driver
    fabric_manager: str
    fabric_service: str
    nvswitches: int
    bus_gpus: tuple[str, ...]
    host: host.Host
    jetson: str
    jetson_linux: str
    architecture: str
    packages: packages.Packages

    @property
    def needs_fabric_manager(self) -> bool:
        """Whether CUDA needs a fabric manager here: the bus shows NVSwitch chips (Fabric Manager User Guide)."""
        return self.nvswitches > 0


def look(machine: Machine) -> Seen:
    """What there is on a machine."""
    gpus = tuple(one.name or f"10de:{one.device}" for one in gpu_bus.accelerators(machine) if one.kind == "nvidia")
    fabric_manager = nvidia.fabric_manager_version(machine)
    return Seen(
        driver=nvidia.look(machine),
        fabric_manager=fabric_manager,
        fabric_service=machine.run(SERVICE).stdout.strip() if fabric_manager else "",
        nvswitches=gpu_bus.nvswitch_count(machine),
        bus_gpus=gpus,
        host=host.look(machine),
        jetson=gpu_bus.jetson_model(machine),
        jetson_linux=f"Jetson Linux {gpu_bus.l4t_release(machine)}".strip(),
        architecture=cpu.look(machine).architecture or "x86_64",
        packages=packages.look(machine),
    )
