"""Hooks of add-mlperf-custom-system: write the file of a system of one's own; with `_auto`, measure it.

`definition.py` chooses what it starts from and makes the text. Measuring is the search of run-mlperf-inference-app
(`_find-performance`), which also stores what it found.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import os
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from crowdperf.call.recipe_calls import RecipeFailed, passed_on_inputs, run_recipe
from crowdperf.call.values import is_yes, text_of
from crowdperf.fronts.nvidia.fields import CPU
from crowdperf.fronts.nvidia.lookup import FOLDER_VARIABLE, Here, folder_of_call, look
from crowdperf.fronts.nvidia.registry import Registry, RegistryError, UnknownConfig, read_registry
from crowdperf.fronts.nvidia.sheets import ID_PATTERN
from crowdperf.kit.user_paths import users_folder
from crowdperf.kit.whole_file import write_once, write_whole
from crowdperf.machine.selection import MachineError
from crowdperf.rules.names import Scenario, UnknownName, counted, parse_scenario
from crowdperf.rules.official_names import parse_benchmark

from . import definition
from .definition import Starts

PREFIX = "CM_CUSTOM_SYSTEM_"
FIND = "generate-run-cmds,inference,_find-performance"
HINT = "hint: cm run script --tags=add,custom,system --id=my_box"


class BadCall(Exception):
    """The call asks for something that cannot be; the text says what is allowed."""


class IsThere(BadCall):
    """A system of this name is there already."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path.stem} is there already: {path}")
        self.path = path


PROBLEMS = (BadCall, MachineError, RegistryError, UnknownConfig, UnknownName, OSError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A checked call. path: the file of the system; is_there: it exists and is of this machine, so that _auto keeps it.

    starts: its entries. searches: the inputs of the calls that measure.
    """

    path: Path
    is_there: bool
    here: Here
    starts: Starts
    searches: list[dict[str, Any]]


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """Crowdperf hook of `cm plan script`: refuses what a run refuses; the searches of _auto. Writes nothing."""
    try:
        return {"return": 0, "runs": _read(i).searches}
    except PROBLEMS as error:
        return _failure(error)


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: writes the file and, with _auto, measures."""
    env = i["env"]
    try:
        call = _read(i)
        system, facts, today = call.path.stem, call.here.facts, datetime.now(timezone.utc).date().isoformat()
        if not call.is_there:
            text = definition.definition_text(
                system, today, facts, call.starts, is_stub=is_yes(env.get(PREFIX + "STUB"))
            )
            put(call.path, text, is_replaced=is_yes(env.get(PREFIX + "REPLACE")))
    except PROBLEMS as error:
        return _failure(error)
    print("\n".join(_lines(call)), flush=True)
    env[f"{PREFIX}FILE"], env[f"{PREFIX}ID"] = str(call.path), system
    rows = [
        {"benchmark": name, "scenario": one.value, "from": entry.system} for (name, one), entry in call.starts.items()
    ]
    i["state"]["mlperf_custom_system"] = {
        "system": system, "file": str(call.path), "machine": asdict(facts), "configs": rows,
    }  # fmt: skip
    try:
        for inputs in call.searches:
            run_recipe(i["automation"].cmind.access, inputs)
    except RecipeFailed as error:
        return error.answer
    return {"return": 0}


def put(path: Path, text: str, *, is_replaced: bool) -> None:
    """Puts the file in place, whole; of two that do so at once, one. Raises BadCall and OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if is_replaced:
        write_whole(path, text)
    elif not write_once(path, text.encode("utf-8")):
        raise IsThere(path)


def _failure(error: Exception) -> dict[str, Any]:
    hint = (
        f"{HINT.replace('my_box', error.path.stem)} --replace   # writes over it"
        if isinstance(error, IsThere)
        else HINT
    )
    return {"return": 1, "error": f"{error}\n{hint}"}


def _read(i: dict[str, Any]) -> Call:
    """The checked call. Raises PROBLEMS."""
    env, folder = i["env"], folder_of_call(i)
    system, machine, benchmarks = (
        text_of(env, PREFIX + "NAME"),
        text_of(env, PREFIX + "MACHINE"),
        text_of(env, PREFIX + "BENCHMARKS"),
    )
    if not ID_PATTERN.fullmatch(system):
        raise BadCall(f"--id: found {system!r}; allowed: letters, digits and underscores, a letter first")
    registry, path = read_registry(), folder / f"{system}.yaml"
    if system == CPU or system in registry.known:
        raise BadCall(f"--id: {system} is a system of the registry. Give another name")
    is_auto = is_yes(env.get(PREFIX + "AUTO"))
    if is_auto and (machine or not benchmarks):
        raise BadCall("_auto takes minutes for each benchmark of this machine: give --benchmarks=, and no --machine=")
    here = look(machine, users_folder(env), {})
    is_there = path.exists() and not is_yes(env.get(PREFIX + "REPLACE"))
    if is_there and not (is_auto and read_registry(folder).custom[system].machine == here.facts):
        raise IsThere(path)
    wanted = _starts(registry, here, benchmarks, text_of(env, PREFIX + "SCENARIOS"))
    starts = _starts(registry, here, "", "") if is_auto else wanted
    searches = _searches(i, registry, here, wanted) if is_auto else []
    return Call(path=path, is_there=is_there, here=here, starts=starts, searches=searches)


def _starts(registry: Registry, here: Here, benchmarks: str, scenarios: str) -> Starts:
    """What each benchmark and scenario starts from. Raises BadCall where there is nothing."""
    names = [parse_benchmark(word)[0] for word in benchmarks.split(",") if word.strip()] or registry.benchmarks()
    wanted = [parse_scenario(word) for word in scenarios.split(",") if word.strip()] or list(Scenario)
    found = {}
    for key in ((name, one) for name in names for one in registry.scenarios(name) if one in wanted):
        sheet = registry.sheets[key]
        rows = [registry.known[name] for name in sheet if name != CPU]
        if parent := definition.nearest(here.facts, here.compute_capability, rows):
            found[key] = sheet[parent]
    if not found:
        what = here.facts.accelerator or here.facts.kind
        raise BadCall(f"no entry of {', '.join(names)} in {', '.join(one.value for one in wanted)} is for {what}")
    return found


def _grouped(starts: Starts) -> dict[tuple[str, str], str]:
    """The scenarios, with a comma between them, by benchmark and the system that they start from."""
    found: dict[tuple[str, str], str] = {}
    for (benchmark, scenario), entry in starts.items():
        before = found.get((benchmark, entry.system))
        found[benchmark, entry.system] = f"{before},{scenario.value}" if before else scenario.value
    return found


def _lines(call: Call) -> list[str]:
    facts, system = call.here.facts, call.path.stem
    count = f"{facts.count} x {facts.accelerator}" if facts.count else f"{facts.cpu}, {facts.threads} threads"
    lines = [*([call.here.banner] if call.here.banner else []), f"{system}: {count}"]
    if call.here.known_as:
        lines.append(f"! this is a known system: without this file it is run as {call.here.known_as}")
    for (benchmark, parent), scenarios in _grouped(call.starts).items():
        lines.append(f"  {benchmark} {scenarios.replace(',', ', ')}: from {parent}")
    kept = "kept as it is" if call.is_there else f"written, {counted(len(call.starts), 'entry', 'entries')}"
    lines.append(f"{call.path}: {kept}")
    if FOLDER_VARIABLE in os.environ:
        lines.append(f"It is found as long as {FOLDER_VARIABLE} is {os.environ[FOLDER_VARIABLE]}")
    return lines


def _searches(i: dict[str, Any], registry: Registry, here: Here, starts: Starts) -> list[dict[str, Any]]:
    """The inputs of the searches of _auto, one for each benchmark and what it starts from."""
    env = i["env"]
    found: list[dict[str, Any]] = []
    folder = {"results_dir": text_of(env, PREFIX + "RESULTS")} if text_of(env, PREFIX + "RESULTS") else {}
    for (benchmark, parent), scenarios in _grouped(starts).items():
        count, scenario = here.facts.count if parent != CPU else None, Scenario(scenarios.partition(",")[0])
        inputs = registry.effective(benchmark, scenario, parent, accelerators=count).inputs()
        shape = {name: inputs[name] for name in ("model", "device", "backend", "precision", "gpus") if name in inputs}
        asked = {"tags": FIND, "scenario": scenarios, "source": i["values"]["source"]}
        found.append({**asked, **shape, **folder, **passed_on_inputs(i.get("input") or {})})
    return found
