"""``cm reproduce script RESULT``: makes a result again from its record, under its lock, and compares the two.

    check     may a folder ask for this?
    look      is the result still what was recorded? are recipes, files and packages still those of its lock?
    confirm   the user sees the line that would run, and agrees
    run       its request, frozen to the lock, with its output in a new folder
    compare   inputs equal, exact figures equal, the others within the tolerance; else what differs, by name

``--check_only`` ends after the second step, ``--plan`` shows what the fourth would do.

A record is in a folder that anybody may have made: its seals say that it is whole, not who made it. So its request is
data, and an allow-list says what may be in it: a recipe that declares ``result_folder_input``, the inputs that this
recipe describes, and plain values that do not lead into the folder of the result. All else must come from the user.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..actions.adapter import Home
from ..actions.journals import with_secrets
from ..actions.run import new_engine, parse_query_input, parse_request, run_action
from ..disk.digests import recipe_files
from ..disk.entries import details_of
from ..disk.files import read_json, working_folder, write_json, write_text
from ..disk.repos import RecipeSource
from ..documents.console_text import plain
from ..rules.amounts import counted
from ..rules.cachekey import Artifact
from ..rules.errors import RecipeError, RequestError, printable
from ..rules.input_types import converted
from ..rules.model import CacheEntry, CacheKey, Configured, EntryDetails, InputDescription, Recipe
from ..rules.query import VersionRange
from ..rules.rerun import flat, given_line
from ..rules.schema import is_yes
from ..rules.secrets import hidden_texts
from ..running.console import confirm
from ..running.context import StepContext, user_path
from ..running.engine import Engine
from .compare import (
    SHOWN_FILES,
    Difference,
    compare,
    difference_line,
    difference_lines,
    digest_of,
    edited_files,
    failed,
    parse_tolerance,
    recipe_differences,
    reproduction_lines,
    show_lines,
)
from .lock import LOCK_NAME, Guard, LockingEngine, is_open, locked_artifact, nearest_differences, remake
from .lockfile import lockfile_json
from .record import (
    ATTACHED,
    ResultRecord,
    find_results,
    folder_input_of,
    here,
    other_code_lines,
    recording_recipe,
)

logger = logging.getLogger(__name__)

REPORT_FILE = "reproduction.json"
NEW_FOLDERS = "reproduced"
"""Below the current folder; each call makes a folder of its own in it, unless ``--output_dir`` names one."""
PACKAGES = "python_packages"
"""The kind of facts in a lock that get-generic-python-lib installs from."""
ATTACHMENTS_FOLDER = "attachments"
OWN_NAMES = (ATTACHMENTS_FOLDER, LOCK_NAME, os.pardir)
"""What a relative path must not begin with: these are in the new folder, where the run works, or lead out of it."""
ENGINE_INPUTS = ("tags", "quiet")
_VERSION = re.compile(r"[A-Za-z0-9](?!.*\.\.)[A-Za-z0-9._+:~(), /-]*")
"""Hooks put the versions of a lock into addresses and command lines."""
_SECRET_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
MANIFEST_LIMIT_BYTES = 1 << 20
"""A longer JSON file is data itself."""


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
        raise RequestError(
            "no result was selected", hint="cm reproduce script FOLDER, a folder of results or one of them"
        )
    return user_path(word)


def new_folder(i: Mapping[str, Any], source: Path) -> Path:
    """The folder for what is made again; it does not exist yet. Raises RequestError when the one asked for is used."""
    given = str(i.get("output_dir") or "").strip()
    if given:
        path = user_path(given)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise RequestError(f"--output_dir={given} is not an empty folder, and results are never overwritten")
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
    hint = f"the folder decides which commands run, and its origin is unknown. If you trust it: {again}"
    refusal = f"{source} requests the runs above (no command was run)"
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
    logger.info("reproducing %s in %s", record.name, folder)
    failure: RecipeError | None = None
    try:
        with working_folder(folder):
            run_action({**task.inputs, "action": "run", "frozen": str(folder / LOCK_NAME)}, home, cmind)
    except RecipeError as error:  # a run that made its result may still say that it does not pass
        failure = error
    try:
        return next(result for result in find_results(folder) if result.name == record.name)
    except StopIteration:
        missing = RequestError(
            f"the run in {folder} wrote no record of {record.name}, so there is no result to compare"
        )
    except RequestError as error:
        missing = error
    if failure:
        failure.notes = (*failure.notes, f"while reproducing {record.name} in {folder}")
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
        found = {"differing": plain(task.differing), "damaged": plain(task.damaged), "unmade": unmade}
        rows.append({"name": name, "folder": str(task.record.folder), **found})
        seconds = task.record.duration_s
        plan.append({"name": name, "command": task.command, "duration_s": seconds, "unmade": unmade})
    answer = {"results": rows, **({"plan": plan, "folder": str(new)} if is_plan else {})}
    counted = [(*task.differing, *(task.damaged if is_check and not is_plan else ())) for task in tasks]
    names = [*dict.fromkeys(difference.name for differences in counted for difference in differences)]
    if names:
        more = f" and {len(names) - SHOWN_FILES} more" if len(names) > SHOWN_FILES else ""
        error = (
            f"the inputs differ from those of the result, so no command was run: {', '.join(names[:SHOWN_FILES])}{more}"
        )
        other = [task for task in tasks if any(one.group in ("recipe", "library") for one in task.differing)]
        show_lines(i, [line for one in other for line in other_code_lines(one.record, one.command, one.folder)])
        return failed(i, error, {**answer, "verdict": "inputs differ"})
    return {"return": 0, **answer, "verdict": "same inputs"}


def check_lines(tasks: Iterable[Task]) -> Iterator[str]:
    """What is the same and what is not, result by result."""
    for task in tasks:
        lock = task.record.lock
        if task.differing or task.damaged:
            yield f"{task.record.name}: the inputs DIFFER from those of the result"
        else:
            unmade = f", to be built first: {', '.join(task.unmade)}" if task.unmade else ""
            recipes, artifacts = counted(len(lock.recipes), "recipe"), counted(len(lock.artifacts), "artifact")
            counts = f"{recipes}, {artifacts} that they build"
            yield f"{task.record.name}: the inputs match those of the result ({counts}){unmade}"
        yield from (f"  ! {line}" for line in difference_lines(task.differing))
        yield from (f"  ! {difference_line(difference)} (a run rebuilds it)" for difference in task.damaged)


def plan_lines(tasks: list[Task], new: Path) -> Iterator[str]:
    """What would be run, and how long it took when the results were made."""
    results, total_s = counted(len(tasks), "result"), sum(task.record.duration_s for task in tasks)
    yield f"would reproduce {results} in {new}. The recorded runs lasted {total_s:.0f} s in total"
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


# --- check ---


class RequestCheck(NamedTuple):
    """Judges the request of one record; ``folders`` are the one that the user named and the result's own in it."""

    recipe: Recipe
    record: ResultRecord
    folders: tuple[Path, ...]

    def check(self, inputs: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        """Raises RequestError when ``inputs`` hold what no record may ask for, and ``given`` by the user does not."""
        own = {name: str(value) for name, value in flat(given)}
        lines = [f"--{name}: {reason}" for name, value, reason in self._refusals(inputs) if own.get(name) != str(value)]
        for locked in self.record.lock.artifacts:
            if locked.version and not _VERSION.fullmatch(locked.version):
                lines.append(f"{locked.label}: {locked.version!r} is not a version")
        secrets = self.record.request.secrets
        lines += [f"{name!r} is not a flag" for name in secrets if not _SECRET_NAME.fullmatch(name)]
        if lines:
            raise RequestError(
                "\n  ".join(
                    [
                        f"{self.record.name} requests something that a record must not request, so no command was run:",
                        *lines,
                    ]
                ),
                hint="if you trust an input, pass it on the command line with the same value",
            )

    def _refusals(self, inputs: Mapping[str, Any]) -> Iterator[tuple[str, Any, str]]:
        """The inputs that a record must not ask for: dotted name, value, why not."""
        for name, value in inputs.items():
            described = self.recipe.inputs.get(name)
            is_plain = value is None or isinstance(value, str | bool | int | float)
            if is_plain and name in ENGINE_INPUTS:
                reason = self._query_refusal(inputs) if name == "tags" else ""
            elif is_plain and described:
                reason = self._value_refusal(value, described) if name != folder_input_of(self.recipe) else ""
            else:
                for place, item in flat({name: value}):
                    yield place, item, f"not an input that {self.recipe.id.alias} describes, found {item!r}"
                continue
            if reason:
                yield name, value, f"{reason}, found {value!r}"

    def _query_refusal(self, inputs: Mapping[str, Any]) -> str:
        query, _ = parse_query_input(inputs)
        unlisted = [name for name in query.variations if name not in self.recipe.variations or "#" in name]
        return f"not a variation that {self.recipe.id.alias} lists by name: {', '.join(unlisted)}" if unlisted else ""

    def _value_refusal(self, value: Any, described: InputDescription) -> str:
        """What is wrong with the value of a described input; empty when it is fine."""
        if not isinstance(value, str):
            return ""
        if described.choices and converted(described, value) is None:
            return f"must be one of {', '.join(described.choices)}"
        if value.startswith(ATTACHED):
            is_known = value.removeprefix(ATTACHED) in self.record.attachments
            return "" if described.is_path and is_known else "must not be a file of the record, or the file is missing"
        if described.is_path and value and not os.path.isabs(value):
            return "must be an absolute path"
        return "must not be inside the folder of the result" if self._leads_inside(value) else ""

    def _leads_inside(self, value: str) -> bool:
        """Whether a text, or a part of it, names something in the folders of the result or of the run."""
        for part in (value, *re.split(r"[\s,;:=]+", value)):
            path = os.path.expanduser(part)
            if "<result>" in part or os.path.normpath(path).split(os.sep)[0] in OWN_NAMES:
                return True
            if os.path.isabs(path):
                real = os.path.realpath(path) + os.sep
                if any(real.startswith(os.path.realpath(folder) + os.sep) for folder in self.folders):
                    return True
            elif os.sep in path and any(os.path.lexists(folder / path) for folder in self.folders):
                return True
        return False


# --- inputs ---


class Task(NamedTuple):
    """One result to make again in ``folder``, with the inputs that do it, and what was found by ``checked``.

    ``differing`` files and inputs are those that a run under the lock would refuse or would not notice, ``damaged``
    cache entries are made again by a run, ``unmade`` artifacts have to be made first.
    """

    record: ResultRecord
    folder: Path
    inputs: Mapping[str, Any]
    differing: tuple[Difference, ...] = ()
    damaged: tuple[Difference, ...] = ()
    unmade: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """The line that makes the result again."""
        return given_line(self.inputs).text


class _CheckingEngine(LockingEngine):
    """A plan under the lock of a record that keeps why entries are not reused."""

    def __init__(self, engine: Engine, record: ResultRecord) -> None:
        super().__init__(engine)
        self.guard = Guard(record.lock, "the record", is_frozen=True, source=engine.source, store=engine.store)
        self.damaged: dict[str, Difference] = {}

    def tell_once(self, configured: Configured, mark: str, text: str, name: str = "") -> None:
        """Keeps why an entry is not reused."""
        super().tell_once(configured, mark, text, name)
        reason = text.removeprefix(f"{configured.label}: ")
        if mark == "!" and reason.startswith("not reusing "):
            self.damaged[configured.label] = Difference("made", configured.label, note=reason)

    def narrowed_version(self, step: StepContext, key: CacheKey) -> VersionRange:
        """What is not known before a run cannot be looked up in a lock."""
        return key.version if is_open(key) else super().narrowed_version(step, key)


def checked(task: Task, home: Home) -> Task:
    """Compares a result and what it was made with to what is on this machine now, without running anything.

    Reads every file that the record and its lock name, and those that such a file lists with digests.
    """
    record, engine = task.record, new_engine(home, None)
    edited, recipes = tuple(edited_files(record)), tuple(_recipes(record, engine.source))
    if recipes:  # a plan with other recipes would say nothing about what was locked
        return task._replace(differing=(*edited, *recipes))
    checking = _CheckingEngine(engine, record)
    errors: list[RecipeError] = []
    try:
        checking.run_consistently(parse_request(task.inputs))
    except RecipeError as error:
        errors.append(error)
    if not checking.tree.is_empty:
        errors += [step.error for _, step in checking.tree.root.walk() if step.error and step.is_certain]
    found: dict[str, Difference] = {}
    for problem in errors:
        label = (problem.trace or ("request",))[-1]
        note = " ".join(line.strip() for line in problem.message.splitlines())
        found[label] = Difference("made", label, note=note)
    for artifact in sorted({locked.artifact for locked in record.lock.artifacts}):
        found.update({one.name: one for one in _entry_differences(artifact, record, checking)})
    made = {artifact for artifact, choices in checking.chosen_entries.items() if any(entry for _, entry in choices)}
    unmade = {locked.label for locked in record.lock.artifacts if locked.is_made and locked.artifact not in made}
    differing, damaged = (*edited, *found.values()), tuple(checking.damaged.values())
    return task._replace(differing=differing, damaged=damaged, unmade=tuple(sorted(unmade)))


def _recipes(record: ResultRecord, source: RecipeSource) -> Iterator[Difference]:
    """The recipes that are not the locked ones, and the packages that they use, file by file."""
    found = {key: source.index.by_name(key.partition(",")[2]) for key in record.lock.recipes}
    recipes = {key: source.recipe(entries[0]) for key, entries in found.items() if entries}
    now = {key: source.digest(recipe) for key, recipe in recipes.items()}
    missing = "no registered repository has this recipe"
    yield from recipe_differences(record, now, lambda key: recipe_files(recipes[key].path), missing)
    for name, sha256 in record.lock.library.items():
        path = source.file_of(name)
        digest = path and digest_of(path)
        if digest != sha256:
            yield Difference(
                "library", name, sha256, digest, "the file was changed" if digest else "the file is missing"
            )


def _entry_differences(artifact: Artifact, record: ResultRecord, engine: _CheckingEngine) -> Iterator[Difference]:
    """What of the entries that serve a locked artifact is not what was locked, by their content now."""
    locked = [one for one in record.lock.find(artifact) if one.is_made]
    for key, entry in engine.chosen_entries.get(artifact, ()) if locked else ():
        if entry is None:
            continue
        different = nearest_differences(locked, locked_artifact(engine.store, entry, key))
        if different:
            yield Difference("made", locked[0].label, note=f"{'; '.join(different)}: {remake(entry)}")
            continue
        for path, recorded, digest in _changed_files(entry):
            note = f"the file was changed in {entry.path}: {remake(entry)}"
            yield Difference("made", f"{locked[0].label} {path}", recorded, digest, note)


def _changed_files(entry: CacheEntry) -> Iterator[tuple[str, str, str | None]]:
    """The files of an entry whose content is not what was declared: path, SHA-256 declared and now."""
    for declared in (details_of(entry) or EntryDetails()).files:
        path = entry.path / declared.path
        now = digest_of(path)
        if now != declared.sha256:
            yield declared.path, declared.sha256, now
            continue
        for name, sha256 in _listed_files(path):
            now = digest_of(path.parent / name)
            if now != sha256:
                yield str(Path(declared.path).parent / name), sha256, now


def _listed_files(path: Path) -> Iterator[tuple[str, str]]:
    """The files that a manifest in their folder lists by name, or under ``file``, each with its digest.

    ``{"files": {"image.npy": {"sha256": "..."}, "model": {"file": "model.onnx", "sha256": "..."}}}``
    """
    is_small = path.suffix == ".json" and path.stat().st_size <= MANIFEST_LIMIT_BYTES
    content = read_json(path) if is_small else None
    files = content.get("files") if isinstance(content, dict) else None
    for name, row in files.items() if isinstance(files, dict) else ():
        if isinstance(row, dict) and isinstance(row.get("sha256"), str):
            yield str(row.get("file") or name), row["sha256"]
