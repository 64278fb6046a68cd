"""Child processes: their output, their end, and the end of everything they started."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import is_alive, wait_until, with_python_path
from recipe_engine.rules.errors import Interrupted
from recipe_engine.running.console import held_back, raised_as_interrupted
from recipe_engine.running.process import Ended, descendants, end_group, exit_text, last_lines, run_process


def run(command: str, folder: Path, **secrets: str) -> Ended:
    return run_process(["bash", "-c", command], folder, extra_env=secrets, log_path=folder / "log.txt")


def test_exit_status_and_the_last_lines_of_both_streams_are_returned(tmp_path: Path) -> None:
    ended = run("seq 1 40; echo end >&2; exit 7", tmp_path)
    assert ended.status == 7
    assert ended.output == tuple(str(number) for number in range(26, 41))
    assert ended.errors == ("end",)


@pytest.mark.parametrize(
    ("tail", "lines"),
    [
        (b"a\nb\n", ("a", "b")),
        (b"a\n\n  \nb", ("a", "b")),
        (b"a\r\nb\r\n", ("a", "b")),
        (b"10 %\r20 %\r100 %\ndone\n", ("100 %", "done")),
        (b"10 %\r20 %\r", ("20 %",)),
        (b"\xff end\n", ("\ufffd end",)),
        (b"", ()),
    ],
)
def test_the_last_lines_are_those_with_words_and_the_last_state_of_a_progress_bar(
    tail: bytes, lines: tuple[str, ...]
) -> None:
    assert last_lines(tail) == lines


def test_a_child_that_was_killed_tells_of_the_memory(tmp_path: Path) -> None:
    assert any("in this machine" in line for line in run("kill -9 $$", tmp_path).memory.lines)
    assert run("exit 3", tmp_path).memory.lines == ()


def test_much_output_arrives_whole(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run("seq 1 200000", tmp_path)
    assert capfd.readouterr().out == "".join(f"{number}\n" for number in range(1, 200001))


def test_a_process_left_in_the_background_with_our_output_is_not_waited_for(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ended = run("sleep 600 & echo $!; echo ready", tmp_path)
    pid = int(ended.output[0])
    assert ended.status == 0
    assert is_alive(pid), "a server that a recipe starts must go on"
    assert "ready" in capfd.readouterr().out
    os.kill(pid, signal.SIGKILL)


def test_a_chatty_process_in_the_background_is_not_waited_for(tmp_path: Path) -> None:
    ended = run("(while sleep 0.05; do echo still here; done) & echo $!", tmp_path)
    assert ended.status == 0
    os.kill(int(ended.output[0]), signal.SIGKILL)


def test_a_child_does_not_wait_for_input(tmp_path: Path) -> None:
    ended = run("read answer; echo got=$answer", tmp_path)
    assert (ended.status, ended.output) == (0, ("got=",))


def test_an_error_here_ends_the_whole_group_even_what_ignores_sigterm(tmp_path: Path) -> None:
    script = "bash -c 'trap \"\" TERM; echo $$ > stubborn; while true; do sleep 0.1; done' & wait"
    child = subprocess.Popen(["bash", "-c", script], cwd=tmp_path, start_new_session=True)
    wait_until(lambda: (tmp_path / "stubborn").exists() and (tmp_path / "stubborn").read_text().strip(), "the child")
    end_group(child, "no-mark", is_group=True)
    assert child.returncode is not None
    pid = int((tmp_path / "stubborn").read_text())
    wait_until(lambda: not is_alive(pid), "the end of a child that ignores SIGTERM")


@pytest.mark.parametrize(
    "start", ["setsid sleep 600 &", "( setsid sleep 600 & )", "setsid bash -c 'sleep 600 & wait' &"]
)
def test_what_left_the_group_of_a_failing_child_is_ended_with_it(tmp_path: Path, start: str) -> None:
    if not Path("/proc/self/environ").exists():
        pytest.skip("this system does not show the environment of processes")
    bystander = subprocess.Popen(["sleep", "600"], start_new_session=True)
    run(f"{start} sleep 0.2; exit 3", tmp_path)
    left = [
        pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if is_alive(pid) and is_below(pid, tmp_path)
    ]
    assert left == []
    assert is_alive(bystander.pid)
    bystander.kill()
    bystander.wait()


def is_below(pid: int, folder: Path) -> bool:
    """Whether a process works in a folder."""
    try:
        return os.readlink(f"/proc/{pid}/cwd") == str(folder)
    except OSError:
        return False


def test_a_child_in_our_own_group_is_ended_with_all_its_descendants_and_nothing_else_is(tmp_path: Path) -> None:
    script = "bash -c 'sleep 600 & echo $! > pid; wait' & wait"
    other = subprocess.Popen(["sleep", "600"])
    child = subprocess.Popen(["bash", "-c", script], cwd=tmp_path)
    wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip(), "the grandchild")
    pid = int((tmp_path / "pid").read_text())
    family = [member for member, _ in descendants(child.pid)]
    assert pid in family
    assert len(family) == 2
    assert other.pid not in family
    end_group(child, "no-mark", is_group=False)
    wait_until(lambda: not is_alive(pid), "the end of the grandchild")
    assert is_alive(other.pid)
    other.kill()
    other.wait()


def test_a_child_is_asked_to_end_before_it_is_killed(tmp_path: Path) -> None:
    script = "trap 'echo tidied > tidied; exit 0' TERM; echo > ready; while true; do sleep 0.05; done"
    child = subprocess.Popen(["bash", "-c", script], cwd=tmp_path, start_new_session=True)
    wait_until((tmp_path / "ready").exists, "the child")
    end_group(child, "no-mark", is_group=True)
    assert (tmp_path / "tidied").exists()


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (1, "failed with exit code 1"),
        (126, "failed with exit code 126 (a program was found but could not be started)"),
        (127, "failed with exit code 127 (a program was not found)"),
        (-9, "was killed by SIGKILL (status -9)"),
        (137, "was killed by SIGKILL (status 137)"),
        (-15, "was killed by SIGTERM (status -15)"),
        (255, "failed with exit code 255"),
        (128, "failed with exit code 128"),
    ],
)
def test_a_status_is_put_into_words(status: int, text: str) -> None:
    assert exit_text(status) == text


def test_secrets_reach_the_child_in_its_environment(tmp_path: Path) -> None:
    command = 'test "$T_TOKEN" = hunter22'
    assert run(command, tmp_path, T_TOKEN="hunter22").status == 0
    assert run(command, tmp_path).status == 1


STARTING = """
import os, signal, subprocess, sys
from pathlib import Path
from recipe_engine.running import process
from recipe_engine.rules.errors import Interrupted
from recipe_engine.running.console import raised_as_interrupted

real = subprocess.Popen

def popen(*words, **options):
    child = real(*words, **options)
    Path("pid").write_text(str(child.pid))
    os.kill(os.getpid(), signal.SIGTERM)  # before the engine knows its child
    return child

process.subprocess.Popen = popen
try:
    with raised_as_interrupted():
        process.run_process(["sleep", "600"], Path.cwd(), extra_env={}, log_path=None)
except Interrupted as stop:
    print(stop.code)
"""


def test_a_signal_that_comes_while_a_child_is_started_ends_the_child_too(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STARTING]
    done = subprocess.run(
        command, cwd=tmp_path, env=with_python_path("automation"), capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "143\n", done.stderr
    assert not is_alive(int((tmp_path / "pid").read_text()))


def test_a_signal_that_is_held_back_comes_at_the_end_of_the_block() -> None:
    seen = []
    with pytest.raises(Interrupted, match="SIGTERM"), raised_as_interrupted():
        with held_back():
            with held_back():
                os.kill(os.getpid(), signal.SIGTERM)
            seen.append("inside")
        seen.append("after")
    assert seen == ["inside"]


def test_the_end_of_the_output_is_shown_though_something_in_the_background_holds_it_open(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ended = run("sleep 600 & echo $! > pid; printf 'ends with hunter2'", tmp_path, T_TOKEN="hunter22")
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert capfd.readouterr().out == "ends with hunter2"
    assert (tmp_path / "log.txt").read_text() == "ends with hunter2"
    assert ended.output == ("ends with hunter2",)
