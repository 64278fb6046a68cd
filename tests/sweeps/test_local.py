"""The executor of this machine: one point at a time, whoever else measures; Ctrl-C and cancel end it in good order."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest
from point_builder import make_point

from crowdperf.sweeps.folder import State, SweepFolder
from crowdperf.sweeps.local import LocalExecutor, LocalOptions, wrong_options

INTERVAL = "date +%s%N > begin; sleep 0.2; date +%s%N > end"


@pytest.fixture
def sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SweepFolder:
    """A sweep on a machine of its own: the lock lies in the folder for temporary files."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return SweepFolder(tmp_path / "sweep")


def intervals(sweep: SweepFolder) -> list[tuple[int, int]]:
    points = [point.results for point in sweep.points()]
    return sorted((int((path / "begin").read_text()), int((path / "end").read_text())) for path in points)


def test_points_run_one_after_another_and_a_failed_one_stops_nothing(sweep: SweepFolder) -> None:
    points = [make_point(sweep, "a", INTERVAL), make_point(sweep, "b", INTERVAL + "; exit 9")]
    points.append(make_point(sweep, "c", INTERVAL))
    executor = LocalExecutor()
    assert executor.problems() == ()
    assert executor.states(sweep) == dict.fromkeys("abc", State.PLANNED)
    executor.start(sweep, points)
    assert executor.states(sweep) == {"a": State.DONE, "b": State.FAILED, "c": State.DONE}
    times = intervals(sweep)
    assert all(earlier[1] <= later[0] for earlier, later in pairwise(times))
    executor.wait(sweep, lambda: None)


def test_two_sweeps_never_measure_together(sweep: SweepFolder, tmp_path: Path) -> None:
    other = SweepFolder(tmp_path / "other")
    points = {sweep.path: make_point(sweep, "a", INTERVAL), other.path: make_point(other, "b", INTERVAL)}
    said: list[str] = []
    threads = [
        threading.Thread(target=LocalExecutor(say=said.append).start, args=(one, [points[one.path]]))
        for one in (sweep, other)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    first, second = sorted(intervals(sweep) + intervals(other))
    assert first[1] <= second[0]
    assert said == ["waiting: another of your sweeps is measuring on this machine"]


def test_points_at_the_same_time_are_labelled(sweep: SweepFolder) -> None:
    together = LocalOptions(max_parallel=2)
    assert "--exclusive=no" in wrong_options(together)[0]
    points = [make_point(sweep, name, "while [ ! -e ../../a/begun ]; do sleep 0.05; done") for name in "b"]
    points.insert(0, make_point(sweep, "a", "touch ../begun; while [ ! -e ../../b/attempts/001/out.txt ]; do :; done"))
    executor = LocalExecutor(LocalOptions(max_parallel=2, exclusive=False))
    executor.start(sweep, points)
    for point in points:
        assert json.loads(point.done_file.read_text())["label"] == "not exclusive"
        reasons = json.loads((point.attempts / "001" / "job.json").read_text())["reasons"]
        assert "another point ran on this machine" in reasons


PROGRAM = """
import sys
from pathlib import Path
from crowdperf.sweeps.folder import SweepFolder
from crowdperf.sweeps.local import LocalExecutor
sweep = SweepFolder(Path(sys.argv[1]))
LocalExecutor().start(sweep, sweep.points())
"""


def begun(sweep: SweepFolder) -> subprocess.Popen[bytes]:
    """Another process that runs the sweep, when its first point is under way."""
    source = Path(__file__).resolve().parents[2] / "src"
    environment = {**os.environ, "PYTHONPATH": str(source)}
    child = subprocess.Popen([sys.executable, "-c", PROGRAM, str(sweep.path)], env=environment)
    for _ in range(600):
        if (sweep.point("a").results / "begun").exists():
            return child
        time.sleep(0.05)
    raise AssertionError("no point began within 30 s")


def test_cancel_ends_the_point_under_way_and_begins_no_other(sweep: SweepFolder) -> None:
    make_point(sweep, "a", "touch begun; exec sleep 300")
    make_point(sweep, "b", "true")
    child = begun(sweep)
    executor = LocalExecutor()
    assert executor.cancel(sweep) == ("a",)
    assert child.wait(30) == 0
    assert executor.states(sweep) == {"a": State.CANCELLED, "b": State.PLANNED}
    assert executor.cancel(sweep) == ()


def test_ctrl_c_ends_the_point_in_good_order(sweep: SweepFolder) -> None:
    make_point(sweep, "a", "touch begun; exec sleep 300")
    child = begun(sweep)
    child.send_signal(signal.SIGINT)
    assert child.wait(30) != 0
    assert LocalExecutor().states(sweep) == {"a": State.INTERRUPTED}


def test_ctrl_c_while_a_wrapper_starts_ends_the_point_in_good_order(
    sweep: SweepFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A Python that gets SIGINT before it has read a line of the wrapper."""
    python = tmp_path / "python"
    program = "import os, sys; os.kill(os.getpid(), 2); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    python.write_text(f"#!{sys.executable}\n{program}\n")
    python.chmod(0o755)
    point = make_point(sweep, "a", "exec sleep 300")
    monkeypatch.setattr("crowdperf.sweeps.local.sys.executable", str(python))
    executor = LocalExecutor()
    executor.start(sweep, [point])
    assert (executor.states(sweep), capfd.readouterr().err) == ({"a": State.INTERRUPTED}, "")


def test_a_killed_command_leaves_its_point_to_end_and_the_machine_locked_until_then(sweep: SweepFolder) -> None:
    point = make_point(sweep, "a", "touch begun; while [ ! -e go ]; do sleep 0.05; done; date +%s%N > end")
    child = begun(sweep)
    child.kill()
    child.wait(30)
    other = SweepFolder(sweep.path.parent / "other")
    next_point = make_point(other, "b", "date +%s%N > begin")
    thread = threading.Thread(target=LocalExecutor().start, args=(other, [next_point]))
    thread.start()
    (point.results / "go").touch()
    thread.join(30)
    assert int((point.results / "end").read_text()) <= int((next_point.results / "begin").read_text())
    assert LocalExecutor().states(sweep) == {"a": State.DONE}
