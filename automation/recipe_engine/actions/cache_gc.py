"""``cm gc cache``: keeps the cache small without taking away what is needed.

Three groups are removed: left-overs (unfinished entries that no process makes, entries whose time is over, folders and
trash of killed processes), entries not used for long, and, when the cache is too large, the least recently used ones.
What is pinned or in use is kept, with all that it was made with (retention.py).
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..disk.entries import RESUMABLE_SUFFIX, EntryPaths
from ..disk.files import files_below, tree_size
from ..disk.locks import folder_lock_if_free, is_locked
from ..disk.store import Store
from ..disk.usage import dependencies, discard, empty_trash, is_in_use, last_use_s, trash_in
from ..rules.amounts import age_text, parse_age_s, parse_size_bytes, size_text
from ..rules.cachekey import replacements
from ..rules.model import CacheEntry
from ..rules.retention import Item, Limits, decide
from ..rules.schema import is_yes
from .adapter import Home
from .cache_actions import IN_USE, is_agreed, is_removed, made_s, print_lines

logger = logging.getLogger(__name__)

LEFT_FOR_S = 86400.0
"""An unfinished entry with half-loaded files, one that CM may be making, and a folder without a name are left alone for
a day: the next run resumes the first, and the others may be being written."""


class Candidate(NamedTuple):
    """What would be removed, or is kept although a limit asks for it; ``entry`` is None for left-over folders."""

    path: Path
    entry: CacheEntry | None
    size_bytes: int
    last_use_s: float
    reason: str

    def row(self, now_s: float) -> dict[str, Any]:
        """This as JSON."""
        return {
            "uid": self.entry.path.name if self.entry else "",
            "path": str(self.path),
            "recipe": self.entry.recipe.alias if self.entry else "",
            "size_bytes": self.size_bytes,
            "unused_s": round(now_s - self.last_use_s),
            "reason": self.reason,
        }


class GcPlan(NamedTuple):
    """What is removed, in this order, and what is kept although it is useless or breaks a limit."""

    removed: tuple[Candidate, ...]
    kept: tuple[Candidate, ...]
    size_bytes: int


def gc_action(i: Mapping[str, Any], home: Home) -> dict[str, Any]:
    """Answers ``cm gc cache [--max-size=20GB] [--older-than=30d] [--dry-run] [-f]``.

    Raises RequestError for a limit that makes no sense, and when the removal is not confirmed and neither ``-f`` nor
    ``--dry-run`` is given.
    """
    store = Store(home.store_path)
    limits = limits_of(i)
    is_dry = is_yes(i.get("dry_run")) or is_yes(i.get("dry-run"))
    now_s = time.time()
    plan = plan_gc(store, limits, now_s)
    freed = _size(plan.removed)
    what = f"{len(plan.removed)} cache entries and left-over folders ({size_text(freed)})"
    hint = "see which with --dry-run, then pass -f to confirm"
    if i.get("out") == "con":
        print_lines(_lines(plan, now_s, is_dry=is_dry))
    removed: list[Candidate] = []
    if plan.removed and not is_dry and is_agreed(i, f"Remove {what}?", refusal=f"would remove {what}", hint=hint):
        removed = [candidate for candidate in plan.removed if _remove(store, candidate)]
        empty_trash(store.root)
        for path in trash_in(store.root):
            logger.warning("! %s could not be removed, or not all of it", path)
        logger.info("removed %d of %d: %s", len(removed), len(plan.removed), size_text(_size(removed)))
    return {
        "return": 0,
        "cache": str(store.root),
        "size_bytes": plan.size_bytes,
        "would_free_bytes": freed,
        "freed_bytes": _size(removed),
        "to_remove": [candidate.row(now_s) for candidate in plan.removed],
        "removed": [str(candidate.path) for candidate in removed],
        "kept": [candidate.row(now_s) for candidate in plan.kept],
        "dry_run": is_dry,
    }


def _size(candidates: Iterable[Candidate]) -> int:
    return sum(candidate.size_bytes for candidate in candidates)


def limits_of(i: Mapping[str, Any]) -> Limits:
    """The limits among the input keys, which cmind spells with dashes or underscores; raises RequestError."""
    size, age = (i.get(name, i.get(name.replace("_", "-"))) for name in ("max_size", "older_than"))
    return Limits(
        max_size_bytes=None if size is None else parse_size_bytes(size, "max-size"),
        older_than_s=None if age is None else parse_age_s(age, "older-than"),
    )


def plan_gc(store: Store, limits: Limits, now_s: float) -> GcPlan:
    """What ``limits`` and the state of the cache ask for; looks and changes nothing."""
    entries = {entry.path.name: entry for entry in store.entries(refresh=True)}
    replaced = replacements(entries.values())
    items = {
        name: Item(
            uid=name,
            size_bytes=tree_size(entry.path),
            last_use_s=max(last_use_s(entry.path) or 0.0, made_s(entry)),
            depends_on=dependencies(entry, entries),
            kept_because=_kept_because(store, entry, now_s),
            useless=_useless_because(entry, replaced, now_s),
        )
        for name, entry in entries.items()
    }
    removed = list(_left_folders(store, entries, now_s))
    kept: list[Candidate] = []
    size_bytes = _size(removed) + sum(item.size_bytes for item in items.values())
    for decision in decide([*items.values()], limits, now_s):
        entry, item, reason = entries[decision.uid], items[decision.uid], decision.reason
        if not decision.is_removed and item.useless and (entry.is_complete or entry.retired):
            reason = f"{item.useless}, but {reason}"
        candidate = Candidate(entry.path, entry, item.size_bytes, item.last_use_s, reason)
        (removed if decision.is_removed else kept).append(candidate)
    return GcPlan(tuple(removed), tuple(kept), size_bytes)


def _kept_because(store: Store, entry: CacheEntry, now_s: float) -> str:
    if EntryPaths(entry.path).pinned.exists():
        return "pinned"
    if store.is_busy(entry):
        return "being made right now"
    if is_in_use(entry.path):
        return IN_USE
    if not os.access(entry.path, os.W_OK):
        return "this user may not change it"
    if not entry.is_complete and not entry.retired:
        is_foreign = entry.record is None
        has_parts = any(path.suffix == RESUMABLE_SUFFIX for path, _ in files_below(entry.path))
        if (is_foreign or has_parts) and now_s - _newest_s(entry.path) < LEFT_FOR_S:
            return "maybe being made by CM" if is_foreign else "partial download from today, which the next run resumes"
    return ""


def _useless_because(entry: CacheEntry, replaced: Mapping[str, str], now_s: float) -> str:
    """Why no run can use the entry; ``replaced`` gives the successors of entries."""
    if entry.retired:
        return entry.retired
    if not entry.is_complete:
        return "it was never finished"
    if entry.uid in replaced:
        return f"replaced by {replaced[entry.uid]}"
    if entry.is_expired(now_s):
        return "its time is over (cache_expiration)"
    return ""


def _left_folders(store: Store, known: Mapping[str, Any], now_s: float) -> Iterator[Candidate]:
    """Trash, half-made folders and scratch files of killed processes, and folders that are not entries."""
    for path in trash_in(store.root):
        yield _folder(path, "left by a removal that was killed")
    for path in _paths_in(store.root / ".locks"):
        if path.suffix == ".new" and path.is_dir() and not is_locked(path.with_suffix(".lock")):
            yield _folder(path, "left by a start that was killed")
        elif path.suffix == ".lock" and not is_locked(path) and _is_left(path, now_s):
            yield _folder(path, "a lock that no process holds")
    for path in _paths_in(store.root):
        is_scratch = path.name.startswith(".") and path.suffix == ".new"
        is_nameless = path.is_dir() and not path.name.startswith(".") and path.name not in known
        if (is_scratch or is_nameless) and not path.is_symlink() and _is_left(path, now_s):
            yield _folder(path, "left by a process that was killed" if is_scratch else _nameless_text(path))


def _is_left(path: Path, now_s: float) -> bool:
    """Whether it is there and nothing in it has changed for long."""
    return 0 < _newest_s(path) < now_s - LEFT_FOR_S


def _nameless_text(path: Path) -> str:
    return "its _cm.json describes no entry" if EntryPaths(path).meta.exists() else "no entry: it has no _cm.json"


def _folder(path: Path, reason: str) -> Candidate:
    size_bytes = tree_size(path)
    with contextlib.suppress(OSError):  # a process that ends removes its own
        size_bytes += 0 if path.is_dir() else path.lstat().st_size
    return Candidate(path, None, size_bytes, _newest_s(path), reason)


def _paths_in(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _newest_s(path: Path) -> float:
    """When anything in a folder was changed last; 0 when it is gone."""
    try:
        return max([path.lstat().st_mtime, *(status.st_mtime for _, status in files_below(path))])
    except OSError:
        return 0.0


def _remove(store: Store, candidate: Candidate) -> bool:
    """Removes what is still as it was when it was looked at; whether it went."""
    entry = candidate.entry
    if entry is None:
        with folder_lock_if_free(candidate.path) as is_free:
            if is_free:
                discard(store.root, candidate.path)
        return is_free and not candidate.path.exists()
    return is_removed(store, entry, may_be_pinned=False)


def _lines(plan: GcPlan, now_s: float, *, is_dry: bool) -> Iterator[str]:
    for mark, candidate in (*(("-", one) for one in plan.removed), *(("  kept:", one) for one in plan.kept)):
        entry = candidate.entry
        name = f"{entry.path.name} ({entry.recipe.alias})" if entry else str(candidate.path)
        facts = f"{size_text(candidate.size_bytes)}, not used for {age_text(now_s - candidate.last_use_s)}"
        yield f"{mark} {name}, {facts}: {candidate.reason}"
    verb, freed = "would remove" if is_dry else "to remove", size_text(_size(plan.removed))
    yield f"the cache holds {size_text(plan.size_bytes)}; {verb}: {len(plan.removed)} with {freed}"
