"""Hooks of generate-mlperf-inference-user-conf: write user.conf with the origin of each line, tell how long runs take.

What the settings become is decided in `conf_plan.py`, the call is read in `inputs.py`.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

from collections.abc import Mapping
from typing import Any

from crowdperf.kit.user_paths import given_path, users_folder
from crowdperf.kit.whole_file import write_whole
from crowdperf.logs import recorded_targets
from crowdperf.rules.benchmarks import BENCHMARKS

from . import conf_plan, inputs

CONF_NAME = "user.conf"
UNUSED_KEY = "CM_TMP_MLPERF_RECORDED_UNUSED_IN"
"""Set by run-mlperf-inference-app: the kind of runs that do not go by what is recorded."""
HEAD = "# Written by crowdperf before the runs. The comments show the origin of each value. Times in ms.\n"
HINT = "hint: cm run script --tags=generate,mlperf,inference,user-conf --model=resnet50 --scenario=Offline"


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """Crowdperf hook of `cm plan script`: refuses what a run would refuse; writes nothing."""
    try:
        _read(i)
    except (inputs.BadCall, recorded_targets.BadFile) as error:
        return {"return": 1, "error": f"{error}\n{HINT}"}
    return {"return": 0}


def _read(i: dict[str, Any]) -> tuple[inputs.Call, Mapping[str, Mapping[str, Any]]]:
    """The call, and what the configuration of the system holds for its model, by scenario."""
    call = inputs.read(i["values"], str(i["env"].get("CM_VERSION") or ""))
    path = given_path(i["env"], "CM_SUT_CONFIG_FILE")
    return call, {} if path is None else recorded_targets.read(path).get(call.model, {})


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: writes user.conf, tells its lines and the durations, gives both as state."""
    env = i["env"]
    try:
        call, recorded = _read(i)
    except (inputs.BadCall, recorded_targets.BadFile) as error:
        return {"return": 1, "error": f"{error}\n{HINT}"}
    unused_in = str(env.get(UNUSED_KEY) or "")
    planned = [
        conf_plan.plan_scenario(
            call.model, scenario, call.execution_mode, given, recorded.get(scenario.value), unused_in
        )
        for scenario, given in call.overrides.items()
    ]
    lines = [line for item in planned for line in (*item.lines, *(f"# {note}" for note in item.notes))]
    path = (given_path(env, "CM_MLPERF_USER_CONF_FOLDER") or users_folder(env)) / CONF_NAME
    try:
        write_whole(path, HEAD + "\n".join(lines) + "\n")
    except OSError as error:
        return {"return": 1, "error": f"cannot write {path}: {error}\nhint: give another folder with --output_dir"}
    if call.model not in BENCHMARKS:
        print(f"{call.model} is not an MLPerf benchmark ({', '.join(BENCHMARKS)}): it gets the rules that all share")
    durations = [conf_plan.duration_line(item, mode) for item in planned for mode in call.modes]
    print(f"{path}:\n  " + "\n  ".join(lines))
    print("Expected time of each LoadGen run:\n  " + "\n  ".join(durations), flush=True)
    env["CM_MLPERF_USER_CONF"] = str(path)
    i["state"]["mlperf_user_conf"] = record(planned, str(path), call)
    return {"return": 0}


def record(planned: list[conf_plan.Planned], path: str, call: inputs.Call) -> dict[str, Any]:
    """What recipes above are told: by scenario the target, whether it was recorded, and the seconds of each run."""
    rows = {}
    for item in planned:
        target = item.target
        seconds = {mode.value: conf_plan.expected_s(item, mode)[0] for mode in call.modes}
        rows[item.scenario.value] = {
            "target": None if target is None else {"key": item.scenario.target_key, "value": target.value},
            "origin": "" if target is None else target.origin,
            "is_recorded": item.measured is not None,
            "expected_s": seconds,
        }
    return {"path": path, "scenarios": rows}
