"""Hooks of the recipe get-nvidia-driver: tell the driver, and whether it and the fabric manager will do.

`probe.py` looks at the machine, `rules.py` holds the rules, `install.py` the commands that are shown and never run.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import shlex
from typing import Any

from crowdperf.machine import findings, selection

from . import install, probe, rules

NOT_FOUND_CODE = 16  # CM's code for "not found"


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """Sets the driver's keys; an error where there is no driver, or it will not do, with what to do."""
    env = i["env"]
    try:
        machine = selection.of_call(i)
        asked = rules.asked_in(i["values"], env)
    except (selection.MachineError, rules.AskError) as error:
        return {"return": 1, "error": str(error)}
    there = probe.look(machine)
    found = rules.judge(there, asked)
    rights = there.packages.rights
    i["state"]["nvidia_driver"] = {
        "version": there.driver.version,
        "is_working": there.driver.is_working,
        "fabric_manager_version": there.fabric_manager,
        "nvswitches": there.nvswitches,
        "findings": findings.state_of(found, rights),
    }
    text = findings.table(found, rights)
    if asked.shows_plan:
        print(_install_text(there, asked))
        return {"return": 0}
    if findings.problems(found):
        code = 1 if there.driver.is_working else NOT_FOUND_CODE
        return {
            "return": code,
            "error": f"the NVIDIA driver of this machine cannot be used:\n{text}\n{_hint(there, found, asked)}",
        }
    print(text)
    env.update(_env_of(there))
    return {"return": 0, "version": there.driver.version}


plan = preprocess


def _env_of(there: probe.Seen) -> dict[str, str]:
    """The recipe's keys."""
    driver = there.driver
    return {
        "CM_NVIDIA_DRIVER_VERSION": driver.version,
        "CM_NVIDIA_DRIVER_MAJOR_VERSION": driver.version.split(".")[0],
        "CM_NVIDIA_DRIVER_MODULE_VERSION": driver.module_version,
        "CM_CUDA_VERSION_MAX_OF_DRIVER": driver.cuda_version,
        "CM_NVIDIA_FABRIC_MANAGER_VERSION": there.fabric_manager,
        "CM_NVIDIA_FABRIC_MANAGER_NEEDED": "yes" if there.needs_fabric_manager else "no",
        "CM_NVIDIA_NVSWITCH_COUNT": str(there.nvswitches),
    }


def _install_text(there: probe.Seen, asked: rules.DriverRequest) -> str:
    wanted = asked.branch or install.branch(asked.minimum, asked.expected)
    commands = install.driver_plan(there, wanted)
    if not commands:
        return f"no plan is known for {there.host.pretty_name or 'this system'}. NVIDIA's guide: {install.GUIDE}"
    which = "the newest driver" if there.packages.tool == "pacman" else f"driver branch {wanted}"
    title = f"To install {which} on {there.host.pretty_name or 'this system'} (no command was run):"
    return findings.plan_text(title, commands, there.packages.rights)


def _hint(there: probe.Seen, found: tuple[findings.Finding, ...], asked: rules.DriverRequest) -> str:
    if findings.fixes(findings.problems(found)):
        again = f"get,nvidia,driver{',_fabricmanager-match' * asked.must_match}"
        wanted = {"min": asked.minimum, "expected": asked.expected}
        inputs = "".join(f" --{name}={shlex.quote(value)}" for name, value in wanted.items() if value)
        return f"  hint: run the commands after 'fix:' (no command was run), then: cm run script --tags={again}{inputs}"
    if there.jetson:
        return "  hint: cm run script --tags=get,cuda finds the CUDA of the board"
    return f"  hint: NVIDIA's guide to install a driver: {install.GUIDE}"
