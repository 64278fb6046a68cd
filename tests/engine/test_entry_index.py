"""The index of cache entries: the same answers with and without its file, whoever writes the entries."""

import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from recipe_engine.disk import files, store
from recipe_engine.disk.entries import CACHE_AUTOMATION_UID, EntryPaths
from recipe_engine.disk.store import EntryIndex, Maker, Outcome, Store
from recipe_engine.rules.model import CacheEntry, CacheKey, RecipeId
from recipe_engine.rules.query import VersionRange

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
    monkeypatch.setattr(store, "MANY", 99)  # no file yet
    for number in range(5):
        make(tmp_path / "cache", "get-a", f"v{number}")
        make(tmp_path / "cache", "get-b", f"v{number}")
    monkeypatch.setattr(store, "MANY", 2)
    return tmp_path / "cache"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The ``_cm.json`` files that were read."""
    files: list[Path] = []
    read = store.read_json

    def counted(path: Path) -> object:
        files.append(path)
        return read(path)

    monkeypatch.setattr(store, "read_json", counted)
    return files


def names_of(root: Path, alias: str) -> set[str]:
    """The entries of a recipe as a new process sees them."""
    uid = key_of(alias).recipe.uid
    found = {entry.path.name for entry in EntryIndex(root).of_recipe(uid)}
    all_of_it = {entry.path.name for entry in EntryIndex(root).all() if entry.recipe.uid == uid}
    assert found == all_of_it
    return found


def file_of(root: Path) -> Path:
    return root / ".index" / f"entries-{store.FORMAT}.txt"


def test_with_the_file_only_entries_of_the_recipe_are_read_and_nothing_written(root: Path, reads: list[Path]) -> None:
    first = EntryIndex(root)
    entries = sorted(first.all(), key=lambda entry: entry.uid)
    assert len(entries) == 10
    assert file_of(root).exists()
    before = file_of(root).read_bytes(), file_of(root).stat().st_mtime_ns
    reads.clear()
    second = EntryIndex(root)
    assert second.of_recipe("none") == []
    assert reads == []
    assert len(second.of_recipe(key_of("get-a").recipe.uid)) == 5
    assert len(reads) == 5
    assert sorted(second.all(), key=lambda entry: entry.uid) == entries
    assert len(reads) == 10
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


def edit(path: Path, change: Callable[[list[str]], list[str]]) -> None:
    """Writes the words of the file after a ``change``, with the checksum that belongs to them."""
    files.write_index(path, " ".join(change(files.read_index(path)[0].decode().split())).encode())


DAMAGE: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_bytes(b"{}" * 5000),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:100]),
    "one other letter": lambda path: path.write_bytes(path.read_bytes()[:-3] + b"x" + path.read_bytes()[-2:]),
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
    edit(file_of(root), lambda words: [word if number % 2 == 0 else other for number, word in enumerate(words)])
    assert list(EntryIndex(root).of_recipe(other)) == []


def test_a_cache_whose_index_cannot_be_written_is_read(root: Path, reads: list[Path]) -> None:
    (root / ".index").write_text("in the way")
    for _ in range(2):
        reads.clear()
        assert len(names_of(root, "get-a")) == 5
        assert reads


def test_a_process_killed_while_it_writes_the_file_harms_nobody(root: Path) -> None:
    child = os.fork()
    if not child:
        files.os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        EntryIndex(root).all()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert not file_of(root).exists()
    assert len(names_of(root, "get-a")) == 5
    assert file_of(root).exists()


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
