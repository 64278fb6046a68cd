"""Hooks of process-mlperf-accuracy: find the accuracy run to score, then give its score to the recipes above.

The score is computed by the harness of app-mlperf-inference (`python3 -m crowdperf.harness score run.json`) from
LoadGen's own accuracy log and the labels of the dataset.
"""

import json
from pathlib import Path

from crowdperf.call.answers import runs_to_its_end
from crowdperf.kit.user_paths import given_path
from crowdperf.logs.layout import RunPaths
from crowdperf.rules.compliance import SCORED_TESTS
from crowdperf.rules.names import Mode

RESULTS_DIR_KEY = "CM_MLPERF_ACCURACY_RESULTS_DIR"


def problem_with(paths: RunPaths) -> str:
    """Why the run in `paths` cannot be scored; empty when it can."""
    if not paths.run_json.is_file():
        return f"{paths.folder} is not the folder of a run: it has no {paths.run_json.name}"
    try:
        request = json.loads(paths.run_json.read_text(encoding="utf-8"))
        mode, test = request["mode"], request.get("compliance_test")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"{paths.folder} is not the folder of a run: {paths.run_json.name} cannot be used ({error!r})"
    if mode != Mode.ACCURACY.value and test not in SCORED_TESTS:
        return f"{paths.folder} contains a {mode} run, but only an {Mode.ACCURACY.value} run can be scored"
    if not paths.accuracy_log.is_file():
        return f"{paths.folder} has no {paths.accuracy_log.name}: the run did not finish"
    return ""


plan = runs_to_its_end


def preprocess(i):
    """CM hook: checks the folder of the run and tells run.sh where the harness is."""
    env = i["env"]
    folder = given_path(env, RESULTS_DIR_KEY)
    hint = "hint: cm run script --tags=process,mlperf,accuracy --result_dir=results/RUN_ID/MODEL/SCENARIO/accuracy"
    if folder is None:
        return {"return": 1, "error": f"--result_dir is missing\n{hint}"}
    paths = RunPaths(folder)
    problem = problem_with(paths)
    if problem:
        return {"return": 1, "error": f"{problem}\n{hint}"}
    paths.accuracy_json.unlink(missing_ok=True)
    env[RESULTS_DIR_KEY] = str(folder)
    env["CM_MLPERF_ACCURACY_RUN_JSON"] = str(paths.run_json)
    return {"return": 0}


def postprocess(i):
    """CM hook: reads accuracy.json into env and state `mlperf_accuracy`."""
    env = i["env"]
    paths = RunPaths(Path(env[RESULTS_DIR_KEY]))
    try:
        accuracy = json.loads(paths.accuracy_json.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return {
            "return": 1,
            "error": f"the harness left no usable {paths.accuracy_json}: {error}",
        }
    verdict = {True: "yes", False: "no", None: ""}[accuracy["passed"]]
    env["CM_MLPERF_ACCURACY_METRICS"] = ",".join(f"{row['name']}={row['value']}" for row in accuracy["metrics"])
    env["CM_MLPERF_ACCURACY_PASSED"] = verdict
    i["state"]["mlperf_accuracy"] = accuracy
    return {"return": 0}
