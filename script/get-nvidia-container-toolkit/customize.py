"""Hooks of the recipe get-nvidia-container-toolkit: is the toolkit there, and how do containers get GPUs.

`toolkit.py` looks and chooses the way, `advice.py` judges and holds the commands that are shown and never run.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import re
from typing import Any

from crowdperf.call.values import is_yes
from crowdperf.machine import findings, packages, selection

from . import advice, toolkit

NOT_FOUND_CODE = 16  # CM's code for "not found"
AGAIN = "then: cm run script --tags=get,nvidia,container-toolkit"


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """Sets the keys of the toolkit and of the way; an error with what to do where the toolkit will not do."""
    env, state, values = i["env"], i["state"], i["values"]
    minimum = values["min"]
    if not re.fullmatch(r"\d+(\.\d+){0,3}", minimum):
        return {"return": 1, "error": f"--min={minimum} is not a version, such as 1.4.0\n  hint: --min=1.4.0"}
    try:
        machine = selection.of_call(i)
    except selection.MachineError as error:
        return {"return": 1, "error": str(error)}
    told = state.get("container_engines")  # not there when a run is only planned: a plan hands no state on
    engines = told or []
    there = toolkit.look(machine)
    found = advice.judge(machine, there, engines, minimum)
    found = tuple(one for one in found if told is not None or one.what != advice.ENGINE)
    rights = packages.rights(machine)
    if is_yes(env.get("CM_CONTAINER_TOOLKIT_SHOW_PLAN")):
        commands = advice.install_plan(machine, [str(one["name"]) for one in engines])
        title = "To install the NVIDIA Container Toolkit (no command was run):"
        print(findings.plan_text(title, commands, rights) if commands else f"no plan is known. See {advice.GUIDE}")
        return {"return": 0}
    asked = values["way"]
    way = toolkit.asked_way(asked, there, engines) if asked else toolkit.choose_way(there, engines)
    if isinstance(way, str):
        return {"return": 1, "error": f"{way}\n  hint: without --way the recipe chooses"}
    state["nvidia_container_toolkit"] = {
        **there._asdict(),
        "cdi_specs": list(there.cdi_specs),
        "way": way._asdict(),
        "findings": findings.state_of(found, rights),
    }
    text = findings.table(found, rights)
    if findings.problems(found):
        hint = f"  hint: run the commands after 'fix:' (no command was run), {AGAIN}"
        code = 1 if there.is_there else NOT_FOUND_CODE
        return {"return": code, "error": f"containers get no NVIDIA GPU here:\n{text}\n{hint}"}
    print(text)
    if way.name:
        print(f"  GPUs by: {' '.join(filter(None, (way.program, 'run', way.arguments)))} ({way.reason})")
    env.update(_env_of(there, way))
    return {"return": 0, "version": there.library}


plan = preprocess


def _env_of(there: toolkit.Toolkit, way: toolkit.Way) -> dict[str, str]:
    """The recipe's keys; the way is empty where no engine is there."""
    return {
        "CM_CONTAINER_GPU_PROGRAM": way.program,
        "CM_CONTAINER_GPU_RUN_ARGS": way.arguments,
        "CM_CONTAINER_GPU_WAY": way.name,
        "CM_LIBNVIDIA_CONTAINER_VERSION": there.library,
        "CM_NVIDIA_CONTAINER_TOOLKIT_BIN_WITH_PATH": there.path,
        "CM_NVIDIA_CONTAINER_TOOLKIT_VERSION": there.version or there.library,
    }
