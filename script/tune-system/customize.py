"""Hooks of the recipe tune-system: settings that make measurements fast and steady, as a table and a plan.

`settings.py` looks, `rules.py` holds the rules. Only `_apply` with `--apply --record=FILE` changes anything; what was
there before is recorded first.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

from collections.abc import Mapping
from typing import Any

from crowdperf.machine import findings, packages, selection
from crowdperf.machine.findings import Command
from crowdperf.machine.probe import Machine

from . import rules, settings

KIND = "tune-system"
AGAIN = "cm run script --tags=tune,system"


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """The same when a run is only planned, without what would change the machine."""
    return _tune(i, may_apply=False)


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """Prints the table and the plan, and carries it out where that is asked for."""
    is_action = i["env"].get("CM_TUNE_SYSTEM_ACTION") == "apply" or bool(i["values"]["undo"])
    return _tune(i, may_apply=is_action and i["values"]["apply"] is True)


def _tune(i: dict[str, Any], *, may_apply: bool) -> dict[str, Any]:
    env, values = i["env"], i["values"]
    try:
        machine = selection.of_call(i)
        if values["undo"]:
            return _undo(machine, values, may_apply=may_apply)
        system = settings.look(machine)
        wanted = rules.wanted_in(values)
        changed = rules.changes(system, wanted)
        print(table(changed, system))
        commands = tuple(one.command for one in changed if one.command)
        after: settings.System | None = None
        if may_apply and commands:
            _carry_out(machine, values, commands, rules.record_of(changed))
            after = settings.look(machine)
            changed = rules.changes(after, wanted)
            print("after:\n" + table(changed, after))
            # nvidia-smi never tells that clocks are locked, so these still look as if they were to be set
            changed = tuple(one for one in changed if one.setting.name != "clocks")
        elif commands:
            print(_plan_text(machine, commands))
    except (selection.MachineError, findings.RecordError, rules.TuneError) as error:
        return {"return": 1, "error": str(error)}
    left = sum(one.command is not None for one in changed)
    env["CM_TUNE_SYSTEM_CHANGES"] = str(left)
    env["CM_TUNE_SYSTEM_OK"] = "no" if left else "yes"
    i["state"]["tune_system"] = _state(changed, after or system, packages.rights(machine))
    return {"return": 0}


def table(changed: tuple[rules.Change, ...], system: settings.System) -> str:
    """The settings as text: what is there, and what is wanted."""
    lines = []
    for one in changed:
        found = one.setting.found or "not reported"
        mark = f"-> {one.wanted}" if one.command else "as wanted" if one.wanted else "left as it is"
        lines.append(f"  {one.setting.name:<11}  {found:<12}  {mark:<16}  {one.setting.about}")
    lines += [f"  {line}" for line in system.lacks]
    if system.container:
        lines.append(f"  this is a container ({system.container}): these settings are the host's, and to be set there")
    return "\n".join(lines)


def _plan_text(machine: Machine, commands: tuple[Command, ...]) -> str:
    how = f"{AGAIN},_apply --apply --record=FILE runs it"
    return findings.plan_text(f"Plan (no command was run, {how}):", commands, packages.rights(machine))


def _carry_out(
    machine: Machine, values: Mapping[str, Any], commands: tuple[Command, ...], record: dict[str, Any] | None
) -> None:
    """Records what is there (None: nothing to record) and runs the commands. Raises TuneError, RecordError."""
    may_sudo = values["sudo"] is True
    shown = findings.plan_text("Plan:", commands, packages.rights(machine))
    if reason := findings.refusal(machine, commands, may_sudo=may_sudo):
        raise rules.TuneError(f"no command was run: {reason}\n{shown}\n  hint: by hand, or --apply --sudo (sudo -n)")
    file = values["record"]
    if record is not None and file is None:
        raise rules.TuneError(
            "no command was run: --apply requires a file for the restoration\n  hint: --record=tune-before.json"
        )
    print(shown)
    if record is not None:
        findings.write_record(file, KIND, record)
        print(f"recorded the previous state in {file}, restore with: {AGAIN} --undo={file} --apply")
    if wrong := findings.failed_command(findings.carry_out(machine, commands, may_sudo=may_sudo)):
        back = file or values["undo"]
        raise rules.TuneError(f"{wrong}\n  hint: the previous state is in {back}, and --undo={back} --apply goes back")


def _undo(machine: Machine, values: Mapping[str, Any], *, may_apply: bool) -> dict[str, Any]:
    """Shows the way back, and goes it with consent."""
    commands = rules.undo(findings.read_record(values["undo"], KIND))
    if may_apply:
        _carry_out(machine, values, commands, None)
        print("put back")
    else:
        rights = packages.rights(machine)
        print(
            findings.plan_text(
                "To restore the previous settings (no command was run, --apply runs it):", commands, rights
            )
        )
    return {"return": 0}


def _state(changed: tuple[rules.Change, ...], system: settings.System, rights: packages.Rights) -> dict[str, Any]:
    return {
        "container": system.container,
        "lacks": list(system.lacks),
        "settings": [
            {
                "name": one.setting.name,
                "places": list(one.setting.places),
                "found": one.setting.found,
                "wanted": one.wanted,
                "command": one.command.shown(rights) if one.command else "",
            }
            for one in changed
        ],
    }
