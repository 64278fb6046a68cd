"""``cm reproduce script RESULT``: makes a result again from its record, under its lock, and compares the two.

    check     may a folder ask for this? (check.py: it is not known who made the folder)
    look      is the result still what was recorded? are recipes, files and packages still those of its lock?
    confirm   the user sees the line that would run, and agrees
    run       its request, frozen to the lock, with its output in a new folder
    compare   inputs equal, exact figures equal, the others within the tolerance; else what differs, by name

``--check_only`` ends after the second step, ``--plan`` shows what the fourth would do.
"""

from __future__ import annotations

import logging
import os
import shlex
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..actions.adapter import Home
from ..actions.journals import with_secrets
from ..actions.run import run_action
from ..disk.files import working_folder, write_json, write_text
from ..disk.repos import RecipeSource
from ..rules.amounts import counted
from ..rules.errors import RecipeError, RequestError, printable
from ..rules.schema import is_yes
from ..rules.secrets import hidden_texts
from ..running.console import confirm
from .check import ATTACHMENTS_FOLDER, RequestCheck, Task, checked
from .compare import as_rows, compare, difference_line, failed, parse_tolerance, reproduction_lines, show_lines
from .guard import LOCK_NAME
from .lockfile import lockfile_json
from .record import ATTACHED, ResultRecord, find_results, here, recording_recipe, user_path

logger = logging.getLogger(__name__)

REPORT_FILE = "reproduction.json"
NEW_FOLDERS = "reproduced"
"""Below the current folder; each call makes a folder of its own in it, unless ``--output_dir`` names one."""
PACKAGES = "python_packages"
"""The kind of facts in a lock that get-generic-python-lib installs from."""


def reproduce_action(i: Mapping[str, Any], home: Home, cmind: Any) -> dict[str, Any]:
    """Answers ``cm reproduce script RESULT``; code 0 only when every result was reproduced (or could be, for a check).

    Raises RequestError for a folder without results, for an edited record, for a request that a folder must not make,
    for secrets that have to be given again, and when the run is not confirmed.
    """
    tolerance_percent = parse_tolerance(i.get("tolerance"))
    source = _result_folder(i)
    records = find_results(source)
    new = new_folder(i, source)
    recipes = home.source()
    tasks = [_task(record, new / f"{number:02d}", i, recipes) for number, record in enumerate(records, start=1)]
    tasks = [checked(task, home) for task in tasks]
    if is_yes(i.get("plan")) or is_yes(i.get("check_only")) or any(task.differing for task in tasks):
        return _answer_check(i, tasks, new)
    _confirm(i, tasks, source)
    rows = []
    for task in tasks:
        comparison = compare(task.record, make_again(task, home, cmind))
        show_lines(i, reproduction_lines(comparison, tolerance_percent))
        is_reproduced = comparison.is_reproduced(tolerance_percent)
        rows.append({**comparison.row(tolerance_percent), "is_reproduced": is_reproduced})
    missed = [row["name"] for row in rows if not row["is_reproduced"]]
    verdict = "not reproduced" if missed else "reproduced"
    answer = {"verdict": verdict, "tolerance_percent": tolerance_percent, "folder": str(new), "results": rows}
    write_json(new / REPORT_FILE, hidden_texts(answer))
    show_lines(i, [f"{verdict}: {len(rows) - len(missed)} of {len(rows)}, in {new}"])
    return failed(i, f"not reproduced: {', '.join(missed)}", answer) if missed else {"return": 0, **answer}


def _result_folder(i: Mapping[str, Any]) -> Path:
    """The folder that a call names as a word or with ``--result``. Raises RequestError when it names none."""
    word = str(i.get("result") or i.get("artifact") or "").strip()
    if not word:
        raise RequestError("no result was named", hint="cm reproduce script FOLDER, a folder of results or one of them")
    return user_path(word)


def new_folder(i: Mapping[str, Any], source: Path) -> Path:
    """The folder for what is made again; it does not exist yet. Raises RequestError when the one asked for is used."""
    given = str(i.get("output_dir") or "").strip()
    if given:
        path = user_path(given)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise RequestError(
                f"--output_dir={given} is not an empty folder, and a result is never written over another one"
            )
        return path
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    root, number = Path.cwd() / NEW_FOLDERS, 1
    while (path := root / (f"{source.name}-{stamp}" + (f"-{number}" if number > 1 else ""))).exists():
        number += 1
    return path


def _task(record: ResultRecord, folder: Path, i: Mapping[str, Any], recipes: RecipeSource) -> Task:
    """The inputs that make a result again, as they are for this machine and the new folder.

    Raises RequestError when a folder must not ask for them.
    """
    request = record.request
    plain = here(request.inputs, {"<home>": os.path.expanduser("~")}, record.name)
    recipe = recording_recipe(plain, request.folder_input, recipes)
    RequestCheck(recipe, record, (_result_folder(i), record.folder)).check(plain, i)
    inputs = {name: _attached(value, folder, record) for name, value in plain.items()}
    inputs = with_secrets(inputs, i, request.secrets, f"reproduce script {record.folder}")
    return Task(record, folder, {**inputs, "artifact": recipe.id.text, request.folder_input: str(folder)})


def _attached(value: Any, folder: Path, record: ResultRecord) -> Any:
    """An input whose file is in the record, as the path where that file will be."""
    name = value.removeprefix(ATTACHED) if isinstance(value, str) and value.startswith(ATTACHED) else ""
    return str(folder / ATTACHMENTS_FOLDER / name) if name in record.attachments else value


def _confirm(i: Mapping[str, Any], tasks: Iterable[Task], source: Path) -> None:
    """Shows what would run; raises RequestError unless ``--yes`` was given or the user agrees."""
    for line in run_lines(tasks):
        logger.info("%s", printable(line))
    again = shlex.join(["cm", "reproduce", "script", str(source), "--yes"])
    hint = f"the folder decides what is run, and anybody may have made it; if you trust it: {again}"
    refusal = f"{source} asks for the runs above, and nothing was run"
    if not is_yes(i.get("yes")) and not confirm("Run this?", refusal=refusal, hint=hint):
        raise RequestError(refusal, hint=hint)


def make_again(task: Task, home: Home, cmind: Any) -> ResultRecord:
    """Runs the request of a result, frozen to its lock; the new record. Raises RecipeError when there is none."""
    record, folder = task.record, task.folder
    folder.mkdir(parents=True)
    for name, content in record.attachments.items():
        path = folder / ATTACHMENTS_FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, content)
    write_json(folder / LOCK_NAME, lockfile_json(record.lock))
    logger.info("making %s again in %s", record.name, folder)
    failure: RecipeError | None = None
    try:
        with working_folder(folder):
            run_action({**task.inputs, "action": "run", "frozen": str(folder / LOCK_NAME)}, home, cmind)
    except RecipeError as error:  # a run that made its result may still say that it does not pass
        failure = error
    try:
        return next(result for result in find_results(folder) if result.name == record.name)
    except StopIteration:
        missing = RequestError(f"the run in {folder} left no record of {record.name}, so there is nothing to compare")
    except RequestError as error:
        missing = error
    if failure:
        failure.notes = (*failure.notes, f"while making {record.name} again in {folder}")
    raise failure or missing


# --- answers ---


def _answer_check(i: Mapping[str, Any], tasks: list[Task], new: Path) -> dict[str, Any]:
    """The answer for ``--check_only`` and ``--plan``, and for a run whose inputs are not here.

    A damaged cache entry counts in a check only: a run makes it again.
    """
    is_plan, is_check = is_yes(i.get("plan")), is_yes(i.get("check_only"))
    show_lines(i, [*(plan_lines(tasks, new) if is_plan else ()), *check_lines(tasks)])
    rows, plan = [], []
    for task in tasks:
        name, unmade = task.record.name, list(task.unmade)
        found = {"differing": as_rows(task.differing), "damaged": as_rows(task.damaged), "unmade": unmade}
        rows.append({"name": name, "folder": str(task.record.folder), **found})
        seconds = task.record.duration_s
        plan.append({"name": name, "command": task.command, "duration_s": seconds, "unmade": unmade})
    answer = {"results": rows, **({"plan": plan, "folder": str(new)} if is_plan else {})}
    counted = [(*task.differing, *(task.damaged if is_check and not is_plan else ())) for task in tasks]
    names = dict.fromkeys(difference.name for differences in counted for difference in differences)
    if names:
        error = f"the inputs are not those of the result, nothing was run: {', '.join(names)}"
        return failed(i, error, {**answer, "verdict": "inputs differ"})
    return {"return": 0, **answer, "verdict": "same inputs"}


def check_lines(tasks: Iterable[Task]) -> Iterator[str]:
    """What is the same and what is not, result by result."""
    for task in tasks:
        lock = task.record.lock
        if task.differing or task.damaged:
            yield f"{task.record.name}: the inputs are NOT those of the result"
        else:
            unmade = f"; to be made first: {', '.join(task.unmade)}" if task.unmade else ""
            counts = f"{len(lock.recipes)} recipes, {len(lock.artifacts)} artifacts that they make"
            yield f"{task.record.name}: the inputs are those of the result ({counts}){unmade}"
        yield from (f"  ! {difference_line(difference)}" for difference in task.differing)
        yield from (f"  ! {difference_line(difference)}; a run makes it again" for difference in task.damaged)


def plan_lines(tasks: list[Task], new: Path) -> Iterator[str]:
    """What would be run, and how long it took when the results were made."""
    results, total_s = counted(len(tasks), "result"), sum(task.record.duration_s for task in tasks)
    yield f"would make {results} again in {new}; the runs took {total_s:.0f} s in all when they were recorded"
    for task in tasks:
        yield f"  {task.record.name}: {task.record.duration_s:.0f} s, {task.command}"


def run_lines(tasks: Iterable[Task]) -> Iterator[str]:
    """What the records ask to run: the line, its recipes with the versions wanted, the packages that it may install."""
    for task in tasks:
        versions: dict[str, dict[str, None]] = {name: {} for name in task.record.lock.recipes}
        packages: dict[str, str] = {}
        for locked in task.record.lock.artifacts:
            rows = locked.facts.get(PACKAGES)
            if rows is None and locked.version:
                versions.setdefault(locked.recipe.text, {})[locked.version] = None
            for name, row in rows.items() if isinstance(rows, Mapping) else ():
                packages[name] = str(row.get("version", "")) if isinstance(row, Mapping) else str(row)
        recipes = sorted(" ".join([name.partition(",")[0], *found]) for name, found in versions.items())
        yield f"{task.record.name} would run:"
        yield f"    {task.command}"
        yield "    recipes: " + ", ".join(recipes)
        if packages:
            yield "    Python packages: " + ", ".join(f"{name} {version}" for name, version in sorted(packages.items()))
