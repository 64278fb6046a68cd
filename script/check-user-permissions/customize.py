"""Hooks of the recipe check-user-permissions: what the user may do, and the fix for each lack.

`checks.py` holds the checks, `accounts.py` users and groups, `mounts.py` file systems. Only `--apply` changes anything,
and only by the fixes that need no root's rights.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from crowdperf.machine import findings, packages, selection
from crowdperf.machine.findings import Finding
from crowdperf.machine.probe import Machine

from . import accounts, checks

SCRATCH_KEYS = ("CM_MLPERF_SCRATCH_PATH", "MLPERF_SCRATCH_PATH")


class Request(NamedTuple):
    """What to check: the user (empty: this process's), clones and folders with data, and what is to be done."""

    user: str
    clones: tuple[str, ...]
    scratches: tuple[str, ...]


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """The same when a run is only planned: it looks, and applies nothing."""
    return _check(i, may_apply=False)


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """Prints the findings and sets the keys; with ``--policy=fail`` a problem is an error."""
    return _check(i, may_apply=i["values"]["apply"] is True)


def _check(i: dict[str, Any], *, may_apply: bool) -> dict[str, Any]:
    env, values = i["env"], i["values"]
    try:
        machine = selection.of_call(i)
    except selection.MachineError as error:
        return {"return": 1, "error": str(error)}
    asked = asked_in(values, env, machine)
    found = look(machine, asked)
    rights = packages.rights(machine)
    print(findings.table(found, rights))
    wrong = ""
    if may_apply:
        wrong = _apply(machine, found, asked)
        found = look(machine, asked)
        print(findings.table(found, rights))
    problems = findings.problems(found)
    i["state"]["user_permissions"] = findings.state_of(found, rights)
    env["CM_USER_PERMISSIONS_PROBLEMS"] = str(len(problems))
    env["CM_USER_PERMISSIONS_OK"] = "no" if problems else "yes"
    if wrong:
        return {"return": 1, "error": wrong}
    if problems and values["policy"] == "fail":
        text = findings.table(problems, rights)
        return {"return": 1, "error": f"{len(problems)} of {len(found)} checks found a problem:\n{text}\n{_HINT}"}
    if problems:
        what = "these need root's rights or a person" if may_apply else "no changes were made"
        print(f"{len(problems)} of {len(found)} checks found a problem, {what}")
    return {"return": 0}


_HINT = "  hint: run the commands after 'fix:'. --apply runs those that do not need root"


def asked_in(values: Mapping[str, Any], env: Mapping[str, Any], machine: Machine) -> Request:
    """What the inputs ask to check: by default the clone around the current folder, and the scratch space."""
    folders = [_absolute(part, machine) for part in values["paths"] or ()]
    around = [os.getcwd(), *(str(path) for path in Path.cwd().parents)] if not machine.is_recorded else []
    here = next((folder for folder in around if machine.owner_uid(f"{folder}/.git") is not None), "")
    known = (str(env.get(key, "") or machine.environment.get(key, "") or "") for key in SCRATCH_KEYS)
    scratch = values["scratch"] or next((value for value in known if value), "")
    is_clone = {folder: machine.owner_uid(f"{folder}/.git") is not None for folder in folders}
    return Request(
        user=values["user"] or "",
        clones=tuple(dict.fromkeys(filter(None, (here, *(one for one in folders if is_clone[one]))))),
        scratches=tuple(
            dict.fromkeys(
                (*((_absolute(scratch, machine),) if scratch else ()), *(one for one in folders if not is_clone[one]))
            )
        ),
    )


def look(machine: Machine, asked: Request) -> tuple[Finding, ...]:
    """All findings about the user and the folders that are asked for."""
    who = accounts.account(machine, asked.user)
    found = list(checks.identity(machine, who))
    if who.uid < 0:
        return tuple(found)
    found += checks.docker(machine, who)
    found += checks.docker_settings(machine, who)
    for folder in asked.clones:
        found += checks.clone(machine, who, folder)
    for folder in asked.scratches:
        found += checks.scratch(machine, who, folder)
    return tuple(found)


def _apply(machine: Machine, found: tuple[Finding, ...], asked: Request) -> str:
    """Lists and runs the fixes that need no root's rights; says what went wrong, empty when nothing."""
    commands = tuple(one for one in findings.fixes(findings.problems(found)) if one.words and not one.needs_root)
    if asked.user and asked.user != machine.user.name:
        return f"--apply can only act for {machine.user.name}, who runs this, not for {asked.user}"
    if not commands:
        print("--apply: every fix requires root, so no changes were made")
        return ""
    rights = packages.rights(machine)
    print(findings.plan_text("--apply runs:", commands, rights))
    reason = findings.refusal(machine, commands, may_sudo=False)
    if reason:
        return f"--apply: {reason}"
    return findings.failed_command(findings.carry_out(machine, commands))


def _absolute(path: str, machine: Machine) -> str:
    home = machine.environment.get("HOME", "")
    text = home + path[1:] if home and (path == "~" or path.startswith("~/")) else path
    return os.path.normpath(os.path.join(os.getcwd(), text))
