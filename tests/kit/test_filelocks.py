"""File locks on real files and between real processes: who waits, who is refused, what the end of a process frees."""

import contextlib
import errno
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from crowdperf.kit import file_locks
from crowdperf.kit.file_locks import file_lock, is_alone, lock_open_file

SCRIPT = Path(__file__).resolve().parents[2] / "script"
HOLDER = """
import subprocess, sys
from pathlib import Path
from crowdperf.kit.file_locks import file_lock
with file_lock(Path(sys.argv[1])) as descriptor:
    {child}
    print("held", flush=True)
    sys.stdin.read()
"""
WAITER = """
import os, sys
from crowdperf.kit.file_locks import lock_open_file
lock_open_file(os.open(sys.argv[1], os.O_RDWR), on_wait=lambda: print("waits", flush=True))
print("got it", flush=True)
"""


class InUse(Exception):
    """Another process holds the lock."""


@contextlib.contextmanager
def process(program: str, path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that runs `program` on `path`, and has written its first line."""
    env = {**os.environ, "PYTHONPATH": str(SCRIPT.parent / "src")}
    words = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env) as started:
        try:
            assert started.stdout is not None and started.stdout.readline() in ("held\n", "waits\n")
            yield started
        finally:
            started.kill()


def is_free(path: Path, patience_s: float = 0.0) -> bool:
    try:
        with file_lock(path, InUse(), patience_s=patience_s):
            return True
    except InUse:
        return False


@pytest.fixture(params=["file", "folder"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / "new" / ".lock" if request.param == "file" else tmp_path


ENDS = {"end": lambda holder: holder.stdin.close(), "kill": lambda holder: holder.kill()}


@pytest.mark.parametrize("end", ENDS.values(), ids=list(ENDS))
def test_a_lock_is_held_until_its_process_ends_in_whatever_way(place: Path, end: Callable[..., None]) -> None:
    with process(HOLDER.format(child=""), place) as holder:
        assert not is_free(place)
        end(holder)
        holder.wait(timeout=30)
        assert is_free(place)


@pytest.mark.parametrize(("given", "is_kept"), [("pass_fds=[descriptor]", True), ("", False)], ids=["given", "not"])
def test_a_child_that_was_given_the_descriptor_keeps_the_lock_of_a_killed_parent(
    tmp_path: Path, given: str, is_kept: bool
) -> None:
    path = tmp_path / "lock"
    with process(HOLDER.format(child=f"subprocess.Popen(['cat'], {given})"), path) as holder:
        holder.kill()
        assert holder.wait(timeout=30) == -signal.SIGKILL
        assert is_free(path) is not is_kept
        assert holder.stdin is not None
        holder.stdin.close()  # which ends cat
        assert is_free(path, patience_s=30)


def test_who_waits_says_so_once_and_gets_the_lock_when_it_is_free(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with process(HOLDER.format(child=""), path) as holder, process(WAITER, path) as waiter:
        holder.kill()
        assert waiter.communicate(timeout=30)[0] == "got it\n"


def test_a_free_lock_is_not_waited_for(tmp_path: Path) -> None:
    said: list[str] = []
    with (tmp_path / "lock").open("w") as file:
        lock_open_file(file.fileno(), on_wait=lambda: said.append("waits"))
    assert said == []


def test_patience_ends_with_the_callers_own_error(tmp_path: Path) -> None:
    with file_lock(tmp_path), pytest.raises(InUse), file_lock(tmp_path, InUse(), patience_s=2 * file_locks.POLL_S):
        pass


@pytest.mark.parametrize("others", [(), ("exclusive",), ("shared",), ("shared", "shared")], ids=len)
def test_who_is_alone_knows_it_and_is_seen_by_who_comes_later(tmp_path: Path, others: tuple[str, ...]) -> None:
    path = tmp_path / "lock"
    with contextlib.ExitStack() as stack:
        for kind in others:
            file = stack.enter_context(path.open("w"))
            (lock_open_file if kind == "exclusive" else is_alone)(file.fileno())
        asking, later = (stack.enter_context(path.open("w")).fileno() for _ in range(2))
        assert is_alone(asking) is (not others)
        assert not is_alone(later)
    assert is_free(path)


@pytest.mark.parametrize("is_new_there", [False, True], ids=["removed", "replaced"])
def test_a_file_that_was_replaced_between_open_and_lock_is_locked_as_it_is_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_new_there: bool
) -> None:
    path, lock = tmp_path / "lock", fcntl.flock

    def flock(descriptor: int, kind: int) -> None:
        monkeypatch.setattr(fcntl, "flock", lock)
        path.unlink()
        if is_new_there:
            path.touch()
        lock(descriptor, kind)

    monkeypatch.setattr(fcntl, "flock", flock)
    with file_lock(path) as descriptor:
        assert os.path.samestat(os.fstat(descriptor), path.stat())
        assert not is_free(path)


def test_a_folder_that_was_removed_is_not_made_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.setattr(fcntl, "flock", lambda descriptor, kind: folder.rmdir())
    with pytest.raises(FileNotFoundError), file_lock(folder):
        pass
    assert not folder.exists()


def test_a_file_system_that_cannot_lock_is_an_error_unless_the_lock_is_not_needed(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, kind: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with file_lock(place, InUse(), is_needed=False):
        pass
    with pytest.raises(OSError, match="cannot be locked: No locks available") as caught, file_lock(place):
        pass
    assert (caught.value.errno, caught.value.filename) == (errno.ENOLCK, str(place))


WITHOUT_FLOCK = """
import sys
sys.modules["fcntl"] = None
from pathlib import Path
import crowdperf.harness.watch.measuring, crowdperf.fronts.metrics.metricfiles
import crowdperf.sweeps.local, crowdperf.sweeps.slurm
import crowdperf.sweeps.surroundings, crowdperf.sweeps.sweep, crowdperf.submission.placement
from crowdperf.kit.file_locks import file_lock, is_alone
with file_lock(Path(sys.argv[1])) as first, file_lock(Path(sys.argv[1]), ValueError()) as second:
    print(first != second, is_alone(first))
"""


def test_without_flock_everything_is_imported_and_one_warning_says_that_nothing_is_guarded(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(SCRIPT.parent / "src")}
    words = [sys.executable, "-c", WITHOUT_FLOCK, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, env=env, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("True True\n", f"{file_locks.UNGUARDED}\n")


def test_only_recipes_without_this_library_call_flock_themselves() -> None:
    sources = [path for folder in ("script", "src") for path in (SCRIPT.parent / folder).rglob("*.py")]
    callers = [path for path in sources if "import fcntl" in path.read_text(encoding="utf-8")]
    assert {str(path.relative_to(SCRIPT.parent)) for path in callers} == {
        "script/download-file/part.py",
        "script/get-generic-python-lib/pip_tool.py",
        "src/crowdperf/kit/file_locks.py",
        "script/install-python-venv/environment.py",
        "src/crowdperf/sweeps/surroundings.py",
    }
