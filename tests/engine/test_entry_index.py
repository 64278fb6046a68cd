"""The index of cache entries: the same answers with and without its file, whoever writes the entries."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from recipe_engine.disk import database, entry_index
from recipe_engine.disk.database import Database
from recipe_engine.disk.entry_index import EntryIndex
from recipe_engine.disk.entryfile import CACHE_AUTOMATION_UID, EntryPaths, meta_row
from recipe_engine.disk.store import Maker, Outcome, Store
from recipe_engine.rules.cachemodel import CacheEntry, CacheKey, RecipeId
from recipe_engine.rules.version import VersionRange

NOTHING = Outcome(
    new_env={}, new_state={}, dependencies=[], version="", added_tags=(), files=(), dependent_path="", details={}
)
OLD_S = 1_700_000_000


def key_of(alias: str, variation: str = "") -> CacheKey:
    explicit = (variation,) if variation else ()
    tags = (*alias.split("-"), *("_" + name for name in explicit))
    uid = "a" + alias.encode().hex()[:15].rjust(15, "0")
    return CacheKey(RecipeId(alias, uid), tags, (), explicit, explicit, (), {}, VersionRange())


def make(root: Path, alias: str, variation: str = "") -> CacheEntry:
    """A finished entry that is an old one by its times."""
    store, key = Store(root), key_of(alias, variation)
    entry = store.commit(store.start(key, Maker("digest", "stamp")), key, NOTHING)
    os.utime(EntryPaths(entry.path).meta, (OLD_S, OLD_S))
    return entry


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of ten entries of two recipes; more than two are many here."""
    for number in range(5):
        make(tmp_path / "cache", "get-a", f"v{number}")
        make(tmp_path / "cache", "get-b", f"v{number}")
    monkeypatch.setattr(entry_index, "MANY", 2)
    return tmp_path / "cache"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The ``_cm.json`` files that were read."""
    files: list[Path] = []
    read = entry_index.read_json

    def counted(path: Path) -> object:
        files.append(path)
        return read(path)

    monkeypatch.setattr(entry_index, "read_json", counted)
    return files


def names_of(root: Path, alias: str) -> set[str]:
    """The entries of a recipe as a new process sees them."""
    uid = key_of(alias).recipe.uid
    found = {entry.path.name for entry in EntryIndex(root).of_recipe(uid)}
    all_of_it = {entry.path.name for entry in EntryIndex(root).all() if entry.recipe.uid == uid}
    assert found == all_of_it
    return found


def file_of(root: Path) -> Path:
    return root / ".index" / f"entries-{entry_index.FORMAT}.sqlite"


def test_with_the_file_nothing_is_read_again_and_nothing_written(root: Path, reads: list[Path]) -> None:
    first = EntryIndex(root)
    entries = sorted(first.all(), key=lambda entry: entry.uid)
    assert len(entries) == 10
    assert file_of(root).exists()
    before = file_of(root).read_bytes(), file_of(root).stat().st_mtime_ns
    reads.clear()
    second = EntryIndex(root)
    assert sorted(second.all(), key=lambda entry: entry.uid) == entries
    assert len(EntryIndex(root).of_recipe(key_of("get-a").recipe.uid)) == 5
    assert reads == []
    assert (file_of(root).read_bytes(), file_of(root).stat().st_mtime_ns) == before


def test_a_small_cache_gets_no_file(tmp_path: Path) -> None:
    make(tmp_path / "cache", "get-a")
    assert len(names_of(tmp_path / "cache", "get-a")) == 1
    assert not (tmp_path / "cache" / ".index").exists()


def test_entries_of_others_are_seen_at_once_and_removed_ones_are_not(root: Path) -> None:
    index = EntryIndex(root)
    uid = key_of("get-a").recipe.uid
    before = {entry.path.name for entry in index.of_recipe(uid)}
    new = make(root, "get-a", "new")
    assert {entry.path.name for entry in index.of_recipe(uid, refresh=True)} == before | {new.path.name}
    assert names_of(root, "get-a") == before | {new.path.name}
    shutil.rmtree(new.path)
    assert {entry.path.name for entry in index.of_recipe(uid, refresh=True)} == before
    assert names_of(root, "get-a") == before


def test_an_entry_that_cm_itself_makes_is_seen_in_every_state(root: Path) -> None:
    """CM names the recipe of an entry only when it is done, and writes the same file again."""
    names_of(root, "get-a")
    folder = root / "c123456789abcdef"
    folder.mkdir()
    meta = {"automation_uid": CACHE_AUTOMATION_UID, "uid": folder.name, "tags": ["tmp", "get", "a"]}
    (folder / "_cm.json").write_text(json.dumps(meta))
    os.utime(folder / "_cm.json", (OLD_S, OLD_S))
    for _ in range(2):
        assert folder.name not in names_of(root, "get-a")
        assert folder.name in {entry.path.name for entry in EntryIndex(root).all()}
    done = {**meta, "tags": ["get", "a"], "associated_script_artifact": key_of("get-a").recipe.text}
    (folder / "_cm.json").write_text(json.dumps(done))
    os.utime(folder / "_cm.json", (OLD_S, OLD_S))
    assert folder.name in names_of(root, "get-a")


def test_a_known_entry_that_is_written_again_is_read_again(root: Path) -> None:
    (entry, *_) = EntryIndex(root).of_recipe(key_of("get-a").recipe.uid)
    Store(root).retire(entry, "edited")
    states = {found.path.name: found.is_complete for found in EntryIndex(root).of_recipe(entry.recipe.uid)}
    assert states[entry.path.name] is False
    assert sum(states.values()) == 4


def test_what_was_written_this_very_moment_is_not_kept(root: Path, reads: list[Path]) -> None:
    names_of(root, "get-a")
    for number in range(5):
        entry = make(root, "get-c", f"v{number}")
        os.utime(EntryPaths(entry.path).meta)
    now_ns = time.time_ns()
    for _ in range(2):
        reads.clear()
        entry_index.time.time_ns, kept = (lambda: now_ns), entry_index.time.time_ns
        try:
            assert len(names_of(root, "get-c")) == 5
        finally:
            entry_index.time.time_ns = kept
        assert reads, "read each time while it may still change unnoticed"


def test_folders_that_are_no_entries_are_passed_over(root: Path) -> None:
    numbers = json.dumps({"tags": 7, "automation_uid": CACHE_AUTOMATION_UID})
    for name, text in {"list": "[]", "damaged": "{", "other": "{}", "numbers": numbers}.items():
        (root / name).mkdir()
        (root / name / "_cm.json").write_text(text)
    (root / "nothing").mkdir()
    (root / os.fsdecode(b"\xff")).mkdir()
    assert len(EntryIndex(root).all()) == 10


def test_an_entry_in_a_folder_of_any_name_is_found(root: Path) -> None:
    entry = make(root, "get-a", "odd")
    names = names_of(root, "get-a")
    odd = root / os.fsdecode(b"\xff odd")
    entry.path.rename(odd)
    assert names_of(root, "get-a") == names - {entry.path.name} | {odd.name}


def test_a_cache_that_was_copied_elsewhere_is_served_from_there(root: Path, tmp_path: Path) -> None:
    names = names_of(root, "get-a")
    shutil.copytree(root, tmp_path / "copy")
    assert names_of(tmp_path / "copy", "get-a") == names
    assert all(entry.path.parent == tmp_path / "copy" for entry in EntryIndex(tmp_path / "copy").all())


def tell(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


DAMAGE: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_bytes(b"{}" * 5000),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:5000]),
    "a lost table": lambda path: tell(path, "DROP TABLE entries"),
    "a row of nonsense": lambda path: tell(path, "UPDATE entries SET meta = 'nonsense'"),
    "a row without numbers": lambda path: tell(path, "UPDATE entries SET mtime_ns = NULL, meta = NULL"),
    "columns of other types": lambda path: tell(path, "UPDATE entries SET meta = 7, name = CAST(name AS BLOB)"),
    "a folder in its place": lambda path: (path.unlink(), path.mkdir()),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_file_costs_only_time(root: Path, damage: Callable[[Path], object]) -> None:
    names = names_of(root, "get-a")
    damage(file_of(root))
    for _ in range(3):
        assert names_of(root, "get-a") == names


def test_a_row_that_says_another_recipe_never_makes_a_wrong_hit(root: Path) -> None:
    names_of(root, "get-a")
    other = key_of("get-b").recipe.uid
    tell(file_of(root), f"UPDATE entries SET recipe = '{other}'")
    assert all(entry.recipe.uid == other for entry in EntryIndex(root).of_recipe(other))


def test_a_python_without_sqlite_reads_all_entries(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = names_of(root, "get-a")
    monkeypatch.setitem(sys.modules, "sqlite3", None)
    assert names_of(root, "get-a") == names


def test_an_index_that_another_process_keeps_locked_is_not_waited_for_without_end(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_S", 0.05)
    names = names_of(root, "get-a")
    holder = sqlite3.connect(file_of(root), isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    assert names_of(root, "get-a") == names
    holder.close()


def test_a_cache_whose_index_cannot_be_written_is_read(root: Path, reads: list[Path]) -> None:
    (root / ".index").write_text("in the way")
    for _ in range(2):
        reads.clear()
        assert len(names_of(root, "get-a")) == 5
        assert reads


def test_a_process_killed_while_it_writes_the_file_harms_nobody(root: Path) -> None:
    names = names_of(root, "get-a")
    child = os.fork()
    if not child:
        with Database(file_of(root), ()).change() as connection:
            connection.execute("PRAGMA cache_size = 1")
            connection.execute("DELETE FROM entries")
            connection.executemany("INSERT INTO entries VALUES (?, '', 0, 0, '')", [(f"{n:0200}",) for n in range(999)])
            os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert names_of(root, "get-a") == names


def test_what_the_file_keeps_of_an_entry_is_the_entry(root: Path) -> None:
    (entry, *_) = EntryIndex(root).of_recipe(key_of("get-a").recipe.uid)
    assert entry_index.parse_entry(json.loads(json.dumps(meta_row(entry))), entry.path) == entry


def test_inodes_may_be_as_long_as_they_like(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stat = os.stat

    def long(path: object, *words: object, **options: object) -> object:
        status = stat(path, *words, **options)  # type: ignore[call-overload]
        numbers = list(status)
        numbers[1] = status.st_ino + (1 << 63)
        changed = os.stat_result(numbers, {"st_mtime_ns": status.st_mtime_ns})
        return changed if str(path).endswith("_cm.json") else status

    monkeypatch.setattr(os, "stat", long)
    assert len(names_of(root, "get-a")) == 5
    assert file_of(root).exists()
