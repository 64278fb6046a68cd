"""Runs the points of a sweep on this machine: one after another, because a measurement wants the machine to itself."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from crowdperf.kit.file_locks import lock_open_file
from crowdperf.kit.whole_file import read_object
from crowdperf.sweeps import attempts, states
from crowdperf.sweeps.executor import ExecutorError, wrapper_words
from crowdperf.sweeps.folder import PointFolder, State, SweepFolder
from crowdperf.sweeps.surroundings import machine_lock

CANCELLED = "cancelled"
"""In jobs/: somebody has cancelled the sweep since it was started last."""


@dataclass(frozen=True)
class LocalOptions:
    """How points run here. More than one at a time needs exclusive=False, and every point then says so."""

    max_parallel: int = 1
    exclusive: bool = True
    heartbeat_s: float = attempts.HEARTBEAT_S
    grace_s: float = 28.0
    secrets: Path | None = None


def wrong_options(options: LocalOptions) -> list[str]:
    """What is wrong with the values, one line for each, with the name of the input."""
    if options.max_parallel < 1:
        return [f"--max_parallel must be at least 1, got {options.max_parallel}"]
    if options.max_parallel > 1 and options.exclusive:
        return [
            f"--max_parallel={options.max_parallel} would let points of one machine disturb each other. "
            "Try --max_parallel=1, or --exclusive=no to have them labeled 'not exclusive'"
        ]
    return []


@contextlib.contextmanager
def _ctrl_c_later() -> Iterator[None]:
    """Keeps Ctrl-C waiting: here until the wrapper is known, and in the wrapper until it can end in good order."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class LocalExecutor:
    """Executor of this machine. `say` gets what people should read while they wait."""

    def __init__(self, options: LocalOptions | None = None, say: Callable[[str], None] = lambda text: None) -> None:
        self.options = options or LocalOptions()
        self.say = say
        self._may_clear = True

    def problems(self) -> tuple[str, ...]:
        """Nothing: this machine takes what `wrong_options` lets through."""
        return ()

    def start(self, sweep: SweepFolder, points: Sequence[PointFolder]) -> None:
        """Makes an attempt of each point; returns when all have ended. Raises KeyboardInterrupt.

        Begins nothing more after `cancel`, whoever called it, until a new executor is made.
        """
        sweep.jobs.mkdir(parents=True, exist_ok=True)
        cancelled = sweep.jobs / CANCELLED
        if self._may_clear:
            cancelled.unlink(missing_ok=True)
        self._may_clear = False
        waiting = list(points)
        running: dict[str, subprocess.Popen[bytes]] = {}
        descriptor = self._lock() if self.options.exclusive else None
        try:
            while waiting or running:
                while waiting and len(running) < self.options.max_parallel and not cancelled.exists():
                    point = waiting.pop(0)
                    with _ctrl_c_later():
                        running[point.id] = self._begin(point, descriptor)
                if not running:
                    return
                self._end_one(sweep, running)
        except KeyboardInterrupt:
            for child in running.values():
                child.send_signal(signal.SIGINT)
            while running:
                self._end_one(sweep, running)
            raise
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def _begin(self, point: PointFolder, descriptor: int | None) -> subprocess.Popen[bytes]:
        options = self.options
        words = [*wrapper_words(sys.executable), f"--point={point.path.absolute()}"]
        words += [f"--heartbeat_s={options.heartbeat_s}", f"--grace_s={options.grace_s}"]
        words += [f"--lock_fd={descriptor}"] if descriptor is not None else []
        words += [f"--secrets={options.secrets}"] if options.secrets is not None else []
        # The wrapper keeps the machine's lock, should this process be killed.
        keep = () if descriptor is None else (descriptor,)
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, pass_fds=keep)

    def _end_one(self, sweep: SweepFolder, running: dict[str, subprocess.Popen[bytes]]) -> None:
        """Waits until one of the wrappers has ended, and sees to it that nothing of its point is left."""
        while True:
            for point_id, child in list(running.items()):
                try:
                    child.wait(timeout=None if len(running) == 1 else 0.05)
                except subprocess.TimeoutExpired:
                    continue
                del running[point_id]
                if child.returncode < 0:
                    attempts.end_leftovers(sweep.point(point_id).path)
                return

    def _lock(self) -> int:
        """The machine's lock. Waits for other sweeps of this user; says so."""
        try:
            descriptor = machine_lock()
        except OSError as error:
            raise ExecutorError(f"cannot lock this machine for measuring: {error}") from error
        waiting = "waiting: another of your sweeps is measuring on this machine"
        lock_open_file(descriptor, on_wait=lambda: self.say(waiting))
        return descriptor

    def states(self, sweep: SweepFolder) -> dict[str, State]:
        """The state of each written point, from its files."""
        return {point.id: states.status(point).state for point in sweep.points()}

    def wait(self, sweep: SweepFolder, changed: Callable[[], object]) -> None:
        """Waits for points that another process runs; `start` returns only when its own have ended."""
        before = self.states(sweep)
        while State.RUNNING in before.values():
            time.sleep(0.5)
            now = self.states(sweep)
            if now != before:
                changed()
            before = now

    def hold_back(self, sweep: SweepFolder) -> tuple[str, ...]:
        """Nothing: what is handed over begins."""
        return ()

    def cancel(self, sweep: SweepFolder) -> tuple[str, ...]:
        """Ends the points that run on this machine, and keeps the command that runs them from beginning others."""
        sweep.jobs.mkdir(parents=True, exist_ok=True)
        (sweep.jobs / CANCELLED).touch()
        ended = []
        for point in sweep.points():
            attempt = states.mark_cancelled(point)
            process = ((read_object(attempt / "state.json") or {}).get("process") or {}) if attempt else {}
            if process and attempts.identity(process["pid"]) == process:
                os.kill(process["pid"], signal.SIGTERM)
                ended.append(point.id)
        return tuple(ended)
