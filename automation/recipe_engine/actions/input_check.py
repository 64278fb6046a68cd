"""Compares what a record was made with to what is on this machine now, without running anything."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..disk.content import details_of
from ..disk.files import sha256_of
from ..disk.repos import RecipeSource, recipe_files
from ..disk.store import Store
from ..documents.comparison import Difference, recipe_differences
from ..documents.lockfile import Lock, differences
from ..documents.resultrecord import ResultRecord
from ..rules.cachemodel import CacheEntry, CacheKey, EntryDetails
from ..rules.demands import Thing
from ..rules.errors import RecipeError
from ..rules.model import Configured, StepResult
from ..rules.version import VersionRange
from ..running.choose import Engine
from ..running.execute import run_consistently
from ..running.frame import Frame
from ..running.locked import Guard, thing_in
from .lock_action import LockingEngine, is_open
from .run import Home, new_engine, parse_request

MANIFEST_LIMIT_BYTES = 1 << 20
"""A longer JSON file is data itself."""


class InputCheck(NamedTuple):
    """What was found: ``differing`` inputs, which a run under the lock would refuse or which it would not notice;
    ``damaged`` cache entries, which a run makes anew; ``unmade`` things, which it has to make first."""

    differing: tuple[Difference, ...] = ()
    damaged: tuple[Difference, ...] = ()
    unmade: tuple[str, ...] = ()


class _CheckingEngine(LockingEngine):
    """A plan that keeps the entries it meets, and what it has against those that it does not take."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.entries: dict[Thing, list[tuple[CacheEntry, CacheKey]]] = {}
        self.damaged: dict[str, Difference] = {}

    def tell(self, configured: Configured, symbol: str, text: str) -> None:
        """Keeps why an entry is not reused."""
        super().tell(configured, symbol, text)
        label, _, reason = text.partition(": ")
        if symbol == "!" and reason.startswith("not reusing "):
            self.damaged[label] = Difference("made", label, note=reason)

    def narrowed_version(self, frame: Frame, key: CacheKey) -> VersionRange:
        """What is not known before a run cannot be looked up in a lock."""
        return key.version if is_open(key) else super().narrowed_version(frame, key)

    def note_choice(self, frame: Frame, key: CacheKey, result: StepResult) -> None:
        """Keeps the entry that serves a step."""
        super().note_choice(frame, key, result)
        entry = result.entry
        if entry and not self.planned_store.is_planned(entry):
            thing = thing_in(self.planned_store, entry, key).thing
            self.entries.setdefault(thing, []).append((entry, key))


def check_inputs(record: ResultRecord, inputs: Mapping[str, Any], home: Home) -> InputCheck:
    """What of a record's inputs is different here; ``inputs`` is its request with the places of this machine.

    Reads every file that the lock names, and those that such a file lists with digests.
    """
    engine = new_engine(home, None)
    recipes = tuple(_recipes(record, engine.source))
    if recipes:  # a plan with other recipes would tell nothing about what was locked
        return InputCheck(differing=recipes)
    checking = _CheckingEngine(engine)
    checking.guard = Guard(record.lock, "the record", is_frozen=True, source=engine.source, store=engine.store)
    found: dict[tuple[str, str], Difference] = {}
    try:
        run_consistently(checking, parse_request(inputs))
    except RecipeError as error:
        label = (error.trace or ("request",))[-1]
        found["made", label] = Difference("made", label, note=_first_lines(error))
    for planned in plan_errors(checking):
        label = (planned.trace or ("request",))[-1]
        found["made", label] = Difference("made", label, note=_first_lines(planned))
    for asked in sorted({thing.thing for thing in record.lock.things}):
        for difference in _entry_differences(asked, record.lock, checking, engine.store):
            found[difference.group, difference.name] = difference
    missing = [thing for thing in record.lock.things if thing.is_made and thing.thing not in checking.entries]
    unmade = sorted({thing.label for thing in missing})
    return InputCheck(tuple(found.values()), tuple(checking.damaged.values()), tuple(unmade))


def plan_errors(engine: LockingEngine) -> tuple[RecipeError, ...]:
    """The errors that would surely stop the run that was planned."""
    if engine.tree.is_empty:
        return ()
    return tuple(step.error for _, step in engine.tree.root.walk() if step.error and step.is_certain)


def _first_lines(error: RecipeError) -> str:
    return " ".join(line.strip() for line in error.message.splitlines())


def _recipes(record: ResultRecord, source: RecipeSource) -> Iterator[Difference]:
    """The recipes that are not the locked ones, file by file."""
    for key, locked in sorted(record.lock.recipes.items()):
        entries = source.index.by_name(key.partition(",")[2])
        recorded = record.recipe_files.get(key, {})
        if not entries:
            note = "no registered repository has this recipe"
            yield Difference("recipe", key.partition(",")[0], locked, None, note)
            continue
        recipe = source.recipe(entries[0])
        now = source.digest(recipe)
        if now != locked:
            yield from recipe_differences(key, (locked, now), (recorded, recipe_files(recipe.path)))


def _entry_differences(asked: Thing, lock: Lock, engine: _CheckingEngine, store: Store) -> Iterator[Difference]:
    """What of the entries that serve a locked thing is not what was locked, by their content now."""
    locked = [thing for thing in lock.find(asked) if thing.is_made]
    for entry, key in engine.entries.get(asked, ()) if locked else ():
        different = [differences(thing, thing_in(store, entry, key)) for thing in locked]
        if all(different):
            note = "; ".join(sorted(different, key=len)[0])
            yield Difference("made", locked[0].label, note=f"{note}; cm rm cache {entry.uid} -f makes it anew")
            continue
        for path, recorded, now in _changed_files(entry):
            note = f"the file was changed in {entry.path}, unnoticed; cm rm cache {entry.uid} -f makes it anew"
            yield Difference("made", f"{locked[0].label} {path}", recorded, now, note)


def _changed_files(entry: CacheEntry) -> Iterator[tuple[str, str, str | None]]:
    """The files of an entry whose content is not what was declared: path, SHA-256 declared and now."""
    for declared in (details_of(entry) or EntryDetails()).files:
        path = entry.path / declared.path
        now = sha256_of(path) if path.is_file() else None
        if now != declared.sha256:
            yield declared.path, declared.sha256, now
            continue
        for name, sha256 in listed_files(path):
            listed = path.parent / name
            now = sha256_of(listed) if listed.is_file() else None
            if now != sha256:
                yield str(Path(declared.path).parent / name), sha256, now


def listed_files(path: Path) -> Iterator[tuple[str, str]]:
    """The files that a manifest beside them lists by name, or under ``file``, each with its digest.

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
