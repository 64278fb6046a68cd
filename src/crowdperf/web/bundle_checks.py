"""Checks a bundle in a process of its own, which ends at a limit of processor time, memory and clock.

The limit of processor time is the bundle's own cost (422); where the clock ends the check first, the machine was busy
(503). The process tells whose bundle it is as soon as the signature fits, so that a key that is over its limit costs no
check, and one whose bundles are refused or too dear is counted.
"""

import contextlib
import io
import multiprocessing
import resource
import signal
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Final

from crowdperf.logs.found_runs import RunFiles
from crowdperf.store.archive import Limits
from crowdperf.store.bundle import ReadBundle, read_bundle
from crowdperf.store.consistency import results_of_bundle
from crowdperf.store.model import NewResult, Problem
from crowdperf.store.refusal import BundleRefused

MAX_MEMORY_BYTES: Final = 2 << 30
"""Address space of a check: the interpreter and a bundle of 64 MB unpacked need a fifth of it."""
CLOCK_FACTOR: Final = 3
"""How many times longer by the clock than in processor time a check may take."""

Read = tuple[ReadBundle, tuple[NewResult, ...]]
_FORKS: Final = multiprocessing.get_context("forkserver")


class CheckBusy(Exception):
    """The check could not be ended because the machine was busy, or the server ends."""


class OverLimit(Exception):
    """The key has sent enough for now; `wait_s` seconds until it may again."""

    def __init__(self, wait_s: float) -> None:
        super().__init__(f"{wait_s:g} s")
        self.wait_s = wait_s


def read_and_check(body: bytes, limits: Limits, on_signed: Callable[[str], object] = lambda key_id: None) -> Read:
    """A bundle and its results, everything checked; the files are with the results alone. on_signed: gets the key once
    its signature fits.

    Raises BundleRefused.
    """
    bundle = read_bundle(io.BytesIO(body), limits, on_signed)
    return replace(bundle, files=RunFiles()), results_of_bundle(bundle)


def _check(connection: Connection, body: bytes, limits: Limits, cpu_s: int) -> None:
    """What the process does: it answers with its steps, the last of which says what was found."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends this process
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    with contextlib.suppress(BrokenPipeError):
        try:
            found = read_and_check(body, limits, lambda key_id: connection.send(("signed", key_id)))
        except BundleRefused as refused:
            connection.send(("refused", refused.problems))
        except MemoryError:
            connection.send(("refused", (_too_dear("more memory than a check may have"),)))
        except BrokenPipeError:
            raise
        except Exception as error:  # what a stranger sent that no check foresees: no fault of its cost
            traceback.print_exc()
            told = f"cannot be checked ({type(error).__name__})"
            connection.send(("refused", (Problem(rule="FORM", file="", found=told, expected="files of a run"),)))
        else:
            connection.send(("read", found))


def _too_dear(found: str) -> Problem:
    return Problem(rule="LIMIT", file="", found=found, expected="a smaller bundle")


@dataclass(slots=True)
class Checker:
    """Reads bundles, each in a process. cpu_s: what one may cost. wait_s: how long a key has to wait. count: counts a
    bundle of a key that was refused."""

    cpu_s: float
    wait_s: Callable[[str], float]
    count: Callable[[str], object]
    _running: set[BaseProcess] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _is_closed: bool = False

    def __call__(self, body: bytes, limits: Limits) -> Read:
        """A bundle and its results. Raises BundleRefused, CheckBusy, OverLimit."""
        ours, theirs = _FORKS.Pipe(duplex=False)
        process = _FORKS.Process(target=_check, args=(theirs, body, limits, max(1, round(self.cpu_s))), daemon=True)
        with self._lock:
            if self._is_closed:
                raise CheckBusy
            process.start()
            self._running.add(process)
        theirs.close()
        try:
            return self._answer(ours)
        finally:
            ours.close()
            process.kill()
            process.join()
            with self._lock:
                self._running.discard(process)

    def _answer(self, connection: Connection) -> Read:
        key_id = ""
        with contextlib.suppress(EOFError):
            while connection.poll(CLOCK_FACTOR * self.cpu_s):
                step, value = connection.recv()
                if step == "signed":
                    key_id = value
                    if wait_s := self.wait_s(key_id):
                        raise OverLimit(wait_s)
                elif step == "read":
                    read: Read = value
                    return read
                else:
                    self._counted(key_id)
                    raise BundleRefused(*value)
            raise CheckBusy
        if self._is_closed:
            raise CheckBusy
        self._counted(key_id)
        raise BundleRefused(_too_dear(f"not checked within {self.cpu_s:g} s of CPU time"))

    def _counted(self, key_id: str) -> None:
        if key_id:
            self.count(key_id)

    def close(self) -> None:
        """End the checks that are under way; no further one begins."""
        with self._lock:
            self._is_closed = True
            for process in self._running:
                process.kill()


def warm_up() -> None:
    """Start the process that the checks are forked from, with what they need in memory."""
    from multiprocessing import forkserver

    forkserver.set_forkserver_preload([__name__])
    forkserver.ensure_running()


Reader = Callable[[bytes, Limits], Any]
"""What reads a bundle and checks it, as a Checker does."""
