"""``cm runs script`` and ``cm resume script``: what earlier runs did, and going on with one that did not end well."""

from __future__ import annotations

import copy
import logging
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..disk.files import working_folder
from ..disk.repos import recipe_digest
from ..rules.errors import RecipeError, RequestError
from ..rules.rerun import flat
from ..rules.schema import is_yes
from ..rules.secrets import holds_secret
from ..rules.tags import nearest
from ..running.journal import NOT_KEPT, RecordedRun, RunStep, read_run, recorded_runs
from ..running.recording import RUNS_FOLDER
from .run import Home, new_engine, run_action

logger = logging.getLogger(__name__)

LIST_HINT = "cm runs script lists the runs that are known"
MARKS = {"ran": "+", "reused": "=", "skipped": "-", "faked": "~", "failed": "!", "unfinished": "?"}
RESUME_INPUT = "resume"
"""The input by which a recipe that makes many runs is told to keep those that passed."""


class NoSuchRun(RecipeError):
    """No journal has the id that was given; CM's code for it is 16."""

    code = 16


# --- cm runs script ---


def runs_action(i: Mapping[str, Any], home: Home) -> dict[str, Any]:
    """Answers ``cm runs script [id]``: the runs that left a journal, or the steps of one. Raises NoSuchRun."""
    wanted = str(i.get("artifact") or "").strip()
    root = home.path / RUNS_FOLDER
    if wanted:
        run = find_run(root, wanted)
        _print(i, run_lines(run))
        return {"return": 0, "run": {**run_row(run), "steps": [step_row(step) for step in run.steps]}}
    runs = recorded_runs(root)
    _print(i, list_lines(runs))
    if not runs:
        logger.info("no run has left a journal in %s", root)
    return {"return": 0, "runs": [run_row(run) for run in runs]}


def _print(i: Mapping[str, Any], lines: Iterator[str]) -> None:
    if i.get("out") == "con":
        sys.stdout.write("".join(line + "\n" for line in lines))


def find_run(root: Path, wanted: str) -> RecordedRun:
    """The run with this id, or with the only id that holds it; raises NoSuchRun."""
    try:
        names = sorted(os.listdir(root))
    except OSError:
        names = []
    fitting = [name for name in names if name == wanted] or [name for name in names if wanted in name]
    run = read_run(root / fitting[0]) if len(fitting) == 1 else None
    if run is None:
        several = f"{len(fitting)} runs have '{wanted}' in their id: {', '.join(fitting)}"
        near = nearest(wanted, names, 1)
        none = f"no run has the id '{wanted}'" + (f"; the nearest is {near[0]}" if near else "")
        raise NoSuchRun(several if len(fitting) > 1 else none, hint=LIST_HINT)
    return run


def run_row(run: RecordedRun) -> dict[str, Any]:
    """A run as JSON."""
    return {
        "id": run.run_id,
        "started_utc": run.request.get("started_utc", ""),
        "command": run.command,
        "state": run.state,
        "code": run.code,
        "duration_s": run.duration_s,
        "failing": list(run.failing),
        "error": run.error,
        "again": run.again,
        "folder": run.request.get("folder", ""),
        "journal": str(run.folder),
    }


def step_row(step: RunStep) -> dict[str, Any]:
    """A step as JSON."""
    return {**step._asdict(), "trace": list(step.trace)}


def list_lines(runs: list[RecordedRun]) -> Iterator[str]:
    """The runs for a terminal, the newest last."""
    for run in runs:
        yield f"{run.run_id}  {state_text(run):<18} {duration_text(run):>9}  {run.command}"
        if run.failing:
            yield f"{'':24}in {' -> '.join(run.failing)}{': ' if run.error else ''}{run.error}"


def state_text(run: RecordedRun) -> str:
    """The state with its exit code, when there is one to tell."""
    return f"{run.state} ({run.code})" if run.code else run.state


def duration_text(run: RecordedRun) -> str:
    """How long a run took, as far as its journal tells."""
    return "-" if run.duration_s is None else f"{run.duration_s:.1f} s"


def run_lines(run: RecordedRun) -> Iterator[str]:
    """One run for a terminal: what was asked, how it ended, its steps."""
    yield f"run:      {run.run_id}"
    yield f"command:  {run.command}"
    yield f"folder:   {run.request.get('folder', '')}"
    yield f"started:  {run.request.get('started_utc', '')}, took {duration_text(run)}"
    yield f"state:    {state_text(run)}"
    if run.error:
        yield f"error:    {run.error}"
    if run.again:
        yield f"again:    {run.again}"
    yield "steps:    + ran  = reused  - skipped  ~ faked  ! failed  ? not finished"
    for step in run.steps:
        duration = f" {step.duration_s:.2f} s" if step.status in ("ran", "faked") else ""
        reason = f" ({step.reason})" if step.reason else ""
        yield f"  {'  ' * (len(step.trace) - 1)}{MARKS.get(step.status, ' ')} {step.label}{duration}{reason}"


# --- cm resume script ---


def resume_action(i: Mapping[str, Any], home: Home, cmind: Any) -> dict[str, Any]:
    """Answers ``cm resume script [id]``: makes a run again that did not end well, with what it left in the cache.

    Raises NoSuchRun; RequestError when there is nothing to resume, when a recipe has changed (unless forced), when a
    secret of the run is missing, or when the folder of the run is gone.
    """
    root = home.path / RUNS_FOLDER
    wanted = str(i.get("artifact") or "").strip()
    run = find_run(root, wanted) if wanted else _newest(root)
    _check_state(run)
    is_forced = is_yes(i.get("force")) or is_yes(i.get("f"))
    changed = changed_recipes(run)
    if changed and not is_forced:
        raise RequestError(
            f"run {run.run_id} was made with other recipes: {'; '.join(changed)}",
            hint=f"give its command as a new run, or go on all the same: cm resume script {run.run_id} --force",
        )
    folder = Path(str(run.request.get("folder", "")))
    if not folder.is_dir():
        raise RequestError(f"the folder {folder}, where run {run.run_id} was started, is gone", hint="make it again")
    inputs = {**_inputs_again(run, i), "out": i.get("out")}
    if _takes_resume(run, home) and not inputs.get(RESUME_INPUT):
        inputs[RESUME_INPUT] = "all"
    for line in resume_lines(run, changed, str(inputs.get(RESUME_INPUT) or "")):
        logger.info(line)
    if run.request.get("cache") != str(home.store_path):
        logger.warning("! that run kept its results in %s, this one uses %s", run.request.get("cache"), home.store_path)
    with working_folder(folder):
        return run_action(inputs, home, cmind)


def _newest(root: Path) -> RecordedRun:
    runs = recorded_runs(root)
    if not runs:
        raise RequestError(f"there is nothing to resume: no run has left a journal in {root}", hint="cm run script ...")
    return runs[-1]


def _check_state(run: RecordedRun) -> None:
    """Raises RequestError when a run has ended well, or goes on."""
    if run.state == "done":
        raise RequestError(
            f"there is nothing to resume: run {run.run_id} ({run.command}) ended well",
            hint=f"{LIST_HINT}; name an earlier one, or give the command again",
        )
    if run.state == "running":
        pid, host = run.request.get("pid"), run.request.get("host")
        raise RequestError(
            f"run {run.run_id} ({run.command}) still works: process {pid} on {host}", hint="let it finish, or end it"
        )


def changed_recipes(run: RecordedRun) -> list[str]:
    """The recipes that ran and are not any more what they were, each with what happened to it."""
    seen = {step.path: step for step in run.steps if step.path}
    changed = []
    for path, step in sorted(seen.items()):
        name = step.recipe.partition(",")[0]
        try:
            is_same = recipe_digest(Path(path)) == step.digest
        except OSError:
            changed.append(f"{name} is gone from {path}")
            continue
        if not is_same:
            changed.append(f"{name} has changed ({path})")
    return changed


def _inputs_again(run: RecordedRun, i: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs of the run, with the secrets that it had, which are given anew."""
    kept = run.request.get("inputs")
    inputs = {name: value for name, value in kept.items() if name not in NOT_KEPT} if isinstance(kept, dict) else {}
    inputs = with_secrets(inputs, i, run.request.get("secrets", ()), f"resume script {run.run_id}")
    return {**inputs, "action": "run"}


def with_secrets(inputs: dict[str, Any], i: Mapping[str, Any], names: Iterable[str], again: str) -> dict[str, Any]:
    """Kept inputs with the secrets of these names, which are given anew in ``i``; ``again`` is the action that asks.

    Raises RequestError when one is missing.
    """
    given = {name: value for name, value in flat(i) if holds_secret(name, value)}
    missing = [name for name in names if name not in given]
    if missing:
        raise RequestError(
            f"the run was given secrets, which are never kept: {', '.join('--' + name for name in missing)}",
            hint=f"cm {again} " + " ".join(f"--{name}=..." for name in missing),
        )
    whole: dict[str, Any] = copy.deepcopy(inputs)
    for name, value in given.items():
        *parents, last = name.split(".")
        place = whole
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value
    return whole


def _takes_resume(run: RecordedRun, home: Home) -> bool:
    """Whether the recipe of the run has an input for it, because it makes many runs itself."""
    source = new_engine(home, None).source
    uids = [step.recipe.partition(",")[2] for step in run.steps if len(step.trace) == 1 and step.recipe]
    entries = source.index.by_name(uids[0]) if uids else ()
    return bool(entries) and RESUME_INPUT in source.recipe(entries[0]).layer.input_mapping


def resume_lines(run: RecordedRun, changed: list[str], mode: str) -> Iterator[str]:
    """What the user is told before a run goes on: what is kept, what is made again, where it goes on."""
    why = f" in {' -> '.join(run.failing)}" if run.failing else ""
    yield f"resuming run {run.run_id}, {state_text(run)}{why}"
    yield f"  {run.command}"
    for line in changed:
        yield f"  ! {line}; going on because of --force"
    in_cache = {step.recipe: step.label for step in run.steps if step.entry_path and _is_there(step)}
    yield "  from the cache: " + (", ".join(sorted(in_cache.values())) or "nothing")
    others = {step.recipe: step for step in run.steps if step.recipe not in in_cache and step.status != "skipped"}
    again = [step.label for step in others.values() if step.status in ("ran", "faked")]
    if again:
        yield "  run again, because nothing of theirs is kept: " + ", ".join(again)
    goes_on = [step.label for step in others.values() if step.status in ("failed", "unfinished")]
    if goes_on:
        yield "  goes on with: " + ", ".join(reversed(goes_on))
    if mode:
        yield f"  --{RESUME_INPUT}={mode}: of the runs that the recipe makes itself, those that passed are kept"


def _is_there(step: RunStep) -> bool:
    return os.path.isfile(os.path.join(step.entry_path, "_cm.json"))
