"""Hooks of run-mlperf-inference: check the call, make its runs one by one, write and show what came out.

What to run is decided in `matrix.py` and `resume.py`, the runs are made in `session.py` and `work.py`, judged in
`outcome.py`, shown by `table.py` and `page.py`; `sessionfile.py` remembers how far each came, `basis.py` says what it
was made with. Modules that only a run needs are imported where they are used: a plan is shown without them.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from recipe_engine.rules.secrets import without_secret_flags

from crowdperf.call.answers import failure
from crowdperf.call.power_command import power_words
from crowdperf.call.recipe_calls import RecipeFailed, given_inputs, passed_on_inputs
from crowdperf.kit.file_locks import file_lock
from crowdperf.kit.user_paths import users_folder
from crowdperf.logs.layout import ResultsPaths, make_run_id
from crowdperf.rules.app_names import APP_RECIPE, app_names, recipe_meta
from crowdperf.rules.names import RequestError
from crowdperf.rules.run_settings import PATHS

from . import basis, loads, matrix

if TYPE_CHECKING:
    from . import sessionfile

NEEDED_PATHS = tuple(name for name in PATHS if name != "user_conf")
"""Inputs whose file or folder must be there, also in a plan of this machine. A run may yet write user.conf."""
HINT = "hint: cm help script run-mlperf-inference lists the inputs and their values"
PLANNED_RUN_ID = "planned-run"
"""Stands for the run id, which is made of the time of the run."""


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


def read_config(i) -> matrix.Config:
    """What the call asks for. Raises RequestError."""
    env = i["env"]
    recipes_folder = Path(env["CM_TMP_CURRENT_SCRIPT_PATH"]).parent
    known = app_names(recipe_meta(recipes_folder, APP_RECIPE))
    config = matrix.parse_config(i["values"], known)
    missing = () if "machine" in config.options else NEEDED_PATHS
    if problems := [f"--{name}: {path} does not exist" for name in missing
                    if (path := config.options.get(name)) and not Path(path).exists()]:  # fmt: skip
        raise RequestError(problems)
    if command := config.options.get("power_command"):
        try:
            power_words(command, users_folder(env))
        except ValueError as error:
            raise RequestError([f"--power_command: {error}"]) from error
    return config


def former_folder(config: matrix.Config, inputs: dict) -> tuple[dict | None, ResultsPaths | None]:
    """The settings that a later call finds this one by (None with --run_id), and the folder that it goes on in (None
    for a new one)."""
    if config.run_id:
        return None, ResultsPaths(config.results_folder, config.run_id)
    settings = basis.settings_record(config, without_secret_flags(passed_on_inputs(inputs)))
    if not config.resume:
        return settings, None
    from .sessionfile import find_former

    return settings, find_former(config.results_folder, settings)


def require_baseline(i, specs: tuple[matrix.RunSpec, ...]) -> None:
    """Refuses a baseline, a limit or a report that cannot be used, before anything runs. Raises RequestError."""
    values = i["values"]
    if not values["baseline_with"] and values["baseline"] is None:
        return
    from . import repeats

    repeats.require_verdict(values)
    if values["baseline_with"]:
        repeats.other_inputs(values, i["meta"]["input_mapping"])
    if values["baseline"] is not None:
        repeats.require_baseline(values, specs)


def surroundings(i, config: matrix.Config) -> "sessionfile.Surroundings":
    """What decides the runs of the call beside its inputs."""
    from . import session, sessionfile

    recipes_folder = Path(i["env"]["CM_TMP_CURRENT_SCRIPT_PATH"]).parent
    app_meta = recipe_meta(recipes_folder, APP_RECIPE)
    return sessionfile.Surroundings(
        config=config,
        passed_on=without_secret_flags(passed_on_inputs(i["input"])),
        app_meta=app_meta,
        recipes=session.recipe_facts(recipes_folder, app_meta, matrix.matrix(config)),
    )


def plan(i):
    """Crowdperf hook of `cm plan script`: the recipe calls that preprocess will make; changes nothing."""
    try:
        config = read_config(i)
        specs = matrix.matrix(config)
        require_baseline(i, specs)
        if config.is_load_search:
            from . import loadsearch

            return {"return": 0, "runs": [loadsearch.first_call(i)]}
        if (load := loads.several(i["values"])) is not None:
            base = loads.point_inputs(i, load[0])
            return {"return": 0, "runs": list(loads.planned(base, *load))}
        settings, paths = former_folder(config, i["input"])
        if paths is not None:
            from . import resume, sessionfile

            file = sessionfile.SessionFile(paths, surroundings(i, config), settings)
            specs = resume.choose(file.candidates(specs), resume.rule_of(config)).make
    except (RequestError, basis.FolderInUse) as error:
        return failure(error, HINT)
    planned = paths or ResultsPaths(config.results_folder, PLANNED_RUN_ID)
    if i["values"]["baseline_with"]:
        from . import repeats

        return {"return": 0, "runs": [call for _, call in repeats.calls(i, planned.folder)]}
    count = i["values"]["repeats"] or 1
    several = [ResultsPaths(planned.folder, f"repeat-{number}") for number in range(1, count + 1)]
    places = [planned] if count == 1 else several
    runs = [basis.planned_inputs(specs, one, passed_on_inputs(i["input"])) for one in places]
    return {"return": 0, "runs": [run for them in runs for run in them]}


def preprocess(i):
    """CM hook: does the whole call. Error when a run fails, a result is INVALID or an accuracy misses its target."""
    try:
        config = read_config(i)
        if "machine" in config.options:
            raise RequestError(["--machine: a recorded machine works only with cm plan script"])
        if (conf := config.options.get("user_conf")) and not Path(conf).is_file():  # in a plan, a run may yet write it
            raise RequestError([f"--user_conf: {conf} is not a file"])
        require_baseline(i, matrix.matrix(config))
    except RequestError as error:
        return failure(error, HINT)
    if loads.several(i["values"]) is not None:
        return with_verdict(i, *sweep(i, config))
    settings, former = former_folder(config, i["input"])
    try:
        paths = former or new_paths(config)
        paths.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return no_folder(config, error)
    if config.is_load_search:
        from . import loadsearch

        return loadsearch.make(i, config.model, paths.folder, print)
    if (i["values"]["repeats"] or 1) > 1:
        from . import repeats

        answer = repeats.make(i, paths.folder, print)
    else:
        if i["values"]["baseline"]:
            from . import repeats

            repeats.share_shapes(Path(i["values"]["baseline"]), paths.folder)
        answer = one_call(i, config, paths, settings, is_new=former is None)
    return with_verdict(i, answer, paths.folder)


def no_folder(config: matrix.Config, error: OSError) -> dict:
    """CM's answer if the folder for results cannot be made."""
    problem = Exception(f"cannot create a folder in {config.results_folder}: {error.strerror}")
    return failure(problem, "hint: choose another folder with --results_dir")


def with_verdict(i, answer: dict, folder: Path) -> dict:
    """CM's answer, after a comparison of the results in a folder with the baseline, if there is one."""
    if answer["return"] or not (i["values"]["baseline"] or i["values"]["baseline_with"]):
        return answer
    from . import repeats

    judged = repeats.judge(i["values"], folder)
    i["state"]["mlperf_comparison"] = judged
    return {**answer, **judged}


def sweep(i, config: matrix.Config) -> tuple[dict, Path]:
    """Runs a sweep over the load. Returns CM's answer and the sweep's folder."""
    load = loads.several(i["values"])
    assert load is not None
    name = config.run_id or make_run_id(datetime.now(timezone.utc), config.model, load[0], config.device)
    try:
        config.results_folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return no_folder(config, error), config.results_folder / name
    base = without_secret_flags(loads.point_inputs(i, load[0]))
    text = loads.sweep_text(name, base, *load, i["values"]["repeats"] or 1)
    folder = config.results_folder / name
    i["env"]["CM_MLPERF_RESULTS_RUN_PATH"] = str(folder)
    try:
        answer = loads.make(i["automation"].cmind.access, folder, text)
    except RecipeFailed as error:
        return error.answer, folder
    i["state"].update(answer.get("new_state") or {})
    return {"return": 0}, folder


def one_call(i, config: matrix.Config, paths: ResultsPaths, settings: dict | None, *, is_new: bool) -> dict:
    """Makes the runs of one call in its folder, and gives CM's answer."""
    from . import sessionfile, work

    in_use = basis.FolderInUse(f"another run is using {paths.folder}")
    try:
        with file_lock(paths.folder, in_use, is_needed=False):
            around = surroundings(i, config)
            call = work.Call(
                i=i, config=config, paths=paths, recipes=around.recipes, app_meta=around.app_meta,
                own_inputs=given_inputs(i, ("resume", "rerun")),
            )  # fmt: skip
            file = sessionfile.SessionFile(paths, around, settings)
            return work.make_runs(call, file, is_new=is_new)
    except basis.FolderInUse as error:
        return failure(error, "hint: wait until it finishes, or stop it" if error is in_use else HINT)
