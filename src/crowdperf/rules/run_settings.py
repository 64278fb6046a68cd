"""The settings of a benchmark run: of each its input, its env key, where it stands in run.json, what it may be, and who
has it.

Pure data. The recipes run-mlperf-inference-app, run-mlperf-inference and app-mlperf-inference take what they hand on
from here, and the harness the rule of a setting that its scenario has not. Types and units of the inputs stand in
`_cm.yaml` of mlperf-run-inputs and mlperf-serving-inputs; a test compares the env keys.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from crowdperf.rules.names import TARGETS, Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSetting:
    """One setting. name: of the input. key: in run.json, in `serving` of it for settings of a server. choices: its
    values, for a word. minimum: the smallest whole number, for a number. is_list: whole numbers with commas between.
    server_only: why only a scenario with queries at random moments has it; empty where every one has it."""

    name: str
    env: str
    key: str = ""
    choices: tuple[str, ...] = ()
    minimum: int = 1
    is_list: bool = False
    server_only: str = ""

    @property
    def place(self) -> str:
        """The key in run.json."""
        return self.key or self.name

    def misplaced(self, scenarios: Collection[Scenario]) -> str:
        """Return why none of some scenarios has the setting; empty where one has it."""
        return "" if any(scenario.is_server for scenario in scenarios) else self.server_only


NUMBERS = (
    RunSetting(name="batch_size", env="CM_MLPERF_LOADGEN_MAX_BATCHSIZE"),
    RunSetting(name="instances", env="CM_MLPERF_INSTANCES"),
    RunSetting(name="threads", env="CM_NUM_THREADS"),
    RunSetting(
        name="batch_timeout",
        env="CM_MLPERF_LOADGEN_BATCH_TIMEOUT_US",
        key="batch_timeout_us",
        server_only="only Server batches wait to fill",
    ),
    RunSetting(name="min_duration_ms", env="CM_MLPERF_LOADGEN_MIN_DURATION_MS"),
    RunSetting(name="min_query_count", env="CM_MLPERF_INFERENCE_MIN_QUERY_COUNT"),
    RunSetting(name="performance_sample_count", env="CM_MLPERF_LOADGEN_PERFORMANCE_SAMPLE_COUNT"),
)
"""Whole numbers of every backend, in the order of run.json."""

SERVING = (
    RunSetting(name="batching", env="CM_MLPERF_TRITON_BATCHING", choices=("client", "server")),
    RunSetting(name="transport", env="CM_MLPERF_TRITON_TRANSPORT", choices=("grpc", "http", "shm")),
    RunSetting(name="instance_count", env="CM_MLPERF_TRITON_INSTANCE_COUNT"),
    RunSetting(name="max_queue_delay_us", env="CM_MLPERF_TRITON_MAX_QUEUE_DELAY_US", minimum=0),
    RunSetting(name="preferred_batch_size", env="CM_MLPERF_TRITON_PREFERRED_BATCH_SIZE", is_list=True),
    RunSetting(name="max_batch_size", env="CM_MLPERF_TRITON_MAX_BATCH_SIZE"),
)
"""How a server that answers is set up, for backends that ask one (crowdperf/harness/base/serving.py)."""

BY_INPUT = {setting.name: setting for setting in (*NUMBERS, *SERVING)}
COUNTS = ("min_duration_ms", "min_query_count", "performance_sample_count")
"""Those of LoadGen, which user.conf has, too; the others shape the inference."""
TARGET_INPUTS = tuple(sorted({name for _, own, shared in TARGETS.values() for name in (own, shared)}))
"""The inputs with targets: of one scenario alone, and of several."""
PATHS = ("dataset_path", "model_path", "user_conf")
"""Inputs of a run that name a file or folder."""


def misplaced_inputs(names: Collection[str], scenarios: Collection[Scenario]) -> dict[str, str]:
    """Return of some inputs those that none of some scenarios has, each with the reason."""
    found = {name: BY_INPUT[name].misplaced(scenarios) for name in names if name in BY_INPUT}
    return {name: why for name, why in found.items() if why}
