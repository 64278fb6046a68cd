"""The wrapper of a point: one claim for each attempt, one published result, nothing left behind."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from point_builder import make_point, run, state, wrapper

from crowdperf.sweeps import attempts, states
from crowdperf.sweeps import wrapper as wrapper_module
from crowdperf.sweeps.executor import STARTER, wrapper_words
from crowdperf.sweeps.folder import State, SweepFolder
from crowdperf.sweeps.wrapper import main


@pytest.fixture
def sweep(tmp_path: Path) -> SweepFolder:
    return SweepFolder(tmp_path / "it's a sweep")


def until(is_so: Callable[[], bool]) -> None:
    for _ in range(600):
        if is_so():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen within 30 s")


def test_a_wrapper_imports_only_what_is_imported_quickly() -> None:
    slow = {"argparse", "dataclasses", "datetime", "inspect", "shutil", "socket", "tempfile"}
    program = "import sys,  crowdperf.sweeps.wrapper; print(*sys.modules)"
    words = [*wrapper_words(sys.executable)[:-1], "-c", program]
    done = subprocess.run(words, cwd=STARTER.parents[2], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not slow & loaded
    assert {name.partition(".")[0] for name in loaded} - {"__main__"} <= {"crowdperf", *sys.stdlib_module_names}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--point=x", "--grace_s=soon"], "--grace_s must be a number, got 'soon'"),
        (["--point=x", "--lines=1"], "--lines=1 is none of --point=, --points=, --list="),
        (["--point"], "--point is none of"),
        (["--points=x"], "--point, or --points with --list and --line, is missing"),
    ],
)
def test_a_command_line_that_names_no_point_is_refused(words: list[str], told: str, capsys: Any) -> None:
    assert main(words) == 78
    assert told in capsys.readouterr().err


def test_a_valid_result_is_published_once_and_kept(sweep: SweepFolder) -> None:
    point = make_point(sweep, "a", "echo hello; echo x >> runs.txt")
    assert run(point) == (0, "")
    done = json.loads(point.done_file.read_text())
    assert (done["verdict"], done["attempt"]) == ("VALID", "001")
    assert [one["name"] for one in done["files"]] == ["runs.txt"]
    assert (point.attempts / "001" / "out.txt").read_text() == "hello\n"
    assert os.stat(point.done_file).st_nlink == 2, "published by a hard link"
    assert run(point) == (0, "")
    assert (point.results / "runs.txt").read_text() == "x\n", "it did not run again"
    assert len(list(point.attempts.iterdir())) == 1


def test_a_result_that_was_changed_is_set_aside_and_made_again(sweep: SweepFolder) -> None:
    point = make_point(sweep, "a", "echo x > runs.txt")
    assert run(point)[0] == 0
    (point.results / "runs.txt").write_text("y\n")
    assert states.status(point).state is State.DONE, "a glance compares sizes only"
    assert run(point)[0] == 0
    assert (point.attempts / "002" / "damaged-results" / "runs.txt").read_text() == "y\n"
    assert attempts.damage(point.path, json.loads(point.done_file.read_text())) == ""
    (point.results / "runs.txt").unlink()
    assert states.status(point).state is State.PLANNED


@pytest.mark.parametrize(
    ("program", "outcome", "code", "expected", "reason"),
    [
        ("exit 9", None, 1, State.FAILED, "exit code 9"),
        ("echo; echo 'CM error: get-x: no network'; exit 1", None, 1, State.FAILED, "exit code 1: get-x: no network"),
        ("kill -9 $$", None, 1, State.FAILED, "killed by SIGKILL"),
        ("""echo '{"verdict": "INVALID"}' > o.json""", "o.json", 2, State.INVALID, "no reason (exit code 0)"),
        (
            """echo '{"verdict": "INVALID", "reasons": ["Offline performance is INVALID: too short", "x"]}' > o.json""",
            "o.json",
            2,
            State.INVALID,
            "Offline performance is INVALID: too short; x",
        ),
        ("""echo '{"verdict": "INVALID", "reasons": "odd"}' > o.json""", "o.json", 2, State.INVALID, "exit code 0"),
        ("""echo '{"verdict": "VALID"}' > o.json; exit 4""", "o.json", 1, State.FAILED, "exit code 4"),
        ("""echo '{"verdict": "fine"}' > o.json""", "o.json", 1, State.FAILED, "has no verdict"),
        ("""echo '{"verdict": "VALID"}' > ../o.json""", "../o.json", 1, State.FAILED, "outside the point's folder"),
    ],
)
def test_what_the_program_did_is_the_state(
    sweep: SweepFolder, program: str, outcome: str | None, code: int, expected: State, reason: str
) -> None:
    point = make_point(sweep, "a", program, outcome=outcome)
    assert run(point)[0] == code
    found = states.status(point)
    assert (found.state, found.attempts) == (expected, 1)
    assert reason in found.reason
    assert not point.done_file.exists()


def test_an_invalid_result_is_moved_before_the_next_attempt(sweep: SweepFolder) -> None:
    program = """[ -e o.json ] && exit 7; echo '{"verdict": "INVALID"}' > o.json"""
    point = make_point(sweep, "a", program, outcome="o.json")
    assert [run(point)[0], run(point)[0]] == [2, 2]
    assert (point.attempts / "001" / "results" / "o.json").is_file()


def test_a_second_attempt_leaves_while_the_first_is_alive(sweep: SweepFolder) -> None:
    point = make_point(sweep, "a", "touch begun; while [ ! -e go ]; do sleep 0.05; done; echo end > end")
    first = wrapper(point)
    until((point.results / "begun").exists)
    assert states.status(point).state is State.RUNNING
    code, told = run(point)
    assert (code, told) == (75, "a: another attempt is under way\n")
    (point.results / "go").touch()
    assert first.wait(30) == 0
    assert len(list(point.attempts.iterdir())) == 1


def test_of_many_wrappers_at_once_one_runs(sweep: SweepFolder) -> None:
    point = make_point(sweep, "a", "echo x >> runs.txt; sleep 1.5")
    codes = sorted(child.wait(60) for child in [wrapper(point) for _ in range(4)])
    assert set(codes) <= {0, 75}
    assert codes[0] == 0
    assert (point.results / "runs.txt").read_text() == "x\n"


def test_a_killed_attempt_is_lost_and_what_it_left_is_ended_before_the_next(sweep: SweepFolder) -> None:
    """The program and what it started, also in a session of its own, outlive a wrapper that is killed by -9."""
    program = "[ -e again ] && exit 0; touch again; setsid sh -c 'sleep 300' & echo $! > child; touch begun; sleep 300"
    point = make_point(sweep, "a", program)
    child = wrapper(point)
    until((point.results / "begun").exists)
    child.kill()
    child.wait(30)
    assert states.status(point).state is State.LOST
    assert states.lost_on_nodes(sweep) == {os.uname().nodename: 1}
    assert run(point)[0] == 0
    assert "left over" in state(point, 2)["notes"][0]
    assert attempts.end_leftovers(point.path) == 0


@pytest.mark.parametrize(
    ("number", "reason"), [(signal.SIGTERM, "SIGTERM"), (signal.SIGUSR1, "the time limit was near")]
)
def test_a_signal_ends_the_program_in_good_order(sweep: SweepFolder, number: signal.Signals, reason: str) -> None:
    point = make_point(sweep, "a", "trap 'echo > tidied; exit 1' TERM; touch begun; while :; do sleep 0.05; done")
    child = wrapper(point)
    until((point.results / "begun").exists)
    child.send_signal(number)
    assert child.wait(30) == 75
    assert (point.results / "tidied").exists()
    assert (states.status(point).state, states.status(point).reason) == (State.INTERRUPTED, reason)


def test_a_program_that_hears_the_signal_first_is_interrupted_too(sweep: SweepFolder) -> None:
    """Slurm sends SIGTERM to all processes of a job at once; the program may have ended before the wrapper hears it."""
    point = make_point(sweep, "a", "(sleep 0.1; kill -TERM $PPID) & kill -TERM $$")
    assert run(point)[0] == 75
    assert states.status(point).state is State.INTERRUPTED


def test_a_program_that_does_not_listen_is_killed_after_the_grace_time(sweep: SweepFolder) -> None:
    point = make_point(sweep, "a", "trap '' TERM; touch begun; while :; do sleep 0.05; done")
    child = wrapper(point, "--grace_s=0.3")
    until((point.results / "begun").exists)
    child.terminate()
    assert child.wait(30) == 75
    assert attempts.end_leftovers(point.path) == 0


def elsewhere(point: Any, age_s: float, **more: Any) -> None:
    """Makes the newest attempt one that runs on another machine and gave a sign of life `age_s` ago."""
    folder = point.attempts / "001"
    folder.mkdir(parents=True)
    process = {"boot": "another", "pid_namespace": "x", "pid": 1, "start_ticks": 1}
    content = {"state": "running", "node": "n7", "process": process, "heartbeat_s": 0.1, **more}
    attempts.write_state(folder / "state.json", content)
    (folder / "heartbeat").touch()
    beat = time.time() - age_s
    os.utime(folder / "heartbeat", (beat, beat))


def test_an_attempt_on_another_machine_lives_by_its_heartbeat(sweep: SweepFolder) -> None:
    point = make_point(sweep, "fresh", "true")
    elsewhere(point, 0.0, heartbeat_s=60)
    assert states.status(point).state is State.RUNNING
    assert run(point)[0] == 75
    stale = make_point(sweep, "stale", "true")
    elsewhere(stale, 1.0)
    assert states.status(stale).state is State.LOST
    assert states.lost_on_nodes(sweep) == {"n7": 1}
    assert run(stale)[0] == 0


def test_a_requeued_job_waits_for_the_heartbeat_of_its_first_start(sweep: SweepFolder) -> None:
    point = make_point(sweep, "a", "true")
    elsewhere(point, 0.0, heartbeat_s=0.3, job={"SLURM_JOB_ID": "12"})
    job = {**os.environ, "SLURM_JOB_ID": "12", "SLURM_RESTART_COUNT": "1"}
    assert run(point, "--heartbeat_s=0.3", env=job)[0] == 0


def test_an_attempt_that_was_taken_for_lost_ends_itself(sweep: SweepFolder) -> None:
    point = make_point(sweep, "a", "touch begun; sleep 300")
    child = wrapper(point, "--heartbeat_s=0.1")
    until((point.results / "begun").exists)
    (point.attempts / "002").mkdir()
    assert child.wait(30) == 75
    assert state(point)["reason"] == "another attempt has begun"


def test_the_first_to_publish_wins(sweep: SweepFolder) -> None:
    point = make_point(sweep, "a", "echo '{}' > ../done.json")  # what another attempt would do meanwhile
    assert run(point)[0] == 0
    assert state(point)["reason"] == "another attempt was first"
    assert point.done_file.read_text() == "{}\n"


def test_what_was_published_while_an_attempt_began_is_kept(sweep: SweepFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    point = make_point(sweep, "a", "touch ran")
    monkeypatch.setattr(wrapper_module, "Signals", lambda: None)
    monkeypatch.setattr(attempts, "make_room", lambda *_: str(point.done_file.write_text("{}")))
    assert main([f"--point={point.path}"]) == 0
    assert state(point)["reason"] == "the attempt before had published its result"
    assert point.done_file.read_text() == "{}" and not (point.results / "ran").exists()


def test_secrets_reach_the_program_and_nothing_else(sweep: SweepFolder, tmp_path: Path) -> None:
    secrets = tmp_path / "secrets"
    secrets.write_text("TOKEN=very secret=1\n")
    point = make_point(sweep, "a", "[ ${#TOKEN} = 13 ]")
    code, told = run(point, f"--secrets={secrets}")
    assert code == 78
    assert f"chmod 600 {secrets}" in told
    secrets.chmod(0o600)
    assert run(point, f"--secrets={secrets}")[0] == 0
    assert not [path for path in sweep.path.rglob("*") if path.is_file() and "very secret" in path.read_text()]


def test_what_is_not_a_point_is_refused(sweep: SweepFolder, tmp_path: Path) -> None:
    point = make_point(sweep, "a", "true")
    point.results.rmdir()
    point.results.symlink_to(tmp_path)
    assert "is a link" in run(point)[1]
    assert not point.attempts.exists()
    missing = sweep.point("b")
    assert run(missing)[0] == 78
    other = make_point(sweep, "c", "true", id="d")
    assert "does not describe point c" in run(other)[1]


def test_a_line_of_a_list_names_the_point(sweep: SweepFolder, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "indexes.txt").write_text("a\nb\n")
    words = [f"--points={sweep.path / 'points'}", f"--list={tmp_path / 'indexes.txt'}"]
    for line, told in (("2", "has 2 lines, numbered from 0, requested 2"), ("1", "points/b is missing")):
        assert main([*words, f"--line={line}"]) == 78
        assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "reason"), [(["no-such-command"], "no-such-command"), (["true", "a\0b"], "embedded null byte")]
)
def test_a_command_that_cannot_be_started_fails_the_point(sweep: SweepFolder, argv: list[str], reason: str) -> None:
    point = make_point(sweep, "a", "true", argv=argv)
    assert run(point)[0] == 1
    assert states.status(point).state is State.FAILED and reason in states.status(point).reason


def test_a_node_may_have_its_own_folder_for_temporary_files(sweep: SweepFolder) -> None:
    point = make_point(sweep, "a", 'touch "$TMPDIR/x"; echo "$TMPDIR" > where')
    scratch = Path("/tmp", f"s{os.getpid()}")
    scratch.mkdir()
    try:
        assert run(point, env={**os.environ, "SLURM_TMPDIR": str(scratch)})[0] == 0
        assert (point.results / "where").read_text().startswith(str(scratch))
        assert not list(scratch.iterdir()), "removed at the end"
    finally:
        scratch.rmdir()
