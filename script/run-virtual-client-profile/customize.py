"""Hooks of run-virtual-client-profile: a profile of Microsoft's VirtualClient, carried out by this project's recipes.

What is to be done is decided in `crowdperf/fronts/virtualclient`, done in `running.py`, remembered in `statefile.py`.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import io
import platform
import re
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

from crowdperf.call.answers import failure
from crowdperf.call.recipe_calls import passed_on_inputs, run_recipe
from crowdperf.fronts.metrics import metricfiles
from crowdperf.fronts.metrics.commandline import parse_list
from crowdperf.fronts.metrics.discovery import architecture, session_of
from crowdperf.fronts.virtualclient.document import LARGEST_BYTES, Profile, ProfileError, merged, parse_profile
from crowdperf.fronts.virtualclient.options import Options, parse_options
from crowdperf.fronts.virtualclient.steps import StepList, make_steps, plan_text, planned_calls
from crowdperf.kit.text_documents import given_text
from crowdperf.kit.user_paths import expanded, users_folder
from crowdperf.machine import cpu, host, nvidia, selection
from crowdperf.machine.probe import Machine
from crowdperf.rules.names import printable_lines

from . import overlays, running, statefile

MACHINE_KEY = "CM_RECORDED_MACHINE"
WITHOUT_MACHINE = ("install,cuda,prebuilt",)
NOT_FOUND = 16
"""CM's code for something that the machine lacks."""
SHIPPED = Path(__file__).resolve().parent / "profiles"
HINT = "hint: cm run script --tags=run,virtual-client,profile,_plan --profile=FILE   # shows the steps only"
PLAN_HINT = "hint: cm help script run-virtual-client-profile   # its inputs, --machine plans for a recorded machine"


def read_profile(text: str, here: Path) -> Profile:
    """One profile of all that are named, each a file or the name of a shipped one. Raises ProfileError."""
    profiles, problems = [], []
    for name in parse_list(text):
        path = next((at for at in (here / expanded(name), SHIPPED / Path(name).name) if at.exists()), None)
        shipped = ", ".join(sorted(found.name for found in SHIPPED.glob("*.json")))
        if path is None:
            problems.append(f"--profile: {name} is not a file, shipped are: {shipped}")
            continue
        try:
            profiles.append(parse_profile(given_text(path, LARGEST_BYTES), path.name))
        except ProfileError as error:
            problems += error.problems
            profiles += [error.rest] if error.rest else []
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            problems.append(f"--profile: {path} cannot be read: {reason}")
    if problems or not profiles:
        raise ProfileError(problems or ["--profile is missing"], reduce(merged, profiles) if profiles else None)
    return reduce(merged, profiles)


def well_known(machine: Machine, options: Options, folder: Path) -> dict[str, str]:
    """VirtualClient's well-known words, in lower case, as this machine has them."""
    seen, memory_bytes = cpu.look(machine), cpu.memory_bytes(machine)
    name = architecture()
    words = {"platform": name, "platformarchitecture": name, "os": "linux", "architecture": name.partition("-")[2]}
    words |= {f"logical{noun}count": str(seen.threads) for noun in ("core", "processor")}
    words |= {f"physical{noun}count": str(seen.cores) for noun in ("core", "processor")}
    for power, unit in enumerate(("bytes", "kilobytes", "megabytes", "gigabytes")):
        words[f"systemmemory{unit}"] = str(memory_bytes // 1024**power)
    words |= {f"{kind}{noun}": str(folder) for kind in ("log", "state", "temp") for noun in ("dir", "path")}
    client = options.client_id or platform.node()
    ids = {
        "experimentid": options.experiment_id,
        "executionsystem": options.system,
        "clientid": client,
        "agentid": client,
    }
    return words | {name: value for name, value in ids.items() if value}


def read_call(i: dict[str, Any]) -> StepList:
    """The steps of the call. Raises ProfileError with everything that is wrong."""
    here, values = users_folder(i["env"]), i["values"]
    problems: list[str] = []
    options, profile = Options(), None
    try:
        options = parse_options(values)
    except ProfileError as error:
        problems += error.problems
    try:
        profile = read_profile(values["profile"], here)
    except ProfileError as error:
        problems, profile = [*problems, *error.problems], error.rest
    if (folder := values["log_dir"]).is_file():
        problems.append(f"--log-dir: {folder} is a file. Give a folder, which is created if missing")
    try:
        machine = machine_of(i)
    except selection.MachineError as error:
        raise ProfileError([*problems, str(error)]) from None
    config_ver, recorded = options.choices["config_ver"], values["machine"] or ""
    if options.choices["device"] == "cuda":
        options = replace(options, registry=lambda benchmark: overlays.settings(benchmark, config_ver, here, recorded))
    made = None
    if profile is not None:
        distribution = re.sub(r"\W.*", "", host.look(machine).distribution).lower()
        try:
            made = make_steps(profile, options, well_known(machine, options, folder), distribution)
        except ProfileError as error:
            problems += error.problems
    if problems or made is None:
        raise ProfileError(problems)
    return made


def machine_of(i: dict[str, Any]) -> Machine:
    """This machine, or the recorded one that --machine names. Raises MachineError."""
    here = users_folder(i["env"])
    return i.get("machine") or selection.choose(str(i["env"].get(MACHINE_KEY) or ""), here).machine


def with_machine(i: dict[str, Any], call: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe call, for the recorded machine of this call where the recipe can look at one."""
    recorded = i["env"].get(MACHINE_KEY)
    return {**call, **({"machine": recorded} if recorded and call["tags"] not in WITHOUT_MACHINE else {})}


def lacking(i: dict[str, Any], made: StepList) -> list[str]:
    """Everything that the machine lacks for the steps: a GPU, and what the recipes that only look do not find."""
    is_cuda = made.options.choices["device"] == "cuda"
    why = nvidia.missing_gpu(machine_of(i)) if is_cuda else ""
    found = [f"--device=cuda: {why}. Use --device=cpu instead"] if why else []
    if not (found or i["values"]["plan"]):
        return []  # the steps tell the rest
    has_disks = not i["env"].get(MACHINE_KEY) or bool(machine_of(i).read_text("/proc/mounts"))  # else not recorded

    def look(call: Mapping[str, Any]) -> None:
        if call["tags"] == "get,scratch,disk" and not has_disks:
            return
        request = {**passed_on_inputs(i["input"]), **with_machine(i, call)}
        with redirect_stdout(io.StringIO()):  # a look is no news unless it fails
            run_recipe(i["automation"].cmind.access, {**request, "silent": True})

    return found + [str(error) for error in running.failed_looks(made.of("dependency"), look)]


def refused(i: Mapping[str, Any], error: Exception) -> dict[str, Any]:
    """CM's answer for a call that cannot be carried out; a plan is not told to plan."""
    is_plan = i["values"]["plan"]
    return failure(printable_lines(str(error)), PLAN_HINT if is_plan else HINT)


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """Crowdperf hook of `cm plan script`: the recipe calls that a run makes; changes nothing."""
    try:
        made = read_call(i)
    except ProfileError as error:
        return refused(i, error)
    if i["values"]["plan"]:
        return {"return": 0, "runs": []}
    passed_on = passed_on_inputs(i["input"])
    sections = ("dependency",) if made.options.is_setup_only else ("dependency", "action")
    steps = [step for section in sections for step in made.of(section)]
    return {
        "return": 0,
        "runs": [{**passed_on, **with_machine(i, call), "quiet": True} for call in planned_calls(steps)],
    }


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: prints the plan (`_plan`), or carries the profile out."""
    env, folder = i["env"], i["values"]["log_dir"]
    try:
        made = read_call(i)
        i["state"]["virtual_client_profile"] = {
            "profile": made.profile,
            "steps": made.content(),
            "notes": list(made.notes),
        }
        recorded, is_plan = env.get(MACHINE_KEY) or "", i["values"]["plan"]
        if is_plan:
            banner = selection.choose(recorded, users_folder(env)).banner
            print("\n".join(filter(None, (banner, printable_lines(plan_text(made))))))
        elif recorded:
            raise ProfileError([f"--machine={recorded} is a recorded machine, which cannot run anything. Add _plan"])
        if missing := lacking(i, made):
            return {**refused(i, ProfileError(missing)), "return": NOT_FOUND}
        if is_plan:
            return {"return": 0}
        with statefile.locked(folder):
            return carry_out(i, made, folder)
    except (ProfileError, statefile.FolderInUse, OSError) as error:
        return refused(i, error)


def carry_out(i: dict[str, Any], made: StepList, folder: Path) -> dict[str, Any]:
    """Runs the steps in a folder that is ours, and gives CM's answer."""
    env, options = i["env"], made.options
    if "logs" in options.cleaned:
        print(f"removed: {', '.join(metricfiles.remove_logs(folder)) or 'no logs were there'}")
    if "state" in options.cleaned:
        (folder / statefile.NAME).unlink(missing_ok=True)
    state, goes_on = statefile.open_state(folder, made.fingerprint, options.experiment_id)
    for note in (*made.notes, *([f"goes on: {len(state.done)} steps are done"] if goes_on else [])):
        print(f"note: {note}", flush=True)
    session = session_of(experiment_id=state.experiment_id, profile=made.profile, system=options.system,
                         client_id=options.client_id, metadata=options.metadata)  # fmt: skip
    runner = running.Runner(access=i["automation"].cmind.access, passed_on=passed_on_inputs(i["input"]), made=made,
                            session=session, state=state, folder=folder)  # fmt: skip
    answer = runner.run()
    print(f"\nTelemetry: {folder}", flush=True)
    env["CM_MLPERF_METRICS_CSV"] = str((metricfiles.csv_files(folder) or [folder / metricfiles.CSV_NAME])[-1])
    env["CM_MLPERF_METRICS_FILE"] = str(folder / metricfiles.JSON_NAME)
    env["CM_VIRTUAL_CLIENT_STATE"] = str(folder / statefile.NAME)
    i["state"]["virtual_client_profile"] |= {"experiment_id": state.experiment_id, "progress": state.progress}
    return answer
