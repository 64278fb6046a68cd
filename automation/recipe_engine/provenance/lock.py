"""``cm lock script``: writes down what a request uses."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..actions.adapter import Home
from ..actions.plan_action import request_text
from ..actions.run import new_engine, parse_request
from ..disk.files import write_text
from ..planning.planned import PlannedEngine
from ..rules.cachekey import Artifact
from ..rules.conditions import has_symbol
from ..rules.errors import RecipeError
from ..rules.model import CacheEntry, CacheKey, Recipe, Request, StepEvent, StepResult
from ..rules.secrets import hidden_texts
from ..running.console import print_document
from ..running.context import StepContext, machine_kind, os_info
from ..running.engine import Engine
from ..running.step import make
from .guard import locked_artifact, places
from .lockfile import LockedArtifact, Lockfile, lockfile_json, portable_artifact

logger = logging.getLogger(__name__)


class LockingEngine(PlannedEngine):
    """A plan that looks below reused entries, once each, and notes all recipes and artifacts that it meets.

    ``chosen_entries`` has the keys by which an artifact is asked for, with the entries that serve them, if any do.
    """

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine, parse_request)
        self.recipes: dict[str, Recipe] = {}
        self.chosen_entries: dict[Artifact, list[tuple[CacheKey, CacheEntry | None]]] = {}
        self._seen: set[str] = set()

    def emit(self, event: StepEvent) -> None:
        """Notes the recipe of each step; what was noted before the plan started over does not count."""
        super().emit(event)
        if event.kind == "again":
            self.recipes.clear()
            self.chosen_entries.clear()
            self._seen.clear()
        elif event.kind == "start" and event.configured:
            recipe = event.configured.recipe
            self.recipes[recipe.id.text] = recipe

    def _look_below(self, step: StepContext, entry: CacheEntry) -> None:
        """Plans what would have to run without the entry: another machine does not have it."""
        self._seen.add(entry.uid)
        below = self.step(step.configured, entry.path / "below", None)
        try:
            make(self, below, entry)
        except RecipeError as error:
            logger.debug("below %s: %s", entry.path, error)

    def note_choice(self, step: StepContext, key: CacheKey, result: StepResult) -> None:
        """Notes what the cache holds for a request, or that it holds nothing yet."""
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
        return Lockfile(
            command=f"cm run script {request_text(request)}",
            host={"system": str(os_info()["platform"]), "machine": machine_kind()},
            recipes={recipe.id.text: self.source.digest(recipe) for recipe in self.recipes.values()},
            artifacts=tuple(map(self._locked, self.chosen_entries)),
        )

    def _locked(self, artifact: Artifact) -> LockedArtifact:
        choices = self.chosen_entries[artifact]
        key, entry = next((choice for choice in choices if choice[1]), choices[0])
        return locked_artifact(self.planned_store, entry, key) if entry else LockedArtifact(key.recipe, artifact)


def is_open(key: CacheKey) -> bool:
    """Whether a part of what is asked for is known only when earlier steps have run."""
    return any(has_symbol(text) for text in (*key.variations, *key.extra_tags, *key.derived_tags, *key.inputs.values()))


def lock_action(i: Mapping[str, Any], home: Home) -> dict[str, Any]:
    """Answers ``cm lock script``: the lockfile goes to standard output, or to the file that ``--file`` names."""
    request = parse_request({key: value for key, value in i.items() if key != "file"})
    lock = LockingEngine(new_engine(home, None)).lockfile(request)
    row = hidden_texts(lockfile_json(lock))
    text = json.dumps(row, indent=2)
    if i.get("file"):
        write_text(Path(os.path.abspath(str(i["file"]))), text + "\n")
        logger.info("+ wrote %s: %d recipes, %d artifacts", i["file"], len(lock.recipes), len(lock.artifacts))
    elif i.get("out") == "con":
        print_document(text + "\n")
    unmade = sorted({locked.label for locked in lock.artifacts if not locked.is_made})
    if unmade:
        logger.warning(
            "! not in the cache yet, so their versions and files are not locked: %s\n  hint: run it once, then lock",
            ", ".join(unmade),
        )
    return {"return": 0, "lock": row, "unmade": unmade}
