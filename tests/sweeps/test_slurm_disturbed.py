"""Points on a Slurm whose jobs, nodes and controller are killed at random: each is done once, and right."""

import json
import os
import random
import signal
import threading
import time
from itertools import groupby
from pathlib import Path

import pytest
from point_builder import make_point
from slurm_sandbox import Sandbox, reason_against
from slurm_tools import executor, slurm

from crowdperf.sweeps import attempts, slurmclient, states
from crowdperf.sweeps.folder import PointFolder, State, SweepFolder
from crowdperf.sweeps.sweep import Conduct, Sweep

KINDS = (
    "kill_wrapper",
    "kill_program",
    "kill_step",
    "terminate_wrapper",
    "scancel",
    "requeue",
    "node_down",
    "kill_controller",
)
CALLS = 3
"""So often the same sweep is begun again, as a user would."""


class NoVictim(Exception):
    """Nothing runs at the moment that could be disturbed so."""


class Disturber(threading.Thread):
    """Disturbs a Slurm and its jobs in an order that follows from a seed: each kind twice, and not one after another.

    Afterwards it stays on as the administrator until told to stop: nodes that were down drain themselves where a job of
    theirs is queued again ("Duplicate jobid"), and are resumed.
    """

    def __init__(self, sandbox: Sandbox, sweep: SweepFolder, seed: int) -> None:
        super().__init__()
        self.sandbox, self.sweep, self.random = sandbox, sweep, random.Random(seed)
        self.planned = self.random.sample(KINDS, len(KINDS)) + self.random.sample(KINDS, len(KINDS))
        self.ended = threading.Event()
        self.did: list[str] = []

    def run(self) -> None:
        while not self.ended.wait(self.random.uniform(0.3, 1.2)):
            if len(self.did) < len(self.planned):
                kind = self.planned[len(self.did)]
                try:
                    getattr(self, kind)()
                except (NoVictim, ProcessLookupError, FileNotFoundError):
                    continue
                self.did.append(kind)
            for node in self.sandbox.run("sinfo", "-h", "-N", "-t", "drain,down", "-o", "%N").split():
                self.sandbox.run("scontrol", "update", f"NodeName={node}", "State=RESUME")

    def _running(self, column: str) -> str:
        found = self.sandbox.run("squeue", "-h", "-r", "-t", "R", "-o", column).split()
        if not found:
            raise NoVictim
        return self.random.choice(found)

    def _wrapper(self) -> int:
        found = [json.loads(path.read_text()) for path in self.sweep.path.glob("points/*/attempts/*/state.json")]
        own = [one["process"] for one in found if one["state"] == "running"]
        own = [one for one in own if attempts.identity(one["pid"]) == one]
        if not own:
            raise NoVictim
        return int(self.random.choice(own)["pid"])

    def kill_wrapper(self) -> None:
        os.kill(self._wrapper(), signal.SIGKILL)

    def kill_program(self) -> None:
        wrapper = self._wrapper()
        children = Path(f"/proc/{wrapper}/task/{wrapper}/children").read_text().split()
        programs = [int(pid) for pid in children if os.getsid(int(pid)) == int(pid)]  # squeue has no session of its own
        if not programs:
            raise NoVictim
        os.kill(programs[0], signal.SIGKILL)

    def kill_step(self) -> None:
        """The slurmstepd that has started a wrapper: Slurm then knows no more of the job than that it is gone."""
        parent = int(Path(f"/proc/{self._wrapper()}/stat").read_text().rpartition(")")[2].split()[1])
        if "slurmstepd" not in Path(f"/proc/{parent}/cmdline").read_text():
            raise NoVictim
        os.kill(parent, signal.SIGKILL)

    def terminate_wrapper(self) -> None:
        os.kill(self._wrapper(), signal.SIGTERM)

    def scancel(self) -> None:
        self.sandbox.run("scancel", self._running("%A"))

    def requeue(self) -> None:
        self.sandbox.run("scontrol", "requeue", self._running("%A"))

    def node_down(self) -> None:
        self.sandbox.run("scontrol", "update", f"NodeName={self._running('%N')}", "State=DOWN", "Reason=test")
        time.sleep(1)

    def kill_controller(self) -> None:
        self.sandbox.kill_controller()
        time.sleep(1)
        self.sandbox.start_controller()


def make_points(sweep: SweepFolder, seed: int) -> list[PointFolder]:
    """30 points of 2 to 5 s; each writes down again and again which of its programs runs."""
    program = "for i in $(seq {0}); do echo $$ >> log; sleep 0.1; done; echo {1} > value.txt"
    draw = random.Random(seed)
    return [make_point(sweep, f"p{number:02d}", program.format(draw.randint(20, 50), number)) for number in range(30)]


def check(points: list[PointFolder]) -> None:
    """Each point is done once, none is wrong, and no two programs of one ran at the same time."""
    for number, point in enumerate(points):
        done = json.loads(point.done_file.read_text())
        assert (done["verdict"], attempts.damage(point.path, done)) == ("VALID", "")
        assert (point.results / "value.txt").read_text() == f"{number}\n"
        programs = [program for program, _ in groupby((point.results / "log").read_text().split())]
        assert len(programs) == len(set(programs)), "no two of its programs ran at the same time"


@pytest.mark.full
@pytest.mark.skipif(bool(reason_against()), reason=reason_against() or "a Slurm can be started")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_point_is_done_once_whatever_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """A program that was killed is a failed point, which a user asks for again: --rerun=failed."""
    monkeypatch.setattr(slurmclient, "PAUSES_S", (0.5,) * 20)
    sweep = SweepFolder(tmp_path / "sweep")
    points = make_points(sweep, seed)
    said: list[str] = []
    calls = 0
    begin = time.monotonic()
    with slurm(monkeypatch, 4) as sandbox:
        disturber = Disturber(sandbox, sweep, seed)
        disturber.start()
        try:
            while calls < CALLS:
                calls += 1
                conduct = Conduct(rerun=("failed",))
                work = Sweep(sweep, executor(max_parallel=6), conduct, lambda found: None, said.append)
                found = work.run([point.id for point in points])
                if set(found.values()) == {State.DONE}:
                    break
        finally:
            disturber.ended.set()
            disturber.join()
    tries = sum(len(states.attempt_folders(point)) for point in points)
    print(f"seed {seed}: {len(disturber.did)} disturbances {disturber.did}, {calls} calls", end=", ")
    print(f"{len(list(sweep.jobs.glob('*/job.sh')))} submissions, {tries} attempts, {time.monotonic() - begin:.0f} s")
    assert {point: state for point, state in found.items() if state is not State.DONE} == {}, said
    assert len(disturber.did) >= 15
    assert set(disturber.did) == set(KINDS)
    check(points)
