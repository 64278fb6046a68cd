"""Which system of the registry, or of the user, a machine is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from machine_facts import choose, cpu, gpu_bus, known_systems, nvidia
from machine_facts import system as systems
from machine_facts.probe import Machine

from .custom import CustomSystem, MachineFacts
from .fields import CPU
from .registry import ADD


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """A machine. system: its id, "cpu" without an accelerator that is known. facts: what it is recognised by.

    known: the row of the known system, also one with another count. compute_capability: "8.0", empty where not known.
    banner: what is printed of a recorded machine, empty for this one.
    """

    system: str
    facts: MachineFacts
    known: known_systems.Row | None
    compute_capability: str
    reasons: tuple[str, ...]
    banner: str

    @property
    def accelerators(self) -> int | None:
        """The number for `Registry.effective`: None where the system's own is right (a slice of a GPU, a custom id)."""
        return self.facts.count if self.known and self.known.system_id == self.system and not self.is_slice else None

    @property
    def is_slice(self) -> bool:
        """Whether it is a slice of a GPU."""
        return bool(self.known and self.known.mig_profile)


def look(name: str, start: Path, custom: Mapping[str, CustomSystem]) -> Here:
    """Return what this machine is, or the recorded one `name` (a folder from `start` on). Raises choose.MachineError.

    A custom system with the same facts comes before a known one: somebody made it for this machine.
    """
    chosen = choose.choose(name, start)
    match, facts, capability = _match(chosen.machine)
    row = match.row
    own = [one for one in custom.values() if one.machine == facts]
    newest = max(own, key=lambda one: (one.date, one.system), default=None)
    reasons = match.reasons
    if newest:
        reasons = (*reasons, f"your own system {newest.system} ({newest.path}) was made for this machine")
    elif facts.kind != CPU and row is None:
        reasons = (*reasons, f"without an entry of the registry it is run as {CPU}; to add it: {ADD}")
    return Here(
        system=newest.system if newest else row.system_id if row else CPU,
        facts=facts,
        known=row,
        compute_capability=capability,
        reasons=reasons,
        banner=chosen.banner,
    )


def _match(machine: Machine) -> tuple[known_systems.Match, MachineFacts, str]:
    """The known system; what the machine is recognised by; the compute capability of its first GPU."""
    host = cpu.look(machine)
    if not (gpu_bus.accelerators(machine) or gpu_bus.jetson_model(machine) or nvidia.look(machine).gpus):
        match = known_systems.Match("unknown", None, ("no accelerator is here",))
        return match, MachineFacts(kind=CPU, accelerator="", count=0, cpu=host.model_name, threads=host.threads), ""
    system = systems.look(machine)
    match = known_systems.match(system, known_systems.read())
    gpus = system.driver.gpus
    key = known_systems.gpu_key(gpus[0].name, gpus[0].memory_mib) if gpus else ""
    key = key or (match.row.accelerator if match.row else system.jetson_model)
    kind = match.row.kind if match.row else "jetson" if system.jetson_model else "nvidia" if gpus else CPU
    count = 0 if kind == CPU else len(gpus) or len(system.present_gpus) or system.neuron_devices or 1
    facts = MachineFacts(kind=kind, accelerator=key, count=count, cpu=host.model_name, threads=host.threads)
    return match, facts, gpus[0].compute_capability if gpus else ""
