"""Hooks of the recipe manage-mig: MIG slices of a GPU, as a plan, or for real with `--apply --record=FILE`.

`slices.py` looks, `actions.py` holds the rules. What was there before is recorded before anything is run.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import shlex
from collections.abc import Mapping
from typing import Any

from crowdperf.machine import findings, nvidia, packages, selection
from crowdperf.machine.probe import Machine
from crowdperf.rules.names import counted

from . import actions, interference, slices

CHANGES = ("enable", "configure", "teardown", "disable", "undo")
NO_DRIVER_CODE = 16  # CM's code for "not found"


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """The same when a run is only planned, without what would change the GPU."""
    return _manage(i, is_plan=True)


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """Prints the state or the plan, sets the keys, and carries the plan out where that is asked for."""
    return _manage(i, is_plan=False)


def _manage(i: dict[str, Any], *, is_plan: bool) -> dict[str, Any]:
    env, values = i["env"], i["values"]
    try:
        machine = selection.of_call(i)
        driver = nvidia.look(machine)
        if not driver.is_working:
            told = driver.trouble or "no NVIDIA driver answers, so there is no GPU to partition"
            hint = "  hint: cm run script --tags=get,nvidia,driver shows the reason"
            return {"return": NO_DRIVER_CODE, "error": f"{told}\n{hint}"}
        undo_file = values["undo"]
        before = findings.read_record(undo_file, "manage-mig") if undo_file else {}
        gpu = _gpu(machine, driver, str(before.get("gpu", values["gpu"])))
        action = "undo" if undo_file else str(env.get("CM_MIG_ACTION") or "")
        _tell(i, gpu)
        if action in CHANGES:
            wanted = actions.undo(gpu, before) if undo_file else actions.plan(action, gpu, values["profile"] or ())
            now = _change(machine, values, gpu, wanted, may_apply=values["apply"] is True and not is_plan)
            env["CM_MIG_MODE"], env["CM_MIG_SLICE_COUNT"] = now.mode, str(len(now.slices))
        elif action:
            _choose(env, values, gpu, action)
            if action == "hetero" and values["main"]:
                _measure(env, values, gpu, is_run=not (machine.is_recorded or is_plan))
    except (selection.MachineError, findings.RecordError, actions.MigError) as error:
        return {"return": 1, "error": str(error)}
    return {"return": 0}


def _gpu(machine: Machine, driver: nvidia.Driver, number: str) -> slices.Gpu:
    """The GPU that is asked for. Raises MigError for one that is not there."""
    if number not in [str(gpu.number) for gpu in driver.gpus]:
        there = ", ".join(f"{gpu.number} ({gpu.name})" for gpu in driver.gpus)
        raise actions.MigError(f"--gpu={number} is not a GPU of this machine\n  allowed: {there}")
    return slices.look(machine, driver, int(number))


def _tell(i: dict[str, Any], gpu: slices.Gpu) -> None:
    """Prints the state of the GPU, and puts it into env and state."""
    pending = f", after the next reset {gpu.pending}" if gpu.pending != gpu.mode else ""
    print(f"GPU {gpu.index}, {gpu.name}: MIG {gpu.mode}{pending}, {counted(len(gpu.slices), 'slice')}")
    for one in gpu.slices:
        users = f"in use by process {', '.join(map(str, one.processes))}" if one.processes else "free"
        print(f"  slice {one.number}  {one.profile:<12} {one.uuid}  {users if gpu.tells_processes else ''}".rstrip())
    for profile in gpu.profiles:
        print(f"  profile {profile.name:<12} number {profile.number:>3}  {profile.free} of {profile.total} free")
    i["env"]["CM_MIG_MODE"] = gpu.mode
    i["env"]["CM_MIG_SLICE_COUNT"] = str(len(gpu.slices))
    i["state"]["mig"] = {
        **gpu._asdict(),
        "profiles": [one._asdict() for one in gpu.profiles],
        "instances": list(gpu.instances),
        "slices": [{**one._asdict(), "processes": list(one.processes)} for one in gpu.slices],
    }


def _choose(env: dict[str, Any], values: Mapping[str, Any], gpu: slices.Gpu, action: str) -> None:
    """Sets CUDA_VISIBLE_DEVICES to a free slice; for `_hetero` the others are for work beside it."""
    profile, seed = ",".join(values["profile"] or ()), values["seed"]
    if action == "hetero":
        main, others = actions.hetero(gpu, profile, seed)
        env["CM_MIG_BACKGROUND_DEVICES"] = ",".join(one.uuid for one in others)
        print(f"measure on slice {main.number}. Meanwhile run other work, which has to outlast it, on:")
        for one in others:
            print(f"  CUDA_VISIBLE_DEVICES={one.uuid}  (slice {one.number}, {one.profile})")
    else:
        main = actions.choose_slice(gpu, profile, seed)
    if not gpu.tells_processes:
        print("whether a slice is in use could not be seen (nvidia-smi shows no processes here)")
    env["CUDA_VISIBLE_DEVICES"] = env["CM_MIG_DEVICE"] = main.uuid
    env["CM_MIG_PROFILE"] = main.profile
    print(f"export CUDA_VISIBLE_DEVICES={main.uuid}")


def _measure(env: dict[str, Any], values: Mapping[str, Any], gpu: slices.Gpu, *, is_run: bool) -> None:
    """Runs --main on the chosen slice and --background on the others. Raises MigError where that does not count."""
    by_uuid = {one.uuid: one for one in gpu.slices}
    others = [by_uuid[uuid] for uuid in env["CM_MIG_BACKGROUND_DEVICES"].split(",")]
    settle_s, commands = values["settle_s"], (values["main"], values["background"] or "")
    main, background = interference.works(*commands, by_uuid[env["CM_MIG_DEVICE"]], others, values["log_dir"])
    how = "" if is_run else " (no command was run)"
    lines = [*(work.line for work in background), f"sleep {settle_s:g}", main.line, "kill -INT the others"]
    print("\n  ".join([f"The measurement with background work{how}:", *lines]), flush=True)
    if not is_run:
        return
    outcome = interference.run(main, background, settle_s)
    if outcome.early:
        told = "\n".join(
            f"  slice {work.slice.number}: {shlex.join(work.words)}, see {work.log}" for work in outcome.early
        )
        raise actions.MigError(
            f"the measurement does not count: other work ended before it\n{told}\n"
            "  hint: --background with work that lasts longer, such as --min_duration_ms=7200000"
        )
    if outcome.code:
        raise actions.MigError(f"code {outcome.code}: {shlex.join(main.words)}\n  hint: its output is shown above")
    print(f"the other work on {counted(len(background), 'slice')} outlasted the measurement", flush=True)


def _change(
    machine: Machine, values: Mapping[str, Any], gpu: slices.Gpu, wanted: actions.Plan, *, may_apply: bool
) -> slices.Gpu:
    """The GPU after the plan was shown and, with consent, what is there recorded and the plan carried out.

    Raises MigError, RecordError.
    """
    rights = packages.rights(machine)
    if not wanted.commands:
        print(f"{wanted.why}: nothing to do")
        return gpu
    how = "" if may_apply else " (no command was run, --apply --record=FILE runs it)"
    print(findings.plan_text(f"Plan, {wanted.why}{how}:", wanted.commands, rights))
    for note in wanted.notes:
        print(f"  note: {note}")
    if not may_apply:
        return gpu
    may_sudo = values["sudo"] is True
    if reason := findings.refusal(machine, wanted.commands, may_sudo=may_sudo):
        raise actions.MigError(
            f"no command was run: {reason}\n  hint: run the plan by hand, or --apply --sudo (sudo -n)"
        )
    record = values["record"]
    if not record and not values["undo"]:
        raise actions.MigError(
            "no command was run: --apply requires a file for the restoration\n  hint: --record=mig-before.json"
        )
    if record:
        findings.write_record(record, "manage-mig", actions.record_of(gpu))
        print(f"recorded the previous state in {record}, and --undo={record} goes back")
    if wrong := findings.failed_command(findings.carry_out(machine, wanted.commands, may_sudo=may_sudo)):
        raise actions.MigError(f"{wrong}\n  hint: the previous state is in {record or 'the file of --undo'}")
    now = slices.look(machine, nvidia.look(machine), gpu.index)
    print(
        f"done: MIG {now.mode}, {counted(len(now.slices), 'slice')}"
        + ("" if now.mode == now.pending else ", reset pending")
    )
    return now
