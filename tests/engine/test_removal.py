"""Removing folders of the cache: gone at once, and trash after a kill that stops nobody."""

import os
import signal
from pathlib import Path

import pytest
from recipe_engine.disk import locks
from recipe_engine.disk.files import folder_lock_if_free, remove_tree
from recipe_engine.disk.locks import discard, empty_trash, trash_in


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "cache" / "entry" / "deep").mkdir(parents=True)
    (tmp_path / "cache" / "entry" / "_cm.json").write_text("{}")
    (tmp_path / "cache" / "entry" / "deep" / "file").write_text("x")
    return tmp_path / "cache"


def test_a_folder_goes_with_all_it_holds_and_leaves_no_trash(root: Path) -> None:
    discard(root, root / "entry")
    assert not (root / "entry").exists()
    assert trash_in(root) == []
    discard(root, root / "entry")
    discard(root / "nowhere", root / "nowhere" / "entry")


def test_a_kill_while_the_files_go_leaves_trash_that_the_next_one_removes(root: Path) -> None:
    child = os.fork()
    if not child:
        locks.remove_tree = lambda _: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment]
        discard(root, root / "entry")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert not (root / "entry").exists()
    (left,) = trash_in(root)
    assert empty_trash(root) == [left]
    assert trash_in(root) == []


def test_what_another_process_is_deleting_is_left_to_it(root: Path) -> None:
    (root / ".trash").mkdir()
    (root / "entry").rename(root / ".trash" / "entry.1234")
    with folder_lock_if_free(root / ".trash" / "entry.1234") as is_free:
        assert is_free
        assert empty_trash(root) == []
        assert (root / ".trash" / "entry.1234" / "deep" / "file").exists()
    assert len(empty_trash(root)) == 1


def test_a_link_to_another_disk_goes_and_what_it_points_to_stays(root: Path, tmp_path: Path) -> None:
    (root / "entry").rename(tmp_path / "elsewhere")
    (root / "entry").symlink_to(tmp_path / "elsewhere")
    discard(root, root / "entry")
    assert not (root / "entry").is_symlink()
    assert trash_in(root) == []
    assert (tmp_path / "elsewhere" / "deep" / "file").exists()


def test_without_a_place_for_trash_the_entry_goes_all_the_same(root: Path) -> None:
    (root / ".trash").write_text("in the way")
    discard(root, root / "entry")
    assert not (root / "entry").exists()


def test_folders_that_may_not_be_written_go_too(root: Path) -> None:
    """As Go's module cache has them; root may write everywhere, so another user tries."""
    os.chmod(root.parent, 0o777)
    for path in (root, root / "entry", root / "entry" / "deep"):
        if os.geteuid() == 0:
            os.chown(path, 65534, 65534)
    os.chmod(root / "entry" / "deep", 0o555)
    os.chmod(root / "entry", 0o555)
    child = os.fork()
    if not child:
        here = os.open(root, os.O_RDONLY)
        if os.geteuid() == 0:
            os.setuid(65534)
        os.fchdir(here)
        remove_tree(Path("entry"))
        os._exit(0)
    os.waitpid(child, 0)
    assert not (root / "entry").exists()
