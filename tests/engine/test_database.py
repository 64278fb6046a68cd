"""SQLite files that may be missing, damaged, locked, half-written or unwritable."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from pathlib import Path

import pytest
from recipe_engine.disk import database
from recipe_engine.disk.database import DamagedDatabase, Database, UnwritableDatabase

SCHEMA = ("CREATE TABLE IF NOT EXISTS words (word TEXT)",)
QUESTION = "SELECT word FROM words ORDER BY word"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "words.sqlite"


def add(path: Path, *words: str) -> None:
    with Database(path, SCHEMA).change() as connection:
        connection.executemany("INSERT INTO words VALUES (?)", [(word,) for word in words])


def words_in(path: Path) -> list[str]:
    return [word for (word,) in Database(path, SCHEMA).rows(QUESTION)]


def test_a_missing_file_holds_nothing_and_asking_makes_none(path: Path) -> None:
    assert words_in(path) == []
    assert not path.parent.exists()


def test_what_one_writes_another_reads(path: Path) -> None:
    add(path, "b")
    open_before = Database(path, SCHEMA)
    assert open_before.rows(QUESTION) == [("b",)]
    add(path, "a")
    assert open_before.rows(QUESTION) == [("a",), ("b",)]


def test_a_change_that_fails_in_the_middle_leaves_nothing(path: Path) -> None:
    add(path, "kept")
    with pytest.raises(KeyError), Database(path, SCHEMA).change() as connection:
        connection.execute("INSERT INTO words VALUES ('half')")
        raise KeyError
    assert words_in(path) == ["kept"]


def test_a_process_killed_in_the_middle_of_a_write_leaves_what_was_before(path: Path) -> None:
    add(path, "kept")
    child = os.fork()
    if not child:
        with Database(path, SCHEMA).change() as connection:
            connection.execute("PRAGMA cache_size = 1")  # so that changed pages reach the file before the end
            connection.executemany("INSERT INTO words VALUES (?)", [(f"{number:0100}",) for number in range(5000)])
            os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert path.stat().st_size > 100_000, "the file must hold half of the change"
    assert Path(f"{path}-journal").exists()
    assert words_in(path) == ["kept"]
    add(path, "more")
    assert words_in(path) == ["kept", "more"]


DAMAGE = {
    "text": b"this is no database, although it is long enough to be taken for the head of one" * 20,
    "json": b"{}",
    "a cut head": b"SQLite format 3\0" + b"\0" * 20,
}


@pytest.mark.parametrize("content", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_file_is_told_apart_and_can_be_replaced(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    Path(f"{path}-journal").write_bytes(b"of another file")
    damaged = Database(path, SCHEMA)
    with pytest.raises(DamagedDatabase):
        damaged.rows(QUESTION)
    with pytest.raises(DamagedDatabase), Database(path, SCHEMA).change():
        pass
    damaged.discard()
    assert not path.exists()
    assert not Path(f"{path}-journal").exists()
    add(path, "new")
    assert damaged.rows(QUESTION) == [("new",)]


def test_a_file_whose_middle_is_lost_is_damaged(path: Path) -> None:
    add(path, *(f"{number:0100}" for number in range(5000)))
    content = path.read_bytes()
    path.write_bytes(content[:4096] + os.urandom(len(content) - 4096))
    with pytest.raises(DamagedDatabase):
        Database(path, SCHEMA).rows(QUESTION)


def test_a_database_of_something_else_is_damaged_and_an_empty_one_is_not(path: Path) -> None:
    path.parent.mkdir()
    path.touch()
    assert words_in(path) == []
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE apples (apple TEXT)")
    with pytest.raises(DamagedDatabase):
        words_in(path)


def test_a_file_in_the_way_of_the_folder_makes_it_unwritable(path: Path) -> None:
    path.parent.write_text("in the way")
    assert words_in(path) == []
    with pytest.raises(UnwritableDatabase), Database(path, SCHEMA).change():
        pass


def test_a_lock_that_never_ends_makes_it_unwritable(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_S", 0.05)
    add(path, "a")
    with Database(path, SCHEMA).change():
        assert words_in(path) == ["a"], "who only reads does not wait"
        with pytest.raises(UnwritableDatabase), Database(path, SCHEMA).change():
            pass


def test_in_memory_work_goes_on_with_a_copy_and_the_file_stays(path: Path) -> None:
    add(path, "a")
    moved = Database(path, SCHEMA)
    moved.move_to_memory()
    with moved.change() as connection:
        connection.execute("INSERT INTO words VALUES ('b')")
    assert moved.rows(QUESTION) == [("a",), ("b",)]
    assert words_in(path) == ["a"]
    moved.move_to_memory(is_emptied=True)
    assert moved.rows(QUESTION) == []


def test_a_damaged_file_is_left_out_of_the_copy(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(DAMAGE["text"])
    moved = Database(path, SCHEMA)
    moved.move_to_memory()
    assert moved.rows(QUESTION) == []
    with moved.change() as connection:
        connection.execute("INSERT INTO words VALUES ('b')")
    assert moved.rows(QUESTION) == [("b",)]


def test_a_python_without_sqlite_can_keep_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(path, "a")
    monkeypatch.setitem(sys.modules, "sqlite3", None)
    without = Database(path, SCHEMA)
    with pytest.raises(UnwritableDatabase):
        without.rows(QUESTION)
    with pytest.raises(UnwritableDatabase), without.change():
        pass
    with pytest.raises(UnwritableDatabase):
        without.move_to_memory()
