"""Reads a call: model, scenarios, length of the runs, and the values that the user gives. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crowdperf.rules.benchmarks import BENCHMARKS
from crowdperf.rules.names import TARGETS, ExecutionMode, Mode, Scenario, UnknownName, parse_modes
from crowdperf.rules.official_names import official_name
from crowdperf.rules.rounds import chosen_scenarios, rounds_of
from crowdperf.rules.run_settings import COUNTS

from .conf_plan import Overrides


class BadCall(Exception):
    """The inputs cannot be used; the text names all that is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What is asked for, by scenario."""

    model: str
    execution_mode: ExecutionMode
    modes: tuple[Mode, ...]
    overrides: Mapping[Scenario, Overrides]


def read(values: Mapping[str, Any], round_name: str) -> Call:
    """The call that the typed inputs of a hook ask for. round_name: of `--version`. Raises BadCall with every
    problem."""
    if not values["model"]:
        raise BadCall("give the benchmark with --model")
    model = _official(values["model"])
    try:
        modes = parse_modes(",".join(values["mode"]))
    except UnknownName as error:
        raise BadCall(str(error)) from error
    scenarios, why = chosen_scenarios(values["scenario"], model)
    if why := why or _round_problem(model, round_name):
        raise BadCall(why)
    counts = {name: values[name] for name in COUNTS}
    overrides = {}
    for scenario in scenarios:
        given = [values[name] for name in TARGETS[scenario][1:] if values[name] is not None]
        overrides[scenario] = Overrides(target=given[0] if given else None, **counts)
    mode = ExecutionMode(values["execution_mode"])
    return Call(model=model, execution_mode=mode, modes=modes, overrides=overrides)


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
