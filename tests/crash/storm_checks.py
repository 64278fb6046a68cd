"""The rules that hold after every round of the storm, read from the disk without the engine's own reader.

- Whatever ``_cm.json`` calls finished has a state and a whole file that prove the request that the entry records.
- What was finished before is finished still, unless it was removed in the round, or renewed and then hit.
- When no process is left, no lock is held.
"""

from __future__ import annotations

import fcntl
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from storm_recipes import env_key, file_trouble, leaf, mid, tree


class Finished(NamedTuple):
    """A finished entry: which recipe made it and the random word of the making."""

    recipe: str
    nonce: str


def entry_metas(store: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Every folder with a ``_cm.json``, and what that says."""
    for path in sorted(store.glob("*/_cm.json")):
        yield path.parent, json.loads(path.read_text())


def state_of(folder: Path) -> dict[str, Any]:
    """The env that an entry gives; empty when it has none."""
    try:
        value = json.loads((folder / "cm-cached-state.json").read_text())["new_env"]
    except (OSError, ValueError, KeyError):
        return {}
    return value if isinstance(value, dict) else {}


def finished_entries(store: Path) -> dict[str, Finished]:
    """The finished entries by the names of their folders."""
    found = {}
    for folder, meta in entry_metas(store):
        if "tmp" not in meta["tags"]:
            recipe = meta["associated_script_artifact"].partition(",")[0]
            found[folder.name] = Finished(recipe, state_of(folder).get(env_key(recipe, "NONCE"), ""))
    return found


def recorded_facts(recipe: str, meta: dict[str, Any]) -> tuple[str, ...]:
    """The facts that an entry must hold by the variations, inputs and version that it records."""
    record = meta["crowdperf"]
    names = record["variations"]
    if recipe == "get-leaf":
        (colour,) = (name.removeprefix("shade.") for name in names)
        return leaf(colour, record["inputs"]["size"], meta["version"])
    if recipe == "get-mid":
        return mid("deep" if "deep" in names else "plain")
    if recipe == "get-tree":
        return tree("fir" if "fir" in names else "oak")
    (hue,) = names
    return ("hooked", hue.replace(".", "="))


class Ledger:
    """Compares the store with what it was."""

    def __init__(self, store: Path) -> None:
        self.store = store

    def wrong_entries(self) -> Iterator[str]:
        """What is wrong with entries that call themselves finished."""
        for folder, meta in entry_metas(self.store):
            if "tmp" in meta["tags"]:
                continue
            recipe = meta["associated_script_artifact"].partition(",")[0]
            facts, env = recorded_facts(recipe, meta), state_of(folder)
            if env.get(env_key(recipe, "PROOF")) != "|".join(facts):
                yield f"{folder} is finished, records {facts} and gives {env}"
            elif trouble := file_trouble(folder / "proof.txt", facts, env[env_key(recipe, "NONCE")]):
                yield f"{folder} is finished, but {trouble}"

    def losses(self, before: dict[str, Finished], children: Sequence[Any]) -> Iterable[str]:
        """The entries of ``before``, and those that ``children`` answered with, that are gone without a reason."""
        metas = {folder.name: meta for folder, meta in entry_metas(self.store)}
        now = finished_entries(self.store)
        removed = {child.action.removes for child in children}
        renewed = {child.action.query.recipe for child in children if child.action.flag == "--renew"}
        answers = [child.answer for child in children if child.process.returncode == 0 and child.action.query]
        given = {answer["cache_entry"]["uid"] for answer in answers if answer and "cache_entry" in answer}
        recipe_of = {name: finished.recipe for name, finished in before.items()}
        for child in children:
            answer = child.answer if child.process.returncode == 0 and child.action.query else None
            if answer and "cache_entry" in answer:
                recipe_of[answer["cache_entry"]["uid"]] = child.action.query.recipe
        for name in sorted(before.keys() | given):
            recipe = recipe_of[name]
            if name not in metas:
                if recipe not in removed:
                    yield f"the finished entry {name} of {recipe} is gone, and nobody removed it"
            elif name not in now:
                if recipe not in renewed:
                    yield f"the finished entry {name} of {recipe} is unfinished ({metas[name]['tags']})"
            elif name in before and now[name].nonce != before[name].nonce and recipe not in renewed | removed:
                yield f"the finished entry {name} of {recipe} was made again, and nobody renewed it"


DYING_S = 10.0
"""A killed process still holds its files for a moment after it stopped having an environment to be found by."""


def busy_locks(store: Path) -> Iterator[str]:
    """The lock files that stay held although no process of the storm is left."""
    end_s = time.monotonic() + DYING_S
    for path in sorted((store / ".locks").glob("*.lock")):
        while is_held(path):
            if time.monotonic() > end_s:
                yield f"the lock {path} is held: {path.read_text(errors='replace')}"
                break
            time.sleep(0.02)


def is_held(path: Path) -> bool:
    """Whether some process holds this lock file."""
    with path.open("r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False
