"""Ends a run in which nothing is answered any more: a device or a server that hangs raises no error, and LoadGen would
wait for it without end.

Silence is time in which samples are open (LoadGen has asked, nobody has answered) and none is answered. While LoadGen
makes queries, samples are loaded, or latencies are sorted, none is open. A thread reads the counts (`Counts`) once a
second; a query costs that one addition.
"""

import contextlib
import faulthandler
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.watch.progress import Counts, duration_text
from crowdperf.rules.names import counted

SILENCE_S = 900.0
"""How long nothing may be answered where the user says nothing: our choice, longer than the slowest answers of a
processor take."""

_TIMES = 30.0
"""Or so many times what a batch took before the test, where that is longer: samples of one data set differ, and the
first batch of another size may set libraries up."""

FIRST_CALLS_S = 3600.0
"""The same before the test, where nothing is measured yet and first calls may compile the network."""

_LOOK_S = 1.0
_HELD_S = 5.0
"""So much after the limit the interpreter itself ends the process where a backend holds its lock: no thread of Python
runs then."""


def silence_limit_s(given_s: float | None, batch_s: float) -> float:
    """Return how long nothing may be answered. given_s: what the user says. batch_s: of a batch, measured before."""
    return given_s if given_s is not None else max(SILENCE_S, _TIMES * batch_s)


class Silence:
    """Follows the counts from look to look; clock readings come in as arguments."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._signs = counts.signs
        self._began_s: float | None = None

    def look(self, now_s: float) -> float:
        """Return for how many seconds nothing has been answered while something was open."""
        signs, is_open = self._counts.signs, self._counts.open > 0
        if not is_open:
            self._began_s = None
        elif self._began_s is None or signs != self._signs:
            self._began_s = now_s
        self._signs = signs
        return 0.0 if self._began_s is None else now_s - self._began_s


def _error(counts: Counts, limit_s: float) -> HarnessError:
    waiting, done = counted(counts.open, "sample"), counted(counts.done, "sample")
    return HarnessError(
        f"no response for {_text(limit_s)} while {waiting} waited ({done} were answered before)",
        "look for a hang in the log of the engine, server or device (dmesg, nvidia-smi). If it is only slow, set "
        f"--request_timeout_s={2 * limit_s:g} to wait longer",
    )


def _text(limit_s: float) -> str:
    return duration_text(limit_s) if limit_s >= 10 else f"{limit_s:g} s"


@contextlib.contextmanager
def silence_ends(counts: Counts, limit_s: float, end: Callable[[BaseException], None]) -> Iterator[None]:
    """Call `end` once with the error where nothing is answered for longer than `limit_s` while something is open.

    A backend that hangs in C code without giving the interpreter's lock back ends the process, with the calls of all
    threads on stderr ("Timeout"): nothing else can run then.
    """
    is_over, silence = threading.Event(), Silence(counts)
    look_s = min(_LOOK_S, limit_s / 4)
    end_later = partial(faulthandler.dump_traceback_later, limit_s + _HELD_S, exit=True)

    def watch() -> None:
        while not is_over.wait(look_s):
            end_later()
            if silence.look(time.monotonic()) > limit_s:
                faulthandler.cancel_dump_traceback_later()
                end(_error(counts, limit_s))
                return

    end_later()
    thread = threading.Thread(target=watch, daemon=True, name="silence")
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        faulthandler.cancel_dump_traceback_later()
