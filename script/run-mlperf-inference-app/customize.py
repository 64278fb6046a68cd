"""Hooks of run-mlperf-inference-app: the benchmark part of the crowd-benchmarking tutorial.

What is asked for is read in `request.py`, done in `steps.py` through the recipes below, whose inputs `calls.py` makes.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import time
from pathlib import Path
from typing import Any

from recipe_engine.rules.secrets import without_secret_flags

from crowdperf.call.answers import failure
from crowdperf.call.recipe_calls import RecipeFailed, given_inputs, passed_on_inputs
from crowdperf.kit.user_paths import users_folder
from crowdperf.machine import nvidia, selection
from crowdperf.machine.probe import Machine
from crowdperf.rules.app_names import APP_RECIPE, app_names, recipe_meta
from crowdperf.rules.names import RequestError

from . import known, steps
from .request import Request, read

HINT = "hint: cm help script run-mlperf-inference-app lists the inputs and their values"
NOT_REPEATED = ("readme", "rerun", "clean", "scenario", "mode", "find_performance", "submission_dir")
PLANNED_SUT = "planned-sut"
"""Stands for the system's name in a plan, where the version of the backend is not known yet."""


def read_call(i: dict[str, Any]) -> steps.Call:
    """The call. Raises RequestError, also for a GPU that is not there."""
    env, inputs = i["env"], i["input"]
    recipes_folder = Path(env["CM_TMP_CURRENT_SCRIPT_PATH"]).parent
    meta = recipe_meta(recipes_folder, APP_RECIPE)
    rounds = known.loadgen_rounds(recipe_meta(recipes_folder, known.LOADGEN_RECIPE))
    names = known.Known(names=app_names(meta), rounds=rounds)
    here = users_folder(env)
    request = read(env, i["values"], inputs.get("system"), names, here)
    recorded = str(env.get("CM_RECORDED_MACHINE") or "")
    try:
        machine = selection.choose(recorded, here).machine if recorded else i.get("machine") or Machine()
    except selection.MachineError as error:
        raise RequestError([str(error)]) from error
    require_gpu(request, machine)
    passed_on = with_loadgen(passed_on_inputs(inputs), request)
    return steps.Call(
        access=getattr(getattr(i.get("automation"), "cmind", None), "access", None),  # a plan has none, and calls none
        request=request,
        passed_on=passed_on,
        app_meta=meta,
        repeat=without_secret_flags({**given_inputs(i, NOT_REPEATED), **passed_on}),
    )


def with_loadgen(passed_on: dict[str, Any], request: Request) -> dict[str, Any]:
    """The inputs for every recipe below, with the LoadGen of the round, unless the user says which one to take."""
    adr = dict(passed_on.get("adr") or {})
    if not request.loadgen_variation or "loadgen" in adr:
        return passed_on
    return {**passed_on, "adr": {**adr, "loadgen": {"tags": request.loadgen_variation}}}


def require_gpu(request: Request, machine: Machine) -> None:
    """Raises RequestError where device cuda is asked for and no GPU answers, before anything is installed."""
    why = nvidia.missing_gpu(machine) if request.device == "cuda" else ""
    if why:
        raise RequestError([f"--device=cuda: {why}. --device=cpu runs without one"])


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """Crowdperf hook of `cm plan script`: the recipe calls that a run makes; changes nothing."""
    try:
        call = read_call(i)
    except RequestError as error:
        return failure(error, HINT)
    request = call.request
    pattern = f"*-crowdperf-{request.device}-{request.backend}-v*-{request.run_config}"
    there = sorted(path.name for path in request.style_folder.glob(pattern))
    rows = steps.planned(call, there[0] if len(there) == 1 else PLANNED_SUT)
    recorded = i["env"].get("CM_RECORDED_MACHINE")
    given = {"machine": recorded} if recorded else {}
    return {"return": 0, "runs": [{**row, **given} if "scenario" in row else row for row in rows]}


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: does the whole call. Error when a step fails or a run does not pass."""
    started_s = time.monotonic()
    if recorded := i["env"].get("CM_RECORDED_MACHINE"):
        return failure(f"--machine={recorded}: a recorded machine can be planned for, with cm plan script", HINT)
    try:
        call = read_call(i)
        done = steps.perform(call)
    except RequestError as error:
        return failure(error, HINT)
    except RecipeFailed as error:
        return error.answer
    env, state = i["env"], i["state"]
    env["CM_SUT_NAME"] = done["mlperf_sut"]["sut"]
    env["CM_MLPERF_INFERENCE_RESULTS_DIR_"] = str(call.request.style_folder)
    env["CM_MLPERF_INFERENCE_RESULTS_SUT_PATH"] = done["folder"]
    state["mlperf_sut"] = done["mlperf_sut"]
    if "mlperf_results" in done:
        state["mlperf_results"] = done["mlperf_results"]
        print(f"\nThe MLPerf inference results are stored at {call.request.style_folder}", flush=True)
    if done["problems"]:
        return failure(f"not passed: {'; '.join(done['problems'])}", f"hint: see {done['folder']}/summary.txt")
    tags = ",".join(i["meta"]["tags"])  # the reference engine ends every run with this line; ours has another one
    print(f'  - running time of script "{tags}": {time.monotonic() - started_s:.2f} sec.', flush=True)
    return {"return": 0}
