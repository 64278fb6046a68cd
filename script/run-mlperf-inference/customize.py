"""Hooks of run-mlperf-inference: check the call, make its runs one by one, write and show what came out.

What to run is decided in `matrix.py` and `resume.py`, the runs are made in `session.py`, judged in `outcome.py`, shown
by `table.py` and `page.py`; `sessionfile.py` remembers how far a call came.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine; put it first with: cm use crowdperf:script")

from datetime import datetime, timezone
from pathlib import Path

from mlperf_results.layout import ResultsPaths, make_run_id

from . import matrix, outcome, page, resume, session, sessionfile, table

HINT = "hint: cm run script --tags=run,mlperf,inference --model=digits --scenario=Offline --mode=all"
PLANNED_RUN_ID = "planned-run"
"""Stands for the run id, which is made of the time of the run."""


def own_inputs(inputs: dict, mapping: dict) -> dict:
    """The inputs of the call that decide what is run, for the command that repeats it; no secrets, no `--resume`."""
    names = [name for name in (*sorted(mapping), *session.PASSED_ON_INPUTS) if name != "resume"]
    return session.without_secrets({name: inputs[name] for name in names if inputs.get(name)})


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
    known = matrix.known_names(session.app_meta(recipes_folder))
    return matrix.parse_config(env, known, Path(env.get("CM_TMP_CURRENT_PATH") or Path.cwd()))


def former_call(config: matrix.Config, inputs: dict) -> tuple:
    """The settings of this call, and the paths and session.json of the one it goes on with (None when it is new)."""
    settings = resume.settings_record(config, session.without_secrets(session.passed_on_inputs(inputs)))
    found = sessionfile.find_former(config.results_folder, settings) if config.resume else None
    return settings, *(found or (None, None))


def plan(i):
    """Crowdperf hook of `cm plan script`: the recipe calls that preprocess will make; changes nothing."""
    try:
        config = read_config(i["env"])
    except matrix.ConfigError as error:
        return failure(error)
    specs = matrix.matrix(config)
    _, paths, content = former_call(config, i["input"])
    if paths is not None:
        specs = resume.choose(specs, sessionfile.former_runs(paths, content, specs), config.resume).make
    planned = paths or ResultsPaths(config.results_folder, PLANNED_RUN_ID)
    return {"return": 0, "runs": session.planned_inputs(specs, planned, session.passed_on_inputs(i["input"]))}


def preprocess(i):
    """CM hook: does the whole call. Error when a run fails, a result is INVALID or an accuracy misses its target."""
    try:
        config = read_config(i["env"])
    except matrix.ConfigError as error:
        return failure(error)
    settings, former, content = former_call(config, i["input"])
    try:
        paths = former or new_paths(config)
    except OSError as error:
        return failure(error, hint="hint: give another folder with --results_dir")
    with sessionfile.locked(paths.folder) as is_mine:
        if not is_mine:
            return failure(Exception(f"another call works in {paths.folder}"), hint="hint: let it finish, or end it")
        return make_runs(i, config, paths, settings, content)


def make_runs(i, config: matrix.Config, paths: ResultsPaths, settings: dict, content: dict | None) -> dict:
    """Makes the runs of the call that are to be made, in ``paths``, and gives CM's answer."""
    specs = matrix.matrix(config)
    recipes = session.recipe_records(Path(i["env"]["CM_TMP_CURRENT_SCRIPT_PATH"]).parent)
    digests = {row["alias"]: row["sha256"] for row in recipes}
    file = sessionfile.SessionFile(paths, settings, digests)
    choice = resume.Choice(make=specs)
    notes = []
    if content is not None:
        choice = resume.choose(specs, sessionfile.former_runs(paths, content, specs), config.resume)
        changed = resume.changed_recipes(content["recipes"], digests) if choice.kept else ()
        notes = [f"runs kept from earlier were made with other versions of: {', '.join(changed)}"] if changed else []
        print(resume.describe(choice, str(paths.folder)), flush=True)
        file.take_over(content if choice.kept else {**content, "recipes": digests})
    elif config.resume:
        print(f"no earlier call in {config.results_folder} has these settings; starting anew", flush=True)
    file.write()
    print(matrix.describe(choice.make), flush=True)
    work = session.Session(
        access=i["automation"].cmind.access, paths=paths, passed_on=session.passed_on_inputs(i["input"])
    )
    runs = {resume.run_name(run.spec): run for run in choice.kept}
    command = outcome.repeat_command(own_inputs(i["input"], i["meta"]["input_mapping"]))
    for number, spec in enumerate(choice.make, start=1):
        print(f"\nRun {number} of {len(choice.make)}: {resume.run_name(spec)}", flush=True)
        file.note(spec, resume.Progress.STARTED)
        try:
            runs[resume.run_name(spec)] = work.run(spec)
        except session.RunFailed as error:
            file.note(spec, resume.Progress.FAILED, str(error).splitlines()[0])
            way_on = f"what it left is in {paths.folder}; to go on there: {command} --resume=all"
            return error.answer(f"hint: {way_on}")
        file.note(spec, resume.Progress.FINISHED)
    in_order = [runs[name] for name in map(resume.run_name, specs) if name in runs]
    return finish(i, config, paths, in_order, outcome.Remarks(command, choice.missing, tuple(notes), recipes))


def finish(i, config: matrix.Config, paths: ResultsPaths, runs: list, remarks: outcome.Remarks) -> dict:
    """Writes the records of the finished runs, shows the table and gives CM's answer."""
    env = i["env"]
    results = outcome.results_record(config, paths.run_id, runs, remarks.missing, remarks.notes)
    outcomes = outcome.by_scenario(runs)
    title = f"{config.model} with {config.backend} on {config.device}"
    text = table.render(title, results["label"], results["notes"], outcomes, remarks.missing)
    environment = outcome.environment_record(runs, session.host_facts(env), remarks.recipes, remarks.command)
    html = page.render(title, results, environment, session.read_loads(paths, runs))
    session.write_records(paths, results, environment, text, html)
    print(f"\n{text}\nResults: {paths.folder}\nAgain:   {remarks.command}", flush=True)
    env["CM_MLPERF_RESULTS_RUN_PATH"] = str(paths.folder)
    env["CM_MLPERF_RESULTS_FILE"] = str(paths.results_json)
    i["state"]["mlperf_results"] = results
    if not results["passed"]:
        problems = [*(problem for item in outcomes for problem in item.problems), *remarks.missing]
        return failure(Exception("not passed: " + "; ".join(problems)), hint=f"hint: see {paths.summary_text}")
    return {"return": 0}
