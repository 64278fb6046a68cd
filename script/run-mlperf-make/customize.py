"""Hooks of run-mlperf-make: the targets of NVIDIA's Makefile as recipe calls.

`request.py` and `run_args.py` read the call, `plans.py` decides what is called, `execution.py` calls it, `views.py`
shows what came out in the workspace, which `workspace.py` makes; `tables.yaml` has what all of them know.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import os
import time
from pathlib import Path
from typing import Any

from crowdperf.call.answers import failure
from crowdperf.call.recipe_calls import passed_on_inputs
from crowdperf.fronts.nvidia.lookup import StoreError
from crowdperf.fronts.nvidia.registry import RegistryError
from crowdperf.kit.user_paths import users_folder
from crowdperf.machine.selection import MachineError

from . import execution, pages, plans, request, views, workspace
from .context import Around
from .request import MakeError

STAMP = "%Y.%m.%d-%H.%M.%S"
"""How NVIDIA's harness names folders of logs."""
HINTS = {
    RegistryError: "cm run script --tags=get,mlperf,benchmark,config --check",
    MachineError: "make info",
    StoreError: "cm run script --tags=get,mlperf,inference,sut,configs",
}
PROBLEMS = (MakeError, OSError, *HINTS)


def plan_of(i: dict[str, Any], *, is_stamped: bool) -> tuple[Around, plans.Plan]:
    """What is around the call, and its plan; `is_stamped`: the time is taken for its runs. Raises MakeError."""
    asked = request.read(i["values"], os.environ, users_folder(i["env"]))
    cmind = getattr(i.get("automation"), "cmind", None)
    while True:
        around = Around(asked, time.strftime(STAMP), cmind)
        plan = plans.plan_of(around)
        is_run = is_stamped and "harness" in plans.steps_of(asked.target)[1]
        if not is_run or _take(asked.folder / "build/runs" / f".{around.stamp}"):
            return around, plan
        time.sleep(1)  # another call has this second


def _take(place: Path) -> bool:
    """Takes the time of a call for its runs; False where another call has it."""
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        place.mkdir()
    except FileExistsError:
        return False
    return True


def refused(error: Exception) -> dict[str, Any]:
    """CM's answer for a call that cannot go on."""
    if isinstance(error, OSError):
        named = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        error = MakeError(named, f"make it writable, or {views.ELSEWHERE}")
    hint = error.hint if isinstance(error, MakeError) else HINTS[type(error)]
    return failure(error, f"  hint: {hint}", getattr(error, "code", 1))


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """Crowdperf hook of `cm plan script`: the recipe calls of the target; changes nothing."""
    try:
        calls = () if i["env"].get("CM_MAKE_INIT") else plan_of(i, is_stamped=False)[1].calls
    except PROBLEMS as error:
        return refused(error)
    common = passed_on_inputs(i["input"])
    return {"return": 0, "runs": [{**common, **call.inputs, "tags": call.tags, "quiet": True} for call in calls]}


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: makes the target, or the workspace."""
    env = i["env"]
    try:
        if env.get("CM_MAKE_INIT"):
            values, cm = i["values"], workspace.own_cm(Path(env["CM_TMP_CURRENT_SCRIPT_PATH"]), os.environ)
            root, names = values["path"] or users_folder(env), (values.text("submitter"), values["division"])
            made = workspace.make_workspace(root, *names, cm, values.text("round"))
            print(f"{made / 'Makefile'}: make help lists its targets", flush=True)
            return {"return": 0}
        around, found = plan_of(i, is_stamped=True)
        asked = around.request
        for remark in found.remarks:
            views.say(remark)
        if found.configs and not (asked.is_plan or asked.values["RUN_ARGS"]):  # all that there is: shown first
            views.say(pages.plan_text(around, found))
        if asked.is_plan or asked.target in pages.LOCAL:
            text = pages.plan_text(around, found) if asked.is_plan else pages.LOCAL[asked.target](around)
            print(text, flush=True)
            return {"return": 0}
        problems = execution.perform(found, i["automation"].cmind.access, passed_on_inputs(i["input"]), asked.folder)
    except PROBLEMS as error:
        return refused(error)
    except execution.RecipeFailed as error:
        return error.answer
    told = "\n  ".join(
        ["not passed:", *problems, "hint: see the output of each recipe above. Runs and scores are recorded"]
    )
    return {"return": 1, "error": told} if problems else {"return": 0}
