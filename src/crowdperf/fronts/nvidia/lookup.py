"""Which settings hold on a machine: what system of the registry, or of the user, it is, and what was measured on it."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from crowdperf.call.recipe_calls import Access, RecipeFailed, run_recipe
from crowdperf.fronts.nvidia.effective import NS_PER_MS, EffectiveConfig
from crowdperf.fronts.nvidia.fields import CPU, FIELDS, Value
from crowdperf.fronts.nvidia.registry import ADD, Measured
from crowdperf.fronts.nvidia.sheets import CustomSystem, MachineFacts
from crowdperf.kit.user_paths import expanded, home_folder, users_folder
from crowdperf.machine import cpu, gpu_bus, known_systems, nvidia, selection
from crowdperf.machine import system as systems
from crowdperf.machine.probe import Machine
from crowdperf.rules.app_names import default_run_config
from crowdperf.rules.names import Scenario

SUT_CONFIGS = "get,mlperf,inference,sut,configs"
FOLDER_VARIABLE = "MLPINF_CUSTOM_DEFINITION_PATH"
"""Of the environment; NVIDIA's harness of v4.1 keeps custom systems there, too."""
FOLDER_NAME = "mlperf-custom-systems"


class StoreError(Exception):
    """What was measured cannot be read; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """A machine. system: its id, "cpu" without an accelerator that is known. facts: what it is recognised by.

    accelerators: for `Registry.effective`, None where the system's own number is right (a slice of a GPU, a custom id).
    known_as: the known system that it is exactly. compute_capability: "8.0"; both empty where not known. banner: what
    is printed of a recorded machine, empty for this one.
    """

    system: str
    accelerators: int | None
    facts: MachineFacts
    known_as: str
    compute_capability: str
    reasons: tuple[str, ...]
    banner: str


def own_folder(cmind: Any = None, given: str = "") -> Path:
    """Return the folder of this user's custom systems: the one that FOLDER_VARIABLE gives, else one in CM's home.

    cmind: CM, where a call of it is made; a plan has none.
    """
    home = Path(cmind.repos_path) if cmind else Path(os.environ.get("CM_REPOS") or home_folder() / "CM")
    return expanded(given or os.environ.get(FOLDER_VARIABLE) or home / FOLDER_NAME)


def folder_of_call(i: Mapping[str, Any]) -> Path:
    """Return the same for the call of a hook: a relative one begins where its user is."""
    env = i["env"]
    folder = own_folder(getattr(i.get("automation"), "cmind", None), str(env.get(FOLDER_VARIABLE) or ""))
    return users_folder(env) / folder


def look(name: str, start: Path, custom: Mapping[str, CustomSystem]) -> Here:
    """Return what this machine is, or the recorded one `name` (a folder from `start` on). Raises choose.MachineError.

    A custom system with the same facts comes before a known one: somebody made it for this machine.
    """
    chosen = selection.choose(name, start)
    match, facts, capability = _match(chosen.machine)
    system, count, reasons = CPU, None, match.reasons
    own = [one for one in custom.values() if one.machine == facts]
    if own:
        newest = max(own, key=lambda one: (one.date, one.system))
        system = newest.system
        reasons = (*reasons, f"your own system {system} ({newest.path}) was made for this machine")
    elif match.row:
        system, count = match.row.system_id, None if match.row.mig_profile else facts.count
    elif facts.kind != CPU:
        reasons = (*reasons, f"without a registry entry it is run as {CPU}. To add it: {ADD}")
    return Here(
        system=system,
        accelerators=count,
        facts=facts,
        known_as=match.system_id,
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


def measured_by(access: Access, source: str) -> Measured:
    """Return what looks up the measured targets of a configuration by CM's function `access`, each file once.

    source: "real", "synthetic" or "tiny", as they are kept. It raises StoreError.
    """

    @cache
    def content(device: str, backend: str, run_config: str) -> Mapping[str, Any]:
        asked = {"tags": SUT_CONFIGS, "device": device, "backend": backend, "run_config": run_config}
        try:
            answer = run_recipe(access, {**asked, "silent": True})
        except RecipeFailed as error:
            raise StoreError(str(error)) from error
        found: Mapping[str, Any] = next(iter(answer["new_state"]["CM_SUT_CONFIG"].values()))
        return found

    def measured(config: EffectiveConfig) -> Mapping[str, Value]:
        run_config = default_run_config(source, str(config.values["precision"].value))
        return measured_values(content(config.device, config.backend, run_config), config.benchmark, config.scenario)

    return measured


def measured_values(content: Mapping[str, Any], benchmark: str, scenario: Scenario) -> dict[str, Value]:
    """Return the target that a file of get-mlperf-inference-sut-configs has (model to scenario to row), by field."""
    row = (content.get(benchmark) or {}).get(scenario.value)
    if not row:
        return {}
    origin = str(row.get("origin") or "")
    day = re.search(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}", origin)
    said = f"measured {day[0]}" if day else f"recorded: {origin or 'by hand'}"
    value = float(row["target_latency"]) * NS_PER_MS if scenario.is_stream else float(row["target_qps"])
    is_whole = scenario.is_stream or value.is_integer()
    (name,) = (one.name for one in FIELDS.values() if one.is_target and one.input and scenario.value in one.scenarios)
    return {name: Value(round(value) if is_whole else value, said)}
