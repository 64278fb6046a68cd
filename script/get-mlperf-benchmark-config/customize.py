"""Hooks of get-mlperf-benchmark-config: list the benchmarks; with --benchmark, give its settings.

What they are is decided by `crowdperf/fronts/nvidia`.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

from typing import Any

from crowdperf.call.values import is_yes, text_of
from crowdperf.fronts.nvidia import lookup
from crowdperf.fronts.nvidia.effective import EffectiveConfig
from crowdperf.fronts.nvidia.fields import CPU, BadSetting
from crowdperf.fronts.nvidia.registry import Registry, RegistryError, UnknownConfig, read_registry
from crowdperf.kit.user_paths import users_folder
from crowdperf.machine.selection import MachineError
from crowdperf.rules.names import UnknownName, parse_scenario, unknown_text
from crowdperf.rules.official_names import parse_benchmark

PREFIX = "CM_MLPERF_CONFIG_"
HINT = "hint: cm run script --tags=get,mlperf,benchmark,config lists the benchmarks, and with --benchmark its systems"
PROBLEMS = (MachineError, BadSetting, RegistryError, UnknownConfig, UnknownName, lookup.StoreError, OSError)


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """The same when a run is only planned, but nothing is printed, and what was measured is not looked up."""
    return _answer(i, is_planned=True)


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: prints and answers with what is asked for."""
    return _answer(i, is_planned=False)


def _answer(i: dict[str, Any], *, is_planned: bool) -> dict[str, Any]:
    env = i["env"]
    if not (text_of(env, PREFIX + "BENCHMARK") or is_yes(env.get(PREFIX + "CHECK"))) and (
        is_planned or i.get("recursion_spaces")
    ):
        return {"return": 0}  # for a recipe above, which imports the package
    try:
        lines = _lines(i, is_planned)
    except PROBLEMS as error:
        return {"return": 1, "error": f"{error}\n{HINT}"}
    if not is_planned:
        print("\n".join(lines), flush=True)
    return {"return": 0}


def _lines(i: dict[str, Any], is_planned: bool) -> list[str]:
    """What is printed; settings that are asked for are put into env and state."""
    env = i["env"]
    benchmark, system, machine = (text_of(env, PREFIX + key) for key in ("BENCHMARK", "WANTED_SYSTEM", "MACHINE"))
    registry = read_registry(lookup.folder_of_call(i))
    if is_yes(env.get(PREFIX + "CHECK")):
        return [f"{len(registry.benchmarks())} benchmarks, {len(registry.custom)} custom systems: no problem"]
    if not (benchmark and text_of(env, PREFIX + "SCENARIO")):
        return _list_lines(registry, benchmark, system)
    given = (i.get("input") or {}).get("set") or {}
    if not isinstance(given, dict):
        raise BadSetting(f"--set: found {given!r}; allowed: one field, as in --set.gpu_batch_size=32")
    if system and machine:
        raise BadSetting("--system and --machine cannot be combined: a machine determines its system")
    scenario, source = parse_scenario(text_of(env, PREFIX + "SCENARIO")), i["values"]["source"]
    key = parse_benchmark(benchmark)[0], scenario
    fitting = {name: one for name, one in registry.custom.items() if key in one.entries}
    here = None if system else lookup.look(machine, users_folder(env), fitting)
    is_this = not machine and (here is not None or system == CPU or system in registry.custom)
    cmind = getattr(i.get("automation"), "cmind", None)  # a plan has none
    config = registry.effective(
        benchmark,
        scenario,
        here.system if here else system,
        i["values"]["config_ver"],
        accelerators=here.accelerators if here else None,
        measured=lookup.measured_by(cmind.access, source) if is_this and cmind and not is_planned else None,
        user={str(name): str(value) for name, value in given.items()},
    )
    i["state"]["mlperf_benchmark_config"] = config.as_dict()
    env.update(_env_of(config))
    banner = [here.banner] if here and here.banner else []
    return [*banner, *config.lines(source, here.reasons if here else ())]


def _list_lines(registry: Registry, benchmark: str, system: str) -> list[str]:
    """What there is: benchmarks with their scenarios; of one benchmark the systems with their config versions. With a
    system, what that one has. Raises UnknownConfig where it has nothing of it."""
    names = [benchmark] if benchmark else registry.benchmarks()
    sheets = {
        (name, scenario): registry.sheet(name, scenario) for name in names for scenario in registry.scenarios(name)
    }
    there = {key: sheet for key, sheet in sheets.items() if not system or system in sheet}
    if not there:
        known = list(dict.fromkeys(one for sheet in sheets.values() for one in sheet))
        raise UnknownConfig(unknown_text("system", system, known))
    if not benchmark:
        return [
            f"{one}: {', '.join(scenario.value for name, scenario in there if name == one)}"
            for one in dict.fromkeys(name for name, _ in there)
        ]
    lines = []
    for (_, scenario), sheet in there.items():
        lines.append(f"{benchmark} {scenario.value}")
        lines += [f"  {one}: {', '.join(entry.layers)}" for one, entry in sheet.items() if system in ("", one)]
    return lines


def _env_of(config: EffectiveConfig) -> dict[str, str]:
    """The settings as env keys; empty for what the harness finds."""
    inputs = config.inputs()
    values = {key.upper(): inputs.get(key, "") for key in ("batch_size", "precision", "instances")}
    values["TARGET_QPS"] = next((text for name, text in inputs.items() if name.endswith("_target_qps")), "")
    latencies = [text for name, text in inputs.items() if name.endswith("_target_latency_ms")]
    values["TARGET_LATENCY_MS"] = next(iter(latencies), "")
    return {PREFIX + key: text for key, text in {**values, "SYSTEM": config.system, "FILE": config.file}.items()}
