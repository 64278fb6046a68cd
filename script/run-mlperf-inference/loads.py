"""The load of a server with the user's prompts: `--concurrency` and `--rate`. One value is a run, several are a sweep.

--concurrency=N   Offline: LoadGen issues all prompts at once, the client keeps N of them in flight (max_in_flight)
--rate=R          Server: LoadGen issues R prompts per second, at random moments (server_target_qps)
--find=rate       Server: runs at several rates, up to the highest one within --slo (loadsearch.py)
--find=concurrency  Offline: the same with --concurrency
--trace=FILE      Offline: LoadGen issues all requests at once, the client sends each at its time in the trace
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from crowdperf.call.connections import too_many_connections
from crowdperf.call.recipe_calls import Access, given_inputs, run_recipe
from crowdperf.kit.whole_file import write_whole
from crowdperf.rules.names import Scenario

from .reading import QUERY, Problems

_DECIDED = (
    "rate", "target_qps", "offline_target_qps", "min_duration_ms", "min_query_count", "performance_sample_count",
    "find", "user_conf",
)  # fmt: skip
"""Inputs that a trace and conversations decide: each of their requests is issued once."""
_NOT_WITH_FIND = (
    "rate", "concurrency", "trace", "conversations", "target_qps", "offline_target_qps", "user_conf", "repeats",
    "baseline",
)  # fmt: skip
"""Inputs of a run at one load. What --find finds is measured with them in a later run."""
_NOT_WITH_TRACE = (*_DECIDED, "concurrency", "prompts", "input_tokens", "output_tokens")
SCENARIOS = {"concurrency": Scenario.OFFLINE, "rate": Scenario.SERVER}
"""The inputs, and the scenario of each."""
SWEEP = "run,mlperf,sweep"
_OF_SWEEPS = (
    "results_dir",
    "run_id",
    "resume",
    "rerun",
    "check",
    "repeats",
    "baseline",
    "baseline_with",
    "max_slowdown",
    "junit",
    "markdown",
)
"""Inputs that the points do not get: the sweep sets them, or they are about all points together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The settings of a run that a load decides. scenarios: empty without a load."""

    scenarios: tuple[Scenario, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    targets: Mapping[str, float] = field(default_factory=dict)


def searched(values: Mapping[str, Any]) -> str | None:
    """The load whose highest value --find searches for, "rate" for `yes`; None without a search."""
    found = values["find"]
    return {None: None, "no": None, "yes": "rate"}.get(found, found)


def given(values: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """The given inputs of the load with their values."""
    return {name: values[name] for name in SCENARIOS if values[name]}


def note_connections(values: Mapping[str, Any], problems: Problems) -> None:
    """Note what asks a server with more requests at once than this machine can have connections."""
    for name in ("concurrency", "max_in_flight"):
        given_counts = values[name] or ()
        counts = given_counts if isinstance(given_counts, tuple) else (given_counts,)
        if counts and (why := too_many_connections(max(counts))):
            problems.note(name, why)


def read_load(values: Mapping[str, Any], *, has_prompts: bool, problems: Problems) -> Load:
    """The load of the first value. Notes problems of the inputs. has_prompts: the run has the user's prompts."""
    found = given(values)
    if (name := searched(values)) and has_prompts:
        return _searched(name, values, problems)
    if values["find"] in SCENARIOS:
        problems.note(
            f"find={values['find']}",
            "only supported for your own prompts. Omit --model and give --prompts or --input_tokens, or use --find=yes",
        )
    if values["trace"] is not None:
        return _replayed(values, has_prompts=has_prompts, problems=problems)
    if values["conversations"]:
        return _conversed(values, problems)
    if not found:
        return Load()
    if len(found) > 1:
        problems.note("rate", "cannot be combined with --concurrency: omit one of them")
    name, numbers = next(iter(found.items()))
    if not has_prompts:
        problems.note(name, "only supported for your own prompts. Omit --model and give --prompts or --input_tokens")
    if len(set(numbers)) < len(numbers):
        problems.note(name, f"found {','.join(f'{one:g}' for one in numbers)!r}; allowed: each value once")
    scenario = SCENARIOS[name]
    same = {"concurrency": ("max_in_flight",), "rate": ("server_target_qps", "target_qps")}[name]
    for other in (*same, "scenario"):
        if values.is_given(other) and not (other == "scenario" and values[other] == (scenario.value,)):
            problems.note(name, f"sets --{other} itself ({scenario.value}): omit --{other}")
    if name == "concurrency":
        return Load(scenarios=(scenario,), options={"max_in_flight": str(numbers[0])})
    return Load(scenarios=(scenario,), targets={"server_target_qps": numbers[0]})


def _searched(name: str, values: Mapping[str, Any], problems: Problems) -> Load:
    """The load of a search for the highest rate or concurrency. Notes problems of the inputs."""
    if not values["slo"]:
        problems.note(
            "find", f"requires the limits that the highest {name} has to meet: add --slo=ttft:500ms,tpot:50ms"
        )
    for other in _NOT_WITH_FIND:
        if values.is_given(other) and values[other]:
            problems.note("find", f"searches for the highest {name} itself: omit --{other}")
    scenario = SCENARIOS[name]
    if values.is_given("scenario") and values["scenario"] != (scenario.value,):
        problems.note("find", f"with your own prompts sets --scenario itself ({scenario.value}): omit --scenario")
    return Load(scenarios=(scenario,))


def _replayed(values: Mapping[str, Any], *, has_prompts: bool, problems: Problems) -> Load:
    """The load of a trace. Notes problems of the inputs."""
    if not has_prompts:
        problems.note("trace", "only supported for a server without --model. Omit --model")
    return _offline("trace", values, _NOT_WITH_TRACE, problems)


def _conversed(values: Mapping[str, Any], problems: Problems) -> Load:
    """The load of conversations, of which so many go on at once as --concurrency says. Notes problems."""
    found = values["concurrency"] or ()
    if len(found) > 1:
        problems.note("conversations", "has one --concurrency: give a single number")
    load = _offline("conversations", values, _DECIDED, problems)
    return replace(load, options={"max_in_flight": str(found[0])}) if found else load


def _offline(name: str, values: Mapping[str, Any], decided: tuple[str, ...], problems: Problems) -> Load:
    """The load of an Offline run whose requests are each issued once. Notes inputs that `name` decides."""
    for one in decided:
        if values.is_given(one):
            problems.note(name, f"decides lengths, times and duration itself: omit --{one}")
    if values.is_given("scenario") and values["scenario"] != (Scenario.OFFLINE.value,):
        problems.note(name, f"sets --scenario itself ({Scenario.OFFLINE.value}): omit --scenario")
    return Load(scenarios=(Scenario.OFFLINE,))


def several(values: Mapping[str, Any]) -> tuple[str, tuple[str, ...]] | None:
    """The input of the load with more than one value, and its values as texts."""
    rows = [(name, tuple(f"{one:g}" for one in numbers)) for name, numbers in given(values).items() if len(numbers) > 1]
    return rows[0] if rows else None


def point_inputs(i: Mapping[str, Any], axis: str) -> dict[str, Any]:
    """The inputs of a call that all its points have."""
    return given_inputs(i, (axis, *_OF_SWEEPS))


def planned(base: Mapping[str, Any], axis: str, numbers: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """The calls of this recipe that the points make."""
    return ({**base, axis: number, "tags": QUERY, "quiet": True} for number in numbers)


def _literal(value: Any) -> Any:
    """A value of a sweep's file, in which braces are placeholders."""
    if isinstance(value, Mapping):
        return {name: _literal(one) for name, one in value.items()}
    return value.replace("{", "{{").replace("}", "}}") if isinstance(value, str) else value


def sweep_text(name: str, base: Mapping[str, Any], axis: str, numbers: tuple[str, ...], n_repeats: int) -> str:
    """The file of the sweep."""
    content = {"format": 1, "name": name, "base": _literal(base), "sweep": {axis: list(numbers)}}
    return json.dumps({**content, "n_repeats": n_repeats}, indent=1) + "\n"


def make(access: Access, folder: Path, text: str) -> dict[str, Any]:
    """Runs the sweep whose results are in `folder`, and gives CM's answer. Its file is kept next to the folder. Raises
    RecipeFailed."""
    file = folder.with_name(f"{folder.name}.yaml")
    write_whole(file, text)
    return run_recipe(access, {"tags": SWEEP, "file": str(file), "results_dir": str(folder.parent)})
