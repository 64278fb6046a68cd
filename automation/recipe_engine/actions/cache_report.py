"""``cm show cache`` and ``cm verify cache``: what is in the cache, and whether the entries are what their recipes made.

To verify, every declared file is read and compared with its recorded size and SHA-256, and so is the file of results.
What an entry was made with must still be there, and its recipe must be the one that made it.
"""

import json
import logging
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..disk.entries import EntryPaths, Stamp, checked_state, details_of, file_problem, relocated, stamp_of
from ..disk.locks import is_in_use, last_use_s
from ..disk.repos import RecipeSource
from ..disk.store import Store
from ..documents.console_text import cut, table
from ..rules.amounts import age_text, counted, short_age, size_text
from ..rules.env import texts_of
from ..rules.errors import MetaError, RequestError
from ..rules.model import CacheEntry, EntryDetails
from ..rules.query import split_words
from ..rules.schema import is_yes
from ..rules.secrets import without_secrets
from .adapter import Home, is_verbose, listing_width, print_lines
from .cache_actions import find_entries, made_s, nothing_found, state_of, tree_size

logger = logging.getLogger(__name__)

PLUMBING_TAGS = ("script-artifact-", "version-", "deps-", "tmp")
"""How tags begin that the engine adds and that tell people nothing new."""


def show_action(i: Mapping[str, Any], home: Home) -> dict[str, Any]:
    """Answers ``cm show cache [--tags=...] [--env] [-v]``: a line for each entry; of one, and with ``-v``, all."""
    store = Store(home.store_path)
    entries = find_entries(i, store)
    source = home.source()
    rows = [describe_entry(entry, time.time(), source) for entry in entries]
    if i.get("out") == "con":
        is_whole = len(rows) == 1 or is_verbose(i) or is_yes(i.get("env"))
        for entry, row in zip(entries, rows, strict=True) if is_whole else ():
            print_lines([*_entry_lines(row), *(_state_lines(entry) if is_yes(i.get("env")) else ())])
        if not rows:
            logger.info(nothing_found(i, store).describe())
        elif not is_whole:
            own = {entry.uid: entry.tags for entry in source.index.entries}
            shorts = [short_tags(entry, own.get(entry.recipe.uid)) for entry in entries]
            print_lines(table_lines(rows, shorts, listing_width()))
        if len(rows) > 1:
            total = size_text(sum(row["size_bytes"] for row in rows))
            print_lines(["", f"{counted(len(rows), 'cache entry')}, {total}, in {home.store_path}"])
            if not is_whole:
                if any(row["is_outdated"] for row in rows):
                    print_lines(["[outdated]: its recipe has changed since. It is reused, and --renew rebuilds it"])
                print_lines(["cm show cache UID shows the folder and all tags of one, -v of all"])
    return {"return": 0, "entries": rows, "cache": str(home.store_path)}


def describe_entry(entry: CacheEntry, now_s: float, source: RecipeSource) -> dict[str, Any]:
    """What is shown of an entry: tags, path, version, maker, size in bytes, age and time since use in s, state.

    ``is_outdated``: its recipe has changed since, or is gone.
    """
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
        "is_outdated": any(_recipe(entry, source)),
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
    """A line for each entry, by recipe and tags; what is special about it comes before its tags, so that a narrow
    terminal cuts it last."""
    titles = ("recipe", "version", "variations and tags", "size", "made", "uid")
    cells = [
        (
            row["recipe"].partition(",")[0],
            cut(row["version"], 16),
            " ".join(filter(None, (_mark(row), short))),
            size_text(row["size_bytes"]),
            short_age(row["age_s"]),
            row["uid"],
        )
        for row, short in zip(rows, shorts, strict=True)
    ]
    return table([titles, *sorted(cells)], width, rights=(3, 4), flexible=2)


def _mark(row: Mapping[str, Any]) -> str:
    """What is special about an entry."""
    if not row["is_complete"]:
        return "[retired]" if row["retired"] else "[unfinished]"
    state = "[pinned]" if row["is_pinned"] else "[in use]" if row["is_in_use"] else ""
    return " ".join(filter(None, (state, "[outdated]" if row["is_outdated"] else "")))


def _entry_lines(row: Mapping[str, Any]) -> Iterator[str]:
    used = "" if row["unused_s"] is None else f", used {age_text(row['unused_s'])} ago"
    lines = [
        (True, f"\n* Tags: {','.join(row['tags'])}"),
        (True, f"  Path: {row['path']}"),
        (row["version"], f"  Version: {row['version']}"),
        (True, f"  Recipe: {row['recipe']}"),
        (row["is_outdated"], "  Outdated: its recipe has changed since. --renew rebuilds the entry"),
        (True, f"  Size: {size_text(row['size_bytes'])}{used}, made {age_text(row['age_s'])} ago"),
        (row["is_pinned"], "  Pinned: cm gc cache keeps it and all that it needs"),
        (not row["is_complete"], f"  State: {row['retired'] or 'unfinished'}, never reused"),
        (row["depends_on"], f"  Depends on: {row['depends_on']}"),
    ]
    return (line for is_known, line in lines if is_known)


def _state_lines(entry: CacheEntry) -> Iterator[str]:
    for title, given in zip(("New env", "New state"), state_of(entry), strict=True):
        if values := without_secrets(given):
            yield f"    {title}:\n{json.dumps(values, indent=6, sort_keys=True)}"


# --- cm verify cache ---

KINDS = ("entry", "file", "state", "dependency", "recipe")


class Problem(NamedTuple):
    """A mismatch between an entry and its records; ``kind`` is one of KINDS."""

    kind: str
    text: str


class Checked(NamedTuple):
    """What was found out about one entry. ``note`` says what could not be compared."""

    entry: CacheEntry
    problems: tuple[Problem, ...]
    file_count: int
    size_bytes: int
    note: str = ""

    @property
    def row(self) -> dict[str, Any]:
        """This as JSON."""
        return {
            "uid": self.entry.uid,
            "recipe": self.entry.recipe.text,
            "path": str(self.entry.path),
            "problems": [problem._asdict() for problem in self.problems],
            "files": self.file_count,
            "size_bytes": self.size_bytes,
            "note": self.note,
        }


NOTHING_RECORDED = "no files were recorded, so they cannot be verified"


def verify_action(i: Mapping[str, Any], home: Home) -> dict[str, Any]:
    """Answers ``cm verify cache [uid] [--tags=..] [--skip=recipe,...]``; code 1 when anything is wrong.

    Raises NothingFound when entries were asked for and none fits, RequestError for an unknown kind in ``--skip``.
    """
    store = Store(home.store_path)
    skipped = _skipped_kinds(i)
    found = find_entries(i, store)
    if not found and (i.get("tags") or i.get("artifact")):
        raise nothing_found(i, store)
    source = home.source()
    unfinished = [entry for entry in found if not entry.is_complete]
    checked = []
    for entry in (entry for entry in found if entry.is_complete):
        one = check_entry(entry, store, source, skipped)
        checked.append(one)
        state = (
            f"! {counted(len(one.problems), 'problem')}"
            if one.problems
            else f"= {one.note or ('ok' if one.file_count else NOTHING_RECORDED)}"
        )
        logger.info("%s %s (%s): %s", state[0], entry.uid, entry.recipe.alias, state[2:])
    wrong = [one for one in checked if one.problems]
    if i.get("out") == "con":
        files, size = sum(one.file_count for one in checked), size_text(sum(one.size_bytes for one in checked))
        summary = f"{counted(len(checked), 'entry')} with {counted(files, 'recorded file')} ({size}) verified"
        verdict = f"{len(wrong)} changed since they were built" if wrong else "all unchanged"
        verdict = NOTHING_RECORDED if checked and not files and not wrong else verdict
        print_lines([*(line for one in wrong for line in _lines(one)), f"{summary}: {verdict}"])
        if unfinished:
            left = counted(len(unfinished), "unfinished or broken entry")
            logger.info("%s, which no run uses: cm gc cache --dry-run", left)
    answer: dict[str, Any] = {
        "return": 0,
        "cache": str(home.store_path),
        "entries": [one.row for one in checked],
        "wrong": [one.entry.uid for one in wrong],
        "unfinished": [entry.uid for entry in unfinished],
    }
    if wrong:
        answer.update(
            {"return": 1, "error": f"{len(wrong)} of {len(checked)} cache entries are changed since they were built"}
        )
    return answer


def _skipped_kinds(i: Mapping[str, Any]) -> tuple[str, ...]:
    words = tuple(split_words(texts_of(i.get("skip"))))
    for word in words:
        if word not in KINDS:
            raise RequestError(f"--skip={word} is not a valid kind of problem", hint=f"kinds are: {', '.join(KINDS)}")
    return words


def check_entry(entry: CacheEntry, store: Store, source: RecipeSource, skipped: Sequence[str] = ()) -> Checked:
    """Everything that is wrong with a finished entry, apart from the ``skipped`` kinds."""
    before = _stamp(entry)
    details = details_of(entry)
    files = details.files if details else ()
    problems = [*_own_problems(entry, details), *_missing(entry, details, store), *_recipe(entry, source)]
    if before is None or _stamp(entry) != before:
        return Checked(entry, (), 0, 0, "not verified: it was replaced or removed just now")
    return Checked(
        entry,
        tuple(problem for problem in problems if problem.kind not in skipped),
        len(files),
        sum(file.size_bytes for file in files),
        "" if entry.record else "built by CM, which records neither files nor recipe",
    )


def _stamp(entry: CacheEntry) -> Stamp | None:
    try:
        return stamp_of(EntryPaths(entry.path).meta)
    except OSError:
        return None


def _own_problems(entry: CacheEntry, details: EntryDetails | None) -> Iterator[Problem]:
    """What is wrong with the files that the engine itself wrote, and with the declared ones."""
    if details is None:
        yield Problem("entry", f"its file {EntryPaths(entry.path).details} is missing or damaged")
        return
    made = list(entry.record.variations) if entry.record else []
    recorded = details.request.get("variations", made)
    if recorded != made:
        yield Problem("entry", f"_cm.json says the variations {made}, entry.json {recorded}")
    _, trouble = checked_state(entry, details)
    if trouble:
        yield Problem("state", trouble)
    for declared in details.files:
        try:
            text = file_problem(entry.path / declared.path, declared, is_thorough=True)
        except OSError as error:
            text = f"its file {entry.path / declared.path} cannot be read: {error.strerror}"
        if text:
            yield Problem("file", text)


def _missing(entry: CacheEntry, details: EntryDetails | None, store: Store) -> Iterator[Problem]:
    """What the entry depends on and no longer exists."""
    path = relocated(entry.dependent_path, store.root)
    if path and not os.path.exists(path):
        yield Problem("dependency", f"{path} (a dependency) is missing")
    new_env = relocated(state_of(entry)[0], store.root)
    in_store = re.compile(re.escape(str(store.root)) + r"/([0-9a-f]{16})(?=/|:|$)")
    named: dict[str, str] = {}
    for key, value in sorted(new_env.items()):
        for item in value if isinstance(value, list) else [value]:
            named.update({uid: key for uid in in_store.findall(str(item)) if uid not in named})
    for uid in sorted({*(details.dependencies if details else ()), *named} - {entry.path.name}):
        if not (store.root / uid).is_dir():
            how = f"which {named[uid]} names" if uid in named else "with which it was made"
            yield Problem("dependency", f"the entry {uid}, {how}, is gone")


def _recipe(entry: CacheEntry, source: RecipeSource) -> Iterator[Problem]:
    record = entry.record
    if record is None:
        return
    found = source.index.by_name(entry.recipe.uid)
    try:
        is_unchanged = any(source.is_unchanged(source.recipe(one), record) for one in found)
    except MetaError as error:
        yield Problem("recipe", f"its recipe {entry.recipe.alias} cannot be used: {error.message}")
        return
    if not found:
        yield Problem("recipe", f"its recipe {entry.recipe.text} is not registered")
    elif not is_unchanged:
        yield Problem("recipe", f"its recipe {entry.recipe.alias} has changed since. --renew rebuilds the entry")


def _lines(checked: Checked) -> Iterator[str]:
    yield f"{checked.entry.path} ({checked.entry.recipe.alias}: {','.join(checked.entry.tags)})"
    for problem in checked.problems:
        yield f"  {problem.kind}: {problem.text}"
