"""The rules that hold after every round of the storm, read from the disk without the engine's own reader.

- Whatever ``_cm.json`` calls finished has a state and a whole file that prove the request that the entry records.
- What was finished before answers still, unless it was removed in the round; after a renewal, failed, killed or not, it
  or another entry with the same facts does. No file of a finished entry changes.
- When no process is left, no lock is held.
"""

import fcntl
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from storm_recipes import METAS, QUERIES, env_key, file_trouble, leaf, mid, tree


class Finished(NamedTuple):
    """A finished entry: which recipe made it, the random word of the making and the facts that it records."""

    recipe: str
    nonce: str
    facts: tuple[str, ...]


def entry_metas(store: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Every entry of the storm's recipes, and what its ``_cm.json`` says."""
    for path in sorted(store.glob("*/_cm.json")):
        meta = json.loads(path.read_text())
        if meta["associated_script_artifact"].partition(",")[0] in METAS:
            yield path.parent, meta


def state_of(folder: Path) -> dict[str, Any]:
    """The env that an entry gives; empty when it has none."""
    try:
        value = json.loads((folder / "cm-cached-state.json").read_text())["new_env"]
    except (OSError, ValueError, KeyError):
        return {}
    return value if isinstance(value, dict) else {}


def finished_entries(store: Path) -> dict[str, Finished]:
    """The finished entries by the names of their folders, without those in whose place another one answers.

    A renewal that was killed between its last act and the removal of the old folder leaves one; ``gc`` may take it.
    """
    found = {}
    finished = [(folder, meta) for folder, meta in entry_metas(store) if "tmp" not in meta["tags"]]
    replaced = {name for _, meta in finished for name in meta.get("crowdperf", {}).get("replaces", ())}
    for folder, meta in finished:
        if folder.name not in replaced:
            recipe = meta["associated_script_artifact"].partition(",")[0]
            nonce = state_of(folder).get(env_key(recipe, "NONCE"), "")
            found[folder.name] = Finished(recipe, nonce, recorded_facts(recipe, meta))
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
    if recipe in ("get-child", "get-nest"):
        return next(query.facts for query in QUERIES if query.recipe == recipe)
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
        now = finished_entries(self.store)
        removed = {child.action.removes for child in children}
        renewed = {child.action.query.recipe for child in children if child.action.flag == "--renew"}
        known = {name: (entry.recipe, entry.facts) for name, entry in before.items()}
        for child in children:
            answer = child.answer if child.process.returncode == 0 and child.action.query else None
            if answer and "cache_entry" in answer:
                known[answer["cache_entry"]["uid"]] = (child.action.query.recipe, child.action.query.facts)
        for name, (recipe, facts) in sorted(known.items()):
            if recipe in removed or "everything" in removed:
                continue
            if name not in now and recipe not in renewed:
                yield f"the finished entry {name} of {recipe} is gone, and no process removed or renewed it"
            elif name not in now and not any(entry.facts == facts for entry in now.values()):
                yield f"the finished entry {name} of {recipe} was renewed, and no entry answers in its place"
            elif name in before and name in now and now[name].nonce != before[name].nonce:
                yield f"the files of the finished entry {name} of {recipe} changed"


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
