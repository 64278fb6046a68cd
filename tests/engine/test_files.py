"""Whole-file writes, and locks between real processes."""

import fcntl
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from helpers import is_alive, wait_until, with_python_path
from recipe_engine.actions import cache_actions
from recipe_engine.disk import files, locks
from recipe_engine.rules.errors import CycleError, LockTimeout

HOLDER = """
import os, subprocess, sys
from pathlib import Path
from recipe_engine.disk import files, locks
with locks.lock(Path(sys.argv[1]), "get-thing"):
    if "child" in sys.argv:
        sleeper = subprocess.Popen(["sleep", "600"], pass_fds=locks.held_descriptors(), start_new_session=True)
        print(sleeper.pid, flush=True)
    else:
        print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def lock_path(tmp_path: Path) -> Path:
    return tmp_path / "locks" / "one.lock"


def hold(lock_path: Path, *words: str) -> subprocess.Popen[str]:
    """A process that holds the lock until its standard input is closed."""
    command = [sys.executable, "-c", HOLDER, str(lock_path), *words]
    return subprocess.Popen(
        command, env=with_python_path("automation"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_a_write_that_is_refused_names_the_file_that_was_asked_for(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        files.write_text(tmp_path / "gone" / "x.lock", "text")
    assert caught.value.filename == str(tmp_path / "gone" / "x.lock")


def test_a_write_that_breaks_off_leaves_the_old_text_and_no_scratch_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "facts.json"
    files.write_text(path, "old")

    def broken(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(OSError, match="disk full"):
        files.write_text(path, "new")
    assert path.read_text() == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["facts.json"]


@pytest.mark.parametrize("text", ["", "one\n", "quote ' \" $(x)\n", "Grüße, 世界 \u2028 \x0c\n", "a\r\nb\r\n"])
def test_text_is_written_as_it_is(tmp_path: Path, text: str) -> None:
    files.write_text(tmp_path / "file", text)
    assert (tmp_path / "file").read_bytes() == text.encode()


def test_a_path_that_is_no_text_is_written_with_its_own_bytes(tmp_path: Path) -> None:
    files.write_text(tmp_path / "file", "export X=" + os.fsdecode(b"/data/\xff"))
    assert (tmp_path / "file").read_bytes() == b"export X=/data/\xff"


@pytest.mark.parametrize("content", [None, b"", b"{", b"\xff\xfe", b'{"a": 1} x'])
def test_a_file_that_is_missing_or_no_json_reads_as_none(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "x.json"
    if content is not None:
        path.write_bytes(content)
    assert files.read_json(path) is None


def test_json_is_sorted_and_knows_a_text_for_everything(tmp_path: Path) -> None:
    files.write_json(tmp_path / "x.json", {"b": Path("/p"), "a": [1, None]})
    assert (tmp_path / "x.json").read_text() == '{\n  "a": [\n    1,\n    null\n  ],\n  "b": "/p"\n}\n'


def test_a_hash_is_that_of_the_whole_content(tmp_path: Path) -> None:
    content = os.urandom((1 << 20) + 17)
    (tmp_path / "x").write_bytes(content)
    assert files.sha256_of(tmp_path / "x") == hashlib.sha256(content).hexdigest()


def test_a_time_is_read_as_it_was_written() -> None:
    assert files.utc_seconds(files.utc_text(1_764_387_123)) == 1_764_387_123


@pytest.mark.parametrize(
    "text", ["", "2026-11-29", "2026-11-29 03:48:29Z", "2026-11-29T03:48:29.5Z", "20261129T034829Z"]
)
def test_another_form_of_a_time_is_an_error(text: str) -> None:
    with pytest.raises(ValueError):
        files.utc_seconds(text)


def test_the_size_of_a_tree_counts_its_files_and_not_what_links_lead_to(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"x" * 1000)
    tree = tmp_path / "tree"
    (tree / "below").mkdir(parents=True)
    (tree / "a").write_bytes(b"x" * 10)
    (tree / "below" / "b").write_bytes(b"x" * 5)
    (tree / "link").symlink_to(outside)
    assert cache_actions.tree_size(tree) == 15 + os.lstat(tree / "link").st_size


def test_the_working_folder_is_put_back_after_an_error(tmp_path: Path) -> None:
    before = os.getcwd()
    with pytest.raises(ValueError, match="x"), files.working_folder(tmp_path):
        assert os.getcwd() == str(tmp_path)
        raise ValueError("x")
    assert os.getcwd() == before


def test_a_lock_keeps_another_process_out_and_says_who_holds_it(lock_path: Path) -> None:
    holder = hold(lock_path)
    assert holder.stdout is not None
    holder.stdout.readline()
    assert locks.is_locked(lock_path)
    with pytest.raises(LockTimeout) as caught, locks.lock(lock_path, "get-thing", timeout_s=0.1):
        pass
    assert f"process {holder.pid} of " in caught.value.message
    assert "get-thing" in caught.value.message
    assert "--lock_timeout" in caught.value.hint
    holder.communicate("")
    with locks.lock(lock_path, "get-thing", timeout_s=10):
        assert locks.is_locked(lock_path)


def test_a_waiter_gets_the_lock_when_the_holder_frees_it(lock_path: Path) -> None:
    first = hold(lock_path)
    assert first.stdout is not None
    first.stdout.readline()
    second = hold(lock_path)
    first.communicate("")
    assert second.stdout is not None
    assert second.stdout.readline() == "held\n"
    second.communicate("")


def test_a_killed_holder_frees_the_lock(lock_path: Path) -> None:
    holder = hold(lock_path)
    assert holder.stdout is not None
    holder.stdout.readline()
    holder.kill()
    holder.communicate()
    assert lock_path.exists(), "this test wants the file that a killed process leaves"
    with locks.lock(lock_path, "get-thing", timeout_s=10):
        pass


def test_a_child_of_a_killed_holder_keeps_the_lock_until_it_ends(lock_path: Path) -> None:
    holder = hold(lock_path, "child")
    assert holder.stdout is not None
    child = int(holder.stdout.readline())
    holder.kill()
    holder.wait()
    assert locks.is_locked(lock_path)
    os.kill(child, signal.SIGKILL)
    wait_until(lambda: not is_alive(child), "the child's end")
    with locks.lock(lock_path, "get-thing", timeout_s=10):
        pass


def test_a_child_that_lives_on_after_a_finished_holder_keeps_nobody_out(lock_path: Path) -> None:
    holder = hold(lock_path, "child")
    assert holder.stdout is not None
    child = int(holder.stdout.readline())
    assert holder.stdin is not None
    holder.stdin.close()
    holder.wait()
    with locks.lock(lock_path, "get-thing", timeout_s=10):
        pass
    os.kill(child, signal.SIGKILL)


def test_a_new_file_is_locked_although_somebody_looks_at_it_for_a_while(lock_path: Path) -> None:
    lock_path.parent.mkdir()
    looking, ours = (os.open(lock_path, os.O_RDWR | os.O_CREAT) for _ in range(2))
    fcntl.flock(looking, fcntl.LOCK_SH)
    timer = threading.Timer(0.1, os.close, (looking,))
    timer.start()
    files.lock_new_file(ours)
    timer.join()
    assert locks.is_locked(lock_path)
    os.close(ours)


def test_a_child_that_lives_on_keeps_no_folder_locked(tmp_path: Path) -> None:
    with locks.lock_folder(tmp_path):
        child = subprocess.Popen(["sleep", "600"], pass_fds=locks.held_descriptors())
    with files.folder_lock_if_free(tmp_path) as is_free:
        assert is_free
    child.kill()
    child.wait()


def test_a_lock_that_is_free_leaves_no_file(lock_path: Path) -> None:
    with locks.lock(lock_path, "x"):
        assert lock_path.exists()
    assert not lock_path.exists()
    assert not locks.is_locked(lock_path)


def test_what_needs_the_lock_it_holds_is_a_cycle(lock_path: Path) -> None:
    with locks.lock(lock_path, "outer"), pytest.raises(CycleError, match="inner"), locks.lock(lock_path, "inner"):
        pass
    with locks.lock(lock_path, "later", timeout_s=1):
        pass


def test_a_child_process_that_needs_the_lock_of_its_parent_is_a_cycle(lock_path: Path) -> None:
    with locks.lock(lock_path, "outer"):
        command = [sys.executable, "-c", HOLDER, str(lock_path)]
        env = with_python_path("automation")
        child = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert "CycleError: get-thing needs" in child.stderr


@pytest.mark.parametrize(
    ("argument", "is_told"),
    [
        ("--tags=get,x", True),
        ("--env.CM_HF_TOKEN=s3cret", False),
        ("--gh_token=s3cret", False),
        ("--password=s3cret", False),
        ("--adr.x.env.CM_API_KEY=s3cret", False),
    ],
)
def test_the_note_of_the_holder_tells_the_command_without_secrets(
    lock_path: Path, monkeypatch: pytest.MonkeyPatch, argument: str, is_told: bool
) -> None:
    monkeypatch.setattr(sys, "orig_argv", ["python3", "/bin/cm", "run", "script", argument])
    with locks.lock(lock_path, "x of https://me:s3cret@host/x"):
        assert "s3cret" not in lock_path.read_text()
        note = json.loads(lock_path.read_text())
    assert (argument in note["command"]) is is_told
    assert "s3cret" not in note["command"]
    assert note["pid"] == os.getpid()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}"])
def test_a_lock_file_without_a_note_still_has_a_text(lock_path: Path, text: str) -> None:
    lock_path.parent.mkdir()
    lock_path.write_text(text)
    assert "process" in locks.holder_text(lock_path)


@pytest.mark.parametrize("name", ["with\0nul", "half\ud800"])
def test_a_name_that_no_file_can_have_is_no_file(tmp_path: Path, name: str) -> None:
    assert not files.is_file(tmp_path / name)


@pytest.mark.parametrize("name", ["a-file", "a-file/below"])
def test_a_file_where_a_folder_is_needed_is_named_with_a_way_out(tmp_path: Path, name: str) -> None:
    (tmp_path / "a-file").touch()
    with pytest.raises(OSError) as caught:
        (tmp_path / name).mkdir()
    error = files.store_error(caught.value)
    assert str(tmp_path / name) in str(error) and "CROWDPERF_CACHE" in str(error.hint)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (
            ["/env/bin/python", "-c", "import sys\nfrom cmind.cli import run\nrun()", "run", "script", "--tags=a"],
            "cm run script --tags=a",
        ),
        (["/env/bin/python", "/env/bin/cm", "run", "script", "--api_token=x"], "cm run script"),
        (["python3", "-c", "import time\ntime.sleep(1)", "word"], "python3 -c ... word"),
        (["python3", "-u", "-c", "import time", "word"], "python3 -u -c ... word"),
        (["python3", "-c"], "python3 -c"),
        (["/usr/bin/make", "all"], "/usr/bin/make all"),
        ([], ""),
    ],
)
def test_the_command_of_a_holder_is_shown_as_a_person_types_it(words: list[str], shown: str) -> None:
    assert locks.command_text(words) == shown
