"""Hooks of the recipe get-docker: which container engine there is, and whether it can start a container.

`crowdperf.machine.engines` looks, `advice.py` holds the commands that are shown. Only `_restart` with `--apply` changes
anything.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import os
from collections.abc import Mapping
from typing import Any

from crowdperf.machine import engines, findings, packages, selection, versions
from crowdperf.machine.probe import Machine

from . import advice

NOT_FOUND_CODE = 16  # CM's code for "not found"


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """The same when a run is only planned, without what would change the machine."""
    return _find(i, may_apply=False)


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """Sets the keys of the engine that is chosen; an error with what to do where none can start a container."""
    return _find(i, may_apply=i["values"]["apply"] is True)


def _find(i: dict[str, Any], *, may_apply: bool) -> dict[str, Any]:
    env = i["env"]
    try:
        machine = selection.of_call(i)
    except selection.MachineError as error:
        return {"return": 1, "error": str(error)}
    action = str(env.get("CM_DOCKER_ACTION", "") or "")
    rights = packages.rights(machine)
    if action == "install":
        return _show_install(machine, rights)
    if action == "restart":
        return _restart(machine, i["values"], may_apply=may_apply)
    asked = str(env.get("CM_CONTAINER_ENGINES", "") or "")
    found = engines.look(machine, tuple(name for name in engines.NAMES if not asked or name == asked))
    judged = tuple(advice.judge(machine, one) for one in found)
    i["state"]["container_engines"] = [
        {**one._asdict(), "runtimes": list(one.runtimes), "is_usable": one.is_usable} for one in found
    ]
    text = findings.table(judged, rights)
    best = next((one for one in found if one.is_usable and not versions.misfit(one.version, env)), None)
    if best is None and action != "look":
        return _none_will_do(machine, found, text, env)
    print(text or f"  no container engine ({asked or ', '.join(engines.NAMES)}) is on PATH")
    env.update(_env_of(best or (found[0] if found else None)))
    return {"return": 0, "version": best.version if best else ""}


def _none_will_do(
    machine: Machine, found: tuple[engines.Engine, ...], text: str, env: dict[str, Any]
) -> dict[str, Any]:
    asked = str(env.get("CM_CONTAINER_ENGINES", "") or "")
    if not found:
        error = (
            f"{asked or 'docker, podman or apptainer'} is not on PATH.\n{advice.missing(machine, asked)}\n"
            "  hint: without root's rights, ask your administrator for apptainer"
        )
        return {"return": NOT_FOUND_CODE, "error": error}
    reasons = [f"{one.name}: {reason}" for one in found if (reason := versions.misfit(one.version, env))]
    if reasons and any(one.is_usable for one in found):
        error = "no container engine has the requested version: " + "; ".join(reasons)
        hint = "\n  hint: cm run script --tags=get,docker,_install shows how to install a newer one"
        return {"return": NOT_FOUND_CODE, "error": error + hint}
    hint = "  hint: run the commands after 'fix:' (no command was run), then: cm run script --tags=get,docker"
    return {"return": 1, "error": f"no container can be started here:\n{text}\n{hint}"}


def _show_install(machine: Machine, rights: packages.Rights) -> dict[str, Any]:
    commands = advice.install_plan(machine)
    if commands:
        print(findings.plan_text("To install Docker (no command was run):", commands, rights))
    else:
        print(f"no plan is known for this system. Docker's guide: {advice.GUIDE}")
    return {"return": 0}


def _restart(machine: Machine, values: Mapping[str, Any], *, may_apply: bool) -> dict[str, Any]:
    """Shows how to restart the daemon, and does so with consent."""
    commands = (advice.start(machine, "restart"),)
    rights = packages.rights(machine)
    if not may_apply:
        print(findings.plan_text("To restart the daemon (no command was run, --apply runs it):", commands, rights))
        return {"return": 0}
    may_sudo = values["sudo"] is True
    reason = findings.refusal(machine, commands, may_sudo=may_sudo)
    wrong = reason or findings.failed_command(findings.carry_out(machine, commands, may_sudo=may_sudo))
    if wrong:
        shown = findings.plan_text("by hand:", commands, rights)
        return {"return": 1, "error": f"the daemon was not restarted: {wrong}\n{shown}\n  hint: --sudo uses sudo -n"}
    print("the daemon was restarted")
    return {"return": 0}


def _env_of(engine: engines.Engine | None) -> dict[str, str]:
    """The recipe's keys; empty texts where there is no engine."""
    if engine is None:
        return {"CM_CONTAINER_TOOL": "", "CM_DOCKER_IS_REACHABLE": "no", "CM_DOCKER_VERSION": ""}
    return {
        "CM_CONTAINER_TOOL": engine.program,
        "CM_DOCKER_BIN_WITH_PATH": engine.path,
        "CM_DOCKER_INSTALLED_PATH": os.path.dirname(engine.path),
        "CM_DOCKER_IS_REACHABLE": "yes" if engine.is_usable else "no",
        "CM_DOCKER_SERVER_VERSION": engine.server_version,
        "CM_DOCKER_TROUBLE": engine.trouble,
        "CM_DOCKER_VERSION": engine.version,
    }
