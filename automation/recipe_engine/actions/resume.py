"""``cm resume script``: resuming a run that did not end well, with what its journal says and it left in the cache."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..disk.files import working_folder
from ..disk.repos import recipe_digest
from ..rules.errors import RequestError
from ..rules.rerun import secret_flags
from ..running.journal import RUNS_FOLDER
from .adapter import Home
from .journals import LIST_HINT, RecordedRun, find_run, recorded_runs
from .listing import is_forced
from .run import new_engine, run_action

logger = logging.getLogger(__name__)

RESUME_INPUT = "resume"
"""The input by which a recipe that makes many runs is asked to keep those that passed."""


def resume_action(i: Mapping[str, Any], home: Home, cmind: Any) -> dict[str, Any]:
    """Answers ``cm resume script [id]``: makes a run again that did not end well, with what it left in the cache.

    Raises NothingFound; RequestError when there is nothing to resume, when a recipe has changed (unless forced), when a
    secret of the run is missing, or when the folder of the run is gone.
    """
    root, wanted = home.path / RUNS_FOLDER, str(i.get("artifact") or "").strip()
    runs = [find_run(root, wanted)] if wanted else recorded_runs(root)
    if not runs:
        raise RequestError(f"there is nothing to resume: no run has left a journal in {root}", hint="cm run script ...")
    run = runs[-1]
    _check_state(run)
    changed = changed_recipes(run)
    if changed and not is_forced(i):
        raise RequestError(
            f"run {run.run_id} was made with other recipes: {'; '.join(changed)}",
            hint=f"give its command as a new run, or resume it all the same: cm resume script {run.run_id} --force",
        )
    folder = Path(str(run.request.get("folder", "")))
    if not folder.is_dir():
        raise RequestError(f"the folder {folder}, where run {run.run_id} was started, is gone", hint="create it")
    asked = run.request
    inputs = with_secrets(asked.get("inputs") or {}, i, asked.get("secrets", ()), f"resume script {run.run_id}")
    if _takes_resume(run, home) and not inputs.get(RESUME_INPUT):
        inputs[RESUME_INPUT] = "all"
    for line in resume_lines(run, changed, str(inputs.get(RESUME_INPUT) or "")):
        logger.info(line)
    if asked.get("cache") != str(home.store_path):
        logger.warning("! that run used the cache %s, this one uses %s", asked.get("cache"), home.store_path)
    with working_folder(folder):
        return run_action({**inputs, "action": "run", "out": i.get("out")}, home, cmind)


def _check_state(run: RecordedRun) -> None:
    """Raises RequestError when a run has ended well, or is in progress."""
    if run.state == "done":
        raise RequestError(
            f"there is nothing to resume: run {run.run_id} ({run.command}) ended well",
            hint=f"{LIST_HINT}; name an earlier one, or give the command again",
        )
    if run.state == "running":
        pid, host = run.request.get("pid"), run.request.get("host")
        raise RequestError(
            f"run {run.run_id} ({run.command}) is in progress: process {pid} on {host}", hint="let it finish, or end it"
        )


def changed_recipes(run: RecordedRun) -> list[str]:
    """The recipes that ran and were changed since, each with what happened to it."""
    changed = []
    for path, step in sorted({step.path: step for step in run.steps if step.path}.items()):
        name = step.recipe.partition(",")[0]
        try:
            if recipe_digest(Path(path)) != step.digest:
                changed.append(f"{name} has changed ({path})")
        except OSError:
            changed.append(f"{name} is gone from {path}")
    return changed


def with_secrets(inputs: Mapping[str, Any], i: Mapping[str, Any], names: Iterable[str], again: str) -> dict[str, Any]:
    """Kept inputs with the secrets of these names, which ``i`` gives again; ``again`` is the action that asks.

    Raises RequestError when one is missing.
    """
    given = secret_flags(i)
    missing = [name for name in names if name not in given]
    if missing:
        raise RequestError(
            f"the run was given secrets, which are never kept: {', '.join('--' + name for name in missing)}",
            hint=f"cm {again} " + " ".join(f"--{name}=..." for name in missing),
        )
    whole: dict[str, Any] = copy.deepcopy(dict(inputs))
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


def resume_lines(run: RecordedRun, changed: Iterable[str], mode: str) -> Iterator[str]:
    """What is reported before a run is resumed: what is kept, what is made again, and where it continues."""
    why = f" in {' -> '.join(run.failing)}" if run.failing else ""
    yield f"resuming run {run.run_id}, {run.state_text}{why}"
    yield f"  {run.command}"
    for line in changed:
        yield f"  ! {line}; resuming because of --force"
    with_entry = [step for step in run.steps if step.entry_path and Path(step.entry_path, "_cm.json").is_file()]
    kept = {step.recipe: step.label for step in with_entry}
    yield "  from the cache: " + (", ".join(sorted(kept.values())) or "nothing")
    others = {step.recipe: step for step in run.steps if step.recipe not in kept and step.status != "skipped"}
    again = [step.label for step in others.values() if step.status in ("ran", "faked")]
    if again:
        yield "  run again, because they are not cached: " + ", ".join(again)
    open_steps = [step.label for step in others.values() if step.status in ("failed", "unfinished")]
    if open_steps:
        yield "  continues with: " + ", ".join(reversed(open_steps))
    if mode:
        yield f"  --{RESUME_INPUT}={mode}: of the runs that the recipe makes itself, those that passed are kept"
