"""``cm reproduce script RESULT``: makes a result again from its record, under its lock, and compares the two.

    check     may a folder ask for this? (record_request.py: nobody knows who made the folder)
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
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..disk.files import working_folder, write_json, write_text
from ..disk.repos import RecipeSource
from ..documents.comparison import DEFAULT_TOLERANCE_PERCENT, Comparison, Difference, compare
from ..documents.comparison_text import difference_line, reproduction_lines, visible
from ..documents.resultrecord import ATTACHED, ResultRecord, here
from ..rules.errors import RecipeError, RequestError
from ..rules.schema import is_yes
from ..rules.secrets import hidden_texts
from ..running.prompts import confirm
from .input_check import InputCheck, check_inputs
from .record_request import (
    ATTACHMENTS_FOLDER,
    LOCK_NAME,
    RequestCheck,
    locked_packages,
    recipes_of,
    recording_recipe,
)
from .results import FoundResult, edited_files, find_results, result_folder
from .resume import with_secrets
from .run import Home, new_engine, run_action

logger = logging.getLogger(__name__)

TITLES = ("recorded", "now")
REPORT_FILE = "reproduction.json"
NEW_FOLDERS = "reproduced"
"""Below the current folder; each call makes a folder of its own in it, unless ``--output_dir`` names one."""


class Task(NamedTuple):
    """One result to make again: with what inputs, and what was found out before."""

    result: FoundResult
    inputs: Mapping[str, Any]
    edited: tuple[Difference, ...] = ()
    check: InputCheck = InputCheck()

    @property
    def name(self) -> str:
        """What the result is called."""
        return self.result.record.name

    @property
    def blocking(self) -> tuple[Difference, ...]:
        """What makes a run under the lock pointless or impossible."""
        return (*self.edited, *self.check.differing)


def reproduce_action(i: Mapping[str, Any], home: Home, cmind: Any) -> dict[str, Any]:
    """Answers ``cm reproduce script RESULT``; code 0 only when every result was reproduced (or could be, for a check).

    Raises RequestError for what is no result, for an edited record, for a request that a folder must not make, for
    secrets that have to be given again, and when the run is not confirmed.
    """
    tolerance_percent = parse_tolerance(i.get("tolerance"))
    source = result_folder(i)
    results = find_results(source)
    new = new_folder(i, source)
    recipes = new_engine(home, None).source
    tasks = [_task(result, new / f"{number:02d}", i, recipes) for number, result in enumerate(results, start=1)]
    tasks = [_looked_at(task, home) for task in tasks]
    is_plan = is_yes(i.get("plan"))
    if is_plan or is_yes(i.get("check_only")):
        return _answer_check(i, tasks, new if is_plan else None)
    if any(task.blocking for task in tasks):
        _print(i, check_lines(tasks))
        names = [difference.name for task in tasks for difference in task.blocking]
        error = f"the inputs are not those of the result, nothing was run: {', '.join(dict.fromkeys(names))}"
        return _failed(i, error, {**_check_row(tasks), "verdict": "inputs differ"})
    _confirm(i, tasks, source)
    return _reproduce(i, tasks, new, tolerance_percent, Runner(home, cmind))


def _confirm(i: Mapping[str, Any], tasks: list[Task], source: Path) -> None:
    """Shows what would run; raises RequestError unless ``--yes`` was given or the user agrees."""
    for line in run_lines(tasks):
        logger.info("%s", visible(line))
    again = shlex.join(["cm", "reproduce", "script", str(source), "--yes"])
    hint = f"the folder says what to run, and is not known to be yours; if you want to run it: {again}"
    refusal = f"{source} asks for the runs above, and nothing was run"
    if not is_yes(i.get("yes")) and not confirm("Run this?", refusal=refusal, hint=hint):
        raise RequestError(refusal, hint=hint)


def parse_tolerance(given: Any) -> float:
    """How many percent a figure may be off; raises RequestError for what is no such number."""
    if given in (None, ""):
        return DEFAULT_TOLERANCE_PERCENT
    try:
        value = float(str(given).strip().removesuffix("%"))
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise RequestError(f"--tolerance={given} is no number of percent, 0 or more", hint="--tolerance=10")
    return value


def new_folder(i: Mapping[str, Any], source: Path) -> Path:
    """The folder for what is made again; it does not exist yet. Raises RequestError when the one asked for is used."""
    given = str(i.get("output_dir") or "").strip()
    if given:
        path = Path(os.path.abspath(os.path.expanduser(given)))
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise RequestError(f"--output_dir={given} is not empty, and a result is never written over another one")
        return path
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    root, number = Path.cwd() / NEW_FOLDERS, 1
    while (path := root / (f"{source.name}-{stamp}" + (f"-{number}" if number > 1 else ""))).exists():
        number += 1
    return path


def _task(result: FoundResult, folder: Path, i: Mapping[str, Any], recipes: RecipeSource) -> Task:
    """The inputs that make a result again, as they are for this machine and the new folder.

    Raises RequestError when a folder must not ask for them.
    """
    record = result.record
    plain = here(record.inputs_again, {"<home>": os.path.expanduser("~")}, record.name)
    recipe = recording_recipe(plain, record.folder_input, recipes)
    RequestCheck(recipe, record, (result_folder(i), result.folder)).check(plain, i)
    inputs = {name: _attached(value, folder, record) for name, value in plain.items()}
    inputs = with_secrets(inputs, i, record.secrets, f"reproduce script {result.folder}")
    return Task(result, {**inputs, "artifact": recipe.id.text, record.folder_input: str(folder)})


def _attached(value: Any, folder: Path, record: ResultRecord) -> Any:
    """An input whose file is in the record, as the path where that file will be."""
    name = value.removeprefix(ATTACHED) if isinstance(value, str) and value.startswith(ATTACHED) else ""
    return str(folder / ATTACHMENTS_FOLDER / name) if name in record.attachments else value


def _looked_at(task: Task, home: Home) -> Task:
    check = check_inputs(task.result.record, task.inputs, home)
    return task._replace(edited=tuple(edited_files(task.result)), check=check)


# --- without running ---


def _answer_check(i: Mapping[str, Any], tasks: list[Task], new: Path | None) -> dict[str, Any]:
    """The answer for ``--check_only``, and for ``--plan`` with the folder that a run would make."""
    lines = [*(plan_lines(tasks, new) if new else ()), *check_lines(tasks)]
    _print(i, lines)
    row = _check_row(tasks)
    if new:
        row["plan"] = [_plan_row(task) for task in tasks]
        row["folder"] = str(new)
    bad = [task for task in tasks if task.blocking or (task.check.damaged and not new)]
    if not bad:
        return {"return": 0, **row, "verdict": "same inputs"}
    differing = [d.name for task in bad for d in (*task.blocking, *task.check.damaged)]
    error = f"the inputs are not those of the result: {', '.join(dict.fromkeys(differing))}"
    return _failed(i, error, {**row, "verdict": "inputs differ"})


def check_lines(tasks: Iterable[Task]) -> Iterator[str]:
    """What is the same and what is not, result by result."""
    for task in tasks:
        lock = task.result.record.lock
        differs = [*task.blocking, *task.check.damaged]
        if not differs:
            unmade = f"; to be made first: {', '.join(task.check.unmade)}" if task.check.unmade else ""
            counts = f"{len(lock.recipes)} recipes, {len(lock.artifacts)} artifacts that they make"
            yield f"{task.name}: the inputs are those of the result ({counts}){unmade}"
            continue
        yield f"{task.name}: the inputs are NOT those of the result"
        for difference in task.blocking:
            yield f"  ! {difference_line(difference, TITLES)}"
        for difference in task.check.damaged:
            yield f"  ! {difference_line(difference, TITLES)}; a run makes it anew"


def plan_lines(tasks: Iterable[Task], new: Path) -> Iterator[str]:
    """What would be run, and how long it took when the results were made."""
    rows = [_plan_row(task) for task in tasks]
    total_s = sum(row["duration_s"] for row in rows)
    count = f"{len(rows)} result" + ("s" if len(rows) != 1 else "")
    yield f"would make {count} again in {new}; the runs took {total_s:.0f} s in all when they were recorded"
    for row in rows:
        yield f"  {row['name']}: {row['duration_s']:.0f} s, {row['command']}"


def run_lines(tasks: Iterable[Task]) -> Iterator[str]:
    """What the records ask to run: the line, its recipes with the versions wanted, the packages that it may install."""
    for task in tasks:
        lock = task.result.record.lock
        yield f"{task.name} would run:"
        yield f"    {_plan_row(task)['command']}"
        yield "    recipes: " + ", ".join(recipes_of(lock))
        packages = locked_packages(lock)
        if packages:
            yield "    Python packages: " + ", ".join(f"{name} {found}" for name, found in sorted(packages.items()))


def _plan_row(task: Task) -> dict[str, Any]:
    from ..rules.rerun import given_line  # here, because only a plan shows it

    command = given_line(task.inputs).text
    duration_s = task.result.record.duration_s
    return {"name": task.name, "command": command, "duration_s": duration_s, "unmade": list(task.check.unmade)}


def _check_row(tasks: Iterable[Task]) -> dict[str, Any]:
    rows = [
        {
            "name": task.name,
            "folder": str(task.result.folder),
            "differing": [difference.row for difference in task.blocking],
            "damaged": [difference.row for difference in task.check.damaged],
            "unmade": list(task.check.unmade),
        }
        for task in tasks
    ]
    return {"results": rows}


# --- running ---


class Runner(NamedTuple):
    """What runs need of the engine."""

    home: Home
    cmind: Any

    def make_again(self, task: Task, new: Path, number: int) -> FoundResult:
        """Runs the request of a result, frozen to its lock; the new result. Raises RecipeError when there is none."""
        record, folder = task.result.record, new / f"{number:02d}"
        folder.mkdir(parents=True)
        for name, content in record.attachments.items():
            path = folder / ATTACHMENTS_FOLDER / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, content)
        lock_path = folder / LOCK_NAME
        write_json(lock_path, record.lock_row)
        logger.info("making %s again in %s", record.name, folder)
        failure: RecipeError | None = None
        try:
            with working_folder(folder):
                run_action({**task.inputs, "action": "run", "frozen": str(lock_path)}, self.home, self.cmind)
        except RecipeError as error:  # a run that made its result may still say that it does not pass
            failure = error
        try:
            return _result_called(record.name, folder)
        except RequestError:
            if failure:
                failure.notes = (*failure.notes, f"while making {record.name} again in {folder}")
                raise failure from None
            raise


def _result_called(name: str, folder: Path) -> FoundResult:
    """The new result; raises RequestError when the run left none."""
    found = [result for result in find_results(folder) if result.record.name == name]
    if not found:
        raise RequestError(f"the run in {folder} left no record of {name}, so there is nothing to compare")
    return found[0]


def _reproduce(
    i: Mapping[str, Any], tasks: list[Task], new: Path, tolerance_percent: float, runner: Runner
) -> dict[str, Any]:
    comparisons: list[Comparison] = []
    for number, task in enumerate(tasks, start=1):
        made = runner.make_again(task, new, number)
        comparison = compare(task.result.record, made.record)
        comparisons.append(comparison)
        _print(i, reproduction_lines(comparison, tolerance_percent))
    good = [comparison.is_reproduced(tolerance_percent) for comparison in comparisons]
    pairs = zip(comparisons, good, strict=True)
    answer: dict[str, Any] = {
        "verdict": "reproduced" if all(good) else "not reproduced",
        "tolerance_percent": tolerance_percent,
        "folder": str(new),
        "results": [{**one.row(tolerance_percent), "is_reproduced": is_good} for one, is_good in pairs],
    }
    write_json(new / REPORT_FILE, hidden_texts(answer))
    _print(i, [f"{answer['verdict']}: {sum(good)} of {len(good)}, in {new}"])
    if all(good):
        return {"return": 0, **answer}
    names = [one.name for one, is_good in zip(comparisons, good, strict=True) if not is_good]
    return _failed(i, f"not reproduced: {', '.join(names)}", answer)


def _failed(i: Mapping[str, Any], error: str, answer: Mapping[str, Any]) -> dict[str, Any]:
    """The answer for a result that was not reproduced, whole for programs; on a console RequestError, told once."""
    if i.get("out") == "con":
        raise RequestError(visible(error), hint="--out=json gives every difference whole")
    return {"return": RequestError.code, "error": error, **answer}


def _print(i: Mapping[str, Any], lines: Iterable[str]) -> None:
    if i.get("out") == "con":
        sys.stdout.write("".join(visible(line) + "\n" for line in lines))
        sys.stdout.flush()
