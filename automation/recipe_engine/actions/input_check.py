"""Compares what a record was made with to what is on this machine now, without running anything."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..disk.entries import details_of
from ..disk.files import sha256_of
from ..disk.repos import RecipeSource, recipe_files
from ..documents.comparison import Difference, recipe_differences
from ..documents.lockfile import differences
from ..documents.resultrecord import ResultRecord
from ..rules.cachekey import Artifact
from ..rules.errors import RecipeError
from ..rules.model import CacheEntry, CacheKey, Configured, EntryDetails
from ..rules.query import VersionRange
from ..running.context import StepContext
from ..running.engine import Engine
from ..running.locked import Guard, locked_artifact
from .adapter import Home
from .lock_action import LockingEngine, is_open
from .run import new_engine, parse_request

MANIFEST_LIMIT_BYTES = 1 << 20
"""A longer JSON file is data itself."""


class InputCheck(NamedTuple):
    """What was found: ``differing`` inputs, which a run under the lock would refuse or which it would not notice;
    ``damaged`` cache entries, which a run makes again; ``unmade`` artifacts, which it has to make first."""

    differing: tuple[Difference, ...] = ()
    damaged: tuple[Difference, ...] = ()
    unmade: tuple[str, ...] = ()


class _CheckingEngine(LockingEngine):
    """A plan under the lock of a record that keeps why entries are not reused."""

    def __init__(self, engine: Engine, record: ResultRecord) -> None:
        super().__init__(engine)
        self.guard = Guard(record.lock, "the record", is_frozen=True, source=engine.source, store=engine.store)
        self.damaged: dict[str, Difference] = {}

    def tell_once(self, configured: Configured, mark: str, text: str, name: str = "") -> None:
        """Keeps why an entry is not reused."""
        super().tell_once(configured, mark, text, name)
        label, _, reason = text.partition(": ")
        if mark == "!" and reason.startswith("not reusing "):
            self.damaged[label] = Difference("made", label, note=reason)

    def narrowed_version(self, step: StepContext, key: CacheKey) -> VersionRange:
        """What is not known before a run cannot be looked up in a lock."""
        return key.version if is_open(key) else super().narrowed_version(step, key)


def check_inputs(record: ResultRecord, inputs: Mapping[str, Any], home: Home) -> InputCheck:
    """What of a record's inputs is different here; ``inputs`` is its request with the paths of this machine.

    Reads every file that the lock names, and those that such a file lists with digests.
    """
    engine = new_engine(home, None)
    recipes = tuple(_recipes(record, engine.source))
    if recipes:  # a plan with other recipes would say nothing about what was locked
        return InputCheck(differing=recipes)
    checking = _CheckingEngine(engine, record)
    errors: list[RecipeError] = []
    try:
        checking.run_consistently(parse_request(inputs))
    except RecipeError as error:
        errors.append(error)
    if not checking.tree.is_empty:
        errors += [step.error for _, step in checking.tree.root.walk() if step.error and step.is_certain]
    found: dict[tuple[str, str], Difference] = {}
    for failed in errors:
        label = (failed.trace or ("request",))[-1]
        note = " ".join(line.strip() for line in failed.message.splitlines())
        found["made", label] = Difference("made", label, note=note)
    for artifact in sorted({locked.artifact for locked in record.lock.artifacts}):
        for difference in _entry_differences(artifact, record, checking):
            found[difference.group, difference.name] = difference
    made = {artifact for artifact, choices in checking.chosen_entries.items() if any(entry for _, entry in choices)}
    unmade = {locked.label for locked in record.lock.artifacts if locked.is_made and locked.artifact not in made}
    return InputCheck(tuple(found.values()), tuple(checking.damaged.values()), tuple(sorted(unmade)))


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
        now = locked_artifact(engine.store, entry, key)
        different = sorted((differences(one, now) for one in locked), key=len)
        again = f"cm rm cache {entry.uid} -f makes it again"
        if different[0]:
            yield Difference("made", locked[0].label, note=f"{'; '.join(different[0])}; {again}")
            continue
        for path, recorded, digest in _changed_files(entry):
            note = f"the file was changed in {entry.path}, unnoticed; {again}"
            yield Difference("made", f"{locked[0].label} {path}", recorded, digest, note)


def _changed_files(entry: CacheEntry) -> Iterator[tuple[str, str, str | None]]:
    """The files of an entry whose content is not what was declared: path, SHA-256 declared and now."""
    for declared in (details_of(entry) or EntryDetails()).files:
        path = entry.path / declared.path
        now = _digest(path)
        if now != declared.sha256:
            yield declared.path, declared.sha256, now
            continue
        for name, sha256 in listed_files(path):
            now = _digest(path.parent / name)
            if now != sha256:
                yield str(Path(declared.path).parent / name), sha256, now


def _digest(path: Path) -> str | None:
    return sha256_of(path) if path.is_file() else None


def listed_files(path: Path) -> Iterator[tuple[str, str]]:
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
