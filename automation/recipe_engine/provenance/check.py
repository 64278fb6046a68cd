"""What is checked before a result is made again: whether its folder may ask for that, and whether its inputs are here.

A record is in a folder that anybody may have made: its seals say that it is whole, not who made it. So its request is
data, and an allow-list says what may be in it: a recipe that declares ``result_folder_input``, the inputs that this
recipe describes, and plain values that do not lead into the folder of the result. All else must come from the user.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..actions.adapter import Home
from ..actions.run import new_engine, parse_query_input, parse_request
from ..disk.entries import details_of
from ..disk.repos import RecipeSource, recipe_files
from ..rules.cachekey import Artifact
from ..rules.errors import RecipeError, RequestError
from ..rules.model import CacheEntry, CacheKey, Configured, EntryDetails, InputDescription, Recipe
from ..rules.query import VersionRange
from ..rules.rerun import flat, given_line
from ..running.context import StepContext
from ..running.engine import Engine
from .compare import Difference, digest_of, edited_files, recipe_differences
from .guard import LOCK_NAME, Guard, locked_artifact, nearest_differences, remake
from .lock import LockingEngine, is_open
from .record import ATTACHED, ResultRecord, folder_input_of

ATTACHMENTS_FOLDER = "attachments"
OWN_NAMES = (ATTACHMENTS_FOLDER, LOCK_NAME, os.pardir)
"""What a relative path must not begin with: these are in the new folder, where the run works, or lead out of it."""
ENGINE_INPUTS = ("tags", "quiet")
_VERSION = re.compile(r"[A-Za-z0-9](?!.*\.\.)[A-Za-z0-9._+:~(), /-]*")
"""Hooks put the versions of a lock into addresses and command lines."""
_SECRET_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
MANIFEST_LIMIT_BYTES = 1 << 20
"""A longer JSON file is data itself."""


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
                "\n  ".join([f"{self.record.name} asks for what a record must not ask for; nothing was run:", *lines]),
                hint="an input that you trust is accepted when you give it yourself, with the same value",
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
        if described.choices and value.lower() not in {choice.lower() for choice in described.choices}:
            return f"must be one of {', '.join(described.choices)}"
        if value.startswith(ATTACHED):
            is_known = value.removeprefix(ATTACHED) in self.record.attachments
            return "" if described.is_path and is_known else "must not be a file of the record, or there is none"
        if described.is_path and value and not os.path.isabs(value):
            return "must be an absolute path"
        return "must not lead into the folder of the result" if self._leads_inside(value) else ""

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
    for failed in errors:
        label = (failed.trace or ("request",))[-1]
        note = " ".join(line.strip() for line in failed.message.splitlines())
        found[label] = Difference("made", label, note=note)
    for artifact in sorted({locked.artifact for locked in record.lock.artifacts}):
        found.update({one.name: one for one in _entry_differences(artifact, record, checking)})
    made = {artifact for artifact, choices in checking.chosen_entries.items() if any(entry for _, entry in choices)}
    unmade = {locked.label for locked in record.lock.artifacts if locked.is_made and locked.artifact not in made}
    differing, damaged = (*edited, *found.values()), tuple(checking.damaged.values())
    return task._replace(differing=differing, damaged=damaged, unmade=tuple(sorted(unmade)))


def _recipes(record: ResultRecord, source: RecipeSource) -> Iterator[Difference]:
    """The recipes that are not the locked ones, file by file."""
    found = {key: source.index.by_name(key.partition(",")[2]) for key in record.lock.recipes}
    recipes = {key: source.recipe(entries[0]) for key, entries in found.items() if entries}
    now = {key: source.digest(recipe) for key, recipe in recipes.items()}
    missing = "no registered repository has this recipe"
    return recipe_differences(record, now, lambda key: recipe_files(recipes[key].path), missing)


def _entry_differences(artifact: Artifact, record: ResultRecord, engine: _CheckingEngine) -> Iterator[Difference]:
    """What of the entries that serve a locked artifact is not what was locked, by their content now."""
    locked = [one for one in record.lock.find(artifact) if one.is_made]
    for key, entry in engine.chosen_entries.get(artifact, ()) if locked else ():
        if entry is None:
            continue
        different = nearest_differences(locked, locked_artifact(engine.store, entry, key))
        if different:
            yield Difference("made", locked[0].label, note=f"{'; '.join(different)}; {remake(entry)}")
            continue
        for path, recorded, digest in _changed_files(entry):
            note = f"the file was changed in {entry.path}, unnoticed; {remake(entry)}"
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
    if path.suffix != ".json" or path.stat().st_size > MANIFEST_LIMIT_BYTES:
        return
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    files = content.get("files") if isinstance(content, dict) else None
    for name, row in files.items() if isinstance(files, dict) else ():
        if isinstance(row, dict) and isinstance(row.get("sha256"), str):
            yield str(row.get("file") or name), row["sha256"]
