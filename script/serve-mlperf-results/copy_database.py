"""Copies a results database as it is at one moment, while others use it: DATABASE COPY. Standard library only."""

import contextlib
import sqlite3
import sys
from pathlib import Path


def copy_database(database: Path, copy: Path) -> None:
    """Write the copy, without a log beside it. Raises sqlite3.Error."""
    with (
        contextlib.closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as source,
        contextlib.closing(sqlite3.connect(copy)) as target,
    ):
        source.backup(target)
        target.execute("PRAGMA journal_mode = DELETE")


if __name__ == "__main__":
    copy_database(*map(Path, sys.argv[1:]))
