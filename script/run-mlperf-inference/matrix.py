"""What a call of run-mlperf-inference comes to: its inputs as one `Config`, and the LoadGen runs that follow from it.

Pure: env and known names come in as arguments. Every bad input is collected, so that a user sees all of them at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from mlperf_results.names import (
    ExecutionMode,
    Mode,
    Scenario,
    UnknownName,
    parse_execution_mode,
    parse_mode,
    parse_scenario,
)

ALL = "all"
RESUME_VALUES = ("failed", "unfinished", ALL)

TARGETS = {
    Scenario.SINGLE_STREAM: ("target_latency_ms", "singlestream_target_latency", "target_latency"),
    Scenario.MULTI_STREAM: ("target_latency_ms", "multistream_target_latency", "target_latency"),
    Scenario.OFFLINE: ("target_qps", "offline_target_qps", "target_qps"),
    Scenario.SERVER: ("target_qps", "server_target_qps", "target_qps"),
}
"""Of each scenario: the target it has, the input that sets it for this scenario alone, and the one for several."""

TARGET_KEYS = {
    "target_qps": "CM_MLPERF_LOADGEN_TARGET_QPS",
    "target_latency": "CM_MLPERF_LOADGEN_TARGET_LATENCY",
    "offline_target_qps": "CM_MLPERF_LOADGEN_OFFLINE_TARGET_QPS",
    "server_target_qps": "CM_MLPERF_LOADGEN_SERVER_TARGET_QPS",
    "singlestream_target_latency": "CM_MLPERF_LOADGEN_SINGLESTREAM_TARGET_LATENCY",
    "multistream_target_latency": "CM_MLPERF_LOADGEN_MULTISTREAM_TARGET_LATENCY",
}


class ConfigError(Exception):
    """The inputs ask for something that cannot be run; `problems` holds one text for each wrong input."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("cannot run what was asked for:\n  " + "\n  ".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The names that a model, a backend and a device may have."""

    models: tuple[str, ...]
    backends: tuple[str, ...]
    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A checked call. `targets` holds the given target inputs by name; None means that the harness decides.

    `resume` is one of RESUME_VALUES, or empty for a call that starts anew.
    """

    model: str
    backend: str
    device: str
    scenarios: tuple[Scenario, ...]
    modes: tuple[Mode, ...]
    execution_mode: ExecutionMode
    results_folder: Path
    batch_size: int | None
    threads: int | None
    targets: Mapping[str, float]
    resume: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """One LoadGen run; None where the harness decides, or where the scenario has no such target."""

    model: str
    backend: str
    device: str
    scenario: Scenario
    mode: Mode
    execution_mode: ExecutionMode
    batch_size: int | None
    threads: int | None
    target_qps: float | None
    target_latency_ms: float | None

    @property
    def tags(self) -> str:
        """The query of the recipe app-mlperf-inference with the variations of this run."""
        names = (self.model, self.backend, self.device, self.scenario.value.lower(), self.mode.value)
        return ",".join(["app", "mlperf", "inference", *("_" + name for name in names)])

    @property
    def inputs(self) -> dict[str, str]:
        """The inputs of app-mlperf-inference for this run, but for the folder that it writes to."""
        given = {
            "execution_mode": self.execution_mode.value,
            "batch_size": self.batch_size,
            "threads": self.threads,
            "target_qps": self.target_qps,
            "target_latency": self.target_latency_ms,
        }
        return {name: str(value) for name, value in given.items() if value is not None}

    @property
    def min_duration_s(self) -> float:
        """Shortest time that LoadGen measures; 0 for an accuracy run, which ends with the last sample."""
        return self.execution_mode.min_duration_ms / 1000.0 if self.mode is Mode.PERFORMANCE else 0.0


def known_names(variations: Mapping[str, Mapping[str, object]]) -> Known:
    """The members of the variation groups `model`, `backend` and `device` of app-mlperf-inference, sorted."""

    def members(group: str) -> tuple[str, ...]:
        return tuple(sorted(name for name, block in variations.items() if block.get("group") == group))

    return Known(models=members("model"), backends=members("backend"), devices=members("device"))


_Member = TypeVar("_Member", Scenario, Mode)


class _Reader:
    """Takes values from env and collects what is wrong with them."""

    def __init__(self, env: Mapping[str, object]) -> None:
        self._env = env
        self.problems: list[str] = []

    def text(self, key: str) -> str:
        value = self._env.get(key)
        return "" if value is None else str(value).strip()

    def one_of(self, key: str, name: str, known: tuple[str, ...]) -> str:
        text = self.text(key)
        if text not in known:
            self.problems.append(f"--{name}: unknown {name} {text!r}; known: {', '.join(known)}")
        return text

    def several(
        self, key: str, name: str, everything: tuple[_Member, ...], parse: Callable[[str], _Member]
    ) -> tuple[_Member, ...]:
        """The members of a comma list in the usual order, all for `all`."""
        words = [word.strip() for word in self.text(key).split(",") if word.strip()]
        if not words:
            self.problems.append(f"--{name}: nothing given; known: {ALL}, {', '.join(m.value for m in everything)}")
        found: set[_Member] = set()
        for word in words:
            if word.lower() == ALL:
                found.update(everything)
                continue
            try:
                found.add(parse(word))
            except UnknownName as error:
                self.problems.append(f"--{name}: {error}, {ALL}")
        return tuple(member for member in everything if member in found)

    def execution_mode(self, key: str) -> ExecutionMode:
        try:
            return parse_execution_mode(self.text(key))
        except UnknownName as error:
            self.problems.append(f"--execution_mode: {error}")
            return ExecutionMode.TEST

    def resume(self, key: str) -> str:
        """One of RESUME_VALUES; `--resume` without a value means all."""
        text = self.text(key).lower()
        text = ALL if text in ("true", "yes") else "" if text in ("false", "no") else text
        if text and text not in RESUME_VALUES:
            self.problems.append(f"--resume: unknown value {text!r}; known: {', '.join(RESUME_VALUES)}")
        return text

    def whole_number(self, key: str, name: str) -> int | None:
        text = self.text(key)
        if not text:
            return None
        if text.isascii() and text.isdigit() and int(text) > 0:
            return int(text)
        self.problems.append(f"--{name}: found {text!r}; allowed: a whole number from 1")
        return None

    def positive_number(self, key: str, name: str) -> float | None:
        text = self.text(key)
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if math.isfinite(value) and value > 0:
            return value
        self.problems.append(f"--{name}: found {text!r}; allowed: a number above 0")
        return None


def _unused_targets(targets: Mapping[str, float], scenarios: tuple[Scenario, ...]) -> list[str]:
    """A problem for each given target that no wanted scenario takes: it would be ignored without a word."""
    used = {name for scenario in scenarios for name in TARGETS[scenario][1:]}
    wanted = ", ".join(scenario.value for scenario in scenarios)
    problems = []
    for name in sorted(set(targets) - used):
        takers = ", ".join(scenario.value for scenario, names in TARGETS.items() if name in names[1:])
        problems.append(f"--{name}: only {takers} has such a target; asked for: {wanted}")
    return problems


def parse_config(env: Mapping[str, object], known: Known, folder: Path) -> Config:
    """The checked call; a relative results folder starts at `folder`. Raises ConfigError with every problem."""
    reader = _Reader(env)
    scenarios = reader.several("CM_MLPERF_LOADGEN_SCENARIO", "scenario", tuple(Scenario), parse_scenario)
    given = {name: reader.positive_number(key, name) for name, key in TARGET_KEYS.items()}
    targets = {name: value for name, value in given.items() if value is not None}
    config = Config(
        model=reader.one_of("CM_MLPERF_MODEL", "model", known.models),
        backend=reader.one_of("CM_MLPERF_BACKEND", "backend", known.backends),
        device=reader.one_of("CM_MLPERF_DEVICE", "device", known.devices),
        scenarios=scenarios,
        modes=reader.several("CM_MLPERF_LOADGEN_MODE", "mode", tuple(Mode), parse_mode),
        execution_mode=reader.execution_mode("CM_MLPERF_RUN_STYLE"),
        results_folder=folder / Path(reader.text("CM_MLPERF_RESULTS_DIR") or "results").expanduser(),
        batch_size=reader.whole_number("CM_MLPERF_LOADGEN_MAX_BATCHSIZE", "batch_size"),
        threads=reader.whole_number("CM_NUM_THREADS", "threads"),
        targets=targets,
        resume=reader.resume("CM_MLPERF_RESUME"),
    )
    problems = reader.problems or _unused_targets(targets, scenarios)
    if problems:
        raise ConfigError(problems)
    return config


def matrix(config: Config) -> tuple[RunSpec, ...]:
    """The runs of a call, scenario by scenario, the performance run first."""
    specs = []
    for scenario in config.scenarios:
        target, own_name, shared_name = TARGETS[scenario]
        value = config.targets.get(own_name, config.targets.get(shared_name))
        for mode in config.modes:
            specs.append(
                RunSpec(
                    model=config.model,
                    backend=config.backend,
                    device=config.device,
                    scenario=scenario,
                    mode=mode,
                    execution_mode=config.execution_mode,
                    batch_size=config.batch_size,
                    threads=config.threads,
                    target_qps=value if target == "target_qps" else None,
                    target_latency_ms=value if target == "target_latency_ms" else None,
                )
            )
    return tuple(specs)


def describe(specs: tuple[RunSpec, ...]) -> str:
    """The list of runs that a user sees before the first one starts."""
    if not specs:
        return "no LoadGen run is left to make"
    total_s = sum(spec.min_duration_s for spec in specs)
    count = f"{len(specs)} LoadGen {'run' if len(specs) == 1 else 'runs'}"
    lines = [f"{count}, at least {total_s:g} s of measuring in all:"]
    for number, spec in enumerate(specs, start=1):
        length = f"at least {spec.min_duration_s:g} s" if spec.mode is Mode.PERFORMANCE else "every sample once"
        what = f"{spec.model} {spec.backend} {spec.device} {spec.scenario.value} {spec.mode.value}"
        lines.append(f"  {number}. {what}: {length}")
    return "\n".join(lines)
