"""The settings that a call asks for: finds the system where none is named, and what was measured on it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlperf_results.appnames import default_run_config
from mlperf_results.names import Scenario
from mlperf_results.officialnames import parse_benchmark
from mlperf_results.recipecalls import SCRIPT_AUTOMATION

from . import detection
from .effective import DEFAULT, NS_PER_MS, EffectiveConfig, Value
from .fields import CPU, FIELDS
from .registry import Registry

SUT_CONFIGS = "get,mlperf,inference,sut,configs"
Stored = Callable[[dict[str, str]], Mapping[str, Any]]
"""From inputs of get-mlperf-inference-sut-configs to the content of the file that they name."""


class StoreError(Exception):
    """What was measured cannot be read; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked for. system: an id; empty: that of this machine, or of the recorded `machine`.

    source: "real", "synthetic" or "tiny", as what was measured is kept. settings: the user's own, by field name.
    """

    benchmark: str
    scenario: Scenario
    system: str = ""
    config_ver: str = DEFAULT
    machine: str = ""
    source: str = "real"
    settings: Mapping[str, str] = field(default_factory=dict)


def find(
    registry: Registry, request: Request, start: Path, stored: Stored | None = None
) -> tuple[EffectiveConfig, detection.Here | None]:
    """Return the settings, and the machine where no system is named. start: where relative folders begin.

    Raises what `settle` and `detection.look` raise, and names.UnknownName.
    """
    asked = (parse_benchmark(request.benchmark)[0], request.scenario)
    fitting = {name: one for name, one in registry.custom_systems().items() if asked in one.configs}
    here = None if request.system else detection.look(request.machine, start, fitting)
    return settle(registry, request, here, stored), here


def settle(registry: Registry, request: Request, here: detection.Here | None, stored: Stored | None) -> EffectiveConfig:
    """Return the settings on the system that the request names, else on that of the machine `here`.

    What was measured holds for this machine only: not for a recorded one, nor for a system of the registry that is
    named. stored: None where it is not to be looked up. Raises what `Registry.effective` and `stored` raise.
    """
    system, count = (here.system, here.accelerators) if here else (request.system, None)
    key = (request.benchmark, request.scenario, system, request.config_ver)
    config = registry.effective(*key, accelerators=count, user=request.settings)
    is_here = not request.machine and (here is not None or system == CPU or system in registry.custom_systems())
    if stored is None or not is_here:
        return config
    seen = measured_values(stored(stored_under(config, request.source)), config.benchmark, config.scenario)
    return registry.effective(*key, accelerators=count, measured=seen, user=request.settings)


def stored_by(access: Callable[[dict[str, Any]], dict[str, Any]]) -> Stored:
    """Return what reads the store by CM's function `access`, each file once; the reading raises StoreError."""
    read: dict[str, Mapping[str, Any]] = {}

    def stored(inputs: dict[str, str]) -> Mapping[str, Any]:
        name = repr(sorted(inputs.items()))
        if name in read:
            return read[name]
        own = {"action": "run", "automation": SCRIPT_AUTOMATION, "quiet": True, "silent": True, "tags": SUT_CONFIGS}
        answer = access({**own, **inputs})
        if answer["return"] > 0:
            raise StoreError(str(answer.get("error", "")))
        read[name] = next(iter(answer["new_state"]["CM_SUT_CONFIG"].values()))
        return read[name]

    return stored


def stored_under(config: EffectiveConfig, source: str) -> dict[str, str]:
    """Return the inputs of get-mlperf-inference-sut-configs that name the file for a run of these settings.

    source: "real", "synthetic" or "tiny".
    """
    run_config = default_run_config(source, str(config.values["precision"].value))
    return {"device": config.device, "backend": config.backend, "run_config": run_config}


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
