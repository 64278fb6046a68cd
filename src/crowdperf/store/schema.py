"""The tables of a results database, and how a file of an older version becomes one of this version.

`listing` and `search` are made of the other tables, so that a page of many results reads narrow rows: one row of
`listing` for each result that is not withdrawn. `result.seq` orders results as they came.
`log` says which result a run's log, or a curve, belongs to; it stays when the result is withdrawn, so that the log
cannot come back.
`seen` says which result the files of a folder gave, by their places, sizes, times and inodes, so that they are not read
again.
"""

import json
import sqlite3
from dataclasses import fields
from pathlib import Path
from urllib.parse import quote

from crowdperf.store.keys import curve_marks, log_marks
from crowdperf.store.model import CurvePoint, Figure

APPLICATION_ID = 0x63705244  # "cpRD"
"""Marks the file as a results database (PRAGMA application_id), so that no other program's file is taken for one."""

MIN_SQLITE = (3, 37, 0)
"""STRICT tables came with SQLite 3.37.0 (https://www.sqlite.org/stricttables.html, read November 2026)."""

BUSY_TIMEOUT_S = 10.0

_FIRST = Path(__file__).with_name("first_version.sql").read_text(encoding="utf-8")

_SECOND = """
DROP INDEX listing_facets;
CREATE INDEX listing_facets ON listing (
    state, benchmark, precision, scenario, division, kind, accelerator, stack, labels
);
"""

_THIRD = """
CREATE TABLE log (mark TEXT PRIMARY KEY, result_id TEXT NOT NULL REFERENCES result (id)) STRICT, WITHOUT ROWID;
"""

_FOURTH = """
CREATE INDEX log_result ON log (result_id);
"""

_FIFTH = """
CREATE TABLE seen (stamp TEXT PRIMARY KEY, result_id TEXT NOT NULL REFERENCES result (id)) STRICT, WITHOUT ROWID;
"""

MIGRATIONS = (_FIRST, _SECOND, _THIRD, _FOURTH, _FIFTH)
"""What leads from version 0, an empty file, to the version of this number; never changed once released."""

VERSION = len(MIGRATIONS)


class StoreError(Exception):
    """The file is no database that this version can use."""


def _version(connection: sqlite3.Connection, path: Path) -> int:
    # another process may make the database meanwhile, all in one step: with its tables it has its mark
    has_tables = connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None
    mark = int(connection.execute("PRAGMA application_id").fetchone()[0])
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if has_tables and mark != APPLICATION_ID:
        raise StoreError(f"{path} is an SQLite file of another program, not a results database")
    if version > VERSION:
        raise StoreError(
            f"{path} has schema version {version}, this crowdperf knows up to {VERSION}\n"
            "  hint: update with `cm pull repo`, or give another file"
        )
    return version


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the file to this version; each step is done whole or not at all, by one of several processes."""
    if _version(connection, path) == VERSION:
        return
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("BEGIN IMMEDIATE")
    try:
        for number in range(_version(connection, path), VERSION):
            for statement in statements_of(MIGRATIONS[number]):
                connection.execute(statement)
            if MIGRATIONS[number] is _THIRD:
                _mark_kept(connection)
            if MIGRATIONS[number] is _FOURTH:
                _mark_curves(connection)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _mark_kept(connection: sqlite3.Connection) -> None:
    """Note the logs of results that are kept: of two with the same log, the first."""
    for row_id, raw, value in connection.execute("SELECT id, raw, value FROM result ORDER BY seq").fetchall():
        found = connection.execute("SELECT name, value, unit FROM figure WHERE result_id = ? ORDER BY place", (row_id,))
        figures = [Figure(name=row[0], value=row[1], unit=row[2]) for row in found]
        for mark in log_marks(json.loads(raw).get("detail_sha256"), value or 0.0, figures):
            connection.execute("INSERT OR IGNORE INTO log (mark, result_id) VALUES (?, ?)", (mark, row_id))


def _mark_curves(connection: sqlite3.Connection) -> None:
    """Note the curves that are kept: of two alike, the first."""
    names = [field.name for field in fields(CurvePoint)]
    for (row_id,) in connection.execute(
        "SELECT id FROM result WHERE kind != 'published' AND id IN (SELECT result_id FROM curve_point) ORDER BY seq"
    ).fetchall():
        rows = connection.execute(f"SELECT {', '.join(names)} FROM curve_point WHERE result_id = ?", (row_id,))
        for mark in curve_marks([CurvePoint(**dict(zip(names, row, strict=True))) for row in rows]):
            connection.execute("INSERT OR IGNORE INTO log (mark, result_id) VALUES (?, ?)", (mark, row_id))


def statements_of(script: str) -> list[str]:
    """Split a script into its statements; a trigger's own semicolons do not end it."""
    found, statement = [], ""
    for line in script.strip().splitlines():
        statement += line + "\n"
        if sqlite3.complete_statement(statement):
            found.append(statement)
            statement = ""
    return found


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """Open a database, made or brought to this version unless `read_only`.

    The connection starts no transaction by itself. Raises StoreError, and sqlite3.Error for what the file system says.
    """
    if sqlite3.sqlite_version_info < MIN_SQLITE:
        least = ".".join(map(str, MIN_SQLITE))
        raise StoreError(
            f"this Python has SQLite {sqlite3.sqlite_version}, but a results database needs {least} or newer"
        )
    if read_only and not path.is_file():
        raise StoreError(f"the results database {path} does not exist")
    mode = "ro" if read_only else "rwc"
    uri = f"file:{quote(str(path.absolute()))}?mode={mode}"
    connection = sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
    try:
        _prepare(connection, path, read_only)
    except sqlite3.DatabaseError as error:
        connection.close()
        if "not a database" in str(error):
            raise StoreError(f"{path} is not a results database: it is not an SQLite file") from error
        raise
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path, read_only: bool) -> None:
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    if not read_only:
        _migrate(connection, path)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA secure_delete = ON")  # what is withdrawn is gone from the file, too
    elif _version(connection, path) != VERSION:
        raise StoreError(
            f"{path} has an older version. It is upgraded to version {VERSION} when it is opened for writing\n"
            f"  hint: cm run script --tags=import,mlperf,results --db={path} --path=results"
        )
