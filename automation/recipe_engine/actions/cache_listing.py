"""``cm show cache``: a table of the entries, or all that is known of one."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..disk.entries import EntryPaths, parse_state
from ..disk.files import read_json, tree_size
from ..disk.locks import is_in_use, last_use_s
from ..disk.store import Store
from ..documents.console_text import cut, table
from ..rules.amounts import age_text, counted, short_age, size_text
from ..rules.model import CacheEntry
from ..rules.schema import is_yes
from ..rules.secrets import without_secrets
from .adapter import Home, is_verbose, listing_width, print_lines
from .cache_actions import find_entries, made_s

logger = logging.getLogger(__name__)
PLUMBING_TAGS = ("script-artifact-", "version-", "deps-", "tmp")
"""How tags begin that the engine adds and that tell people nothing new."""


def show_action(i: Mapping[str, Any], home: Home) -> dict[str, Any]:
    """Answers ``cm show cache [--tags=...] [--env] [-v]``: a line for each entry; of one, and with ``-v``, all."""
    store = Store(home.store_path)
    entries = find_entries(i, store)
    rows = [describe_entry(entry, time.time()) for entry in entries]
    if i.get("out") == "con":
        is_whole = len(rows) == 1 or is_verbose(i) or is_yes(i.get("env"))
        for entry, row in zip(entries, rows, strict=True) if is_whole else ():
            print_lines([*_entry_lines(row), *(_state_lines(entry) if is_yes(i.get("env")) else ())])
        if not rows:
            logger.info("no cache entry fits; the cache is %s", home.store_path)
        elif not is_whole:
            index = home.source().index
            own = {entry.uid: entry.tags for entry in index.entries}
            shorts = [short_tags(entry, own.get(entry.recipe.uid)) for entry in entries]
            print_lines(table_lines(rows, shorts, listing_width()))
        if len(rows) > 1:
            total = size_text(sum(row["size_bytes"] for row in rows))
            print_lines(["", f"{counted(len(rows), 'cache entry')}, {total}, in {home.store_path}"])
            if not is_whole:
                print_lines(["cm show cache UID shows the folder and all tags of one; -v of all"])
    return {"return": 0, "entries": rows, "cache": str(home.store_path)}


def describe_entry(entry: CacheEntry, now_s: float) -> dict[str, Any]:
    """What is shown of an entry: tags, path, version, maker, size in bytes, age and time since use in s, state."""
    used_s = last_use_s(entry.path)
    return {
        "uid": entry.uid,
        "tags": sorted(entry.tags, key=lambda tag: (tag.startswith("_"), tag)),
        "path": str(entry.path),
        "version": entry.version,
        "recipe": entry.recipe.text,
        "size_bytes": tree_size(entry.path),
        "created_utc": entry.record.created_utc if entry.record else "",
        "age_s": round(now_s - made_s(entry)),
        "unused_s": None if used_s is None else max(0, round(now_s - used_s)),
        "is_complete": entry.is_complete,
        "retired": entry.retired,
        "is_pinned": EntryPaths(entry.path).pinned.exists(),
        "is_in_use": is_in_use(entry.path),
        "depends_on": entry.dependent_path,
    }


def short_tags(entry: CacheEntry, own: frozenset[str] | None) -> str:
    """What tells an entry from others of its recipe: its variations, and tags that are not the recipe's ``own``.

    Where the recipe is not known, only the variations.
    """
    variations = [tag for tag in entry.tags if tag.startswith("_")]
    known = {*(own or entry.tags), entry.recipe.alias, *variations}
    others = [tag for tag in entry.tags if tag not in known and not tag.startswith(PLUMBING_TAGS)]
    return ",".join([*variations, *others])


def table_lines(rows: Sequence[Mapping[str, Any]], shorts: Sequence[str], width: int) -> Iterator[str]:
    """A line for each entry, by recipe and tags."""
    titles = ("recipe", "version", "variations and tags", "size", "made", "uid", "")
    cells = [
        (
            row["recipe"].partition(",")[0],
            cut(row["version"], 16),
            short,
            size_text(row["size_bytes"]),
            short_age(row["age_s"]),
            row["uid"],
            _mark(row),
        )
        for row, short in zip(rows, shorts, strict=True)
    ]
    return table([titles, *sorted(cells)], width, rights=(3, 4), flexible=2)


def _mark(row: Mapping[str, Any]) -> str:
    """What is special about an entry."""
    if not row["is_complete"]:
        return "retired" if row["retired"] else "unfinished"
    return "pinned" if row["is_pinned"] else "in use" if row["is_in_use"] else ""


def _entry_lines(row: Mapping[str, Any]) -> Iterator[str]:
    used = "" if row["unused_s"] is None else f", used {age_text(row['unused_s'])} ago"
    lines = [
        (True, f"\n* Tags: {','.join(row['tags'])}"),
        (True, f"  Path: {row['path']}"),
        (row["version"], f"  Version: {row['version']}"),
        (True, f"  Recipe: {row['recipe']}"),
        (True, f"  Size: {size_text(row['size_bytes'])}{used}, made {age_text(row['age_s'])} ago"),
        (row["is_pinned"], "  Pinned: cm gc cache keeps it and all that it needs"),
        (not row["is_complete"], f"  State: {row['retired'] or 'unfinished'}; never reused"),
        (row["depends_on"], f"  Depends on: {row['depends_on']}"),
    ]
    return (line for is_known, line in lines if is_known)


def _state_lines(entry: CacheEntry) -> Iterator[str]:
    state = parse_state(read_json(EntryPaths(entry.path).state)) or ({}, {})
    for title, given in zip(("New env", "New state"), state, strict=True):
        if values := without_secrets(given):
            yield f"    {title}:\n{json.dumps(values, indent=6, sort_keys=True)}"
