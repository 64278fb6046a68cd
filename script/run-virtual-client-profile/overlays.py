"""What stands for the files that VirtualClient copies over its clone for a system that NVIDIA's code does not know
(GPUConfigFiles, `RequireCustomSystemSupport`): the configuration registry, with its own custom systems."""

from pathlib import Path

from crowdperf.fronts.nvidia import lookup
from crowdperf.fronts.nvidia.registry import RegistryError, UnknownConfig, read_registry
from crowdperf.fronts.virtualclient.options import RegistrySettings
from crowdperf.fronts.virtualclient.steptypes import scenarios_of
from crowdperf.machine import selection
from crowdperf.rules.names import Scenario

HINT = "cm run script --tags=add,custom,system --id=NAME adds this machine"


def settings(benchmark: str, config_ver: str, here: Path, machine: str = "") -> RegistrySettings:
    """The targets that the registry has for a benchmark on this machine, or on a recorded one.

    A machine that it does not know is no reason to stop: the harness then finds its own.
    """
    targets: dict[str, str] = {}
    system = ""
    try:
        registry = read_registry(lookup.own_folder())
        place = lookup.look(machine, here, registry.custom)
        for scenario in scenarios_of(benchmark):
            count = place.accelerators
            config = registry.effective(benchmark, Scenario(scenario), place.system, config_ver, accelerators=count)
            system = config.system
            targets |= {name: text for name, text in config.inputs().items() if "_target_" in name}
    except (UnknownConfig, RegistryError, selection.MachineError) as error:
        return RegistrySettings(targets={}, said=f"no settings for this machine ({error}). {HINT}")
    named = ", ".join(f"{name}={text}" for name, text in sorted(targets.items())) or "no target"
    return RegistrySettings(targets=targets, said=f"the configuration registry has {system}: {named}")
