"""Hooks of the recipe get-sys-utils-cm: which tools are there, and the commands for those that are not.

`tools.py` is the table, `install.py` makes the commands, `jetson.py` is the plan for a Jetson Xavier. Only `--apply`
and, as root, `--quiet` change the system; `_user` installs into a virtual environment of its own. No recipe depends on
this one, so `--quiet` is the word of a user who asked for it.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crowdperf.call.values import is_yes
from crowdperf.machine import findings, gpu_bus, packages, selection
from crowdperf.machine.probe import Machine

from . import install, jetson, tools

NOT_FOUND_CODE = 16  # CM's code for "not found"
APPLY = "--apply"
BANNER = (
    "***********************************************************************",
    "This script will attempt to install minimal system dependencies for CM.",
    "(only with --apply, or as root with --quiet. Otherwise commands are printed. It never prompts for a password.)",
    "***********************************************************************",
)


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """What preprocess would say; called when a run is planned, installs nothing."""
    return _look(i, {**i["values"], "apply": False})


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """Prints what is missing and the commands for it; runs them only with --apply."""
    return _look(i, i["values"])


def _look(i: dict[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    env = i["env"]
    if values["skip"]:
        print("get-sys-utils-cm: skipped because of --skip")
        return {"return": 0, "skip": True}
    try:
        machine = selection.of_call(i)
        wanted, required = tools.named(values["tools"]), tools.named(values["require"] or ())
    except (selection.MachineError, tools.ToolError) as error:
        return {"return": 1, "error": str(error)}
    if is_yes(env.get("CM_SYS_UTILS_SHOW_JETSON")):
        return _show_jetson(machine)
    env["CM_SYS_UTILS_SIMULATED"] = "yes" if machine.is_recorded else "no"
    print("\n".join(BANNER))
    seen = install.look(machine, tuple({one.name: one for one in (*wanted, *required)}.values()))
    order = _order(values, seen)
    _show(seen, is_quiet=values["quiet"] is True, is_plan=not order)
    if is_yes(env.get("CM_SYS_UTILS_AS_USER")):
        names = [one.pip for one in seen.missing if one.pip]
        env["CM_SYS_UTILS_FROM_PIP"] = " ".join(names)
        env["CM_SYS_UTILS_NEEDS_VENV"] = "yes" if names else "no"
        print(f"_user: {', '.join(names) or 'nothing'} are available without root, from PyPI")
    elif seen.missing and order:
        wrong = _apply(machine, seen)
        before = seen
        seen = install.look(machine, [one for one, _ in seen.places])
        installed = [one.name for one in before.missing if one not in seen.missing]
        print(f"{order}: installed {', '.join(installed) or 'nothing'}")
        env["CM_SYS_UTILS_INSTALLED"] = ",".join(installed)
        if wrong and order == APPLY:
            return {"return": 1, "error": wrong}
        if wrong:  # what is missing matters only to recipes that use it
            print(f"! {wrong}")
    _keep(i, seen)
    return _verdict(seen, required)


def _order(values: Mapping[str, Any], seen: install.ToolSearch) -> str:
    """The input by which the user has what is missing installed; empty without one."""
    if values["apply"] is not None:
        return APPLY if values["apply"] else ""
    is_quiet_root = values["quiet"] and seen.packages.rights == "root"
    return "--quiet" if is_quiet_root and install.commands(seen) else ""


def postprocess(i: dict[str, Any]) -> dict[str, Any]:
    """`_user`: installs what PyPI has into the virtual environment and puts it, and nothing else of it, on PATH."""
    env = i["env"]
    names = str(env.get("CM_SYS_UTILS_FROM_PIP", "") or "").split()
    if not names:
        return {"return": 0}
    machine = i.get("machine") or Machine()
    python = str(env.get("CM_PYTHON_BIN_WITH_PATH", "") or "")
    words = (python, "-I", "-m", "pip", "install", "--no-input", "--disable-pip-version-check", *names)
    ran = machine.run(words, timeout_s=install.INSTALL_TIMEOUT_S)
    if ran.code != 0:
        said = (ran.stderr.strip() or ran.stdout.strip() or "no output").splitlines()[-1]
        return {
            "return": 1,
            "error": f"pip could not install {' '.join(names)} (code {ran.code}): {said}\n"
            "  hint: check the proxy or the index of pip, or run without _user for the commands of this system",
        }
    folder = Path.cwd() / "bin"
    folder.mkdir(exist_ok=True)
    linked = []
    for name in names:
        program = Path(python).parent / name
        if program.exists():
            (folder / name).unlink(missing_ok=True)
            (folder / name).symlink_to(program)
            linked.append(name)
    print(f"_user: {', '.join(linked)} in {folder}")
    env["+PATH"] = [str(folder)]
    env["CM_SYS_UTILS_INSTALLED"] = ",".join(linked)
    still = [one for one in str(env.get("CM_SYS_UTILS_MISSING", "")).split(",") if one and one not in linked]
    env["CM_SYS_UTILS_MISSING"] = ",".join(still)
    known = [place for place in str(env.get("CM_SYS_UTILS_PLACES", "")).split(":") if place]
    env["CM_SYS_UTILS_PLACES"] = ":".join((*known, *(str(folder / one) for one in linked)))
    i["state"]["sys_utils"]["there"].update({one: str(folder / one) for one in linked})
    i["state"]["sys_utils"]["missing"] = still
    return {"return": 0}


def _show(seen: install.ToolSearch, *, is_quiet: bool, is_plan: bool) -> None:
    """Prints what is there, what is missing, and the commands that would install it."""
    there = [f"{one.name} ({place})" for one, place in seen.places if place]
    if not is_quiet:
        print(f"there: {', '.join(there) or 'nothing'}")
    if not seen.missing:
        print(f"all {len(seen.places)} tools are installed")
        return
    print(f"missing: {', '.join(one.name for one in seen.missing)}")
    if seen.without_package:
        names = ", ".join(one.name for one in seen.without_package)
        from_pip = ", ".join(one.name for one in seen.without_package if one.pip)
        print(f"no package is known on this system ({seen.tool or 'no known package tool'}) for: {names}")
        if from_pip:
            print(f"  without root, from PyPI ({from_pip}): cm run script --tags=get,sys-utils-cm,_user")
    if steps := install.commands(seen):
        title = "To install the missing tools" + (
            " (run only with --apply, or as root with --quiet):" if is_plan else ":"
        )
        print(findings.plan_text(title, steps, seen.packages.rights))


def _apply(machine: Machine, seen: install.ToolSearch) -> str:
    """Runs the commands; says what went wrong, empty when nothing."""
    steps = install.commands(seen)
    if not steps:
        return f"--apply: packages cannot be installed here ({seen.tool or 'no known package tool'})\n{_HINT_BY_HAND}"
    with_sudo = any(one.needs_root for one in steps) and install.may_sudo(machine)
    reason = findings.refusal(machine, steps, may_sudo=with_sudo)
    if reason:
        by_hand = findings.plan_text(
            "  hint: run these yourself (sudo may prompt for a password):", steps, seen.packages.rights
        )
        return f"--apply: {reason}\n{by_hand}"
    done = findings.carry_out(machine, steps, may_sudo=with_sudo, timeout_s=install.INSTALL_TIMEOUT_S)
    wrong = findings.failed_command(done)
    return f"{wrong}\n{_HINT_BY_HAND}" if wrong else ""


_HINT_BY_HAND = "  hint: install the tools by hand, or run without --apply for the list"


def _keep(i: dict[str, Any], seen: install.ToolSearch) -> None:
    """Sets the keys: what is missing, and the places that have to stay for an entry of the cache to be trusted."""
    missing = [one.name for one in seen.missing]
    i["env"]["CM_SYS_UTILS_MISSING"] = ",".join(missing)
    i["env"]["CM_SYS_UTILS_PLACES"] = ":".join(place for _, place in seen.places if place)
    i["state"]["sys_utils"] = {
        "there": {one.name: place for one, place in seen.places if place},
        "missing": missing,
        "package_tool": seen.tool,
        "commands": findings.commands_state(install.commands(seen), seen.packages.rights),
    }


def _verdict(seen: install.ToolSearch, required: tuple[tools.Utility, ...]) -> dict[str, Any]:
    """An error only when a tool that is required is missing."""
    lacking = [one for one in seen.missing if one in required]
    if not lacking:
        return {"return": 0}
    only = seen._replace(places=tuple((one, "") for one in lacking))
    steps = install.commands(only)
    shown = " && ".join(step.shown(seen.packages.rights) for step in steps)
    names = ", ".join(one.name for one in lacking)
    return {
        "return": NOT_FOUND_CODE,
        "error": f"required and missing: {names}\n  hint: {shown or 'install them by hand'}",
    }


def _show_jetson(machine: Machine) -> dict[str, Any]:
    """Prints the plan for a Jetson Xavier and what this machine is; installs nothing, with --apply neither."""
    name = gpu_bus.jetson_model(machine)
    print(f"this machine: {name or f'no Jetson ({gpu_bus.JETSON_MODEL} does not say so)'}")
    rights = packages.rights(machine)
    print(
        findings.plan_text(
            f"What {jetson.SCRIPT} does, hours long,\n"
            "with a virtual environment in place of pip as root (no command was run):",
            jetson.plan(),
            rights,
        )
    )
    print("crowdperf's recipes do not need it: they install their packages into separate environments.")
    return {"return": 0}
