"""The settings that a call asks for: finds the system where none is named, and what was measured on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlperf_results.names import Scenario
from mlperf_results.officialnames import parse_benchmark
from mlperf_results.recipecalls import SCRIPT_AUTOMATION

from . import detection
from .effective import CPU, EffectiveConfig
from .measured import measured_values, stored_under
from .registry import DEFAULT, Registry

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
    """Return the settings, and the machine where no system was named. start: where relative folders begin.

    What was measured holds for this machine only: not for a recorded one, nor for a system of the registry that is
    named. stored: None where it is not to be looked up. Raises what `Registry.effective` and `detection.look` raise,
    names.UnknownName and StoreError.
    """
    custom = registry.custom_systems()
    asked = (parse_benchmark(request.benchmark)[0], request.scenario)
    fitting = {name: one for name, one in custom.items() if asked in one.configs}
    here = None if request.system else detection.look(request.machine, start, fitting)
    system = here.system if here else request.system
    count = here.accelerators if here else None
    key = (request.benchmark, request.scenario, system, request.config_ver)
    config = registry.effective(*key, accelerators=count, user=request.settings)
    is_here = not request.machine if here else system == CPU or system in custom
    if stored is None or not is_here:
        return config, here
    content = stored(stored_under(config, request.source))
    seen = measured_values(content, config.benchmark, config.scenario)
    return registry.effective(*key, accelerators=count, measured=seen, user=request.settings), here


def stored_by(access: Callable[[dict[str, Any]], dict[str, Any]]) -> Stored:
    """Return what reads the store by CM's function `access`; the reading raises StoreError."""

    def stored(inputs: dict[str, str]) -> Mapping[str, Any]:
        own = {"action": "run", "automation": SCRIPT_AUTOMATION, "quiet": True, "silent": True, "tags": SUT_CONFIGS}
        answer = access({**own, **inputs})
        if answer["return"] > 0:
            raise StoreError(str(answer.get("error", "")))
        content: Mapping[str, Any] = next(iter(answer["new_state"]["CM_SUT_CONFIG"].values()))
        return content

    return stored
