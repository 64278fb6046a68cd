"""SQLite files that only remember what can be read again: they may be missing, damaged, locked or unwritable.

``sqlite3`` is imported here only, and only when a file is used. Readers and writers of other processes are SQLite's
business; a process killed while it writes leaves a journal that the next one rolls back.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlite3 import Connection

BUSY_S = 5.0
"""How long a write waits for another process: writes take fractions of a second even for 10,000 recipes."""

SQLITE_BUSY, SQLITE_LOCKED = 5, 6
"""Result codes of SQLite (https://www.sqlite.org/rescode.html, 2026-11-22); Python names them since 3.11."""


class DamagedDatabase(Exception):
    """The file is no database, or not the one that this engine writes: what it held has to be read again."""


class UnwritableDatabase(Exception):
    """The file can be read, maybe, but not written: a read-only home, a full disk, another process that never ends."""


class Database:
    """One file with the tables of ``schema``; opened at the first use.

    The format's number belongs into the name of the file, so that engines of several versions never share one.
    """

    def __init__(self, path: Path, schema: Sequence[str]) -> None:
        self.path = path
        self._schema = schema
        self._connection: Connection | None = None
        self._is_in_memory = False
        self._is_complete = False

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Lets the file go; a later use opens it again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def rows(self, question: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows that a SELECT gives; none when there is no file yet, or an empty one.

        Raises DamagedDatabase, and UnwritableDatabase when the file cannot even be opened.
        """
        if self._connection is None and not self.path.exists():
            return []
        with _translated():
            return self._open().execute(question, values).fetchall() if self._has_tables() else []

    @contextlib.contextmanager
    def change(self) -> Iterator[Connection]:
        """A connection inside a transaction: all that the block does is kept, or nothing of it.

        Raises DamagedDatabase, and UnwritableDatabase when nothing can be kept.
        """
        with _translated():
            connection = self._open(is_made=True)
            connection.execute("BEGIN IMMEDIATE")
            try:
                for statement in self._schema:
                    connection.execute(statement)
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _has_tables(self) -> bool:
        if not self._is_complete:
            self._is_complete = bool(self._open().execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
        return self._is_complete

    def _open(self, *, is_made: bool = False) -> Connection:
        import sqlite3  # here, because small caches and plain commands never need it

        if self._connection is None:
            if is_made:
                try:
                    self.path.parent.mkdir(parents=True, exist_ok=True)
                except OSError as error:
                    raise UnwritableDatabase(str(error)) from None
            # without isolation_level Python begins no transactions of its own; hooks of recipes may use threads
            self._connection = sqlite3.connect(self.path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        return self._connection

    def discard(self) -> None:
        """Removes a damaged file, so that the next change makes a new one."""
        self.close()
        self._is_complete = False
        for ending in ("-journal", ""):  # in this order: a journal must never meet a file that it does not belong to
            with contextlib.suppress(OSError):
                os.unlink(f"{self.path}{ending}")

    def move_to_memory(self, *, is_emptied: bool = False) -> str:
        """From now on works in memory, for this process only; on a copy of the file unless ``is_emptied``.

        Gives why the file could not be copied; empty when it was, and when there is none. Raises UnwritableDatabase
        when this Python has no SQLite.
        """
        trouble = ""
        with _translated():
            import sqlite3  # here, because hardly any process needs it

            copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            if not is_emptied and not self._is_in_memory and self.path.exists():
                try:
                    self._open().execute("PRAGMA busy_timeout = 0")  # what led here has waited already
                    self._open().backup(copy, progress=_stop_if_locked)
                except sqlite3.Error as error:
                    trouble = str(error)
        self.close()
        self._connection, self._is_in_memory, self._is_complete = copy, True, False
        return trouble


def _stop_if_locked(status: int, _remaining: int, _total: int) -> None:
    """Ends a backup that cannot have its lock; Python would try again without end."""
    import sqlite3  # here, because hardly any process needs it

    if status in (SQLITE_BUSY, SQLITE_LOCKED):
        raise sqlite3.OperationalError("database is locked")


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """Turns SQLite's errors into the two kinds that callers treat differently."""
    try:
        yield
    except ImportError as error:  # a Python built without SQLite
        raise UnwritableDatabase(str(error)) from None
    except Exception as error:
        if type(error).__module__ != "sqlite3":
            raise
        if type(error).__name__ == "OperationalError" and not str(error).startswith("no such"):
            raise UnwritableDatabase(str(error)) from None
        raise DamagedDatabase(str(error)) from None
