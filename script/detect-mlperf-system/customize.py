"""Hooks of detect-mlperf-system: describe this machine (or a recorded one) and say which known system it is.

`crowdperf.machine.system` looks, `crowdperf.machine.known_systems` says which known system that is, `submission.py`
fills the file of a submission. Nothing is changed; `system.json` is written only with --outdirname.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crowdperf.kit.user_paths import users_folder
from crowdperf.kit.whole_file import write_json
from crowdperf.machine import known_systems, pythons, selection
from crowdperf.machine import system as systems
from crowdperf.machine.known_systems import Match
from crowdperf.machine.system import System
from crowdperf.machine.system_rows import accelerator_rows, host_rows, software_rows

from . import submission


def lines(system: System, match: Match, missing: Sequence[str]) -> tuple[str, ...]:
    """The whole description, one fact per line."""
    rows = [
        ("system", _named(match)),
        *(("", f"- {reason}") for reason in match.reasons),
        *host_rows(system),
        *accelerator_rows(system),
        *software_rows(system),
        ("not known", ", ".join(missing) or "none that a submission requires"),
    ]
    return tuple(f"{name:<14} {text}" for name, text in rows if text)


def _named(match: Match) -> str:
    if match.row is None:
        return "none that is listed (described below all the same)"
    if match.quality == "exact":
        return f"{match.row.system_id} (as {match.row.described_as}, {match.row.source})"
    return f"none that is listed; nearest: {match.row.system_id} (same GPU, other count)"


PREFIX = "CM_MLPERF_SYSTEM_"
FILE_NAME = "system.json"


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """The same when a run is only planned, but nothing is printed or written."""
    return _describe(i, is_run=False)


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: prints the description; answers with env keys, state ``mlperf_system`` and, if asked, a file."""
    return _describe(i, is_run=True)


def _describe(i: dict[str, Any], *, is_run: bool) -> dict[str, Any]:
    env, state, values = i["env"], i["state"], i["values"]
    start = users_folder(env)
    try:
        chosen = selection.choose(values["machine"] or "", start)
        rows = known_systems.read()
    except (selection.MachineError, OSError, ValueError) as error:
        return {"return": 1, "error": str(error)}
    wanted = values["python"] or ""
    python = pythons.find(chosen.machine, wanted, str(start))
    if wanted and not python:
        hint = "hint: the path of an interpreter, such as --python=/usr/bin/python3"
        return {"return": 1, "error": f"--python={wanted}: there is no such Python\n  {hint}"}
    system = systems.look(chosen.machine, python, chosen.note)
    match = known_systems.match(system, rows)
    fields = submission.fields(system)
    missing = submission.missing(fields)
    state["mlperf_system"] = {
        **systems.as_dict(system),
        "match": match_as_dict(match),
        "submission": fields,
        "submission_missing": list(missing),
    }
    env.update(env_of(system, match))
    if not is_run:
        return {"return": 0}
    if chosen.banner:
        print(chosen.banner)
    print("\n".join(lines(system, match, missing)), flush=True)
    return _write(env, state["mlperf_system"]) if env.get("CM_OUTDIRNAME") else {"return": 0}


def _write(env: dict[str, Any], content: dict[str, Any]) -> dict[str, Any]:
    path = Path.cwd() / FILE_NAME
    try:
        write_json(path, content, sort_keys=True)
    except OSError as error:
        hint = "hint: --outdirname=FOLDER of a folder that you may write to"
        return {"return": 1, "error": f"cannot write {path}: {error.strerror}\n  {hint}"}
    env[f"{PREFIX}JSON"] = str(path)
    return {"return": 0}


def match_as_dict(match: known_systems.Match) -> dict[str, Any]:
    """A match for the state."""
    row = match.row
    return {
        "quality": match.quality,
        "system_id": match.system_id,
        "nearest": row.system_id if row else "",
        "described_as": row.described_as if row else "",
        "category": row.category if row else "",
        "source": row.source if row else "",
        "reasons": list(match.reasons),
    }


def env_of(system: systems.System, match: known_systems.Match) -> dict[str, str]:
    """The description as env keys; empty for what is not known."""
    gpus = system.driver.gpus
    values = {
        "ID": match.system_id,
        "MATCH": match.quality,
        "NEAREST": match.row.system_id if match.row else "",
        "IS_SIMULATED": "yes" if system.is_recorded else "no",
        "CONTAINER": system.host.container,
        "GPU_NAME": " + ".join(sorted({gpu.name for gpu in gpus})),
        "GPUS_PRESENT": str(len(system.present_gpus)),
        "GPUS_VISIBLE": str(len(gpus)),
        "ACCELERATORS_VISIBLE": str(system.visible_count),
        "MIG_SLICES": str(len(system.driver.slices)),
        "DRIVER_VERSION": system.driver.version,
        "FABRIC_MANAGER_VERSION": system.fabric_manager,
        "CUDA_VERSIONS": ",".join(kit.version for kit in system.cuda),
        "CUDNN_VERSIONS": ",".join(library.version for library in system.cudnn),
        "TENSORRT_VERSIONS": ",".join(library.version for library in system.tensorrt),
        "NUMA_NODES": str(len(system.cpu.nodes) or ""),
    }
    return {f"{PREFIX}{key}": value for key, value in values.items()}
