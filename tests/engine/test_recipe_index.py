"""The index of recipes in one file: equal answers with and without it, and what edits, crashes and others do to it."""

import contextlib
import errno
import io
import os
import shutil
import signal
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from helpers import write_recipe
from recipe_engine.disk import digests, files, metadata, repos
from recipe_engine.disk.digests import COARSE_TICK_NS, TICK_NS, UNTRUSTED_NS, Times, is_fresh, is_same, time_of, trusted
from recipe_engine.disk.metadata import RecipeRow
from recipe_engine.disk.repos import (
    ROOT,
    RecipeSource,
    RepoInfo,
    StoredIndex,
    index_name,
)
from recipe_engine.rules.query import IndexEntry, RecipeIndex

NOW_NS = 1_795_000_000_123_456_789
SECOND_NS = 1_000_000_000
WHOLE_SECOND_NS = NOW_NS // SECOND_NS * SECOND_NS


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    write_recipe(folder, "get-a", {"sort": 5})
    write_recipe(folder, "get-b", {"variations": {"v": {}, "n.#": {}}})
    return folder


def file_of(root: Path) -> Path:
    return root.parent / "index" / f"{index_name()}-{zlib.crc32(os.fsencode(root)):08x}.txt"


def source(*roots: Path) -> RecipeSource:
    places = [RepoInfo(root, root.name, "0123456789abcdef") for root in roots]
    return RecipeSource(places, file_of(roots[0]).parent)


def aliases(root: Path) -> list[str]:
    return [entry.alias for entry in source(root).index.entries]


def state_of(path: Path) -> tuple[bytes, int]:
    return path.read_bytes(), path.stat().st_mtime_ns


class Reads:
    """Counts the recipe folders that are read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []
        read = metadata.read_row

        def counted(folder: Path, roots: list[Path]) -> RecipeRow:
            self.names.append(folder.name)
            return read(folder, roots)

        monkeypatch.setattr(metadata, "read_row", counted)

    def taken(self) -> list[str]:
        """The names of those read since the last question."""
        names, self.names = self.names, []
        return sorted(set(names))


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    return Reads(monkeypatch)


# --- answers ---


def read_all(places: list[RepoInfo], roots: list[Path]) -> RecipeIndex:
    """The index of all recipes, without a file."""
    entries, broken = [], {}
    for place in places:
        for folder in (place.path / "script").iterdir():
            row = metadata.read_row(folder, roots)
            if row.error:
                broken[str(folder)] = row.error
            elif row.uid:
                names = (row.alias, row.uid, folder, place.path, place.alias)
                kinds = (frozenset(row.tags), frozenset(row.variations), row.sort, row.is_cached)
                entries.append(IndexEntry(*names, *kinds))
    return RecipeIndex(entries, broken)


def test_the_file_gives_the_same_answers_as_reading_everything(root: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    write_recipe(second, "get-a")
    write_recipe(second, "odd-tags", {"tags": ["get", "a", "-x", "ü", "a b", "'; DROP TABLE tags; --"]})
    write_recipe(second, "broken", {"deps": "none"})
    stored = source(root, second).index
    places = [RepoInfo(place, place.name, "0123456789abcdef") for place in (root, second)]
    listed = read_all(places, [root, second])
    assert stored.entries == listed.entries
    assert stored.broken == listed.broken
    assert stored.all_tags == listed.all_tags
    for name in ("get-a", "get-b", "odd-tags", "none", "", listed.entries[0].uid):
        assert stored.by_name(name) == listed.by_name(name)
    for wanted in ([], ["get"], ["get", "a"], ["get", "none"], ["none"], ["ü", "a b"], ["'; DROP TABLE tags; --"]):
        for unwanted in ([], ["a"], ["b", "odd"]):
            assert stored.by_tags(wanted, unwanted) == listed.by_tags(wanted, unwanted), (wanted, unwanted)


def test_any_number_of_tags_may_be_asked_for(root: Path) -> None:
    write_recipe(root, "many", {"tags": [f"t{number}" for number in range(3000)]})
    index = source(root).index
    assert [entry.alias for entry in index.by_tags([f"t{number}" for number in range(3000)], [])] == ["many"]
    assert index.by_tags([f"t{number}" for number in range(3001)], []) == ()


def test_tags_and_names_that_are_no_unicode_find_nothing_and_break_nothing(root: Path) -> None:
    index = source(root).index
    odd = os.fsdecode(b"\xff\xfe")
    assert index.by_tags([odd, "get"], []) == ()
    assert index.by_name(odd) == ()


def test_a_folder_may_have_any_name(root: Path) -> None:
    name = os.fsdecode(b"odd \xff\nname")
    write_recipe(root, "get-odd").rename(root / "script" / name)
    for _ in range(2):
        recipes = source(root)
        (entry,) = recipes.index.by_name("get-odd")
        assert entry.path == root / "script" / name
        assert recipes.recipe(entry).id.alias == "get-odd"


def test_two_repositories_do_not_mix_and_one_may_go(root: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    write_recipe(second, "get-c")
    assert [entry.repo_alias for entry in source(root, second).index.entries] == ["repo", "second", "repo"]
    assert aliases(root) == ["get-b", "get-a"]
    shutil.rmtree(second)
    assert [entry.alias for entry in source(root, second).index.entries] == ["get-b", "get-a"]


def test_an_empty_repository_may_get_its_first_recipe(tmp_path: Path) -> None:
    root = tmp_path / "repo"
    (root / "script").mkdir(parents=True)
    assert aliases(root) == []
    write_recipe(root, "get-a")
    assert aliases(root) == ["get-a"]


# --- what is read again, and what is written ---


def test_an_edit_right_after_a_start_is_noticed_though_size_and_tick_are_the_same(root: Path) -> None:
    for word in ("u", "v", "w", "x", "y", "z"):
        write_recipe(root, "get-a", {"tags": ["get", word]})
        (entry,) = source(root).index.by_name("get-a")
        assert entry.tags == {"get", word}


def test_only_what_changed_is_read_again(root: Path, reads: Reads) -> None:
    source(root)
    assert reads.taken() == ["get-a", "get-b"]
    source(root)
    assert reads.taken() == []
    write_recipe(root, "get-b", {"tags": ["get", "other"]})
    source(root)
    assert reads.taken() == ["get-b"]
    shutil.rmtree(root / "script" / "get-a")
    assert aliases(root) == ["get-b"]
    assert reads.taken() == []


@pytest.mark.parametrize("shift_s", [-3600, 3600])
def test_a_clock_that_was_set_back_or_forward_costs_nothing(
    root: Path, reads: Reads, monkeypatch: pytest.MonkeyPatch, shift_s: int
) -> None:
    now_ns = time.time_ns
    monkeypatch.setattr(repos.time, "time_ns", lambda: now_ns() + shift_s * 1_000_000_000)
    source(root)
    before = state_of(file_of(root))
    reads.taken()
    source(root)
    assert reads.taken() == []
    monkeypatch.undo()
    source(root)
    assert state_of(file_of(root)) == before
    write_recipe(root, "get-a", {"tags": ["get", "z"]})
    assert source(root).index.by_tags(["z"], [])


def test_what_cannot_be_trusted_is_read_each_time_but_written_only_when_it_differs(
    root: Path, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a disk that keeps times to the second, for two seconds after an edit."""
    monkeypatch.setattr(digests, "is_fresh", lambda *_: True)
    monkeypatch.setattr(repos, "TICK_NS", 1)
    source(root)
    before = state_of(file_of(root))
    reads.taken()
    source(root)
    assert reads.taken() == ["get-a", "get-b"]
    assert state_of(file_of(root)) == before
    write_recipe(root, "get-b", {"tags": ["get", "z"]})
    assert [entry.alias for entry in source(root).index.by_tags(["z"], [])] == ["get-b"]
    monkeypatch.undo()
    source(root)
    settled = state_of(file_of(root))
    source(root)
    assert state_of(file_of(root)) == settled


def test_a_base_that_is_edited_removed_or_appears_is_noticed(root: Path) -> None:
    write_recipe(root, "get-child", {"_base": "script::get-base", "tags": ["child"]})
    assert list(source(root).index.broken) == [str(root / "script" / "get-child")]
    write_recipe(root, "get-base", {"tags": ["one"]})
    assert source(root).index.by_tags(["child", "one"], [])
    write_recipe(root, "get-base", {"tags": ["two"]})
    assert source(root).index.by_tags(["child", "two"], [])
    shutil.rmtree(root / "script" / "get-base")
    assert list(source(root).index.broken) == [str(root / "script" / "get-child")]


def test_a_recipe_that_changes_while_we_work_is_given_as_it_is_or_named(root: Path) -> None:
    recipes = source(root)
    (entry,) = recipes.index.by_name("get-a")
    write_recipe(root, "get-a", {"env": {"CM_NEW": "1"}})
    source(root)
    assert recipes.recipe(entry).layer.env == {"CM_NEW": "1"}


# --- damage, and homes that cannot be written ---

DAMAGE: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_bytes(b"{}" * 5000),
    "binary": lambda path: path.write_bytes(b"\xff\0" * 5000),
    "a lost middle": lambda path: path.write_bytes(path.read_bytes()[:300] + b"\xff" * 20_000),
    "one other letter": lambda path: path.write_bytes(path.read_bytes().replace(b"get-a", b"get-z", 1)),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:500]),
    "lost metadata": lambda path: path.write_bytes(path.read_bytes()[:-400]),
    "other metadata": lambda path: path.write_bytes(path.read_bytes()[:-400] + b"?" * 400),
    "a size of nonsense": lambda path: path.write_bytes(b"7 -5" + path.read_bytes()),
    "a folder in its place": lambda path: (path.unlink(), path.mkdir()),
    "a pipe in its place": lambda path: (path.unlink(), os.mkfifo(path)),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_file_is_made_again(root: Path, damage: Callable[[Path], object]) -> None:
    source(root)
    damage(file_of(root))
    for _ in range(2):
        recipes = source(root)
        assert [entry.alias for entry in recipes.index.by_tags(["get"], [])] == ["get-b", "get-a"]
        assert [entry.alias for entry in recipes.index.by_name("get-a")] == ["get-a"]
        assert [entry.alias for entry in recipes.index.entries] == ["get-b", "get-a"]
        assert [recipes.recipe(entry).id.alias for entry in recipes.index.entries] == ["get-b", "get-a"]
        assert recipes.index.broken == {}


def test_metadata_that_is_damaged_is_read_again_when_a_recipe_changes(root: Path) -> None:
    source(root)
    file_of(root).write_bytes(file_of(root).read_bytes()[:-400] + b"?" * 400)
    write_recipe(root, "get-c")
    for _ in range(2):
        recipes = source(root)
        assert sorted(recipes.recipe(entry).id.alias for entry in recipes.index.entries) == ["get-a", "get-b", "get-c"]


def test_a_file_that_is_damaged_while_it_is_used_harms_nobody(root: Path) -> None:
    source(root)
    recipes = source(root)
    file_of(root).write_bytes(b"?")
    (entry,) = recipes.index.by_tags(["get", "a"], [])
    assert recipes.recipe(entry).id.alias == "get-a"


@pytest.mark.parametrize("name", ["stat", "open", "listdir"])
def test_a_disk_that_fails_once_is_not_remembered(root: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    plain = io.open if name == "open" else getattr(os, name)

    def failing(path: object, *arguments: object, **options: object) -> object:
        if str(path).endswith(("get-a/_cm.json", "/script")):
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        return plain(path, *arguments, **options)

    with monkeypatch.context() as patch, contextlib.suppress(OSError):
        patch.setattr(io if name == "open" else os, name, failing)
        aliases(root)
    assert sorted(aliases(root)) == ["get-a", "get-b"]


@pytest.fixture
def shared_root() -> Iterator[Path]:
    """A repository whose folder and parents every user may enter."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        write_recipe(Path(folder) / "repo", "get-a")
        write_recipe(Path(folder) / "repo", "get-b")
        yield Path(folder) / "repo"


def code_in_child(action: Callable[[], bool]) -> int:
    """The exit code of a process of a user who may write nothing there: 0 when ``action`` holds."""
    child = os.fork()
    if not child:
        code = 3
        try:
            if os.geteuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            code = 0 if action() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("is_known", [True, False])
def test_a_home_that_can_only_be_read_serves_what_it_holds_and_what_changed(shared_root: Path, is_known: bool) -> None:
    folder = file_of(shared_root).parent
    folder.mkdir()
    if is_known:
        source(shared_root)
    before = state_of(file_of(shared_root)) if is_known else None
    os.chmod(folder, 0o555)
    assert code_in_child(lambda: sorted(aliases(shared_root)) == ["get-a", "get-b"]) == 0
    write_recipe(shared_root, "get-c")
    assert code_in_child(lambda: sorted(aliases(shared_root)) == ["get-a", "get-b", "get-c"]) == 0
    assert code_in_child(lambda: not source(shared_root).index.by_tags(["none"], [])) == 0
    assert (state_of(file_of(shared_root)) if is_known else None) == before
    os.chmod(folder, 0o755)


def test_a_process_killed_while_it_writes_leaves_an_index_that_works(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source(root)
    for number in range(50):
        write_recipe(root, f"more-n{number}")
    before = state_of(file_of(root))
    child = os.fork()
    if not child:
        files.os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        source(root)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert state_of(file_of(root)) == before
    (left,) = (path for path in file_of(root).parent.iterdir() if path != file_of(root))
    assert len(aliases(root)) == 52
    assert left.exists(), "another process may be writing it"
    os.utime(left, (1, 1))
    write_recipe(root, "get-c")
    assert len(aliases(root)) == 53
    assert not left.exists()


def test_many_processes_at_once_agree_and_none_is_stopped(root: Path) -> None:
    for number in range(30):
        write_recipe(root, f"more-n{number}")
    children = []
    for number in range(8):
        child = os.fork()
        if not child:
            code = 3
            try:
                for turn in range(5):
                    write_recipe(root, f"own-n{number}", {"tags": ["own", f"t{turn}"]})
                    index = source(root).index
                    found = index.by_name(f"own-n{number}")
                    code = 0 if len(found) == 1 and f"t{turn}" in found[0].tags else 1
                    if code:
                        break
            finally:
                os._exit(code)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 8
    assert len(aliases(root)) == 2 + 30 + 8


def test_the_reader_is_asked_by_folder_and_its_answer_is_kept(tmp_path: Path) -> None:
    (tmp_path / "repo" / "script" / "x").mkdir(parents=True)
    asked = []

    def reader(folder: Path) -> RecipeRow:
        asked.append(folder)
        return RecipeRow(alias="get-x", uid="a0", tags=("get", "x"), meta='{"k": 1}', file_name="_cm.yaml")

    place = RepoInfo(tmp_path / "repo", "repo", "0")
    for _ in range(2):
        index = StoredIndex([place], tmp_path / "index", reader, "maker")
        (entry,) = index.by_tags(["x"], [])
        assert index.meta(entry) == ('{"k": 1}', "_cm.yaml")
    assert set(asked) == {tmp_path / "repo" / "script" / "x"}


def test_compiled_hooks_beside_a_recipe_are_no_change(root: Path, reads: Reads) -> None:
    source(root)
    before = state_of(file_of(root))
    reads.taken()
    (root / "script" / "get-a" / "__pycache__").mkdir()
    source(root)
    assert reads.taken() == []
    assert state_of(file_of(root)) == before


@pytest.mark.parametrize("name", ["_cm.yaml", "meta.yaml"])
def test_another_metadata_file_beside_the_first_is_noticed(tmp_path: Path, reads: Reads, name: str) -> None:
    folder = tmp_path / "repo" / "script" / "get-a"
    folder.mkdir(parents=True)
    text = "alias: get-a\nuid: a0000000000000aa\ntags: [get, {tag}]\n"
    (folder / name).write_text(text.format(tag="one"))
    assert source(tmp_path / "repo").index.by_tags(["one"], [])
    (folder / ("_cm.json" if name == "_cm.yaml" else "_cm.yaml")).write_text('{"tags": ["get", "two"]}')
    reads.taken()
    source(tmp_path / "repo")
    assert reads.taken() == ["get-a"]


# --- what counts as a change ---


@pytest.mark.parametrize(
    ("stamp_ns", "took_ns", "expected"),
    [
        (NOW_NS - TICK_NS - 1, 0, False),
        (NOW_NS - TICK_NS + 1, 0, True),
        (NOW_NS, 0, True),
        (NOW_NS + 5 * SECOND_NS, 10 * SECOND_NS, True),
        (NOW_NS + TICK_NS + 1, 0, False),
        (NOW_NS + 3600 * SECOND_NS, 0, False),
        (WHOLE_SECOND_NS, 0, True),
        (WHOLE_SECOND_NS - SECOND_NS, 0, True),
        (WHOLE_SECOND_NS - COARSE_TICK_NS, 0, False),
        (-1, 0, False),
    ],
    ids=[
        "older than a tick",
        "within a tick",
        "now",
        "written while it was read",
        "a clock that was set back",
        "the far future",
        "this second, on a disk that keeps seconds",
        "the second before",
        "two seconds before",
        "not there",
    ],
)
def test_what_was_written_around_the_time_of_reading_is_fresh(stamp_ns: int, took_ns: int, expected: bool) -> None:
    assert is_fresh(stamp_ns, NOW_NS, NOW_NS + took_ns) is expected


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    for name in ("a", "b"):
        (tmp_path / "script" / name).mkdir(parents=True)
        (tmp_path / "script" / name / "_cm.yaml").write_text(f"alias: {name}\n")
    return tmp_path / "script"


def times_of(root: Path, paths: Iterable[str], began_ns: int) -> Times:
    return trusted({path: time_of(str(root), path) for path in paths}, began_ns)


def known(root: Path) -> Times:
    """The times of all files, taken an hour from now, so that everything is trusted."""
    later_ns = time.time_ns() + 3600 * SECOND_NS
    return times_of(root, [ROOT, *(f"{name}/{file}" for name in "ab" for file in ("_cm.yaml", "_cm.json"))], later_ns)


def is_unchanged(root: Path, times_ns: Times) -> bool:
    return is_same(str(root), times_ns.items())


def test_a_repository_without_recipes_is_listed_once_until_it_has_some(tmp_path: Path) -> None:
    root = tmp_path / "repo"
    root.mkdir()
    assert aliases(root) == []
    with pytest.MonkeyPatch.context() as patched:
        patched.delattr(repos.RepoIndex, "_update")
        assert aliases(root) == []
    write_recipe(root, "get-a")
    assert aliases(root) == ["get-a"]


def test_folders_that_nobody_touched_are_unchanged(folders: Path) -> None:
    assert is_unchanged(folders, known(folders))


def test_every_kind_of_change_is_noticed(folders: Path) -> None:
    times_ns = known(folders)
    (folders / "c").mkdir()
    assert not is_unchanged(folders, times_ns)
    times_ns = known(folders)
    (folders / "c").rename(folders / "d")
    assert not is_unchanged(folders, times_ns)
    times_ns = known(folders)
    file = folders / "a" / "_cm.yaml"
    before = file.stat()
    file.write_text("alias: z\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size
    assert not is_unchanged(folders, times_ns), "the time of the change itself cannot be set back"


def test_a_new_file_and_a_lost_one_are_noticed(folders: Path) -> None:
    times_ns = known(folders)
    (folders / "a" / "__pycache__").mkdir()
    assert is_unchanged(folders, times_ns), "what was not asked for is of no interest"
    (folders / "a" / "_cm.json").write_text("{}")
    assert not is_unchanged(folders, times_ns)
    times_ns = known(folders)
    (folders / "b" / "_cm.yaml").unlink()
    assert not is_unchanged(folders, times_ns)


def test_a_file_that_was_not_there_is_noticed_when_it_appears(folders: Path) -> None:
    wanted = folders.parent.parent / "base" / "_cm.yaml"
    times_ns = times_of(folders, ["../../base/_cm.yaml"], time.time_ns() + 3600 * SECOND_NS)
    assert is_unchanged(folders, times_ns)
    wanted.parent.mkdir()
    wanted.write_text("x")
    assert not is_unchanged(folders, times_ns)


def test_what_was_just_written_is_not_trusted_and_counts_as_changed(folders: Path) -> None:
    path = folders / "a" / "_cm.yaml"
    path.write_text("alias: y\n")
    times_ns = times_of(folders, ["a/_cm.yaml"], path.stat().st_ctime_ns + 1)
    assert times_ns == {"a/_cm.yaml": UNTRUSTED_NS}
    assert not is_unchanged(folders, times_ns)


def test_a_folder_is_noticed_when_something_comes_into_it(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    times_ns = times_of(tmp_path, ["a"], time.time_ns() + 3600 * SECOND_NS)
    assert is_unchanged(tmp_path, times_ns)
    (tmp_path / "a" / "_cm.yaml").touch()
    assert not is_unchanged(tmp_path, times_ns)


@pytest.mark.parametrize("time_s", [-1, 0, 9_000_000_000, 15_000_000_000])
def test_a_file_may_have_a_time_of_any_age(root: Path, time_s: int) -> None:
    os.utime(root / "script" / "get-a" / "_cm.json", (time_s, time_s))
    assert sorted(aliases(root)) == sorted(aliases(root)) == ["get-a", "get-b"]
