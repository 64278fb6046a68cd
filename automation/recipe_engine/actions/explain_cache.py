"""``cm explain cache``: who made an entry, from what, whether it is intact, who needs it, and how to reach it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..disk.entries import EntryPaths, details_of, file_problem, parse_state
from ..disk.files import read_json, utc_seconds, utc_text
from ..disk.locks import is_in_use, last_use_s
from ..disk.store import Store, dependencies
from ..documents.console_text import wrapped
from ..explaining.explanation import FORMAT
from ..rules.cachekey import cache_key, misfit
from ..rules.errors import RecipeError
from ..rules.model import CacheEntry, EntryDetails, Recipe
from ..rules.query import BOUND_KEYS, candidates
from ..rules.rerun import command_line
from ..rules.secrets import without_secrets
from ..running.engine import Engine
from .adapter import Home, show
from .cache_actions import find_entries, nothing_found
from .run import new_engine, parse_request

MADE_WITH = "made with it"
"""In place of a key: the entry was used while the other one was made, and none of its values names it."""


def explain_cache_action(i: Mapping[str, Any], home: Home) -> dict[str, Any]:
    """Answers ``cm explain cache [UID | --tags=...]``; raises NothingFound when no entry fits."""
    engine, store = new_engine(home, None), Store.current(home.store_path)
    entries = find_entries(i, store)
    if not entries:
        raise nothing_found(i, store)
    uses = _uses(store)
    rows = [{"state": _state(store, entry), **_entry_row(engine, entry, uses.get(entry.uid, []))} for entry in entries]
    lines = [line for row in rows for line in ("", *_entry_lines(row))]
    show(i, *lines[1:])
    return {"return": 0, "format": FORMAT, "cache": str(home.store_path), "entries": rows}


def _uses(store: Store) -> dict[str, list[dict[str, str]]]:
    """Entry to the entries that need it, each with the key whose value names its folder."""
    entries = store.entries()
    known = {entry.uid for entry in entries}
    found: dict[str, list[dict[str, str]]] = {}
    for entry in entries:
        needed = dependencies(entry, known)
        new_env, new_state = (parse_state(read_json(EntryPaths(entry.path).state)) if needed else None) or ({}, {})
        values = {**new_env, **new_state, "dependent_cached_path": entry.dependent_path}
        for uid in needed:
            by = next((key for key, value in values.items() if uid in str(value)), MADE_WITH)
            found.setdefault(uid, []).append({"uid": entry.uid, "recipe": entry.recipe.text, "by": by})
    return found


def _entry_row(engine: Engine, entry: CacheEntry, used_by: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    details = details_of(entry) or EntryDetails()
    asked, record = details.request, entry.record
    recipe = _recipe_of(engine, entry)
    state, newer = _recipe_state(engine, entry, recipe)
    command, reaches, note = _command(engine, entry, recipe, asked)
    used_s = last_use_s(entry.path)
    return {
        "uid": entry.uid,
        "path": str(entry.path),
        "recipe": entry.recipe.text,
        "tags": list(entry.tags),
        "version": entry.version,
        "created_utc": record.created_utc if record else "",
        "request": {
            "tags": str(asked.get("tags", "")),
            "inputs": dict(without_secrets(record.inputs if record else {})),
            "chain": list(details.chain),
            **{name: str(asked.get(name, "")) for name in ("version", "version_min", "version_max")},
        },
        "recipe_state": state,
        "recipe_files_newer": newer,
        "variations": _variations(entry, details),
        "files": [
            {
                "path": file.path,
                "size_bytes": file.size_bytes,
                "sha256": file.sha256,
                "problem": file_problem(entry.path / file.path, file, is_thorough=False),
            }
            for file in details.files
        ],
        "last_use_utc": "" if used_s is None else utc_text(used_s),
        "is_in_use": is_in_use(entry.path),
        "depends_on": entry.dependent_path,
        "used_by": list(used_by),
        "command": command,
        "command_reaches_it": reaches,
        "command_note": note,
    }


def _state(store: Store, entry: CacheEntry) -> str:
    if entry.retired:
        return f"never reused: {entry.retired}"
    if not entry.is_complete:
        return "being made right now" if store.is_busy(entry) else "unfinished, never reused"
    return store.problem(entry) or "finished and intact"


def _recipe_of(engine: Engine, entry: CacheEntry) -> Recipe | None:
    found = engine.source.index.by_name(entry.recipe.uid) if entry.recipe.uid else ()
    try:
        return engine.source.recipe(found[0]) if found else None
    except RecipeError:
        return None


def _recipe_state(engine: Engine, entry: CacheEntry, recipe: Recipe | None) -> tuple[str, list[str]]:
    """Whether the recipe is still as it was, and its files whose time is after the entry was begun."""
    record = entry.record
    if recipe is None:
        return "not registered", []
    if record is None:
        return "not recorded", []
    if engine.source.is_unchanged(recipe, record.recipe_digest, record.recipe_stamp):
        return "unchanged since", []
    newer = sorted(_files_after(recipe.path, utc_seconds(record.created_utc) + 1))
    if newer:
        return "changed since", newer
    return "changed since: a file was removed, or replaced by one with an older time", []


def _files_after(folder: Path, time_s: float) -> Iterator[str]:
    for path in folder.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts and path.stat().st_mtime >= time_s:
            yield os.path.relpath(path, folder)


def _variations(entry: CacheEntry, details: EntryDetails) -> list[dict[str, str]]:
    rows = [{"name": str(row.get("name", "")), "reason": str(row.get("reason", ""))} for row in details.variations]
    if rows or entry.record is None:
        return rows or [{"name": tag[1:], "reason": "a tag of CM's"} for tag in entry.tags if tag.startswith("_")]
    return [{"name": name, "reason": ""} for name in entry.record.variations]


def _command(
    engine: Engine, entry: CacheEntry, recipe: Recipe | None, asked: Mapping[str, Any]
) -> tuple[str, bool, str]:
    """A command that asks for just this entry, whether a run of it would reuse the entry, and why or why not."""
    record = entry.record
    if recipe is None:
        return "", False, "its recipe is not registered, so no query reaches it"
    explicit = record.explicit if record else tuple(tag[1:] for tag in entry.tags if tag.startswith("_"))
    inputs: dict[str, Any] = dict(without_secrets(record.inputs)) if record else {}
    if record and record.extra_tags:
        inputs["extra_cache_tags"] = ",".join(record.extra_tags)
    inputs.update({name: str(asked[name]) for name in BOUND_KEYS if asked.get(name)})
    queries = [str(asked.get("tags") or ""), ",".join([*recipe.tags, *("_" + name for name in explicit)])]
    answers = [
        ({"tags": tags, **inputs}, *_reached(engine, entry, recipe, {"tags": tags, **inputs})) for tags in queries
    ]
    flags, reaches, note = next((answer for answer in answers if answer[1]), answers[-1])
    return command_line(["run", "script"], flags.items()).text, reaches, note


def _reached(engine: Engine, entry: CacheEntry, recipe: Recipe, inputs: Mapping[str, Any]) -> tuple[bool, str]:
    request = parse_request(inputs)
    try:
        found = candidates(request.query, "", engine.source.index)
        configured = engine.configure(recipe, request)
    except RecipeError as error:
        return False, f"no longer possible: {error.message.splitlines()[0]}"
    key = cache_key(configured, configured.env)
    reason = misfit(entry, key) or engine.store.problem(entry)
    if reason:
        hidden = recipe.extra_cache_tags_from_env and "; its tags come from env values of dynamic dependencies too"
        return False, f"a run would not reuse it: {reason}{hidden or ''}"
    if len(found) > 1 and found[0].uid != recipe.id.uid:
        return False, f"several recipes fit these tags; name it: cm run script {recipe.id.alias}"
    best = next(iter(engine.store.find(key)), None)
    if best is None:
        return False, "a run would not reuse it: it was replaced"
    if best.uid != entry.uid:
        return False, f"fits, but a run prefers the entry {best.uid}"
    return True, "a run of this reuses the entry"


def _entry_lines(row: Mapping[str, Any]) -> Iterator[str]:
    """The explanation of one cache entry for a terminal."""
    yield from wrapped(*_fact_lines(row))
    yield f"  reached by: {row['command']}"  # in one line, so that it can be copied
    yield from wrapped(f"    {row['command_note']}")


def _fact_lines(row: Mapping[str, Any]) -> Iterator[str]:
    asked = row["request"]
    yield f"entry {row['uid']}: {row['recipe']}{' ' + row['version'] if row['version'] else ''}"
    yield f"  {row['path']}"
    yield f"  made {row['created_utc'] or 'by CM'}, asked for as '{asked['tags']}'"
    if asked["chain"]:
        yield f"  chain: {' -> '.join(asked['chain'])}"
    yield from [f"  state: {row['state']}", f"  recipe: {row['recipe_state']}"]
    yield from (f"    newer than the entry: {name}" for name in row["recipe_files_newer"])
    yield from (f"  variation _{one['name']}: {one['reason'] or 'on'}" for one in row["variations"])
    yield from (f"  input --{name}={value}" for name, value in asked["inputs"].items())
    yield f"  tags: {', '.join(row['tags'])}"
    problems = [file["problem"] for file in row["files"] if file["problem"]]
    yield f"  files: {len(row['files'])} declared, {len(row['files']) - len(problems)} as they were made"
    yield from (f"    {problem}" for problem in problems)
    if row["depends_on"]:
        yield f"  depends on: {row['depends_on']}"
    yield f"  last use: {row['last_use_utc'] or 'not recorded'}{'; in use now' if row['is_in_use'] else ''}"
    yield from (f"  needed by: {other['uid']} ({other['recipe']}): {other['by']}" for other in row["used_by"])
