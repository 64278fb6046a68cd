"""Makes the runs of a call one by one, through the recipes app-mlperf-inference and process-mlperf-accuracy.

The only module here with effects. Each LoadGen run is a recipe call of its own, so it is a process of its own, and its
dependencies come from the cache after the first one.
"""

import contextlib
import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from crowdperf.call.recipe_calls import Access, RecipeFailed, run_recipe
from crowdperf.kit.whole_file import write_json, write_whole
from crowdperf.logs.layout import ResultsPaths, RunPaths
from crowdperf.rules.app_names import APP_RECIPE, recipe_meta
from crowdperf.rules.names import Mode

from . import secondtry
from .basis import SCORING_ALIAS, accuracy_inputs, app_inputs, recipes_asked_for
from .matrix import RunSpec
from .outcome import FinishedRun

HOST_NAME_KEY = "CM_HOST_SYSTEM_NAME"
"""Not kept, and of older results not shown: what a machine is called says nothing about its results."""

OWN_RECIPE = "run-mlperf-inference"
PAGE_NAME = "results.html"
STEPS_ONLY = "steps"
"""The engine's `--silent=steps`: the steps of a recipe are not shown, and what its scripts write is."""


class RunFailed(Exception):
    """A run that did not finish, because a recipe failed."""

    def __init__(self, what: str, failed: RecipeFailed) -> None:
        super().__init__(f"{what} failed: {failed}")
        self.what, self.code, self.reason = what, failed.answer["return"], failed.answer.get("error")

    def answer(self, folder: Path, way_on: str, *, is_first: bool) -> dict[str, Any]:
        """CM's answer for the call, which made runs in `folder` (none if it `is_first`) and is resumed by the command
        `way_on`.

        The engine's own error goes on as it is, so that the user sees the recipe that failed and its last words; what
        this call knows is added to it.
        """
        origin = getattr(self.reason, "origin", None)
        finished = [] if is_first else [f"finished runs are in {folder}"]
        if origin is None:
            return {"return": self.code, "error": "\n".join([str(self), *finished, f"hint: {way_on}"])}
        origin.notes = (*origin.notes, f"in: {self.what}", *finished)
        origin.resume = way_on
        return {"return": self.code, "error": self.reason}


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What all runs of a call share: CM's access function, where results go, the inputs passed on to every recipe.

    `told` names the recipes whose steps the user has seen: those of later runs are the same, scenario and mode aside.
    `is_silent`: the user wants to see problems only.
    """

    access: Access
    paths: ResultsPaths
    passed_on: Mapping[str, Any]
    is_silent: bool = False
    told: set[str] = field(default_factory=set)

    def run(self, spec: RunSpec) -> FinishedRun:
        """Makes one LoadGen run and scores it when it is an accuracy run. Raises RunFailed."""
        folder = self.paths.run(spec.model, spec.scenario, spec.mode).folder
        what = f"{spec.model} {spec.scenario.value} {spec.mode.value}"
        state = self._call(app_inputs(spec, folder), f"the run {what}", APP_RECIPE)
        accuracy = None
        if spec.mode is Mode.ACCURACY:
            scored = self._call(accuracy_inputs(spec, folder), f"the score of {what}", SCORING_ALIAS)
            accuracy = scored["mlperf_accuracy"]
        relative = folder.relative_to(self.paths.folder).as_posix()
        return FinishedRun(spec=spec, folder=relative, result=state["mlperf_run"], accuracy=accuracy)

    def run_again(self, first: FinishedRun, rate: float) -> FinishedRun:
        """Makes an INVALID run once more at this rate; the files of the first one go to a folder of their own, those of
        a run between are replaced."""
        paths = self.paths.run(first.spec.model, first.spec.scenario, first.spec.mode)
        aside = self.paths.scenario_folder(first.spec.model, first.spec.scenario) / secondtry.FOLDER
        if secondtry.is_second(first.result):
            shutil.rmtree(paths.folder)
        else:
            shutil.rmtree(aside, ignore_errors=True)
            paths.folder.rename(aside)
        second = self.run(replace(first.spec, target_qps=rate))
        place = aside.relative_to(self.paths.folder).as_posix()
        result = secondtry.with_first(second.result, first.result, place)
        content = {name: value for name, value in result.items() if name != "output_dir"}  # only the state has it
        write_json(paths.result_json, content)
        return replace(second, result=result)

    def _call(self, inputs: Mapping[str, Any], what: str, recipe: str) -> Mapping[str, Any]:
        """Runs a recipe and gives its new state; its steps are shown the first time that `recipe` is called."""
        silent = self.is_silent or (STEPS_ONLY if recipe in self.told else False)
        self.told.add(recipe)
        try:
            answer = run_recipe(self.access, {**self.passed_on, **inputs, "silent": silent})
        except RecipeFailed as error:
            raise RunFailed(what, error) from None
        state: Mapping[str, Any] = answer["new_state"]
        return state


def made_by() -> dict[str, str | bool | None]:
    """Which crowdperf makes the results: text, version, commit, is_modified."""
    from recipe_engine.running.toolversion import tool_version  # only a hook's process has the engine

    found = tool_version()
    return {"text": found.text, **found.record()}


def recipe_records(facts: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Name, uid and digests of recipes, for files."""
    names = ("alias", "uid", "sha256", "library_sha256", "variations")
    return [{name: row[name] for name in names if name in row} for row in facts]


def recipe_facts(recipes_folder: Path, app_meta: Mapping[str, Any], specs: Iterable[RunSpec]) -> list[dict[str, Any]]:
    """Name, uid, tags and the digest of its own files of every recipe beside this one, as they are now.

    Those that the runs rest on have also the digest of what they use of the packages (`library_sha256`), with which
    `variations`; the engine makes the digest of their cache entries of both.
    """
    from recipe_engine.disk.digests import recipe_digest  # only a hook's process has the engine; the rest works without
    from recipe_engine.disk.repos import used_digests

    facts = []
    for meta_path in sorted(recipes_folder.glob("*/_cm.yaml")):
        meta = recipe_meta(recipes_folder, meta_path.parent.name)
        digest = recipe_digest(meta_path.parent)
        facts.append({"alias": meta["alias"], "uid": meta["uid"], "tags": meta["tags"], "sha256": digest})
    asked: dict[str, list[str]] = {OWN_RECIPE: [], SCORING_ALIAS: []}
    for spec in specs:
        asked |= recipes_asked_for(app_meta, facts, spec)
    used = used_digests(recipes_folder.parent, asked)
    for row in facts:
        if used.get(row["alias"]):
            row |= {"library_sha256": used[row["alias"]], "variations": asked[row["alias"]]}
    return facts


def host_facts(env: Mapping[str, Any]) -> dict[str, Any]:
    """What detect-os and detect-cpu found, by their env keys, but for the machine's name."""
    return {key: env[key] for key in sorted(env) if key.startswith("CM_HOST_") and key != HOST_NAME_KEY}


def read_loads(paths: ResultsPaths, runs: Iterable[FinishedRun]) -> dict[str, Any]:
    """The content of load.json of each run by its folder; nothing for a run that has none."""
    found = {}
    for run in runs:
        path = RunPaths(paths.folder / run.folder).load_json
        with contextlib.suppress(OSError, ValueError):
            found[run.folder] = json.loads(path.read_text(encoding="utf-8"))
    return found


def write_records(
    paths: ResultsPaths, results: Mapping[str, Any], environment: Mapping[str, Any], table: str, page: str
) -> None:
    """Writes results.json, environment.json, summary.txt and results.html, each whole or not at all."""
    texts = {
        paths.folder / PAGE_NAME: page,
        paths.environment_json: json.dumps(environment, indent=2) + "\n",
        paths.results_json: json.dumps(results, indent=2) + "\n",
        paths.summary_text: table,
    }
    for path, text in texts.items():
        write_whole(path, text)
