"""Hooks of run-mlperf-inference: check the call, make its runs one by one, write and show what came out.

What to run is decided in `matrix.py`, the runs are made in `session.py`, judged in `outcome.py`, shown by `table.py`.
"""

from datetime import datetime, timezone
from pathlib import Path

from mlperf_results.layout import ResultsPaths, make_run_id

from . import matrix, outcome, session, table

HINT = "hint: cm run script --tags=run,mlperf,inference --model=digits --scenario=Offline --mode=all"
PLANNED_RUN_ID = "planned-run"
"""Stands for the run id, which is made of the time of the run."""


def own_inputs(inputs: dict, mapping: dict) -> dict:
    """The inputs of the call that decide what is run: for the command that repeats it."""
    return {name: inputs[name] for name in (*sorted(mapping), *session.PASSED_ON_INPUTS) if inputs.get(name)}


def new_paths(config: matrix.Config) -> ResultsPaths:
    """The paths of a folder that does not exist yet, named after the time; two calls in one second get two folders."""
    run_id = make_run_id(datetime.now(timezone.utc), config.model, config.backend, config.device)
    number = 1
    while True:
        paths = ResultsPaths(config.results_folder, run_id if number == 1 else f"{run_id}-{number}")
        try:
            paths.folder.mkdir(parents=True)
        except FileExistsError:
            number += 1
        else:
            return paths


def failure(error: Exception, code: int = 1, hint: str = HINT) -> dict:
    """CM's answer for a call that cannot go on."""
    return {"return": code, "error": f"{error}\n{hint}"}


def read_config(env: dict) -> matrix.Config:
    """What the call asks for. Raises matrix.ConfigError."""
    recipes_folder = Path(env["CM_TMP_CURRENT_SCRIPT_PATH"]).parent
    known = matrix.known_names(session.app_variations(recipes_folder))
    return matrix.parse_config(env, known, Path(env.get("CM_TMP_CURRENT_PATH") or Path.cwd()))


def plan(i):
    """Crowdperf hook of `cm plan script`: the recipe calls that preprocess will make; changes nothing."""
    try:
        config = read_config(i["env"])
    except matrix.ConfigError as error:
        return failure(error)
    paths = ResultsPaths(config.results_folder, PLANNED_RUN_ID)
    passed_on = session.passed_on_inputs(i["input"])
    return {"return": 0, "runs": session.planned_inputs(matrix.matrix(config), paths, passed_on)}


def preprocess(i):
    """CM hook: does the whole call. Error when a run fails, a result is INVALID or an accuracy misses its target."""
    env = i["env"]
    try:
        config = read_config(env)
    except matrix.ConfigError as error:
        return failure(error)
    specs = matrix.matrix(config)
    print(matrix.describe(specs), flush=True)
    try:
        paths = new_paths(config)
    except OSError as error:
        return failure(error, hint="hint: give another folder with --results_dir")
    inputs = own_inputs(i["input"], i["meta"]["input_mapping"])
    work = session.Session(
        access=i["automation"].cmind.access, paths=paths, passed_on=session.passed_on_inputs(i["input"])
    )
    runs = []
    for number, spec in enumerate(specs, start=1):
        print(f"\nRun {number} of {len(specs)}: {spec.scenario.value} {spec.mode.value}", flush=True)
        try:
            runs.append(work.run(spec))
        except session.RunFailed as error:
            return failure(error, error.code, f"hint: what it left is in {paths.folder}")
    return finish(i, config, paths, runs, outcome.repeat_command(inputs))


def finish(i, config: matrix.Config, paths: ResultsPaths, runs: list, command: str) -> dict:
    """Writes the records of the finished runs, shows the table and gives CM's answer."""
    env = i["env"]
    results = outcome.results_record(config, paths.run_id, runs)
    outcomes = outcome.by_scenario(runs)
    title = f"{config.model} with {config.backend} on {config.device}"
    text = table.render(title, results["label"], results["notes"], outcomes)
    recipes = session.recipe_records(Path(env["CM_TMP_CURRENT_SCRIPT_PATH"]).parent)
    environment = outcome.environment_record(runs, session.host_facts(env), recipes, command)
    session.write_records(paths, results, environment, text)
    print(f"\n{text}\nResults: {paths.folder}\nAgain:   {command}", flush=True)
    env["CM_MLPERF_RESULTS_RUN_PATH"] = str(paths.folder)
    env["CM_MLPERF_RESULTS_FILE"] = str(paths.results_json)
    i["state"]["mlperf_results"] = results
    if not results["passed"]:
        problems = [problem for item in outcomes for problem in item.problems]
        return failure(Exception("not passed: " + "; ".join(problems)), hint=f"hint: see {paths.summary_text}")
    return {"return": 0}
