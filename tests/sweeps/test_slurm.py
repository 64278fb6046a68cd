"""The executor of Slurm with a real one, of emulated nodes below a temporary folder."""

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest
from point_builder import make_point
from recipe_programs import importable
from slurm_sandbox import reason_against
from slurm_tools import executor, slurm

from crowdperf.sweeps import attempts, sbatch, slurmclient, states
from crowdperf.sweeps.executor import STARTER, wrapper_words
from crowdperf.sweeps.folder import PointFolder, State, SweepFolder
from crowdperf.sweeps.slurm import SlurmExecutor
from crowdperf.sweeps.sweep import Conduct, Sweep

pytestmark = pytest.mark.skipif(bool(reason_against()), reason=reason_against() or "a Slurm can be started")

INTERVAL = "date +%s%N > begin; sleep {0}; date +%s%N > end"


@pytest.fixture
def sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SweepFolder:
    monkeypatch.setattr(slurmclient, "PAUSES_S", (0.5,) * 20)
    return SweepFolder(tmp_path / "it's a 100%A sweep")


def intervals(points: list[PointFolder]) -> list[tuple[int, int]]:
    results = [point.results for point in points]
    return sorted((int((path / "begin").read_text()), int((path / "end").read_text())) for path in results)


def run_five(sweep: SweepFolder, mine: SlurmExecutor) -> dict[str, State]:
    """Three points that are fine, one that fails, one that is invalid; gives the states at the end."""
    points = [make_point(sweep, name, 'echo "<$TOKEN>"; ' + INTERVAL.format(0.2)) for name in ("a", "b", "c")]
    points.append(make_point(sweep, "d", "exit 9"))
    points.append(make_point(sweep, "e", """echo '{"verdict": "INVALID"}' > o.json""", outcome="o.json"))
    mine.start(sweep, points)
    mine.start(sweep, points)
    assert len(list(sweep.jobs.glob("*/submitted.json"))) == 1, "the jobs are there: nothing is submitted twice"
    mine.wait(sweep, lambda: None)
    assert (points[0].attempts / "001" / "out.txt").read_text() == "<>\n"
    return mine.states(sweep)


EXPECTED = {**dict.fromkeys("abc", State.DONE), "d": State.FAILED, "e": State.INVALID}


def test_points_run_as_one_array(sweep: SweepFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in a folder whose name has a blank, a quote and Slurm's %A; a token in the environment goes nowhere."""
    monkeypatch.setenv("TOKEN", "token-of-nobody")
    with slurm(monkeypatch, 2) as sandbox:
        mine = executor()
        assert mine.problems() == ()
        assert "no-such" in executor(partition="no-such").problems()[0]
        assert run_five(sweep, mine) == EXPECTED
        for folder in (sandbox.folder, sweep.path):
            files = [path for path in folder.rglob("*") if path.is_file()]
            assert not [path for path in files if b"token-of-nobody" in path.read_bytes()]
        assert sandbox.processes()
    assert not sandbox.folder.exists()
    assert not sandbox.processes()


@pytest.mark.full
def test_exclusive_points_do_not_overlap_and_slurm_may_forget_them(
    sweep: SweepFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with slurm(monkeypatch, 1, min_job_age_s=2) as sandbox:
        mine = executor(exclusive=True)
        assert run_five(sweep, mine) == EXPECTED
        points = [sweep.point(name) for name in ("a", "b", "c")]
        assert all(first[1] <= second[0] for first, second in pairwise(intervals(points)))
        sandbox.until(lambda: not sandbox.run("squeue", "-h", "-t", "all"), 120)
        assert mine.states(sweep) == EXPECTED
        mine.start(sweep, points[:1])
        mine.wait(sweep, lambda: None)
        assert len(states.attempt_folders(points[0])) == 1, "a point that is done is left at once"


@pytest.mark.full
def test_no_more_run_at_once_than_allowed_and_pending_ones_are_cancelled(
    sweep: SweepFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = [make_point(sweep, f"p{number}", "touch begun; sleep 1.5") for number in range(8)]
    with slurm(monkeypatch, 4) as sandbox:
        stranger = subprocess.run(
            ["sbatch", "--parsable", f"--job-name={sbatch.job_name(sweep)}", "--wrap=sleep 300"],
            env=sandbox.environment,
            cwd=sandbox.folder,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        mine = executor(max_parallel=2)
        mine.start(sweep, points)
        most = 0
        while not all((point.results / "begun").exists() for point in points[:4]):
            most = max(
                most, sandbox.run("squeue", "-h", "-t", "R", "-r", "-o", "%F").split().count(str(int(stranger) + 1))
            )
            time.sleep(0.1)
        assert most == 2
        ended = mine.cancel(sweep)
        assert 4 <= len(ended) <= 6
        mine.wait(sweep, lambda: None)
        found = mine.states(sweep)
        assert set(found.values()) == {State.DONE, State.CANCELLED}
        assert {point for point, state in found.items() if state is State.CANCELLED} == set(ended)
        assert stranger in sandbox.run("squeue", "-h", "-o", "%A"), "a job of somebody else is left alone"


@pytest.mark.full
def test_after_a_failure_what_runs_goes_on_and_what_waits_is_held_back(
    sweep: SweepFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails, runs = (
        make_point(sweep, "a", "while [ ! -e ../../b/begun ]; do sleep 0.1; done; exit 9"),
        "touch ../begun; sleep 3",
    )
    points = [fails, make_point(sweep, "b", runs), *(make_point(sweep, name, "true") for name in "cd")]
    said: list[str] = []
    with slurm(monkeypatch, 2):
        work = Sweep(sweep, executor(max_parallel=2), Conduct(stops=True), lambda found: None, said.append)
        found = work.run([point.id for point in points])
    assert found == {"a": State.FAILED, "b": State.DONE, "c": State.CANCELLED, "d": State.CANCELLED}
    assert "stopped: 2 points not started (--on_failure=stop)" in said


@pytest.mark.full
def test_points_on_nodes_that_share_a_machine_are_labelled(sweep: SweepFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    points = [make_point(sweep, name, INTERVAL.format(3)) for name in ("a", "b")]
    with slurm(monkeypatch, 2):
        mine = executor(exclusive=True)
        mine.start(sweep, points)
        mine.wait(sweep, lambda: None)
    first, second = intervals(points)
    assert second[0] < first[1], "both ran at once"
    assert [states.status(point).label for point in points] == ["not exclusive"] * 2


@pytest.mark.full
def test_a_command_killed_after_sbatch_finds_its_jobs_again(
    sweep: SweepFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = [make_point(sweep, f"p{number}", "sleep 1; echo x >> runs.txt") for number in range(4)]
    program = (
        "import os, signal, sys; from pathlib import Path; from crowdperf.sweeps.folder import SweepFolder\n"
        "from crowdperf.sweeps import slurm; from crowdperf.sweeps.sbatch import SlurmOptions\n"
        "slurm.write_state = lambda *given: os.kill(os.getpid(), signal.SIGKILL)  # of submitted.json\n"
        "sweep = SweepFolder(Path(sys.argv[1]))\n"
        "slurm.SlurmExecutor(SlurmOptions(exclusive=False, heartbeat_s=1)).start(sweep, sweep.points())\n"
    )
    with slurm(monkeypatch, 2):
        scripts = {**os.environ, "PYTHONPATH": str(STARTER.parents[2])}
        ended = subprocess.run([sys.executable, "-c", program, str(sweep.path)], env=scripts, check=False)
        assert ended.returncode == -signal.SIGKILL
        assert not list(sweep.jobs.glob("*/submitted.json"))
        mine = executor()
        assert set(mine.states(sweep).values()) <= {State.SUBMITTED, State.RUNNING}
        mine.start(sweep, points)
        mine.wait(sweep, lambda: None)
        assert set(mine.states(sweep).values()) == {State.DONE}
    assert len(list(sweep.jobs.glob("*/job.sh"))) == 1
    assert {(point.results / "runs.txt").read_text() for point in points} == {"x\n"}


@pytest.mark.full
def test_an_array_is_split_where_slurm_takes_no_larger_one(sweep: SweepFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    points = [make_point(sweep, f"p{number:04d}", "true") for number in range(1500)]
    with slurm(monkeypatch, 1, cores=2) as sandbox:
        mine = executor(max_parallel=1)
        mine.start(sweep, points)
        indexes: dict[str, list[int]] = {}
        for line in sandbox.run("squeue", "-h", "-r", "-o", "%F %K").splitlines():
            indexes.setdefault(line.split()[0], []).append(int(line.split()[1]))
        assert sorted(map(max, indexes.values())) == [498, 1000]
        assert set(mine.states(sweep).values()) <= {State.SUBMITTED, State.RUNNING, State.DONE}
        assert len(mine.cancel(sweep)) > 1490


@pytest.mark.full
def test_a_time_limit_interrupts_and_queues_again(sweep: SweepFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """One minute; the program ignores the signal the first time."""
    point = make_point(
        sweep, "a", "echo start; [ -e again ] && exit 0; touch again; trap 'echo told' TERM; sleep 90; sleep 90"
    )
    with slurm(monkeypatch, 1):
        mine = executor(time="1", requeue_on_timeout=True)
        mine.start(sweep, [point])
        mine.wait(sweep, lambda: None)
        assert mine.states(sweep) == {"a": State.DONE}
    first, second = states.attempt_folders(point)
    assert json.loads((first / "state.json").read_text())["reason"] == "the time limit was near"
    assert json.loads((second / "state.json").read_text())["job"]["SLURM_RESTART_COUNT"] == "1"
    assert [(path / "out.txt").read_text().splitlines()[0] for path in (first, second)] == ["start", "start"]


@pytest.mark.full
def test_a_job_after_all_others(sweep: SweepFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    points = [make_point(sweep, name, "sleep 1") for name in ("a", "b")]
    with slurm(monkeypatch, 1) as sandbox:
        mine = executor()
        mine.start(sweep, points)
        mine.afterwards(sweep, ["sh", "-c", "ls points/*/done.json | wc -l > after; exit 0"])
        sandbox.until(lambda: not sandbox.run("squeue", "-h"))
    assert (sweep.path / "after").read_text().strip() == "2"


@pytest.mark.full
def test_a_node_that_loses_attempts_is_avoided(sweep: SweepFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    points = [make_point(sweep, f"p{number}", "true") for number in range(3)]
    for point in points[:2]:
        folder = point.attempts / "001"
        folder.mkdir(parents=True)
        process = {"boot": "x", "pid_namespace": "x", "pid": 1, "start_ticks": 1}
        attempts.write_state(
            folder / "state.json", {"state": "running", "node": "n1", "process": process, "heartbeat_s": 0}
        )
        (folder / "heartbeat").touch()
    with slurm(monkeypatch, 3):
        said: list[str] = []
        mine = executor(said)
        mine.start(sweep, points)
        mine.wait(sweep, lambda: None)
        assert "n1 lost 2 attempts" in said[0]
        assert "n1" not in {states.status(point).node for point in points}


@pytest.mark.full
def test_submitit_can_start_a_point_as_well(sweep: SweepFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wrapper needs nothing of our own submission; submitit's answer without accounting is not asked for.

    Needs the package index that pip is set up with.
    """
    libraries = str(sweep.path.parent / "libraries")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--target", libraries, "submitit"]
    subprocess.run(install, check=True, timeout=300)
    monkeypatch.setenv("PYTHONPATH", libraries)  # of its job
    with importable(Path(libraries)):
        submitit = importlib.import_module("submitit")
    point = make_point(sweep, "a", INTERVAL.format(0.1))
    with slurm(monkeypatch, 1) as sandbox:
        executor = submitit.AutoExecutor(folder=sandbox.folder / "submitit", cluster="slurm")
        executor.update_parameters(timeout_min=2, cpus_per_task=1, mem_gb=1)
        command = [*wrapper_words(sys.executable), f"--point={point.path}"]
        executor.submit(submitit.helpers.CommandFunction(command))
        sandbox.until(point.done_file.exists)
    assert states.status(point).state is State.DONE
