"""Hooks of doctor: one page about a machine, with one command for each thing that is wrong or missing.

`crowdperf.machine.system` and `surroundings.py` look; `software_stack.py`, `backends.py` and `surroundings.py` judge by
the tables of `crowdperf.machine.compatibility`; `advice.py` has the commands. Nothing is changed; findings are no
failures.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import dataclasses
import json
from pathlib import Path
from typing import Any

from crowdperf.kit.user_paths import users_folder
from crowdperf.machine import findings, pythons, selection, system_rows
from crowdperf.machine import system as systems

from . import backends, software_stack, summary, surroundings

NAME = "mlperf-inference"
"""What the recipes of benchmarks call their environment (`adr.python.name` in app-mlperf-inference)."""


def benchmark_python(cache: Path) -> str:
    """Return the Python of the newest finished environment of benchmarks, empty when there is none."""
    found = []
    for file in cache.glob("*/_cm.json"):
        python = file.parent / NAME / "bin" / "python3"
        if python.is_file() and _is_environment(file):
            found.append((file.stat().st_mtime_ns, str(python)))
    return max(found)[1] if found else ""


def _is_environment(file: Path) -> bool:
    try:
        tags = set(json.loads(file.read_text(encoding="utf-8"))["tags"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return {"python-venv", f"name-{NAME}"} <= tags and "tmp" not in tags


def existing(folder: Path) -> Path:
    """Return the folder, or the nearest one above that exists."""
    return next(one for one in (folder, *folder.parents) if one.is_dir())


PREFIX = "CM_DOCTOR_"


def memory_of(system):
    """The memory that a process of this machine can have, in bytes: what there is, or the limit of a cgroup; None where
    neither is known."""
    known = [size for size in (system.cpu.memory_bytes, system.memory_limit_bytes) if size]
    return min(known, default=None)


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """The same when a run is only planned, but nothing is printed."""
    return _look(i, is_shown=False)


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: prints the page; answers with state ``doctor``. Fails only when it cannot look."""
    return _look(i, is_shown=True)


def _look(i: dict[str, Any], *, is_shown: bool) -> dict[str, Any]:
    env, values = i["env"], i["values"]
    start = users_folder(env)
    try:
        chosen = selection.choose(values["machine"] or "", start)
    except selection.MachineError as error:
        return {"return": 1, "error": str(error)}
    machine, wanted = chosen.machine, values["python"] or ""
    is_of_benchmarks = not wanted and not machine.is_recorded
    cache = Path(getattr(i.get("automation"), "cache_path", "") or start)
    of_benchmarks = benchmark_python(cache) if is_of_benchmarks else ""
    python = of_benchmarks or pythons.find(machine, wanted, str(start))
    if wanted and not python:
        hint = "hint: the path of an interpreter, such as --python=/usr/bin/python3"
        return {"return": 1, "error": f"--python={wanted}: there is no such Python\n  {hint}"}
    system = systems.look(machine, python, chosen.note)
    if is_of_benchmarks and not of_benchmarks:
        system = dataclasses.replace(system, python="", packages={})
    installed = pythons.packages(machine, system.python)
    torch, onnxruntime = installed.get("torch"), installed.get("onnxruntime-gpu")
    facts = backends.Facts(
        system,
        surroundings.look(machine),
        pythons.onnxruntime_cuda_major(machine, onnxruntime) if onnxruntime else "",
        pythons.torch_cuda_release(machine, torch) if torch else "",
        is_of_benchmarks,
    )
    sections = {
        "fits": software_stack.findings(system, facts.torch_cuda),
        "backends": backends.findings(facts),
        "surroundings": surroundings.findings(facts.around),
    }
    problems = findings.problems([one for section in sections.values() for one in section])
    ready = backends.ready(facts)
    disk = None if machine.is_recorded else machine.disk(str(existing(cache)))
    can_run = summary.text(facts, disk.free_bytes if disk else None, memory_of(system))
    rights = facts.around.rights
    i["state"]["doctor"] = {
        "machine": systems.as_dict(system),
        **{name: findings.state_of(section, rights) for name, section in sections.items()},
        "problems": [one.what for one in problems],
        "ready": list(ready),
        "can_run": can_run,
    }
    env[f"{PREFIX}PROBLEMS"] = str(len(problems))
    env[f"{PREFIX}READY"] = ",".join(ready)
    if is_shown:
        from recipe_engine.running.console import as_called  # only a hook's process has the engine

        print(as_called(page(chosen.banner, facts, sections, can_run)), flush=True)
    return {"return": 0}


def page(banner: str, facts: backends.Facts, sections: dict[str, tuple[findings.Finding, ...]], can_run: str) -> str:
    """The page: what is there, what fits, what is missing for which backend, user and space, and the sum."""
    system, rights = facts.system, facts.around.rights
    rows = [*system_rows.host_rows(system), *system_rows.accelerator_rows(system), *system_rows.software_rows(system)]
    there = "\n".join(f"  {name:<15} {text}" for name, text in rows if text)
    where = f"packages of {system.python or 'no Python'}"
    if facts.has_benchmark_python:
        where = f"environment of benchmarks: {system.python or 'not made yet, the first run makes it'}"
    titles = {
        "fits": "Compatibility",
        "backends": f"Backends ({where})",
        "surroundings": "User, containers, space",
    }
    problems = findings.problems([one for section in sections.values() for one in section])
    wrong = ", ".join(one.what for one in problems)
    count = f"{len(problems)} problem{'' if len(problems) == 1 else 's'}"
    parts = [f"System\n{there}"]
    parts += [f"{titles[name]}\n{findings.table(section, rights)}" for name, section in sections.items()]
    parts.append(
        f"{count}{': ' + wrong if wrong else ''}. No changes were made. The commands after 'fix:' are for you."
    )
    parts.append("Which system of MLPerf this is: cm run script --tags=detect,mlperf,system")
    parts.append(can_run)
    return "\n".join([*([banner] if banner else []), "\n\n".join(parts)])
