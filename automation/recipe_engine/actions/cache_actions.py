"""``cm find|rm|pin|unpin|gc cache``: what a user does with the store; ``cm show|verify cache`` are in cache_report.py.

``gc`` removes three groups: left-overs (unfinished entries that no process makes, entries whose time is over, folders
and trash of killed processes), entries not used for long, and, when the cache is too large, the least recently used
ones. What is pinned or in use is kept, with all that it was made with (retention.py).
"""

import contextlib
import logging
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from ..disk.entries import RESUMABLE_SUFFIX, EntryPaths, parse_state
from ..disk.files import DiskFull, folder_lock_if_free, read_json, utc_seconds
from ..disk.locks import discard, empty_trash, is_in_use, is_locked, last_use_s, lock, trash_in, unused, users_of
from ..disk.store import Store, dependencies
from ..rules.amounts import age_text, counted, parse_age_s, parse_size_bytes, size_text
from ..rules.cachekey import match_tags, replacements
from ..rules.errors import CycleError, LockTimeout, NothingFound, RequestError
from ..rules.model import CacheEntry
from ..rules.query import nearest_hint
from ..rules.retention import Item, Limits, decide
from ..rules.schema import is_yes
from ..running.console import confirm
from .adapter import Home, is_forced, show
from .run import split_artifact

logger = logging.getLogger(__name__)
IN_USE = "in use by a running process"
LEFT_FOR_S = 86400.0
"""An unfinished entry with half-loaded files, one that CM may be making, and a folder without a name are left alone for
a day: the next run resumes the first, and the others may be being written."""


def find_entries(i: Mapping[str, Any], store: Store) -> list[CacheEntry]:
    """The entries that ``--tags``, a first word with whitespace (tags too), or a uid or a pattern of uids select.

    They come in order of their tags.
    """
    words, name = split_artifact(i)
    entries = [entry for entry in store.entries(refresh=True) if fnmatchcase(entry.uid, name or "*")]
    return list(match_tags(entries, words))


def nothing_found(i: Mapping[str, Any], store: Store, what: str = "no matching cache entry") -> NothingFound:
    """The error for a command that no entry fits, with the uids or tags that look most like the one that was given."""
    words, name = split_artifact(i)
    entries = store.entries()
    known = {entry.uid for entry in entries} if name else {tag for entry in entries for tag in entry.tags}
    asked = name or next((word for word in words if word not in known and not word.startswith("-")), "")
    otherwise = "cm show cache lists all entries" if entries else "the cache is empty"
    hint = nearest_hint(asked, known, otherwise=otherwise)
    return NothingFound(f"{what} in {store.root}", hint=hint)


def made_s(entry: CacheEntry) -> float:
    """When an entry was made, in seconds since 1970; 0 for a removed one."""
    try:
        return utc_seconds(entry.record.created_utc if entry.record else "")
    except ValueError:
        with contextlib.suppress(OSError):
            return EntryPaths(entry.path).meta.stat().st_mtime
        return 0.0


def state_of(entry: CacheEntry) -> tuple[dict[str, Any], dict[str, Any]]:
    """The new_env and new_state that an entry gives, as they are on disk; both empty when they cannot be read."""
    return parse_state(read_json(EntryPaths(entry.path).state)) or ({}, {})


def search_entries(i: Mapping[str, Any], home: Home) -> list[CacheEntry]:
    """Answers ``cm find cache``; prints the folders on the console."""
    entries = find_entries(i, Store(home.store_path))
    show(i, *(str(entry.path) for entry in entries))
    return entries


def remove_action(i: Mapping[str, Any], home: Home) -> dict[str, Any]:
    """Answers ``cm rm cache [--tags=...] [-f] [--in_use]``; code 1 when an entry is kept because a process needs it.

    An entry that a process uses is removed only with ``--in_use``, one that a process makes never. Raises NothingFound
    when no entry fits, RequestError when the removal is not confirmed and ``-f`` is not given.
    """
    store = Store(home.store_path)
    entries = find_entries(i, store)
    if not entries:
        raise nothing_found(i, store, "no cache entry to remove")
    refusal = f"would remove {counted(len(entries), 'cache entry')}"
    hint = "see which with cm show cache and the same tags, then pass -f to confirm"
    may_be_in_use = is_yes(i.get("in_use", i.get("in-use")))
    removed: list[str] = []
    kept: list[str] = []
    for entry in entries:
        question = f"Remove {entry.path} ({','.join(entry.tags)})?"
        if is_forced(i) or confirm(question, refusal=refusal, hint=hint):
            (removed if is_removed(store, entry, may_be_in_use=may_be_in_use) else kept).append(entry.uid)
    answer: dict[str, Any] = {"return": 0, "removed": removed, "busy": kept}
    if kept:
        advice = "wait until that process ends, or add --in_use to remove it anyway (this may break the process)"
        answer.update({"return": 1, "error": f"{len(kept)} of {len(entries)} cache entries were kept\nhint: {advice}"})
    return answer


def is_removed(store: Store, entry: CacheEntry, *, may_be_in_use: bool = False, may_be_pinned: bool = True) -> bool:
    """Removes an entry, or says why it is kept; whether it is gone."""
    with store.held(entry) as is_free, unused(entry.path) if is_free else nullcontext(True) as is_idle:
        if not is_free:
            reason = (
                "a process is building it" if store.is_busy(entry) else "a process renews it or has just changed it"
            )
        elif not may_be_pinned and EntryPaths(entry.path).pinned.exists():
            reason = "it was pinned"
        elif is_idle or may_be_in_use:
            store.remove(entry)
            reason = "it could not be removed completely" if entry.path.exists() else ""
        else:
            reason = IN_USE
    if reason == IN_USE and (users := users_of(entry.path)):
        reason = f"in use by process {', '.join(map(str, users))}"
    if reason:
        logger.warning("! kept %s (%s): %s", entry.path, entry.recipe.alias, reason)
    else:
        logger.info("- removed %s (%s)", entry.path, entry.recipe.alias)
    return not reason


def pin_action(i: Mapping[str, Any], home: Home, is_pinned: bool) -> dict[str, Any]:
    """Answers ``cm pin cache <uid|--tags=..>`` and ``cm unpin cache``; raises NothingFound and RequestError."""
    store = Store(home.store_path)
    if not (i.get("artifact") or i.get("tags")):
        raise RequestError("no cache entry was selected", hint="give a uid or --tags=.... cm show cache lists them")
    entries = [entry for entry in find_entries(i, store) if entry.is_complete or not is_pinned]
    if not entries:
        raise nothing_found(i, store, "no matching finished cache entry")
    marks = [(entry, EntryPaths(entry.path).pinned) for entry in entries]
    changed = [(entry, mark) for entry, mark in marks if mark.exists() is not is_pinned]
    for entry, mark in changed:
        mark.touch() if is_pinned else mark.unlink(missing_ok=True)
        logger.info("%s %s (%s)", "pinned" if is_pinned else "unpinned", entry.path, entry.recipe.alias)
    if not changed:
        state = "pinned" if is_pinned else "unpinned"
        logger.info("no change: %s already %s", counted(len(entries), "cache entry"), state)
    return {"return": 0, "changed": [entry.uid for entry, _ in changed], "entries": [entry.uid for entry in entries]}


# --- gc ---


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
    many = "cache entries and left-over folders"
    what = f"{counted(len(plan.removed), 'cache entry or left-over folder', many)} ({size_text(freed)})"
    refusal, hint = f"would remove {what}", "see which with --dry-run, then pass -f to confirm"
    show(i, *_plan_lines(plan, now_s, is_dry=is_dry))
    removed: list[Candidate] = []
    if plan.removed and not is_dry and (is_forced(i) or confirm(f"Remove {what}?", refusal=refusal, hint=hint)):
        removed = [candidate for candidate in plan.removed if _remove(store, candidate)]
        empty_trash(store.root)
        for path in trash_in(store.root):
            logger.warning("! %s could not be removed completely", path)
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
    """What ``limits`` and the state of the cache ask for; changes nothing."""
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
    left = tuple(_left_folders(store, entries, now_s))
    removed, kept = decide([*items.values()], limits, now_s)
    for uid in (uid for uid in kept if entries[uid].is_complete or entries[uid].retired):
        kept[uid] = ", but ".join(filter(None, (items[uid].useless, kept[uid])))

    def candidates(reasons: Mapping[str, str]) -> tuple[Candidate, ...]:
        rows = ((entries[uid], items[uid], reason) for uid, reason in reasons.items())
        return tuple(Candidate(entry.path, entry, item.size_bytes, item.last_use_s, why) for entry, item, why in rows)

    size_bytes = _size(left) + sum(item.size_bytes for item in items.values())
    return GcPlan((*left, *candidates(removed)), candidates(kept), size_bytes)


def _kept_because(store: Store, entry: CacheEntry, now_s: float) -> str:
    if EntryPaths(entry.path).pinned.exists():
        return "pinned"
    if store.is_busy(entry):
        return "being built right now"
    if is_in_use(entry.path):
        return IN_USE
    if not os.access(entry.path, os.W_OK):
        return "this user has no write permission"
    if not entry.is_complete and not entry.retired:
        is_foreign = entry.record is None
        has_parts = any(path.endswith(RESUMABLE_SUFFIX) for path, _ in files_below(entry.path))
        if (is_foreign or has_parts) and now_s - _newest_s(entry.path) < LEFT_FOR_S:
            return (
                "possibly being built by CM"
                if is_foreign
                else "partial download from today, which the next run resumes"
            )
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
        return "it has expired (cache_expiration)"
    return ""


def _left_folders(store: Store, known: Mapping[str, Any], now_s: float) -> Iterator[Candidate]:
    """Trash, half-made folders and scratch files of killed processes, and folders that are not entries."""
    for path in trash_in(store.root):
        yield _folder(path, "left by a removal that was killed")
    for path in _paths_in(store.root / ".locks"):
        if path.suffix == ".new" and path.is_dir() and not is_locked(path.with_suffix(".lock")):
            yield _folder(path, "left by a start that was killed")
        elif path.suffix == ".lock" and not is_locked(path) and _is_left(path, now_s):
            yield _folder(path, "a file lock that no process owns")
    for path in _paths_in(store.root):
        is_scratch = path.name.startswith(".") and path.suffix == ".new"
        is_nameless = path.is_dir() and not path.name.startswith(".") and path.name not in known
        if (is_scratch or is_nameless) and not path.is_symlink() and _is_left(path, now_s):
            yield _folder(path, "left by a process that was killed" if is_scratch else _nameless_text(path))


def _is_left(path: Path, now_s: float) -> bool:
    """Whether it exists and nothing in it has changed for ``LEFT_FOR_S``."""
    return 0 < _newest_s(path) < now_s - LEFT_FOR_S


def _nameless_text(path: Path) -> str:
    return f"not a cache entry: it has no {'valid ' if EntryPaths(path).meta.exists() else ''}_cm.json"


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
    """When anything in a folder was last changed; 0 when it does not exist."""
    try:
        return max([path.lstat().st_mtime, *(status.st_mtime for _, status in files_below(path))])
    except OSError:
        return 0.0


def _remove(store: Store, candidate: Candidate) -> bool:
    """Removes what no process uses since it was listed; whether it is gone."""
    if candidate.entry is not None:
        return is_removed(store, candidate.entry, may_be_pinned=False)
    with _nobody_starts(candidate.path) as is_left, folder_lock_if_free(candidate.path) as is_free:
        if is_left and is_free:
            discard(store.root, candidate.path)
    return is_left and is_free and not candidate.path.exists()


@contextlib.contextmanager
def _nobody_starts(path: Path) -> Iterator[bool]:
    """Whether no process begins to make an entry in the folder ``path`` (``.locks/*.new``) until the block ends.

    On a full disk, where no lock file can be made, none can.
    """
    with contextlib.ExitStack() as stack:
        is_left = True
        if path.suffix == ".new" and path.parent.name == ".locks":
            try:
                with contextlib.suppress(DiskFull):
                    stack.enter_context(lock(path.with_suffix(".lock"), str(path), timeout_s=0))
            except (LockTimeout, CycleError):
                is_left = False
        yield is_left


def _plan_lines(plan: GcPlan, now_s: float, *, is_dry: bool) -> Iterator[str]:
    for mark, candidate in (*(("-", one) for one in plan.removed), *(("  kept:", one) for one in plan.kept)):
        entry = candidate.entry
        name = f"{entry.path.name} ({entry.recipe.alias})" if entry else str(candidate.path)
        facts = f"{size_text(candidate.size_bytes)}, not used for {age_text(now_s - candidate.last_use_s)}"
        yield f"{mark} {name}, {facts}: {candidate.reason}"
    verb, freed = "would remove" if is_dry else "to remove", size_text(_size(plan.removed))
    what = f"{len(plan.removed)} with {freed}" if plan.removed else "nothing"
    yield f"the cache contains {size_text(plan.size_bytes)}, {verb}: {what}"


def files_below(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """The path of every file below a folder with its facts, links not followed; what another process removes is left
    out. Texts and not paths, because an environment has 10,000 files."""
    waiting = [str(folder)]
    while waiting:
        try:
            found = list(os.scandir(waiting.pop()))
        except OSError:
            continue
        for entry in found:
            try:
                if not entry.is_dir():
                    yield entry.path, entry.stat(follow_symlinks=False)
                elif not entry.is_symlink():
                    waiting.append(entry.path)
            except OSError:
                continue


def tree_size(path: Path) -> int:
    """The bytes of all files below a folder, links not followed."""
    return sum(status.st_size for _, status in files_below(path))
