"""Hooks of app-mlperf-inference: write run.json for the harness, then give its result.json to the recipes above.

The rules of what can be asked are in `run_request.py`; the run itself is the package `harness`, started by run.sh in
the virtual environment of the benchmark as a process of its own. A call for several runs (`several.py`) is handed to
run-mlperf-inference, which calls this recipe for each of them.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import json
import os
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from crowdperf.call.answers import failure
from crowdperf.kit.user_paths import expanded, users_folder
from crowdperf.kit.whole_file import write_json
from crowdperf.logs.layout import ResultsPaths, RunPaths, make_run_id
from crowdperf.logs.run_requests import portable_request, read_request
from crowdperf.machine import neuron, nvidia, selection
from crowdperf.rules.app_names import app_names
from crowdperf.rules.backends import STAND_IN_BACKENDS, misfit
from crowdperf.rules.names import RequestError, parse_mode, parse_scenario
from crowdperf.rules.prompt_settings import DEFAULT_KEY_VARIABLE, KEY_VARIABLE

from . import run_request, several


def default_session(request: dict, folder: Path, started: datetime) -> ResultsPaths:
    """Where a run goes when the caller names no folder: below `folder`/results, in the usual layout."""
    run_id = make_run_id(started, request["model"], request["backend"], request["device"])
    return ResultsPaths(folder / "results", run_id)


def result_environment(result: dict, paths: RunPaths) -> dict[str, str]:
    """The env keys that tell a finished run's outcome."""
    metric = result["metric"]
    return {
        "CM_MLPERF_RUN_RESULT_FILE": str(paths.result_json),
        "CM_MLPERF_RUN_VALID": "yes" if result["valid"] else "no",
        "CM_MLPERF_RUN_LABEL": result["label"],
        "CM_MLPERF_RUN_METRIC": "" if metric is None else f"{metric['value']} {metric['unit']}",
    }


def compare_with_reference(request: dict, reference: str, folder: Path) -> None:
    """Raises RequestError when a compliance test is not requested as the run was that it is for."""
    if not reference:
        return
    path = RunPaths(folder / expanded(reference)).run_json
    try:
        content = read_request(RunPaths(path.parent))
        run_request.require_common(request, content, lambda text: bool(text) and Path(text).exists())
    except (OSError, ValueError, AttributeError) as error:
        raise RequestError([f"{path} is not a run to compare with: {error}"]) from error


HINT = "hint: cm help script app-mlperf-inference lists the inputs and their values"


def refused(error: RequestError) -> dict:
    """CM's answer to a request that cannot be."""
    return failure(error, HINT, error.code)


def is_terminal() -> bool:
    """Whether a person reads along: run.sh then lets the harness rewrite one line of progress."""
    try:
        return os.isatty(2)
    except OSError:
        return False


RECORDED_KEY = "CM_RECORDED_MACHINE"


def require_device(env: dict, folder: Path) -> None:
    """Raises RequestError where the backend cannot do what is asked for, or its device is not there.

    A plan may be made for a recorded machine.
    """
    keys = (run_request.BACKEND_KEY, run_request.MODEL_KEY, run_request.DEVICE_KEY)
    if why := misfit(*(str(env.get(key) or "") for key in keys)):
        raise RequestError([why])
    device = env.get(run_request.DEVICE_KEY)
    if device == "cpu" or env.get(run_request.BACKEND_KEY) in STAND_IN_BACKENDS:
        return
    try:
        machine = selection.choose(str(env.get(RECORDED_KEY) or ""), folder).machine
    except selection.MachineError as error:
        raise RequestError([f"--machine: {error}"]) from error
    if device == "inferentia":
        if why := neuron.missing(machine):
            raise RequestError([f"{why}. --simulate=neuron tests the path on the CPU"], 16)
    elif why := nvidia.missing_gpu(machine):
        words = "--device=cpu runs without one. cm plan script --machine=NAME plans for a recorded machine"
        raise RequestError([f"--device=cuda: {why}. {words}"])


def plan(i):
    """Crowdperf hook of `cm plan script`: the call that makes several runs; changes nothing.

    Refuses what cannot be; a run is planned first, so that nothing is installed for it then.
    """
    env, values = i["env"], i["values"]
    folder = users_folder(env)
    try:
        env.update(run_request.stand_in(env, values["simulate"]))
        require_device(env, folder)
        asked = run_request.Asked.of(env, values, folder)
        if not several.is_several(values):
            run_request.check_request(asked, app_names(i["meta"]))
        call = several.inputs_for_all(env, values, i["input"], i["meta"]["input_mapping"])
    except RequestError as error:
        return refused(error)
    if call is None and i.get("is_before_run") and (problem := server_problem(asked)):
        return problem
    return {"return": 0, "runs": [call] if call else []}


def server_problem(asked: run_request.Asked) -> dict | None:
    """CM's answer where the server of an endpoint run does not list the model, so that a wrong URL is found before
    anything is installed; None for any other run."""
    prompts = asked.prompts
    if not prompts.endpoint:
        return None
    from crowdperf.call import model_server  # with HTTP and TLS, which most plans do not need

    try:
        names = asked.model, prompts.endpoint_api or ""
        model_server.look_for_run(prompts.endpoint, prompts.endpoint_model or "", prompts.access, *names)
    except model_server.ServerProblem as error:
        return {"return": 1, "error": f"{error}\nhint: {error.hint}"}
    return None


def preprocess(i):
    """CM hook: checks what is asked for and writes run.json into the folder of the run, or hands the call on."""
    env, values = i["env"], i["values"]
    folder = users_folder(env)
    known = app_names(i["meta"])
    try:
        if env.get(RECORDED_KEY):
            raise RequestError(["--machine: a recorded machine works only with cm plan script"])
        env.update(run_request.stand_in(env, values["simulate"]))
        require_device(env, folder)
        asked = run_request.Asked.of(env, values, folder)
        call = several.inputs_for_all(env, values, i["input"], i["meta"]["input_mapping"])
        if call is not None:
            if not several.is_several(values):
                run_request.check_request(asked, known)
            return {"return": 0, "skip": True, "script": call}
        if asked.prompts.endpoint and not asked.prompts.endpoint_key_variable and DEFAULT_KEY_VARIABLE in os.environ:
            asked = replace(asked, prompts=replace(asked.prompts, **{KEY_VARIABLE: DEFAULT_KEY_VARIABLE}))
        request = run_request.build_request(asked, env, known)
        compare_with_reference(request, values["compliance_reference"] or "", folder)
    except RequestError as error:
        return refused(error)
    if request["output_dir"] is None:
        session = default_session(request, folder, datetime.now(timezone.utc))
        run = session.run(request["model"], parse_scenario(request["scenario"]), parse_mode(request["mode"]))
        request["output_dir"] = str(run.folder)
    paths = RunPaths(Path(request["output_dir"]))
    paths.folder.mkdir(parents=True, exist_ok=True)
    paths.result_json.unlink(missing_ok=True)
    written = portable_request(request, paths.folder)
    write_json(paths.run_json, written)
    env["CM_MLPERF_OUTPUT_DIR"] = str(paths.folder)
    env["CM_MLPERF_RUN_JSON"] = str(paths.run_json)
    env["CM_TMP_MLPERF_OWNER"] = str(os.getpid())
    env["CM_MLPERF_RUN_CONSOLE_FILE"] = str(paths.console_text)
    is_silent = env.get("CM_TMP_SILENT") == "yes"
    env["CM_MLPERF_RUN_ON_TERMINAL"] = "yes" if is_terminal() and not is_silent else "no"
    return {"return": 0}


def postprocess(i):
    """CM hook: reads result.json into env and state `mlperf_run`."""
    env = i["env"]
    paths = RunPaths(Path(env["CM_MLPERF_OUTPUT_DIR"]))
    try:
        result = json.loads(paths.result_json.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return {
            "return": 1,
            "error": f"the harness left no usable {paths.result_json}: {error}\nhint: see {paths.console_text}",
        }
    env.update(result_environment(result, paths))
    i["state"]["mlperf_run"] = {"output_dir": str(paths.folder), **result}
    return {"return": 0}
