"""Turns CM's env into the content of run.json, the request that the harness reads (its keys:
crowdperf/harness/runner/config.py).

Pure. All problems are collected, so that a user sees every wrong value at once, each with what is allowed there.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from pathlib import Path

from crowdperf.call.inputs import NO_ALIASES, Inputs
from crowdperf.call.text_inputs import SERVER_KEY, TEXT_KEYS, TIMEOUT, chat_problem, text_settings
from crowdperf.call.values import text_of
from crowdperf.kit.numbers import positive_number, whole_number
from crowdperf.rules.app_names import PRECISION_ALIASES, AppNames
from crowdperf.rules.backends import BACKENDS, simulated
from crowdperf.rules.benchmarks import RECORDS, model_of
from crowdperf.rules.compliance import TESTS as COMPLIANCE_TESTS
from crowdperf.rules.names import TARGETS, parse_execution_mode, parse_mode, parse_scenario, with_problems
from crowdperf.rules.rounds import scenarios_of
from crowdperf.rules.run_settings import BY_INPUT, NUMBERS, SERVING, RunSetting

FORMAT = 3

SCENARIO_KEY = "CM_MLPERF_LOADGEN_SCENARIO"
MODE_KEY = "CM_MLPERF_LOADGEN_MODE"
EXECUTION_MODE_KEY = "CM_MLPERF_RUN_STYLE"
MODEL_KEY = "CM_MLPERF_MODEL"
BACKEND_KEY = "CM_MLPERF_BACKEND"
DEVICE_KEY = "CM_MLPERF_DEVICE"
PRECISION_KEY = "CM_MLPERF_MODEL_PRECISION"
GPUS_KEY = "CM_MLPERF_GPUS"
OUTPUT_DIR_KEY = "CM_MLPERF_OUTPUT_DIR"
USER_CONF_KEY = "CM_MLPERF_USER_CONF"
OWN_PATH_KEYS = ("CM_MLPERF_OWN_DATASET_PATH", "CM_MLPERF_OWN_MODEL_PATH")
COMPLIANCE_TEST_KEY = "CM_MLPERF_COMPLIANCE_TEST"
COMPLIANCE_REFERENCE_KEY = "CM_MLPERF_COMPLIANCE_REFERENCE"
FIND_KEY = "CM_MLPERF_FIND"
SIMULATE_KEY = "CM_MLPERF_SIMULATE"
DATASET_KEY = "CM_DATASET_PATH"
PREPROCESSED_KEY = "CM_DATASET_PREPROCESSED_PATH"
MODEL_FILE_KEY = "CM_ML_MODEL_FILE_WITH_PATH"
MODEL_INFO_KEY = "CM_ML_MODEL_INFO_FILE"

SERVER_FILE_KEY = "CM_TRITON_SERVER_FILE"
TARGET_KEYS = {"target_qps": "CM_MLPERF_LOADGEN_TARGET_QPS", "target_latency_ms": "CM_MLPERF_LOADGEN_TARGET_LATENCY"}
OWN_TARGETS = {
    scenario.value: (name, f"CM_MLPERF_LOADGEN_{own.upper()}") for scenario, (name, own, _) in TARGETS.items()
}
"""Of each scenario: the target it has, and the env key that sets it for this scenario alone."""


class RequestError(Exception):
    """The env asks for a run that cannot be; `problems` holds one text for each wrong value. code: CM's answer."""

    def __init__(self, problems: list[str], code: int = 1) -> None:
        super().__init__(with_problems("cannot run what was asked for", problems))
        self.problems = tuple(problems)
        self.code = code


def stand_in(env: Mapping[str, object]) -> dict[str, str]:
    """The env keys that `--simulate` changes: the backend and device of the stand-in; without it none.

    Reads no other key: what a plan does not know yet is not asked for. Raises RequestError where the backend is another
    one.
    """
    keys = (SIMULATE_KEY, BACKEND_KEY, DEVICE_KEY)
    simulate, *asked = (text_of(env, key) for key in keys)
    try:
        found = simulated(simulate, *asked)
    except ValueError as error:
        raise RequestError([f"{SIMULATE_KEY}: {error}"]) from error
    return dict(zip(keys[1:], found, strict=True)) if simulate else {}


def batch_sizes(text: str) -> list[int] | None:
    """The batch sizes that a comma list holds, smallest first, else None."""
    numbers = [whole_number(word.strip()) for word in text.split(",")]
    found = sorted({number for number in numbers if number is not None})
    return found if None not in numbers else None


class _Reader(Inputs):
    """The env of a call; problems name its keys."""

    def __init__(self, env: Mapping[str, object], here: Path) -> None:
        super().__init__(env, here, start="")

    def spelling(self, key: str, parse: Callable[[str], enum.Enum | None]) -> str | None:
        """The spelling that the harness knows of a scenario, mode or execution mode."""
        found = self.parsed(key, parse, None)
        return None if found is None else str(found.value)

    def scenario(self) -> str | None:
        """The scenario, which must be one that the benchmark has."""
        name = self.spelling(SCENARIO_KEY, parse_scenario)
        allowed = [scenario.value for scenario in scenarios_of(self.text(MODEL_KEY))]
        if name is not None and name not in allowed:
            self.wrong(SCENARIO_KEY, f"{self.text(MODEL_KEY)} has no {name}; it has {', '.join(allowed)}")
        return name

    def precision(self, names: tuple[str, ...]) -> str:
        """The number format, in the harness's spelling."""
        return self.chosen(PRECISION_KEY, "precision", names, PRECISION_ALIASES) or "fp32"

    def compliance_test(self) -> str | None:
        """The compliance test that the run is for; None for an ordinary run."""
        test = self.chosen(COMPLIANCE_TEST_KEY, "compliance test", COMPLIANCE_TESTS)
        if test:
            self._in_performance_mode(COMPLIANCE_TEST_KEY)
        return test

    def targets(self, scenario: object) -> dict[str, float | None]:
        """The targets: of the scenario alone, where it is given, else of all; one of another scenario is a problem."""
        found = {name: self.positive_number(key) for name, key in TARGET_KEYS.items()}
        for taker, (name, key) in OWN_TARGETS.items():
            own = self.positive_number(key)
            if own is not None and taker == scenario:
                found[name] = own
            elif own is not None and scenario is not None:
                self.wrong(key, f"found {self.text(key)!r}; it is for {taker}, and this is a run of {scenario}")
        return found

    def find(self) -> bool:
        """Whether the best target is to be looked for."""
        is_finding = self.truth(FIND_KEY)
        if is_finding:
            self._in_performance_mode(FIND_KEY)
        if is_finding and self.text(COMPLIANCE_TEST_KEY):
            self.wrong(FIND_KEY, "a compliance test has the targets of the run that it is for")
        return is_finding

    def _in_performance_mode(self, key: str) -> None:
        mode = self.text(MODE_KEY)
        if mode and mode.lower() != "performance":
            self.wrong(key, f"found {self.text(key)!r} in mode {mode}; it needs performance mode (_performance)")

    def require_even_threads(self, instances: object, threads: object) -> None:
        """A problem for threads that instances cannot share evenly: they are those of all together."""
        if not isinstance(instances, int) or not isinstance(threads, int) or threads % instances == 0:
            return
        allowed = f"a multiple of {instances}, as they are those of all {instances} instances together"
        key, each = BY_INPUT["threads"].env, max(1, threads // instances)
        self.not_allowed(key, f"{allowed} ({each * instances} are {each} for each)")

    def refuse_unused_copies(self) -> None:
        """A problem for a copy of the user's own where everything is made here."""
        known = RECORDS.get(model_of(self.text(MODEL_KEY)))
        for key in OWN_PATH_KEYS if known is not None and known.recipes.is_fixed else ():
            if self.text(key):
                made = f"{self.text(MODEL_KEY)} makes its data and model here"
                self.wrong(key, f"found {self.text(key)!r}; {made}: docs/howto/add-model.md adds a model of your own")

    def chosen(
        self, key: str, kind: str, names: tuple[str, ...], aliases: Mapping[str, str] = NO_ALIASES
    ) -> str | None:
        """One of `names`; None where nothing is said."""
        return self.one_of(key, names, aliases, kind) if self.text(key) else None

    def serving(self) -> dict[str, object] | None:
        """How the server is to be set up; None for a backend that asks none, which refuses the server's settings."""
        backend = BACKENDS.get(self.text(BACKEND_KEY))
        if backend is None or not backend.is_served:
            served = ", ".join(name for name, record in BACKENDS.items() if record.is_served)
            for key in (setting.env for setting in SERVING):
                if self.text(key):
                    self.wrong(key, f"found {self.text(key)!r}; only backend {served} asks a server")
            return None
        return {"server": self.place(SERVER_FILE_KEY)} | {one.place: self.setting(one) for one in SERVING}

    def setting(self, setting: RunSetting) -> object:
        """A setting of the run; None where nothing is said."""
        if setting.choices:
            return self.chosen(setting.env, setting.name, setting.choices)
        if setting.is_list:
            return self.read(setting.env, batch_sizes, "whole numbers from 1, separated by commas")
        if setting.minimum:
            return self.whole_number(setting.env)
        return self.read(setting.env, lambda text: whole_number(text, 0), "a whole number from 0")

    def prompts(self) -> dict[str, object] | None:
        """How prompts are to be answered; None for a backend that answers none, which refuses such settings."""
        given = {name: self.text(key) for name, key in TEXT_KEYS.items()}
        text, problems = text_settings(given, self.text(BACKEND_KEY), self.text(SERVER_KEY))
        if why := chat_problem(self.text(MODEL_KEY), given["endpoint_api"]):
            problems.setdefault("endpoint_api", why)
        for name, why in problems.items():
            self.wrong(TEXT_KEYS[name], why)
        return text

    def place(self, key: str) -> str | None:
        """An absolute path as a text; None where nothing is said."""
        path = self.path(key)
        return None if path is None else str(path)


_COMMON = ("model", "backend", "device", "precision", "gpus", "scenario", "execution_mode", "user_conf")
_COMMON_PATHS = ("model_path", "dataset_path", "preprocessed_path")


def require_common(
    request: Mapping[str, object], reference: Mapping[str, object], is_there: Callable[[str], bool]
) -> None:
    """Raise RequestError for what a compliance test must have in common with the run that it is for, and has not.

    `reference` is that run's run.json. A path that is gone (`is_there`) is not compared: the files may have moved.
    """
    names = [*_COMMON, *(name for name in _COMMON_PATHS if is_there(str(reference.get(name) or "")))]
    wrong = [
        f"{name}: {request[name]!r}, in the run that the test is for {reference.get(name)!r}"
        for name in names
        if request[name] != reference.get(name)
    ]
    if wrong:
        raise RequestError([*wrong, "give the inputs of that run (--source, --adr.dataset.tags and so on) here too"])


def _asked(reader: _Reader, known: AppNames) -> dict[str, object]:
    """What the caller asks for; what dependencies give is no part of it."""
    asked: dict[str, object] = {
        "model": reader.one_of(MODEL_KEY, known.models, kind="model"),
        "backend": reader.one_of(BACKEND_KEY, known.backends, kind="backend"),
        "device": reader.one_of(DEVICE_KEY, known.devices, kind="device"),
        "precision": reader.precision(known.precisions),
        "gpus": reader.gpus(GPUS_KEY, reader.text(DEVICE_KEY), "take _cuda"),
        "scenario": reader.scenario(),
        "mode": reader.spelling(MODE_KEY, parse_mode),
        "execution_mode": reader.spelling(EXECUTION_MODE_KEY, parse_execution_mode),
        "compliance_test": reader.compliance_test(),
        "find": reader.find(),
        "output_dir": reader.place(OUTPUT_DIR_KEY),
        "user_conf": reader.place(USER_CONF_KEY),
    }
    asked |= {setting.place: reader.setting(setting) for setting in NUMBERS}
    asked |= reader.targets(asked["scenario"])
    if (serving := reader.serving()) is not None:
        asked["serving"] = serving
    if (text := reader.prompts()) is not None:
        asked["text"] = text
    elif (silence_s := positive_number(reader.text(TEXT_KEYS[TIMEOUT]))) is not None:  # `prompts` names a wrong one
        asked["silence_s"] = silence_s
    reader.require_even_threads(asked["instances"], asked["threads"])
    reader.refuse_unused_copies()
    if reader.problems:
        raise RequestError(reader.problems)
    return asked


def check_request(env: Mapping[str, object], known: AppNames, folder: Path) -> None:
    """Raises RequestError with every problem of what is asked for; dependencies need not have run."""
    _asked(_Reader(env, folder), known)


def build_request(env: Mapping[str, object], known: AppNames, folder: Path) -> dict[str, object]:
    """The content of run.json but for a missing `output_dir`, which is None. `folder` is where the user called.

    Raises RequestError with every problem.
    """
    reader = _Reader(env, folder)
    return {
        "format": FORMAT,
        **_asked(reader, known),
        "model_path": reader.place(MODEL_FILE_KEY),
        "model_info_path": reader.place(MODEL_INFO_KEY),
        "dataset_path": reader.place(DATASET_KEY),
        "preprocessed_path": reader.place(PREPROCESSED_KEY),
    }
