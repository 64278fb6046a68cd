"""The settings of a benchmark run: of each its input, where it stands in run.json, and who has it.

Pure data. The recipes run-mlperf-inference-app, run-mlperf-inference and app-mlperf-inference take what they hand on
from here, and the harness the rule of a setting that its scenario has not. Types, units and env keys of the inputs
stand in `_cm.yaml` of mlperf-run-inputs and mlperf-serving-inputs.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crowdperf.rules import server_settings
from crowdperf.rules.names import TARGETS, Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSetting:
    """One setting. name: of the input. key: in run.json, in `serving` of it for settings of a server. server_only: why
    only a scenario with queries at random moments has it; empty where every one has it."""

    name: str
    key: str = ""
    server_only: str = ""

    @property
    def place(self) -> str:
        """The key in run.json."""
        return self.key or self.name

    def misplaced(self, scenarios: Collection[Scenario]) -> str:
        """Return why none of some scenarios has the setting; empty where one has it."""
        return "" if any(scenario.is_server for scenario in scenarios) else self.server_only


NUMBERS = (
    RunSetting(name="batch_size"),
    RunSetting(name="instances"),
    RunSetting(name="threads"),
    RunSetting(name="batch_timeout_us", server_only="only Server batches wait to fill"),
    RunSetting(name="min_duration_ms"),
    RunSetting(name="min_query_count"),
    RunSetting(name="performance_sample_count"),
)
"""Whole numbers of every backend, in the order of run.json."""

SERVING = tuple(RunSetting(name=name) for name in server_settings.INPUTS)
"""How a server that answers is set up, for backends that ask one (crowdperf/rules/server_settings.py)."""

BY_INPUT = {setting.name: setting for setting in (*NUMBERS, *SERVING)}
COUNTS = ("min_duration_ms", "min_query_count", "performance_sample_count")
"""Those of LoadGen, which user.conf has, too; the others shape the inference."""
TARGET_INPUTS = tuple(sorted({name for _, own, shared in TARGETS.values() for name in (own, shared)}))
"""The inputs with targets: of one scenario alone, and of several."""
PATHS = ("dataset_path", "expected", "inputs", "model_path", "prompts", "tokenizer", "trace", "user_conf")
"""Inputs of a run that name a file or folder."""
OWN_TEXTS = ("shape", "conversations", "input_tokens", "output_tokens", "slo")
"""Further inputs of a run of what the user brings."""


EFFICIENCY = ("power_command", "price_per_hour")
"""Inputs of a performance run that say how its energy and its cost are known."""


def misplaced_inputs(names: Collection[str], scenarios: Collection[Scenario]) -> dict[str, str]:
    """Return of some inputs those that none of some scenarios has, each with the reason."""
    found = {name: BY_INPUT[name].misplaced(scenarios) for name in names if name in BY_INPUT}
    return {name: why for name, why in found.items() if why}


def as_json(settings: Sequence[RunSetting], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return typed values of inputs under their keys in run.json; None for one that is not given."""
    found = {setting.place: values[setting.name] for setting in settings}
    return {key: sorted(set(value)) if isinstance(value, tuple) else value for key, value in found.items()}


def as_inputs(settings: Sequence[RunSetting], request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs that settings in a run.json, or in `serving` of it, were given as; None for one that was not
    given."""
    found = {setting.name: request.get(setting.place) for setting in settings}
    return {name: ",".join(map(str, value)) if isinstance(value, list) else value for name, value in found.items()}


def gpus_problem(gpus: Sequence[int], device: str, remedy: str) -> str:
    """Return what is wrong with the numbers of the GPUs to use; empty where nothing is. remedy: what makes `device`
    cuda."""
    if gpus and device != "cuda":
        return f"device {device} has none ({remedy})"
    return "" if len(set(gpus)) == len(gpus) else "allowed: numbers from 0, separated by commas, none twice"
