"""Who starts the points of a sweep: this machine, one after another, or Slurm."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from crowdperf.sweeps.folder import PointFolder, State, SweepFolder

STARTER = Path(__file__).resolve().with_name("run_point.py")


def wrapper_words(python: str) -> list[str]:
    """What starts the wrapper of a point: without the packages of that Python (-S) and PYTHON* variables (-E)."""
    return [python, "-E", "-S", str(STARTER)]


class ExecutorError(Exception):
    """What was to be done cannot be done; the text says why, and what to try. What was started goes on."""


class Executor(Protocol):
    """Starts attempts of points, and decides nothing: which, how often and when to stop is the sweep's business."""

    def problems(self) -> tuple[str, ...]:
        """Why no point can be started (no sbatch, an unknown partition ...), before anything is written; else empty."""

    def start(self, sweep: SweepFolder, points: Sequence[PointFolder]) -> None:
        """Starts an attempt of each point: returns once they are handed over (Slurm), or have ended (local)."""

    def states(self, sweep: SweepFolder) -> dict[str, State]:
        """The state of each written point by its id: from done.json, the queue, the newest attempt, in this order."""

    def wait(self, sweep: SweepFolder, changed: Callable[[], object]) -> None:
        """Waits until no point is queued or running; calls `changed` when one began or ended."""

    def hold_back(self, sweep: SweepFolder) -> tuple[str, ...]:
        """Takes back what was handed over and has not begun; what runs goes on. Gives the ids of the points."""

    def cancel(self, sweep: SweepFolder) -> tuple[str, ...]:
        """Takes back what it has started for this sweep and nothing else; gives the ids of the points."""
