"""A call from the list of its runs to CM's answer, in a folder of its own or in one that several calls share.

Effects: makes the runs (`session.py`), writes the records and tells the user.
"""

import json
import os
import re
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crowdperf.call.recipe_calls import Access, passed_on_inputs
from crowdperf.kit.path_redaction import HOME, RESULT, KnownFolders, honest
from crowdperf.kit.privacy import PrivateNames, known_here, masked
from crowdperf.kit.terminal import colored
from crowdperf.kit.user_paths import home_folder
from crowdperf.logs.layout import ResultsPaths, RunPaths
from crowdperf.logs.rates import found_table
from crowdperf.rules.backends import BACKENDS
from crowdperf.rules.names import TARGETS, Mode

from . import basis, matrix, outcome, page, record, remaining, resume, secondtry, session, table
from .confwords import conf_lines
from .matrix import RunSpec
from .outcome import FinishedRun
from .resume import Progress, run_name
from .sessionfile import SessionFile

BROWSE = "cm run script --tags=serve,mlperf,results --path="
"""Shows a result in the browser, beside others; what it was made of is put into results.db of the current folder."""
FIRST_TRY = "probes/01"
"""Folder of the first run of a search, below the search's own."""
TRIED_RATE = re.compile(r"^target_qps : ([0-9.e+]+)$", re.MULTILINE)
"""LoadGen's summary has the inverse of the expected latency here in streams."""
MISSING_RUN_HINT = "hint: see {}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of the recipe: the dict of its hook, what it asks for, its folder, the recipes as they are now
    with the metadata of the app's.

    `own_inputs` are the inputs of the command that repeats it.
    """

    i: Mapping[str, Any]
    config: matrix.Config
    paths: ResultsPaths
    recipes: Sequence[Mapping[str, Any]]
    app_meta: Mapping[str, Any]
    own_inputs: Mapping[str, Any]

    @property
    def is_silent(self) -> bool:
        """Whether the user wants to see problems only."""
        return self.i["env"].get("CM_TMP_SILENT") == "yes"

    def say(self, text: str) -> None:
        """Shows a text that is no problem."""
        if not self.is_silent:
            print(text, flush=True)

    @property
    def command(self) -> str:
        """The line that makes the call again."""
        return outcome.repeat_command(self.own_inputs)


def make_runs(call: Call, file: SessionFile, *, is_new: bool) -> dict[str, Any]:
    """Makes the runs that the folder of the call does not have, or that are to be made again, and gives CM's answer."""
    config, folder = call.config, call.paths.folder
    choice = resume.choose(file.candidates(matrix.matrix(config)), "" if is_new else resume.rule_of(config))
    if not is_new:
        if said := resume.describe(choice, folder, is_shared=bool(config.run_id)):
            call.say(said)
    elif config.resume:
        call.say(f"no earlier run in {config.results_folder} has these settings, starting a new one")
    changed = ", ".join(choice.changed)
    notes = (f"kept runs used other versions of: {changed}",) if changed else ()
    way_on = call.command if config.run_id else f"{call.command} --resume=all"
    call.say(matrix.describe(choice.make))
    passed_on = passed_on_inputs(call.i["input"])
    access: Access = call.i["automation"].cmind.access
    work = session.Session(access=access, paths=call.paths, passed_on=passed_on, is_silent=call.is_silent)
    took: list[remaining.Took] = []
    started_s = time.monotonic()
    runs = {run_name(run.spec): run for run in choice.kept}
    for number, spec in enumerate(choice.make, start=1):
        left = remaining.left_text(choice.make[number - 1 :], took)
        call.say(f"\nRun {number} of {len(choice.make)}: {run_name(spec)}{f' ({left})' if left else ''}")
        is_shown = bool(config.run_id) and not config.is_part
        if is_shown:
            _tell_before(call, spec)
        file.note(spec, Progress.STARTED)
        folder = call.paths.run(spec.model, spec.scenario, spec.mode).folder
        begun = record.begin(folder, spec)
        try:
            runs[run_name(spec)] = work.run(spec)
            while (rate := secondtry.next_rate(runs[run_name(spec)].result)) is not None:
                if call.config.is_finding:
                    break
                call.say(secondtry.announcement(runs[run_name(spec)].result, rate))
                runs[run_name(spec)] = work.run_again(runs[run_name(spec)], rate)
        except session.RunFailed as error:
            file.note(spec, Progress.FAILED, str(error).splitlines()[0])
            return error.answer(call.paths.folder, way_on, is_first=not runs)
        record.write(access, runs[run_name(spec)], folder, begun, passed_on)
        file.note(spec, Progress.FINISHED)
        took.append(remaining.Took(spec, _seconds(runs[run_name(spec)], time.monotonic() - begun.started_s, number)))
        if is_shown:
            _tell_after(call, runs[run_name(spec)])
    if took:
        measured_s = sum(float(runs[run_name(one.spec)].result.get("duration_s") or 0.0) for one in took)
        call.say(f"\n{remaining.took_text(took, measured_s, time.monotonic() - started_s)}")
    in_order = [runs[name] for name in map(run_name, matrix.matrix(call.config)) if name in runs]
    recipes, crowdperf = session.recipe_records(call.recipes), session.made_by()
    remarks = outcome.Remarks(call.command, choice.missing, notes, recipes, crowdperf)
    return _finish(call, in_order, remarks)


def _seconds(run: FinishedRun, passed_s: float, number: int) -> float:
    """How long a run took: of the call's first one, which installs, the part of the harness alone."""
    return float(run.result.get("took_s") or 0.0) if number == 1 else passed_s


def _tell_before(call: Call, spec: RunSpec) -> None:
    call.say(f"Running loadgen scenario: {spec.scenario.value} and mode: {spec.mode.value}")
    call.say(f"Output Dir: '{call.paths.run(spec.model, spec.scenario, spec.mode).folder}'")


def _tell_after(call: Call, run: FinishedRun) -> None:
    """Shows what LoadGen was given, with the origin of each line, and what it said; of an accuracy run the score."""
    paths = RunPaths(call.paths.folder / run.folder)
    if not paths.summary_log.is_file():
        return
    call.say("user.conf of this run:")
    origin = call.config.target_origin.get(run.spec.scenario, "")
    for line in conf_lines(paths.user_conf.read_text(encoding="utf-8"), run.result, origin):
        call.say(f"  {line}")
    if run.spec.mode is Mode.PERFORMANCE:
        call.say(paths.summary_log.read_text(encoding="utf-8", errors="replace"))
    elif paths.accuracy_text.is_file():
        call.say(paths.accuracy_text.read_text(encoding="utf-8", errors="replace").strip())


def _finish_search(call: Call, runs: Sequence[FinishedRun], missing: Sequence[str]) -> dict[str, Any]:
    """Gives what was looked for as state: by scenario the target with its origin, and the figure that was seen.

    An error where a search is missing that the call was not to make.
    """
    found = {}
    for run in runs:
        metric = run.result.get("metric")
        seen = None if metric is None else metric["value"]
        found[run.spec.scenario.value] = {"settings": run.result.get("find") or {}, "measured": seen}
        log = RunPaths(call.paths.folder / run.folder / FIRST_TRY).summary_log
        first = TRIED_RATE.search(log.read_text(encoding="utf-8", errors="replace")) if log.is_file() else None
        if first is not None and call.config.run_id:  # the command of MLCommons' tutorial, which shows the table itself
            rate = float(first[1])
            used = (
                f"{1000 / rate:.4g} as target_latency_ms" if run.spec.scenario.is_stream else f"{rate:g} as target_qps"
            )
            call.say(f"In find performance mode: using {used}")
    if found and not call.config.run_id:
        targets = {
            TARGETS[run.spec.scenario][1]: f"{setting['value']:g}"
            for run in runs
            for name, setting in (run.result.get("find") or {}).items()
            if name == TARGETS[run.spec.scenario][0]
        }
        inputs = {name: value for name, value in call.own_inputs.items() if name != "find"}
        call.say("\n".join(["", *found_table(found), "", "Next:", outcome.repeat_command({**inputs, **targets})]))
    call.i["env"]["CM_MLPERF_RESULTS_RUN_PATH"] = str(call.paths.folder)
    call.i["state"]["mlperf_found"] = json.loads(json.dumps(found))
    if call.config.is_checked and missing:
        return {"return": 1, "error": f"some targets were not found: {'; '.join(missing)}"}
    return {"return": 0}


def _finish(call: Call, runs: list[FinishedRun], remarks: outcome.Remarks) -> dict[str, Any]:
    """Writes the records of the finished runs, shows the table and gives CM's answer."""
    env, config, paths = call.i["env"], call.config, call.paths
    if config.is_finding:
        return _finish_search(call, runs, remarks.missing)
    made_by = f"crowdperf {remarks.crowdperf['text']}"
    results = outcome.results_record(config, paths.run_id, runs, remarks.missing, remarks.notes, made_by)
    outcomes = outcome.by_scenario(runs)
    place = "" if BACKENDS[config.backend].is_remote else f" on {config.device}"  # a server has its own devices
    title = f"{config.model} with {config.backend}{place}"
    text = table.render(title, results)
    environment = outcome.environment_record(runs, session.host_facts(env), remarks)
    for row, run in zip(environment["runs"], runs, strict=True):
        row["dependencies"] = list(basis.dependencies_of(call.app_meta, run.spec))
    places = KnownFolders({RESULT: str(paths.folder), HOME: str(home_folder())})
    results, environment = honest(results, places), honest(environment, places)
    html = shareable(page.render(title, results, environment, session.read_loads(paths, runs)))
    session.write_records(paths, results, environment, text, html)
    shown = colored(text, sys.stdout, os.environ, table.warnings_of(results))
    page_path = paths.folder / session.PAGE_NAME
    browse = f"{BROWSE}{shlex.quote(str(paths.folder))}"
    call.say(f"\n{shown}\nResults: {paths.folder}\nPage:    {page_path}\nBrowse:  {browse}\nAgain:   {remarks.command}")
    if call.is_silent and results["disturbances"]:
        print(colored("\n".join(results["disturbances"]), sys.stdout, os.environ, results["disturbances"]), flush=True)
    env["CM_MLPERF_RESULTS_RUN_PATH"] = str(paths.folder)
    env["CM_MLPERF_RESULTS_FILE"] = str(paths.results_json)
    call.i["state"]["mlperf_results"] = json.loads(json.dumps(results))
    if config.is_checked and not results["passed"]:
        problems = [*(problem for item in outcomes for problem in item.problems), *remarks.missing]
        error = f"not passed: {'; '.join(problems)}"
        return {"return": 1, "error": f"{error}\n{MISSING_RUN_HINT.format(paths.summary_text)}"}
    return {"return": 0}


def shareable(text: str) -> str:
    """A page without home folders (`~`) and access tokens: people send it to others."""
    return masked(text, PrivateNames(homes=known_here().homes))
