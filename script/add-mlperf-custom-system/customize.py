"""Hooks of add-mlperf-custom-system: write the file of a system of one's own; with `_auto`, measure it.

`definition.py` chooses what it starts from and makes the file. Measuring is the search of run-mlperf-inference-app
(`_find-performance`), which also stores what it found.
"""

from __future__ import annotations

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine; put it first with: cm use crowdperf:script")

import os
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from machine_facts.choose import MachineError
from machine_facts.findings import is_yes
from mlperf_configs.fields import CPU
from mlperf_configs.lookup import FOLDER_VARIABLE, Here, folder_of_call, look
from mlperf_configs.registry import SHIPPED, Registry, RegistryError, UnknownConfig, read_registry
from mlperf_configs.sheets import ID_PATTERN, Entry
from mlperf_results.names import Scenario, UnknownName, counted, parse_scenario
from mlperf_results.officialnames import parse_benchmark
from mlperf_results.recipecalls import SCRIPT_AUTOMATION, passed_on_inputs

from . import definition
from .definition import Starts

PREFIX = "CM_CUSTOM_SYSTEM_"
FIND = "generate-run-cmds,inference,_find-performance"
HINT = "hint: cm run script --tags=add,custom,system --id=my_box"


class BadCall(Exception):
    """The call asks for something that cannot be; the text says what is allowed."""


PROBLEMS = (BadCall, MachineError, RegistryError, UnknownConfig, UnknownName, definition.AlreadyThere, OSError)


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
        return {"return": 1, "error": f"{error}\n{HINT}"}


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: writes the file and, with _auto, measures."""
    env = i["env"]
    try:
        call = _read(i)
        facts, today = call.here.facts, datetime.now(timezone.utc).date().isoformat()
        if not call.is_there:
            text = definition.text_of(call.path.stem, today, facts, call.starts, is_stub=is_yes(_text(env, "STUB")))
            definition.put(call.path, text, is_replaced=is_yes(_text(env, "REPLACE")))
    except PROBLEMS as error:
        return {"return": 1, "error": f"{error}\n{HINT}"}
    print("\n".join(_lines(call)), flush=True)
    env[f"{PREFIX}FILE"], env[f"{PREFIX}ID"] = str(call.path), call.path.stem
    rows = [
        {"benchmark": benchmark, "scenario": scenario.value, "from": entry.system}
        for benchmark, entries in call.starts.items() for scenario, entry in entries.items()
    ]  # fmt: skip
    system = {"system": call.path.stem, "file": str(call.path), "machine": asdict(facts), "configs": rows}
    i["state"]["mlperf_custom_system"] = system
    for inputs in call.searches:
        own = {"action": "run", "automation": SCRIPT_AUTOMATION, "quiet": True}
        answer = i["automation"].cmind.access({**inputs, **own})
        if answer["return"] > 0:
            return dict(answer)
    return {"return": 0}


def _text(env: dict[str, Any], key: str) -> str:
    return str(env.get(PREFIX + key) or "").strip()


def _read(i: dict[str, Any]) -> Call:
    """The checked call. Raises PROBLEMS."""
    env, folder = i["env"], folder_of_call(i)
    system, machine, benchmarks = _text(env, "NAME"), _text(env, "MACHINE"), _text(env, "BENCHMARKS")
    if not ID_PATTERN.fullmatch(system):
        raise BadCall(f"--id: found {system!r}; allowed: letters, digits and underscores, a letter first")
    registry, path = read_registry(), folder / f"{system}.yaml"
    if system == CPU or system in registry.known:
        raise BadCall(f"--id: {system} is a system of the registry; give another name")
    is_auto = is_yes(_text(env, "AUTO"))
    if is_auto and (machine or not benchmarks):
        raise BadCall("_auto takes minutes for each benchmark of this machine: give --benchmarks=, and no --machine=")
    here = look(machine, Path(env.get("CM_TMP_CURRENT_PATH") or Path.cwd()), {})
    is_there = path.exists() and not is_yes(_text(env, "REPLACE"))
    if is_there and not (is_auto and read_registry([SHIPPED, folder]).custom[system].machine == here.facts):
        raise definition.AlreadyThere(f"{system} is there already: {path}; --replace writes over it")
    wanted = _starts(registry, here, benchmarks, _text(env, "SCENARIOS"))
    starts = _starts(registry, here, "", "") if is_auto else wanted
    searches = _searches(i, registry, here, wanted) if is_auto else []
    return Call(path=path, is_there=is_there, here=here, starts=starts, searches=searches)


def _starts(registry: Registry, here: Here, benchmarks: str, scenarios: str) -> Starts:
    """What each benchmark and scenario starts from. Raises BadCall where there is nothing."""
    names = [parse_benchmark(word)[0] for word in benchmarks.split(",") if word.strip()] or registry.benchmarks()
    wanted = [parse_scenario(word) for word in scenarios.split(",") if word.strip()] or list(Scenario)
    found: dict[str, dict[Scenario, Entry]] = {}
    for benchmark in names:
        for scenario in (one for one in registry.scenarios(benchmark) if one in wanted):
            entries = registry.sheet(benchmark, scenario)
            rows = [registry.known[name] for name in entries if name != CPU]
            parent = definition.nearest(here.facts, here.compute_capability, rows)
            if parent:
                found.setdefault(benchmark, {})[scenario] = entries[parent]
    if not found:
        what = here.facts.accelerator or here.facts.kind
        raise BadCall(f"no entry of {', '.join(names)} in {', '.join(one.value for one in wanted)} is for {what}")
    return found


def _lines(call: Call) -> list[str]:
    facts, known, system = call.here.facts, call.here.known, call.path.stem
    lines = [call.here.banner] if call.here.banner else []
    count = f"{facts.count} x {facts.accelerator}" if facts.count else f"{facts.cpu}, {facts.threads} threads"
    lines.append(f"{system}: {count}")
    if known and (call.here.is_slice or facts.count == known.count):
        lines.append(f"! this is a known system: without this file it is run as {known.system_id}")
    for (benchmark, parent), scenarios in definition.grouped(call.starts).items():
        lines.append(f"  {benchmark} {', '.join(scenarios)}: from {parent}")
    count = counted(sum(map(len, call.starts.values())), "entry", "entries")
    kept = "kept as it is" if call.is_there else f"written, {count}"
    lines.append(f"{call.path}: {kept}")
    if FOLDER_VARIABLE in os.environ:
        lines.append(f"It is found as long as {FOLDER_VARIABLE} is {os.environ[FOLDER_VARIABLE]}")
    return lines


def _searches(i: dict[str, Any], registry: Registry, here: Here, starts: Starts) -> list[dict[str, Any]]:
    """The inputs of the searches of _auto, one for each benchmark and what it starts from."""
    env, found = i["env"], []
    folder = {"results_dir": _text(env, "RESULTS")} if _text(env, "RESULTS") else {}
    for (benchmark, parent), scenarios in definition.grouped(starts).items():
        count = here.facts.count if parent != CPU else None
        inputs = registry.effective(benchmark, Scenario(scenarios[0]), parent, accelerators=count).inputs()
        shape = {name: inputs[name] for name in ("model", "device", "backend", "precision", "gpus") if name in inputs}
        asked = {"tags": FIND, "scenario": ",".join(scenarios), "source": _text(env, "SOURCE") or "real"}
        found.append({**asked, **shape, **folder, **passed_on_inputs(i.get("input") or {})})
    return found
