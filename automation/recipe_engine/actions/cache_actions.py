"""``cm show|find|rm|pin|unpin cache``: what a user does with the store."""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from fnmatch import fnmatchcase
from typing import Any

from ..disk.entries import EntryPaths, parse_state
from ..disk.files import read_json, tree_size, utc_seconds
from ..disk.store import Store
from ..disk.usage import is_in_use, last_use_s, unused, users_of
from ..rules.amounts import age_text, size_text
from ..rules.cachekey import match_tags
from ..rules.errors import RecipeError, RequestError, StoreError
from ..rules.model import CacheEntry
from ..rules.schema import is_yes
from ..rules.secrets import without_secrets
from ..running.console import confirm
from .adapter import Home
from .run import split_artifact

logger = logging.getLogger(__name__)
IN_USE = "in use by a running process"


class NothingFound(RecipeError):
    """No cache entry fits; CM's code for it is 16."""

    code = 16


def find_entries(i: Mapping[str, Any], store: Store) -> list[CacheEntry]:
    """The entries that ``--tags``, a first word with blanks (tags too), or a uid or a pattern of uids ask for.

    They come in order of their tags.
    """
    words, name = split_artifact(i)
    entries = [entry for entry in store.entries(refresh=True) if fnmatchcase(entry.uid, name or "*")]
    return list(match_tags(entries, words))


def nothing_found(store: Store, what: str = "no cache entry fits") -> NothingFound:
    """The error for a command that no entry fits."""
    return NothingFound(f"{what} in {store.root}", hint="cm show cache lists what there is")


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


def made_s(entry: CacheEntry) -> float:
    """When an entry was made, in seconds since 1970; 0 for one that is gone."""
    try:
        return utc_seconds(entry.record.created_utc if entry.record else "")
    except ValueError:
        with contextlib.suppress(OSError):
            return EntryPaths(entry.path).meta.stat().st_mtime
        return 0.0


def show_action(i: Mapping[str, Any], home: Home) -> dict[str, Any]:
    """Answers ``cm show cache [--tags=...] [--env]``."""
    store = Store(home.store_path)
    entries = find_entries(i, store)
    rows = [describe_entry(entry, time.time()) for entry in entries]
    if i.get("out") == "con":
        for entry, row in zip(entries, rows, strict=True):
            print_lines([*_lines(row), *(_state_lines(entry) if is_yes(i.get("env")) else ())])
        if not rows:
            logger.info("no cache entry fits; the cache is %s", home.store_path)
    return {"return": 0, "entries": rows, "cache": str(home.store_path)}


def _lines(row: Mapping[str, Any]) -> Iterator[str]:
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


def print_lines(lines: Iterable[str]) -> None:
    """Prints what a user asked for."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def _state_lines(entry: CacheEntry) -> Iterator[str]:
    state = parse_state(read_json(EntryPaths(entry.path).state)) or ({}, {})
    for title, given in zip(("New env", "New state"), state, strict=True):
        if values := without_secrets(given):
            yield f"    {title}:\n{json.dumps(values, indent=6, sort_keys=True)}"


def search_entries(i: Mapping[str, Any], home: Home) -> list[CacheEntry]:
    """Answers ``cm find cache``; prints the folders on the console."""
    entries = find_entries(i, Store(home.store_path))
    if i.get("out") == "con":
        print_lines(str(entry.path) for entry in entries)
    return entries


def remove_action(i: Mapping[str, Any], home: Home) -> dict[str, Any]:
    """Answers ``cm rm cache [--tags=...] [-f] [--in_use]``; code 1 when an entry stays because a process needs it.

    An entry that a process uses goes only with ``--in_use``, one that a process is making never. Raises NothingFound
    when no entry fits, RequestError when the removal is not confirmed and ``-f`` is not given.
    """
    store = Store(home.store_path)
    entries = find_entries(i, store)
    if not entries:
        raise nothing_found(store, "no cache entry to remove")
    refusal = f"would remove {len(entries)} cache entries"
    hint = "see which with cm show cache and the same tags, then pass -f to confirm"
    may_be_in_use = is_yes(i.get("in_use", i.get("in-use")))
    removed: list[str] = []
    kept: list[str] = []
    for entry in entries:
        question = f"Remove {entry.path} ({','.join(entry.tags)})?"
        if is_agreed(i, question, refusal=refusal, hint=hint):
            (removed if is_removed(store, entry, may_be_in_use=may_be_in_use) else kept).append(entry.uid)
    answer: dict[str, Any] = {"return": 0, "removed": removed, "busy": kept}
    if kept:
        advice = "wait until that process ends, or add --in_use to remove what is in use, which may break it"
        answer.update({"return": 1, "error": f"{len(kept)} of {len(entries)} cache entries were kept\nhint: {advice}"})
    return answer


def is_agreed(i: Mapping[str, Any], question: str, *, refusal: str, hint: str) -> bool:
    """Whether the command has ``-f`` or ``--force``, else whether the user says yes; raises what ``confirm`` raises."""
    return is_yes(i.get("f")) or is_yes(i.get("force")) or confirm(question, refusal=refusal, hint=hint)


def is_removed(store: Store, entry: CacheEntry, *, may_be_in_use: bool = False, may_be_pinned: bool = True) -> bool:
    """Removes an entry, or says why it is kept; whether it is gone."""
    with store.held(entry) as is_free, unused(entry.path) if is_free else nullcontext(True) as is_idle:
        if not is_free:
            reason = "a process is making it" if store.is_busy(entry) else "a process renews it or has just changed it"
        elif not may_be_pinned and EntryPaths(entry.path).pinned.exists():
            reason = "it was pinned"
        elif is_idle or may_be_in_use:
            store.remove(entry)
            reason = "it could not be removed, or not all of it" if entry.path.exists() else ""
        else:
            reason = IN_USE
    if reason == IN_USE and (users := users_of(entry.path)):
        reason = f"in use by process {', '.join(map(str, users))}"
    if reason:
        logger.warning("! kept %s (%s): %s", entry.path, entry.recipe.alias, reason)
    else:
        logger.info("- removed %s (%s)", entry.path, entry.recipe.alias)
    return not reason


def pin_action(i: Mapping[str, Any], home: Home, *, is_pinned: bool) -> dict[str, Any]:
    """Answers ``cm pin cache <uid|--tags=..>`` and ``cm unpin cache``; raises NothingFound and RequestError."""
    store = Store(home.store_path)
    if not (i.get("artifact") or i.get("tags")):
        raise RequestError("no cache entry was named", hint="give a uid or --tags=...; cm show cache lists them")
    entries = [entry for entry in find_entries(i, store) if entry.is_complete or not is_pinned]
    if not entries:
        raise nothing_found(store, "no finished cache entry fits")
    marks = [(entry, EntryPaths(entry.path).pinned) for entry in entries]
    changed = [(entry, mark) for entry, mark in marks if mark.exists() is not is_pinned]
    for entry, mark in changed:
        try:
            mark.touch() if is_pinned else mark.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"cannot write to the cache: {error}") from None
        logger.info("%s %s (%s)", "pinned" if is_pinned else "unpinned", entry.path, entry.recipe.alias)
    if not changed:
        logger.info("nothing to do: %d cache entries are already %spinned", len(entries), "" if is_pinned else "un")
    return {"return": 0, "changed": [entry.uid for entry, _ in changed], "entries": [entry.uid for entry in entries]}
