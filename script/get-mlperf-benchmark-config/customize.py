"""Hooks of get-mlperf-benchmark-config: make mlperf_configs importable; with --benchmark, give its settings.

Not cached, so that the package is importable in each process. `mlperf_configs` decides, `page.py` makes lines.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine; put it first with: cm use crowdperf:script")

import os
import sys
from pathlib import Path
from typing import Any

FOLDER = str(Path(__file__).resolve().parent)
if FOLDER not in sys.path:
    sys.path.append(FOLDER)

from machine_facts.choose import MachineError
from mlperf_configs import lookup
from mlperf_configs.custom import FOLDER_VARIABLE, custom_folder
from mlperf_configs.effective import EffectiveConfig
from mlperf_configs.fields import BadSetting
from mlperf_configs.registry import SHIPPED, RegistryError, UnknownConfig, read_registry
from mlperf_results.names import UnknownName, parse_scenario

from . import page

PREFIX = "CM_MLPERF_CONFIG_"
HINT = "hint: cm run script --tags=get,mlperf,benchmark,config lists the benchmarks; with --benchmark, its systems"
PROBLEMS = (MachineError, BadSetting, RegistryError, UnknownConfig, UnknownName, lookup.StoreError, OSError)


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """The same when a run is only planned, but nothing is printed, and what was measured is not looked up."""
    return _answer(i, is_planned=True)


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: puts this recipe's folder on PYTHONPATH; prints and answers with what is asked for."""
    return _answer(i, is_planned=False)


def _answer(i: dict[str, Any], *, is_planned: bool) -> dict[str, Any]:
    env = i["env"]
    env[f"{PREFIX}LIB_PATH"] = FOLDER
    env["+PYTHONPATH"] = [FOLDER]
    if not (_text(env, "BENCHMARK") or _is_check(env)) and (is_planned or i.get("recursion_spaces")):
        return {"return": 0}  # for a recipe above, which imports the package
    try:
        lines = _lines(i, is_planned)
    except PROBLEMS as error:
        return {"return": 1, "error": f"{error}\n{HINT}"}
    if not is_planned:
        print("\n".join(lines), flush=True)
    return {"return": 0}


def _text(env: dict[str, Any], key: str) -> str:
    return str(env.get(PREFIX + key) or "").strip()


def _is_check(env: dict[str, Any]) -> bool:
    return _text(env, "CHECK").lower() in ("yes", "true", "on", "1")


def _lines(i: dict[str, Any], is_planned: bool) -> list[str]:
    """What is printed; settings that are asked for are put into env and state."""
    env = i["env"]
    cmind = getattr(i.get("automation"), "cmind", None)  # a plan has none
    home = Path(cmind.repos_path) if cmind else Path(os.environ.get("CM_REPOS") or Path.home() / "CM")
    given = str(env.get(FOLDER_VARIABLE) or os.environ.get(FOLDER_VARIABLE) or "")
    registry = read_registry([SHIPPED, custom_folder(given, home)])
    if _is_check(env):
        registry.check()
        return [f"{len(registry.benchmarks())} benchmarks, {len(registry.custom_systems())} custom systems: no problem"]
    benchmark = _text(env, "BENCHMARK")
    if not benchmark or not _text(env, "SCENARIO"):
        return page.list_lines(registry, benchmark)
    stored = None if is_planned or cmind is None else lookup.stored_by(cmind.access)
    start = Path(env.get("CM_TMP_CURRENT_PATH") or Path.cwd())
    request = _request(env, i.get("input") or {})
    config, here = lookup.find(registry, request, start, stored)
    i["state"]["mlperf_benchmark_config"] = config.as_dict()
    env.update(env_of(config))
    banner = [here.banner] if here and here.banner else []
    return [*banner, *page.config_lines(config, request.source, here.reasons if here else ())]


def _request(env: dict[str, Any], inputs: dict[str, Any]) -> lookup.Request:
    given = inputs.get("set") or {}
    if not isinstance(given, dict):
        raise BadSetting(f"--set: found {given!r}; allowed: one field, as in --set.gpu_batch_size=32")
    if _text(env, "WANTED_SYSTEM") and _text(env, "MACHINE"):
        raise BadSetting("--system and --machine: a machine says which system it is; give one of them")
    return lookup.Request(
        benchmark=_text(env, "BENCHMARK"),
        scenario=parse_scenario(_text(env, "SCENARIO")),
        system=_text(env, "WANTED_SYSTEM"),
        config_ver=_text(env, "VER") or "default",
        machine=_text(env, "MACHINE"),
        source=_text(env, "SOURCE") or "real",
        settings={str(name): str(value) for name, value in given.items()},
    )


def env_of(config: EffectiveConfig) -> dict[str, str]:
    """The settings as env keys; empty for what the harness finds."""
    inputs = config.inputs()
    values = {
        "BATCH_SIZE": inputs.get("batch_size", ""),
        "PRECISION": inputs.get("precision", ""),
        "INSTANCES": inputs.get("instances", ""),
        "TARGET_QPS": next((text for name, text in inputs.items() if name.endswith("_target_qps")), ""),
        "TARGET_LATENCY_MS": next((text for name, text in inputs.items() if name.endswith("_target_latency")), ""),
        "SYSTEM": config.system,
        "FILE": config.file,
    }
    return {PREFIX + key: value for key, value in values.items()}
