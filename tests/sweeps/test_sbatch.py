"""What is said to sbatch: every value one word, nothing that a shell or Slurm would read otherwise."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from point_builder import make_point

from crowdperf.sweeps import sbatch, slurmclient
from crowdperf.sweeps.executor import ExecutorError
from crowdperf.sweeps.folder import State, SweepFolder
from crowdperf.sweeps.sbatch import Limits, SlurmOptions
from crowdperf.sweeps.slurm import SlurmExecutor, states_without_queue


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (SlurmOptions(partition="a;b"), "--partition='a;b' may only contain"),
        (SlurmOptions(account="$(id)"), "--account='$(id)' may only contain"),
        (SlurmOptions(gres="gpu:1\n--uid=0"), "--gres='gpu:1\\n--uid=0' may only contain"),
        (SlurmOptions(slurm_extra=("--licenses=a b",)), "--slurm_extra='--licenses=a b' may only contain"),
        (SlurmOptions(slurm_extra=("--wrap=id",)), "crowdperf sets these itself"),
        *(
            (SlurmOptions(slurm_extra=(word,)), "crowdperf sets these itself")
            for word in (
                "--outp=/x",
                "--expor=NONE",
                "--wr=id",
                "--arr=0-9",
                "--chdi=/",
                "--comm=x",
                "--job-n=x",
                "--pars",
                "--sig=9",
                "--=x",
            )
        ),
        (SlurmOptions(slurm_extra=("id",)), "must be an option of sbatch"),
        (SlurmOptions(environment=("A B",)), "--environment='A B' may only contain"),
        (SlurmOptions(max_parallel=-1), "--max_parallel must be at least 0, got -1"),
    ],
)
def test_a_value_that_is_no_plain_word_is_refused(options: SlurmOptions, told: str) -> None:
    (problem,) = sbatch.wrong_options(options)
    assert told in problem


def test_all_wrong_values_are_told_at_once() -> None:
    assert len(sbatch.wrong_options(SlurmOptions(partition="a b", qos="c d", nodes=0))) == 3


@pytest.mark.parametrize(
    ("limit", "seconds"),
    [("1", 60), ("2:30", 150), ("1:00:00", 3600), ("1-0", 86400), ("1-2:3", 93780), ("1-2:3:4", 93784), ("soon", None)],
)
def test_time_limits_are_read_as_sbatch_reads_them(limit: str, seconds: int | None) -> None:
    assert sbatch.seconds_of(limit) == seconds


def test_the_words_of_a_request() -> None:
    assert sbatch.request_words(SlurmOptions(partition="bench", gres="gpu:2", slurm_extra=("--nice",)), [60, 700]) == [
        "--partition=bench",
        "--gres=gpu:2",
        "--nodes=1",
        "--ntasks=1",
        "--time=28",
        "--exclusive",
        "--signal=B:USR1@120",
        "--nice",
    ]
    assert "--signal=B:USR1@20" in sbatch.request_words(SlurmOptions(time="1", exclusive=False), [])


def test_a_preview_writes_nothing_and_is_a_script_that_reads_its_point_from_a_list(tmp_path: Path) -> None:
    sweep = SweepFolder(tmp_path / "it's $(touch hacked)")
    text = SlurmExecutor(SlurmOptions(requeue_on_timeout=True, max_parallel=2)).preview(sweep, [1.0, 2.0])
    assert not list(tmp_path.iterdir())
    assert "--array=0-1%2" in text
    assert "--requeues=3" in text
    point = make_point(sweep, "b", "echo x > ran")
    (sweep.jobs / "001").mkdir(parents=True)
    (sweep.jobs / "001" / "indexes.txt").write_text("a\nb\n")
    done = subprocess.run(["bash"], input=text, text=True, env={**os.environ, "SLURM_ARRAY_TASK_ID": "1"}, check=False)
    assert done.returncode == 0
    assert (point.results / "ran").exists()
    assert not list(tmp_path.rglob("hacked"))
    text = text.replace(str(sweep.path.name).replace("'", "'\"'\"'"), "elsewhere")
    assert subprocess.run(["bash"], input=text, text=True, capture_output=True, check=False).returncode == 78


def test_a_folder_that_sbatch_would_read_otherwise_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExecutorError, match="contains a backslash or newline"):
        SlurmExecutor().start(SweepFolder(tmp_path / "back\\slash"), [])


def test_limits_of_a_slurm() -> None:
    text = "KillWait                = 5 sec\nMaxArraySize            = 501\n"
    assert sbatch.limits_in(text) == Limits(501, 10_000, 5)
    assert sbatch.limits_in("") == Limits()


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Clients on PATH that do what a file of their name says, and note how they were called."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in slurmclient.CLIENTS:
        told = tmp_path / name
        (folder / name).write_text(
            f'#!/bin/sh\necho "{name} $*" >> {told.parent}/calls\n[ -e {told} ] && . {told}\nexit 0\n'
        )
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(slurmclient, "PAUSES_S", (0.0, 0.0))
    return tmp_path


def calls(fake: Path, name: str) -> list[str]:
    return [line for line in (fake / "calls").read_text().splitlines() if line.startswith(name + " ")]


SILENT = "echo 'Unable to contact slurm controller (connect failure)' >&2; exit 1"


@pytest.mark.parametrize(
    "told",
    [
        "Unable to contact slurm controller (connect failure)",
        "slurm_load_jobs error: Connection reset by peer",
        "slurm_load_jobs error: Transport endpoint is not connected",
    ],
)
def test_silence_is_no_answer_about_jobs(fake: Path, tmp_path: Path, told: str) -> None:
    sweep = SweepFolder(tmp_path / "sweep")
    make_point(sweep, "a", "true")
    (fake / "squeue").write_text(f"echo '{told}' >&2; exit 1")
    with pytest.raises(ExecutorError, match=rf"{re.escape(told)}.*rerunning the command finds them"):
        SlurmExecutor().states(sweep)
    assert len(calls(fake, "squeue")) == 3


def test_what_is_done_needs_no_queue_and_files_know_the_rest(fake: Path, tmp_path: Path) -> None:
    sweep = SweepFolder(tmp_path / "sweep")
    done, waiting = make_point(sweep, "a", "true"), make_point(sweep, "b", "true")
    done.done_file.write_text("{}")
    (fake / "sbatch").write_text("echo 7; exit 0")
    SlurmExecutor().start(sweep, [waiting])
    (fake / "squeue").write_text(SILENT)
    assert states_without_queue(sweep) == {"a": State.DONE, "b": State.SUBMITTED}
    waiting.point_file.unlink()
    assert SlurmExecutor().states(sweep) == {"a": State.DONE}


def test_a_submission_without_an_answer_is_looked_for_before_it_is_tried_again(fake: Path, tmp_path: Path) -> None:
    sweep = SweepFolder(tmp_path / "sweep")
    point = make_point(sweep, "a", "true")
    row = f"7|0|PENDING|Resources|{sbatch.tag(sweep)}:001"
    (fake / "sbatch").write_text(f"echo '{row}' > {tmp_path}/rows\necho 'Socket timed out' >&2; exit 1")
    (fake / "squeue").write_text(f"[ -e {tmp_path}/rows ] && cat {tmp_path}/rows")
    executor = SlurmExecutor()
    executor.start(sweep, [point])
    assert len(calls(fake, "sbatch")) == 1
    assert '"7"' in (sweep.jobs / "001" / "submitted.json").read_text()
    assert executor.states(sweep) == {"a": State.SUBMITTED}
    (tmp_path / "rows").write_text("")
    assert executor.states(sweep) == {"a": State.LOST}, "its job has vanished, and it was never begun"


def test_a_refusal_is_told_and_the_point_stays_planned(fake: Path, tmp_path: Path) -> None:
    sweep = SweepFolder(tmp_path / "sweep")
    point = make_point(sweep, "a", "true")
    (fake / "sbatch").write_text("echo 'sbatch: error: invalid account' >&2; exit 1")
    executor = SlurmExecutor()
    assert executor.problems() == ("Slurm refuses such a job: sbatch: error: invalid account",)
    with pytest.raises(ExecutorError, match="invalid account"):
        executor.start(sweep, [point])
    assert executor.states(sweep) == {"a": State.PLANNED}


def test_what_slurm_prints_on_several_lines_stays_on_several_lines(fake: Path) -> None:
    (fake / "sbatch").write_text(
        f"echo 'sbatch: error: no address' >&2; echo 'sbatch: error: no address' >&2; {SILENT}"
    )
    (problem,) = SlurmExecutor().problems()
    assert problem.splitlines() == [
        "Slurm does not answer:",
        "  sbatch: error: no address",
        "  Unable to contact slurm controller (connect failure)",
    ]


def test_only_jobs_of_this_folder_with_the_number_that_was_noted_are_cancelled(fake: Path, tmp_path: Path) -> None:
    sweep = SweepFolder(tmp_path / "sweep")
    points = [make_point(sweep, name, "true") for name in ("a", "b")]
    (fake / "sbatch").write_text("echo 7; exit 0")
    said: list[str] = []
    executor = SlurmExecutor(say=said.append)
    executor.start(sweep, points)
    tag = sbatch.tag(sweep)
    rows = [f"7|0|RUNNING|None|{tag}:001", f"7|1|PENDING|JobHeldUser|{tag}:001"]
    rows += [f"8|0|RUNNING|None|{tag}:001", "9|0|RUNNING|None|of somebody else", "10|0|RUNNING|None|"]
    (tmp_path / "rows").write_text("\n".join(rows[1:] + rows[:1]) + "\n")
    (fake / "squeue").write_text(f"cat {tmp_path}/rows")
    assert executor.states(sweep) == {"a": State.RUNNING, "b": State.SUBMITTED}
    assert said == ["job 7 waits: JobHeldUser; try: scontrol show job 7"]
    assert executor.cancel(sweep) == ("a", "b")
    assert calls(fake, "scancel") == ["scancel 7"]
    (tmp_path / "rows").write_text("")
    assert executor.states(sweep) == {"a": State.CANCELLED, "b": State.CANCELLED}


def test_a_job_that_slurm_could_not_start_and_holds_is_let_go(fake: Path, tmp_path: Path) -> None:
    sweep = SweepFolder(tmp_path / "sweep")
    points = [make_point(sweep, name, "true") for name in ("a", "b")]
    (fake / "sbatch").write_text("echo 7; exit 0")
    said: list[str] = []
    executor = SlurmExecutor(SlurmOptions(poll_s=0.01), said.append)
    executor.start(sweep, points)
    held, let_go = f"7|0|PENDING|launch failed requeued held|{sbatch.tag(sweep)}:001", f"{tmp_path}/let-go"
    (fake / "squeue").write_text(f"[ -e {let_go} ] || echo '{held}'")
    (fake / "scontrol").write_text(f'echo "scontrol $*" >> {tmp_path}/calls; touch {let_go}')
    executor.wait(sweep, lambda: None)
    assert calls(fake, "scontrol")[-1] == "scontrol release 7_0"
    assert said == ["job 7 waits: launch failed requeued held; try: scontrol show job 7"]


def test_without_slurm_the_way_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.path.dirname(sys.executable))
    (problem,) = SlurmExecutor().problems()
    assert "--executor=local" in problem
