"""Reads a call: model, scenarios, length of the runs, and the values that the user gives. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mlperf_results.benchmarks import BENCHMARKS
from mlperf_results.names import ExecutionMode, Mode, Scenario, UnknownName, parse_execution_mode, parse_modes
from mlperf_results.names import parse_scenario as scenario_named
from mlperf_results.officialnames import official_name
from mlperf_results.rounds import current_scenarios, rounds_of, scenarios_of

from .planning import Overrides

ALL = "all"
OWN_TARGETS = {
    Scenario.SINGLE_STREAM: ("CM_MLPERF_LOADGEN_SINGLESTREAM_TARGET_LATENCY", "CM_MLPERF_LOADGEN_TARGET_LATENCY"),
    Scenario.MULTI_STREAM: ("CM_MLPERF_LOADGEN_MULTISTREAM_TARGET_LATENCY", "CM_MLPERF_LOADGEN_TARGET_LATENCY"),
    Scenario.OFFLINE: ("CM_MLPERF_LOADGEN_OFFLINE_TARGET_QPS", "CM_MLPERF_LOADGEN_TARGET_QPS"),
    Scenario.SERVER: ("CM_MLPERF_LOADGEN_SERVER_TARGET_QPS", "CM_MLPERF_LOADGEN_TARGET_QPS"),
    Scenario.INTERACTIVE: ("CM_MLPERF_LOADGEN_INTERACTIVE_TARGET_QPS", "CM_MLPERF_LOADGEN_TARGET_QPS"),
}
"""The env keys of the target that a scenario has: its own first, then the shared one."""
COUNTS = {
    "min_duration_ms": "CM_MLPERF_LOADGEN_MIN_DURATION_MS",
    "min_query_count": "CM_MLPERF_INFERENCE_MIN_QUERY_COUNT",
    "performance_sample_count": "CM_MLPERF_LOADGEN_PERFORMANCE_SAMPLE_COUNT",
}


class BadCall(Exception):
    """The inputs cannot be used; the text names all that is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What is asked for, by scenario."""

    model: str
    execution_mode: ExecutionMode
    modes: tuple[Mode, ...]
    overrides: Mapping[Scenario, Overrides]


def read(env: Mapping[str, Any]) -> Call:
    """The call in env. Raises BadCall with every problem."""
    problems: list[str] = []

    def text(key: str) -> str:
        return str(env.get(key) or "").strip()

    def number(key: str) -> float | None:
        if not text(key):
            return None
        try:
            value = float(text(key))
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or value <= 0:
            problems.append(f"{key}: found {text(key)!r}; allowed: a number above 0")
        return value

    if not text("CM_MLPERF_MODEL"):
        raise BadCall("give the benchmark with --model")
    model = _official(text("CM_MLPERF_MODEL"))
    if round_problem := _round_problem(model, text("CM_VERSION")):
        problems.append(round_problem)
    try:
        execution_mode = parse_execution_mode(text("CM_MLPERF_RUN_STYLE"))
        mode = text("CM_MLPERF_LOADGEN_MODE")
        modes = parse_modes(mode)
        scenarios = _scenarios(text("CM_MLPERF_LOADGEN_SCENARIO"), model)
    except UnknownName as error:
        raise BadCall(str(error)) from error
    counts = {name: number(key) for name, key in COUNTS.items()}
    whole = {name: None if value is None else int(value) for name, value in counts.items() if value == value}
    overrides = {}
    for scenario in scenarios:
        given = [value for key in OWN_TARGETS[scenario] if (value := number(key)) is not None]
        overrides[scenario] = Overrides(target=given[0] if given else None, **whole)
    if problems:
        raise BadCall("; ".join(dict.fromkeys(problems)))
    return Call(model=model, execution_mode=execution_mode, modes=modes, overrides=overrides)


def _official(name: str) -> str:
    """The official name of a benchmark, of its 99 % level where none is named; of other models the name as it is."""
    try:
        return official_name(name)
    except UnknownName:
        return name


def _round_problem(model: str, round_name: str) -> str:
    """What is wrong with --version: the settings are those of the newest round that has the benchmark."""
    if not round_name or model not in BENCHMARKS or round_name == rounds_of(model)[-1]:
        return ""
    newest = rounds_of(model)[-1]
    return f"--version={round_name}: user.conf is written by the rules of {newest}, the newest round that has {model}"


def _scenarios(text: str, model: str) -> tuple[Scenario, ...]:
    if text.lower() == ALL:
        return tuple(scenario for scenario in Scenario if scenario in current_scenarios(model))
    wanted = {scenario_named(word) for word in text.split(",") if word.strip()}
    allowed = scenarios_of(model)
    missing = sorted(scenario.value for scenario in wanted if scenario not in allowed)
    if missing:
        raise BadCall(f"{model} has no {', '.join(missing)}; it has {', '.join(s.value for s in allowed)}")
    return tuple(scenario for scenario in Scenario if scenario in wanted)
