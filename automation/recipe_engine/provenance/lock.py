"""Lockfiles made and kept to: ``cm lock script`` writes down what a request uses, ``--frozen`` holds a run to it.

A ``Guard`` compares a run with a lockfile: same recipes, same versions, same files, or it stops and says which differs.
"""

import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..actions.adapter import Home
from ..actions.run import new_engine, parse_request
from ..disk.entries import details_of
from ..disk.files import write_text
from ..disk.repos import RecipeSource
from ..planning.planned import PlannedEngine
from ..rules.amounts import counted, size_text
from ..rules.cachekey import Artifact, Requirement
from ..rules.conditions import has_symbol
from ..rules.errors import RecipeError, RequestError
from ..rules.inputs import ACTION_FLAGS, with_own_names
from ..rules.model import CacheEntry, CacheKey, EntryDetails, Recipe, Request, StepEvent, StepResult
from ..rules.query import VersionRange
from ..rules.rerun import request_text
from ..rules.schema import is_yes
from ..rules.secrets import hidden_texts
from ..running.console import print_document
from ..running.context import StepContext, machine_kind, os_info, user_path
from ..running.effects import Entries
from ..running.engine import Engine
from ..running.process import answer_of
from ..running.step import make
from .lockfile import (
    LockedArtifact,
    LockedFile,
    Lockfile,
    LockMismatch,
    differences,
    lockfile_json,
    parse_lockfile,
    portable_artifact,
)

logger = logging.getLogger(__name__)

LOCK_NAME = "crowdperf.lock"
SEARCHED_BYTES = 16 << 20
"""Larger files are not searched for the path of the cache: what recipes write or build with it (scripts, settings,
lists of files, libraries with an rpath) is smaller, and weights and data sets come from elsewhere."""
MAX_LOCK_BYTES = 64 << 20
"""No lockfile is that large: one of 10,000 files takes about 2 MB."""


OTHER_RECIPES = "check out the version of the repository that the lockfile was created with, or create a new lockfile"
NO_LIBRARY = (
    "has no digests of the packages that recipes use, because an older version created it: they are not compared"
)


class Guard:
    """Compares every step of a run with a lockfile. ``is_frozen`` also refuses what the lockfile does not list,
    ``is_cache_only`` to make what is not in the cache."""

    def __init__(self, lock: Lockfile, name: str, *, is_frozen: bool, source: RecipeSource, store: Entries) -> None:
        self.lock = lock
        self.name = name
        self.is_frozen = is_frozen
        self.is_cache_only = False
        self._source = source
        self._store = store
        self._reported: set[str] = set()

    def take(self, event: StepEvent) -> None:
        """Checks the recipe of a step that begins; an observer of the engine. Raises LockMismatch."""
        if event.kind != "start" or not event.configured:
            return
        recipe = event.configured.recipe
        locked, now = self.lock.recipes.get(recipe.id.text), self._source.digest(recipe)
        if locked is None:
            self._miss(f"the recipe {recipe.id.alias}")
        elif locked != now:
            raise LockMismatch(
                f"the recipe {recipe.id.alias} is not the one that {self.name} locks: the files in {recipe.path} have "
                f"the digest {now}, locked is {locked}",
                hint=OTHER_RECIPES,
            )
        self._take_library(recipe.id.alias, self._source.used_files(recipe, event.configured.variations))

    def _take_library(self, alias: str, files: Mapping[str, str]) -> None:
        """Checks the files of packages that a recipe uses; a lockfile made before they were noted locks none."""
        locked = self.lock.library
        changed = [name for name, sha256 in files.items() if locked.get(name, sha256) != sha256]
        missing = [name for name in files if name not in locked]
        if changed:
            raise LockMismatch(
                f"{alias} uses {', '.join(changed)}, which differs from {self.name}: the digest is "
                f"{files[changed[0]]}, locked is {locked[changed[0]]}",
                hint=OTHER_RECIPES,
            )
        if missing and locked:
            self._miss(f"{missing[0]}, which {alias} uses")
        elif missing and NO_LIBRARY not in self._reported:
            self._reported.add(NO_LIBRARY)
            logger.warning("! %s %s", self.name, NO_LIBRARY)

    def _miss(self, what: str) -> None:
        """Refuses what the lockfile does not list when frozen, else reports it once."""
        if self.is_frozen:
            raise LockMismatch(
                f"{self.name} does not list {what}, so --frozen refuses it",
                hint="create a new lockfile after a run with the same arguments, or use --locked to allow it",
            )
        if what not in self._reported:
            self._reported.add(what)
            logger.warning("! %s does not list %s, so it is not locked", self.name, what)

    def _locked(self, key: CacheKey) -> list[LockedArtifact]:
        return [locked for locked in self.lock.find(portable_artifact(key, places(self._store))) if locked.is_made]

    def bound(self, key: CacheKey, label: str) -> Requirement | None:
        """The version that is locked; None when none is. Raises LockMismatch for what the lockfile does not list."""
        found = self._locked(key)
        if not found:
            self._miss(f"{label} with these inputs (it was perhaps not in the cache when the file was written)")
        versions = {locked.version for locked in found}
        if len(versions) != 1 or "" in versions:
            return None
        return Requirement(VersionRange(exact=versions.pop()), (f"the lockfile {self.name}", label))

    def facts(self, key: CacheKey) -> Mapping[str, Any]:
        """What the recipe's hooks may have to keep to, ``i['locked']``; empty when the lockfile says nothing."""
        found = self._locked(key)
        return found[0].facts if len(found) == 1 else {}

    def verify(self, key: CacheKey, entry: CacheEntry, label: str) -> None:
        """Raises LockMismatch when a finished entry is not what the lockfile says."""
        found = self._locked(key)
        nearest = nearest_differences(found, locked_artifact(self._store, entry, key)) if found else []
        if nearest:
            raise LockMismatch(
                "\n  ".join([f"{label} differs from {self.name}:", *nearest]),
                hint=f"it describes {entry.dependent_path}: give the one that was locked, or create a new lockfile"
                if entry.dependent_path
                else f"{remake(entry)}. If it still differs, the sources have changed",
            )


def nearest_differences(locked: list[LockedArtifact], now: LockedArtifact) -> list[str]:
    """What of an artifact is not what was locked, where several of its kind were: of the most similar one."""
    return min((differences(one, now) for one in locked), key=len)


def remake(entry: CacheEntry) -> str:
    """What to do so that an entry is made again, for hints."""
    return f"cm rm cache {entry.uid} -f, then a run rebuilds it"


def read_guard(i: Mapping[str, Any], source: RecipeSource, store: Entries) -> Guard:
    """What ``--frozen`` or ``--locked=FILE`` hold a run to.

    Raises RequestError when the file cannot be read or is not a valid lockfile.
    """
    given = i.get("frozen") or i.get("locked")
    name = LOCK_NAME if is_yes(given) else str(given)
    path, hint = user_path(name), f"create it with: cm lock script --tags=... > {LOCK_NAME}"
    try:
        with open(path, "rb") as file:
            text = file.read(MAX_LOCK_BYTES + 1).decode()
    except FileNotFoundError:
        raise RequestError(f"the lockfile {path} does not exist", hint=hint) from None
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"the lockfile {path} cannot be read: {error}", hint=hint) from None
    if len(text) > MAX_LOCK_BYTES:
        raise RequestError(f"{path} is not a lockfile: it is larger than {size_text(MAX_LOCK_BYTES)}", hint=hint)
    guard = Guard(parse_lockfile(text, name), name, is_frozen=bool(i.get("frozen")), source=source, store=store)
    guard.is_cache_only = is_yes(i.get("only_execute_from_cache"))
    return guard


def places(store: Entries) -> list[tuple[str, str]]:
    """The paths of this machine that a lockfile must not name."""
    return [(str(store.root), "<cache>"), (os.path.expanduser("~"), "<home>")]


def locked_artifact(store: Entries, entry: CacheEntry, key: CacheKey, copies: Sequence[str] = ()) -> LockedArtifact:
    """What a finished entry holds, as a lockfile notes it. copies: of a user. Files that name one differ between
    machines and are not locked."""
    details = details_of(entry) or EntryDetails()
    commits = _git_commits(entry.path, store.load(entry)[0])
    return LockedArtifact(
        entry.recipe,
        portable_artifact(key, places(store)),
        version=entry.version,
        files=dict(_portable_files(entry, details, (str(store.root), *copies))),
        facts={**details.locked, **({"git": commits} if commits else {})},
        is_made=True,
    )


def _portable_files(entry: CacheEntry, details: EntryDetails, local: Sequence[str]) -> Iterator[tuple[str, LockedFile]]:
    """The declared files that are the same on every machine: no links to elsewhere, none of the ``local`` paths (of the
    cache, of what a user has elsewhere), not that of the copy that the entry depends on."""
    own = os.path.realpath(entry.path) + os.sep
    places = [place.encode() for place in (*local, entry.dependent_path) if place]
    for record in details.files:
        path = entry.path / record.path
        may_name_it = record.size_bytes <= SEARCHED_BYTES
        if os.path.realpath(path).startswith(own) and not (may_name_it and _holds(path, places)):
            yield record.path, LockedFile(record.size_bytes, record.sha256)


def _holds(path: Path, texts: Sequence[bytes]) -> bool:
    """Whether a text file or a compiled one holds one of the texts; other binary files are data and not read."""
    try:
        with open(path, "rb") as file:
            start = file.read(4096)
            is_compiled = path.suffix == ".pyc" or start.startswith((b"\x7fELF", b"!<arch>"))
            content = start + file.read() if is_compiled or b"\0" not in start else b""
            return any(text in content for text in texts)
    except OSError:
        return False


def _git_commits(folder: Path, new_env: Mapping[str, Any]) -> dict[str, str]:
    """The commit of every git checkout inside an entry that its env names, by its path in the entry."""
    found = {}
    for value in new_env.values():
        if isinstance(value, str) and value.startswith(str(folder)) and os.path.exists(os.path.join(value, ".git")):
            commit = answer_of(["git", "-c", "safe.directory=*", "-C", value, "rev-parse", "HEAD"])
            if commit:
                found[os.path.relpath(value, folder)] = commit
    return found


# --- cm lock script ---


class LockingEngine(PlannedEngine):
    """A plan that looks below reused entries, once each, and notes all recipes and artifacts that it meets.

    ``chosen_entries`` has the keys by which an artifact is asked for, with the entries that serve them, if any do.
    """

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.recipes: dict[str, Recipe] = {}
        self.library: dict[str, str] = {}
        self.chosen_entries: dict[Artifact, list[tuple[CacheKey, CacheEntry | None]]] = {}
        self._seen: set[str] = set()

    def emit(self, event: StepEvent) -> None:
        """Notes the recipe of each step; what was noted before the plan started over does not count."""
        super().emit(event)
        if event.kind == "again":
            self.recipes.clear()
            self.library.clear()
            self.chosen_entries.clear()
            self._seen.clear()
        elif event.kind == "start" and event.configured:
            recipe = event.configured.recipe
            self.recipes[recipe.id.text] = recipe
            self.library.update(self.source.used_files(recipe, event.configured.variations))

    def _look_below(self, step: StepContext, entry: CacheEntry) -> None:
        """Plans what would have to run without the entry: another machine does not have it."""
        self._seen.add(entry.uid)
        below = self.step(step.configured, entry.path / "below", None)
        try:
            make(self, below, entry)
        except RecipeError as error:
            logger.debug("below %s: %s", entry.path, error)

    def note_choice(self, step: StepContext, key: CacheKey, result: StepResult) -> None:
        """Notes what the cache contains for a request, or that it holds nothing yet."""
        entry = None if self.planned_store.is_planned(result.entry) else result.entry
        if entry and entry.uid not in self._seen:
            self._look_below(step, entry)
        super().note_choice(step, key, result)
        if entry or not is_open(key):  # else it is not known yet what is asked for
            artifact = portable_artifact(key, places(self.planned_store))
            self.chosen_entries.setdefault(artifact, []).append((key, entry))

    def lockfile(self, request: Request) -> Lockfile:
        """Plans the request and notes what it uses; raises RecipeError for an error that would stop the run."""
        self.run_consistently(request)
        copies = [row["depends_on"] for row in self.used_entries().values()]
        return Lockfile(
            command=f"cm run script {request_text(request)}",
            host={"system": str(os_info()["platform"]), "machine": machine_kind()},
            recipes={recipe.id.text: self.source.digest(recipe) for recipe in self.recipes.values()},
            artifacts=tuple(self._locked(artifact, copies) for artifact in self.chosen_entries),
            library=self.library,
        )

    def given_paths(self, request: Request) -> dict[str, dict[str, Any]]:
        """The inputs of the request that are one path: its full form, the key of the input in the env, and all names
        by which a command may give it."""
        recipe = next(iter(self.recipes.values()))
        inputs = with_own_names(recipe, request).inputs
        found = {name: inputs.get(name) or request.env.get(one.env_key) for name, one in recipe.inputs.items()}
        return {
            name: {
                "env": one.env_key,
                "names": [name, *one.aliases, f"env.{one.env_key}"],
                "path": str(user_path(str(found[name]))),
            }
            for name, one in recipe.inputs.items()
            if one.kind == "path" and found[name]
        }

    def used_entries(self) -> dict[str, dict[str, str]]:
        """The cache entries that the request would use by their UIDs: the recipe, and the path outside the cache that
        the entry depends on, empty without one."""
        entries = [entry for choices in self.chosen_entries.values() for _, entry in choices if entry]
        return {entry.uid: {"recipe": entry.recipe.alias, "depends_on": entry.dependent_path} for entry in entries}

    def _locked(self, artifact: Artifact, copies: Sequence[str]) -> LockedArtifact:
        choices = self.chosen_entries[artifact]
        key, entry = next((choice for choice in choices if choice[1]), choices[0])
        if entry is None:
            return LockedArtifact(key.recipe, artifact)
        return locked_artifact(self.planned_store, entry, key, copies)


def is_open(key: CacheKey) -> bool:
    """Whether a part of what is asked for is known only when earlier steps have run."""
    return any(has_symbol(text) for text in (*key.variations, *key.extra_tags, *key.derived_tags, *key.inputs.values()))


def lock_action(i: Mapping[str, Any], home: Home) -> dict[str, Any]:
    """Answers ``cm lock script``: the lockfile goes to standard output, or to the file that ``--file`` names."""
    if i.get("file") is True:
        raise RequestError("--file has no value", hint=f"write --file={LOCK_NAME}, or omit it to print the lockfile")
    request = parse_request({key: value for key, value in i.items() if key not in ACTION_FLAGS["lock"]})
    engine = LockingEngine(new_engine(home, None))
    lock = engine.lockfile(request)
    row = hidden_texts(lockfile_json(lock))
    text = json.dumps(row, indent=2)
    if i.get("file"):
        write_text(user_path(str(i["file"])), text + "\n")
        recipes, artifacts = counted(len(lock.recipes), "recipe"), counted(len(lock.artifacts), "artifact")
        logger.info("+ wrote %s: %s, %s", i["file"], recipes, artifacts)
    elif i.get("out") == "con":
        print_document(text + "\n")
    unmade = sorted({locked.label for locked in lock.artifacts if not locked.is_made})
    if unmade:
        logger.warning(
            "! not in the cache yet, so their versions and files are not locked: %s\n  hint: run it once, then lock",
            ", ".join(unmade),
        )
    more = {"given_paths": engine.given_paths(request), "used_entries": engine.used_entries()}
    return {"return": 0, "lock": row, "unmade": unmade, **more}
