"""What is known of all recipes, in one SQLite file: a start parses only what changed and loads only what is asked for.

An edited, new or removed recipe is noticed at once (scan.py): 10,000 unchanged ones cost two ``stat`` calls each. Rows
are read when a query needs them. Where the file cannot be written, a copy in memory serves this process.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ..rules.index import IndexEntry, RepoInfo
from .database import DamagedDatabase, Database, UnwritableDatabase
from .scan import ROOT, TICK_NS, UNTRUSTED, FolderGroup, FolderScan, is_same, listed, look_at

if TYPE_CHECKING:
    from sqlite3 import Connection

Got = TypeVar("Got")
logger = logging.getLogger(__name__)

FORMAT = 5
SCHEMA = (
    "CREATE TABLE IF NOT EXISTS repos (id INTEGER PRIMARY KEY AUTOINCREMENT, path BLOB UNIQUE, maker TEXT,"
    " revision INTEGER, paths BLOB, numbers BLOB)",
    "CREATE TABLE IF NOT EXISTS recipes (id INTEGER PRIMARY KEY AUTOINCREMENT, repo INTEGER, name BLOB, alias BLOB,"
    " uid BLOB, error TEXT, info TEXT, meta TEXT, UNIQUE (repo, name))",
    "CREATE INDEX IF NOT EXISTS recipes_by_alias ON recipes (alias)",
    "CREATE INDEX IF NOT EXISTS recipes_by_uid ON recipes (uid)",
    "CREATE TABLE IF NOT EXISTS tags (tag BLOB, recipe INTEGER, PRIMARY KEY (tag, recipe)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS tags_by_recipe ON tags (recipe)",
)
"""Names are blobs: file names and tags may hold what is no Unicode. ``info`` and ``meta`` are JSON."""

ATTEMPTS = 5
TAGS_ASKED = 8
"""So many tags are looked up in the file, the rarest ones; the few recipes that have these are compared in full."""
MANY = 1000
"""From this many changed recipes on, a start that reads them says so."""


class RecipeRow(NamedTuple):
    """What one folder of ``script/`` turned out to be.

    ``files`` are those that were read or looked for, absolute; they tell when it changes. ``error`` is why it cannot be
    used; without one, an empty ``uid`` means that it is no recipe. ``meta`` is the whole metadata as JSON. Without
    ``is_certain``, because the disk failed, the folder is read again at the next start.
    """

    files: tuple[str, ...] = ()
    error: str = ""
    alias: str = ""
    uid: str = ""
    tags: tuple[str, ...] = ()
    variations: tuple[str, ...] = ()
    sort: int = 0
    is_cached: bool = False
    meta: str = ""
    is_certain: bool = True

    @property
    def info(self) -> str:
        """What selection needs, as JSON."""
        return json.dumps([self.alias, self.uid, self.tags, self.variations, self.sort, self.is_cached])

    def entry(self, folder: Path, place: RepoInfo) -> IndexEntry:
        """The recipe as selection sees it."""
        return entry_of(self.info, folder, place)


def entry_of(info: str, folder: Path, place: RepoInfo) -> IndexEntry:
    """The index entry that a row's ``info`` stands for."""
    alias, uid, tags, variations, sort, is_cached = json.loads(info)
    return IndexEntry(
        alias=alias,
        uid=uid,
        path=folder,
        repo_path=place.path,
        repo_alias=place.alias,
        tags=frozenset(tags),
        variations=frozenset(variations),
        sort=sort,
        is_cached=is_cached,
    )


RowReader = Callable[[Path], RecipeRow]
"""Reads one folder of ``script/``."""


class Known(NamedTuple):
    """What the file holds of a repository; ``revision`` grows with every write."""

    repo_id: int
    revision: int
    scan: FolderScan


class StoredIndex:
    """The index of the registered repositories on top of the file; the same answers as a ``ListedIndex``.

    Rows are looked up when they are asked for: what another process found out meanwhile is seen too.
    """

    def __init__(self, repos: Sequence[RepoInfo], file: Path, reader: RowReader, maker: str) -> None:
        """Brings the file up to date. ``maker`` tells what made the rows: rows of another one are read again.

        Raises UnwritableDatabase when this Python has no SQLite.
        """
        self._database = Database(file, SCHEMA)
        self._reader = reader
        self._maker = maker
        self._places = {str(repo.path): repo for repo in repos}
        self._repos: dict[int, RepoInfo] = {}
        self._entries: dict[int, IndexEntry] = {}
        self._counts: dict[bytes, int] = {}
        self._rescued(self._refresh)

    def _rescued(self, action: Callable[[], Got]) -> Got:
        """What ``action`` gives: with the file, else with a new file, else in memory.

        Raises UnwritableDatabase when this Python has no SQLite at all.
        """
        try:
            return action()
        except (DamagedDatabase, TypeError, ValueError) as error:  # the latter: columns of other types
            logger.info("the recipe index %s is damaged (%s); reading all recipes again", self._database.path, error)
            self._database.discard()
        except UnwritableDatabase as error:
            logger.debug("the recipe index %s is not written: %s", self._database.path, error)
            trouble = self._database.move_to_memory()
            if trouble:
                logger.warning(
                    "! cannot read the recipe index %s (%s): reading all recipes", self._database.path, trouble
                )
        try:
            self._refresh()
            return action()
        except (DamagedDatabase, UnwritableDatabase):
            self._database.move_to_memory(is_emptied=True)
            self._refresh()
            return action()

    def _rows(self, question: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._rescued(lambda: self._database.rows(question, values))

    # --- looking at the disk ---

    def _refresh(self) -> None:
        self._repos = {}
        self._entries.clear()
        for place in self._places.values():
            for _ in range(ATTEMPTS):
                repo_id = self._bring_up_to_date(place)
                if repo_id is not None:
                    self._repos[repo_id] = place
                    break
            else:
                raise UnwritableDatabase(f"other processes keep changing {self._database.path}")

    def _bring_up_to_date(self, place: RepoInfo) -> int | None:
        """The repository's number in the file; None when another process changed the file meanwhile.

        Nothing is written when nothing differs from what the file holds.
        """
        root = os.path.join(place.path, "script")
        known = self._known(place)
        if known and known.scan.is_unchanged(root):
            return known.repo_id
        before = known.scan.groups if known else {}
        whole, names = listed(root, TICK_NS / 1e9)
        groups, changed = self._read_changes(root, names, before)
        groups = {ROOT: whole, **groups}
        if known and groups == before and not self._differs(known.repo_id, changed):
            return known.repo_id
        gone = [*changed, *(before.keys() - groups.keys())] if known else None
        with self._database.change() as connection:
            found = connection.execute("SELECT id, revision, maker FROM repos WHERE path = ?", (_path_key(place),))
            repo_id, revision, maker = found.fetchone() or (None, 0, "")
            if maker == self._maker and revision != (known.revision if known else 0):
                return None
            if repo_id is None:
                made = connection.execute("INSERT INTO repos (path) VALUES (?)", (_path_key(place),))
                repo_id = int(made.lastrowid or 0)
            _delete(connection, repo_id, gone)
            _insert(connection, repo_id, changed)
            scan = FolderScan.of_groups(groups)
            connection.execute(
                "UPDATE repos SET maker = ?, revision = ?, paths = ?, numbers = ? WHERE id = ?",
                (self._maker, revision + 1, scan.paths_block, scan.numbers, repo_id),
            )
        return int(repo_id)

    def _known(self, place: RepoInfo) -> Known | None:
        question = "SELECT id, revision, paths, numbers FROM repos WHERE path = ? AND maker = ?"
        for repo_id, revision, paths, numbers in self._database.rows(question, (_path_key(place), self._maker)):
            return Known(repo_id, revision, FolderScan.of_blocks(paths, numbers))
        return None

    def _read_changes(
        self, root: str, names: Sequence[str], before: Mapping[str, FolderGroup]
    ) -> tuple[dict[str, FolderGroup], dict[str, RecipeRow]]:
        """Every folder as it is now, and the rows of those that changed; what is fresh is read again after a tick."""
        groups = {name: before.get(name) or FolderGroup((name,), UNTRUSTED) for name in names}
        suspects = [
            name
            for name, group in groups.items()
            if not group.is_trusted or not is_same(root, map(os.fsencode, group.paths), group.numbers)
        ]
        if len(suspects) >= MANY:
            logger.info("reading %d recipes of %s ...", len(suspects), root)
        changed: dict[str, RecipeRow] = {}
        for attempt in range(2):
            if attempt and suspects:
                time.sleep(TICK_NS / 1e9)
            for name in suspects:
                began_ns = time.time_ns()
                changed[name] = self._reader(Path(root, name))
                groups[name] = look_at(root, name, changed[name].files, began_ns)
                if not changed[name].is_certain:
                    groups[name] = FolderGroup((name,), UNTRUSTED)
            suspects = [name for name in suspects if not groups[name].is_trusted]
        return groups, changed

    def _differs(self, repo_id: int, rows: Mapping[str, RecipeRow]) -> bool:
        """Whether the file holds anything else of these folders."""
        question = "SELECT error, info, meta FROM recipes WHERE repo = ? AND name = ?"
        for name, row in rows.items():
            wanted = [(_printable(row.error), row.info, row.meta)] if row.uid or row.error else []
            if self._database.rows(question, (repo_id, os.fsencode(name))) != wanted:
                return True
        return False

    # --- answering ---

    @cached_property
    def entries(self) -> tuple[IndexEntry, ...]:
        """All recipes, ordered by rank and path; reads every row."""
        return self._found("SELECT id, repo, name, info FROM recipes WHERE error = ''")

    @cached_property
    def broken(self) -> Mapping[str, str]:
        """The folders that cannot be used, with the reason."""
        rows = self._rows("SELECT repo, name, error FROM recipes WHERE error != '' ORDER BY repo, name")
        return {
            str(self._repos[repo].path / "script" / os.fsdecode(name)): error
            for repo, name, error in rows
            if repo in self._repos
        }

    def by_name(self, name: str) -> tuple[IndexEntry, ...]:
        """The recipes whose alias or uid is ``name``."""
        question = "SELECT id, repo, name, info FROM recipes WHERE error = '' AND (alias = ? OR uid = ?)"
        return self._found(question, (_key(name), _key(name)))

    def by_tags(self, wanted: Iterable[str], unwanted: Iterable[str]) -> tuple[IndexEntry, ...]:
        """The recipes that have all ``wanted`` tags and none of the ``unwanted``; the rarest tag is looked up first."""
        need, avoid = frozenset(wanted), frozenset(unwanted)
        if not need:
            return tuple(entry for entry in self.entries if avoid.isdisjoint(entry.tags))
        rarest = sorted((_key(tag) for tag in need), key=lambda tag: (self._count(tag), tag))[:TAGS_ASKED]
        question = (
            "SELECT recipes.id, repo, name, info FROM tags JOIN recipes ON recipes.id = tags.recipe WHERE tag = ?"
            + " AND EXISTS (SELECT 1 FROM tags AS more WHERE more.tag = ? AND more.recipe = recipes.id)"
            * (len(rarest) - 1)
        )
        found = self._found(question, rarest)
        return tuple(entry for entry in found if need <= entry.tags and avoid.isdisjoint(entry.tags))

    def _count(self, tag: bytes) -> int:
        if tag not in self._counts:
            self._counts[tag] = self._rows("SELECT count(*) FROM tags WHERE tag = ?", (tag,))[0][0]
        return self._counts[tag]

    @property
    def all_tags(self) -> frozenset[str]:
        """Every tag that any recipe carries; reads every row."""
        return frozenset().union(*(entry.tags for entry in self.entries))

    def meta(self, entry: IndexEntry) -> str:
        """The metadata of a recipe as JSON; empty when its folder changed since."""
        question = (
            "SELECT meta FROM recipes JOIN repos ON repos.id = recipes.repo"
            " WHERE repos.path = ? AND recipes.name = ? AND recipes.uid = ?"
        )
        rows = self._rows(question, (os.fsencode(entry.repo_path), os.fsencode(entry.path.name), _key(entry.uid)))
        return str(rows[0][0]) if rows else ""

    def _found(self, question: str, values: Sequence[Any] = ()) -> tuple[IndexEntry, ...]:
        """The recipes behind the rows that a question gives, ordered by rank and path."""

        def look() -> list[IndexEntry]:
            return [self._entry(*row) for row in self._database.rows(question, values) if row[1] in self._repos]

        return tuple(sorted(self._rescued(look), key=lambda entry: (entry.sort, str(entry.path))))

    def _entry(self, recipe_id: int, repo_id: int, name: bytes, info: str) -> IndexEntry:
        if recipe_id not in self._entries:
            place = self._repos[repo_id]
            self._entries[recipe_id] = entry_of(info, place.path / "script" / os.fsdecode(name), place)
        return self._entries[recipe_id]


def _key(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _path_key(place: RepoInfo) -> bytes:
    return os.fsencode(place.path)


def _delete(connection: Connection, repo_id: int, names: Iterable[str] | None) -> None:
    """Forgets the named folders of a repository; all of them when ``names`` is None."""
    if names is None:
        found = connection.execute("SELECT id FROM recipes WHERE repo = ?", (repo_id,)).fetchall()
    else:
        question = "SELECT id FROM recipes WHERE repo = ? AND name = ?"
        found = [row for name in names for row in connection.execute(question, (repo_id, os.fsencode(name)))]
    connection.executemany("DELETE FROM tags WHERE recipe = ?", found)
    connection.executemany("DELETE FROM recipes WHERE id = ?", found)


def _insert(connection: Connection, repo_id: int, rows: Mapping[str, RecipeRow]) -> None:
    for name, row in rows.items():
        if not (row.uid or row.error):
            continue
        made = connection.execute(
            "INSERT INTO recipes (repo, name, alias, uid, error, info, meta) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (repo_id, os.fsencode(name), _key(row.alias), _key(row.uid), _printable(row.error), row.info, row.meta),
        )
        if not row.error:
            links = [(_key(tag), made.lastrowid) for tag in set(row.tags)]
            connection.executemany("INSERT INTO tags (tag, recipe) VALUES (?, ?)", links)


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
