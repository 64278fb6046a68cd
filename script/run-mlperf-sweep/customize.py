"""Hooks of run-mlperf-sweep: many calls of one recipe from one file, run one after another here or as jobs of Slurm.

The file is read and expanded in `crowdperf/sweeps`, which also runs the points and collects them; `request.py`
checks the call, `plans.py` and `prestage.py` ask the engine.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import shlex
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from crowdperf.call import model_server
from crowdperf.call.answers import failure
from crowdperf.kit.whole_file import write_json, write_whole
from crowdperf.sweeps import commands, sweep
from crowdperf.sweeps.collecting import summary_text
from crowdperf.sweeps.definition import SweepError
from crowdperf.sweeps.executor import ExecutorError
from crowdperf.sweeps.executors import KIND, LOCAL
from crowdperf.sweeps.folder import State
from crowdperf.sweeps.planning import Plan, plan_json, plan_text, run_order, with_earlier
from crowdperf.sweeps.report import Report
from crowdperf.sweeps.slurm import SlurmExecutor
from crowdperf.sweeps.states import status

from . import plans, prestage
from .request import Call, read_call

HINT = "hint: cm run script --tags=run,mlperf,sweep --file=FILE --plan   # shows the points only"


def command_of(call: Call, inputs: dict[str, Any]) -> str:
    """The line that makes the call again."""
    names = [name for name in sorted(call.values) if inputs.get(name) and name not in plans.NOT_PLANNED]
    words = [f"--{name}={call.values.text(name)}" for name in names]
    return " ".join(["cm run script --tags=run,mlperf,sweep", *map(shlex.quote, words)])


def plan(i):
    """Crowdperf hook of `cm plan script`: the recipe calls of the points without a result; changes nothing."""
    try:
        call = read_call(i, commands.say)
        return {"return": 0, "runs": plans.calls_of(call, plans.missing_points(call))}
    except (SweepError, OSError) as error:
        return failure(error, HINT)


def preprocess(i):
    """CM hook: shows the plan, or makes what is missing of the sweep. Code 2: a point failed; 3: one is under way."""
    try:
        call = read_call(i, commands.say)
        if not call.is_plan and call.settings[KIND] == LOCAL:
            plans.look_at_servers(call)
        found = plans.engine_plan(i["automation"].cmind.access, i["input"], i["meta"]["input_mapping"], call)
        made = plans.make_plan(call, command_of(call, i["input"]), found)
        if call.is_plan:
            return show_plan(i, call, made)
        if made.problems:
            return failure("a point cannot succeed, so no point is started:\n  " + "\n  ".join(made.problems), HINT)
        if problems := call.executor.problems():
            return failure("\n".join(problems), HINT)
        with sweep.locked(call.folder.path):
            return carry_out(i, call, made, found)
    except model_server.ServerProblem as error:
        return {"return": 1, "error": f"{error}\nhint: {error.hint}"}
    except (SweepError, sweep.FolderInUse, ExecutorError, prestage.PrestageFailed, OSError) as error:
        return failure(error, HINT)


def show_plan(i: dict[str, Any], call: Call, made: Plan) -> dict[str, Any]:
    """Prints the plan; writes it where `--output` says."""
    states = {point.id: status(call.folder.point(point.id)).state.value for point in made.points}
    content = plan_json(made, states)
    commands.say(plan_text(made, states))
    if call.values["bash"] and isinstance(call.executor, SlurmExecutor):
        content["job"] = call.executor.preview(call.folder, [point.planned_s for point in made.points])
        commands.say(f"\njob.sh:\n{content['job']}")
    if call.settings[KIND] != LOCAL:
        content["executor_problems"] = list(call.executor.problems())
        commands.say("\n".join(f"executor: {line}" for line in content["executor_problems"]))
    if call.values["output"]:
        write_json(call.values["output"], content, indent=1)
    i["state"]["mlperf_sweep"] = content
    return {"return": 0}


def collecting_job(call: Call) -> Callable[[], None]:
    """What submits a last job that collects the results, where it is asked for."""
    executor = call.executor
    if not (call.values["collect_job"] and isinstance(executor, SlurmExecutor)):
        return lambda: None
    words = ["run", "script", "--tags=collect,mlperf,sweep", f"--sweep_dir={call.folder.path.absolute()}"]
    return lambda: commands.say(f"job {executor.afterwards(call.folder, [*call.program.words, *words])} collects")


def carry_out(i: dict[str, Any], call: Call, made: Plan, found: dict[str, Any]) -> dict[str, Any]:
    """Writes the folder, runs what is missing and shows what came out."""
    earlier = sweep.read_plan(call.folder)
    if any(path.name != ".lock" for path in call.folder.path.iterdir()) and not earlier.points:
        return failure(
            f"{call.folder.path} is not the folder of a sweep, and not empty. Give the sweep another name", HINT
        )
    if earlier.points and earlier.recipe != made.recipe:
        return failure(
            f"{call.folder.path} has points of the recipe {earlier.recipe}. Give the sweep another name", HINT
        )
    program = call.program
    is_prestaged = call.values["prestage"]
    if found and (call.settings[KIND] != LOCAL if is_prestaged is None else is_prestaged):
        program = replace(program, more=prestage.prestage(i["automation"].cmind.access, call, found))
    report = Report(call.folder, replace(made, points=with_earlier(made.points, earlier.points)))
    write_whole(call.folder.sweep_file, call.text)
    write_json(call.folder.plan_file, plan_json(report.plan), indent=1)
    for point in made.points:
        folder = call.folder.point(point.id)
        sweep.write_point(folder, program.point_file(point, folder))
    work = sweep.Sweep(call.folder, call.executor, call.conduct, report.write, commands.say, collecting_job(call))
    ids = run_order(made.points)
    states = work.run(ids)
    rows = report.rows(states)
    i["env"]["CM_MLPERF_SWEEP_PATH"] = str(call.folder.path)
    i["state"]["mlperf_sweep"] = report.content(rows)
    where = call.folder.path
    commands.say(
        f"\n{summary_text(report.plan, rows)}\nSweep: {where}\nPage:  {where / 'sweep.html'}\nAgain: {made.command}"
    )
    code = sweep.exit_code(states, ids)
    if code == 3:
        show = f"cm run script --tags=show,mlperf,sweep --sweep_dir={shlex.quote(str(where))}"
        return {"return": 3, "error": f"points are still under way\nhint: {show}"}
    return commands.without_result({point: states.get(point, State.PLANNED).value for point in ids})
