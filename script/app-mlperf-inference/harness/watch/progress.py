"""Tells on stderr how a run goes: samples done, current rate, time left.

A terminal gets one line that is rewritten every second, anything else a line every five seconds. The core counts in
`Counts`, one slot for each thread that answers, so that counting needs no lock; a thread of its own reads them here.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TextIO

FD_VARIABLE = "HARNESS_PROGRESS_FD"
"""Environment variable: number of an open file that ends at a terminal. For callers that catch stderr: the rewritten
line then goes there."""

TERMINAL_INTERVAL_S = 1.0
LINE_INTERVAL_S = 5.0
_RATE_WINDOW_S = 10.0
"""The current rate is that of the last so many seconds: slow models finish nothing for seconds on end."""


class Counts:
    """Samples answered so far; slot `n` is written by instance `n` alone: `counts.slots[n] += len(batch)`.

    expected: samples of the whole run where they are known only after it began (Offline's one query), else 0.
    """

    def __init__(self, instances: int = 1) -> None:
        self.slots = [0] * instances
        self.expected = 0

    @property
    def done(self) -> int:
        """All slots together; exact between two batches, never too high."""
        return sum(self.slots)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What a run has at least before it: `at_least_s` seconds (0 in accuracy mode) and `at_least_samples` samples."""

    title: str
    at_least_s: float
    at_least_samples: int


def time_left_s(expectation: Expectation, expected: int, done: int, elapsed_s: float, rate: float) -> float | None:
    """Return about how long the run still takes; None while no rate is known. `rate` in samples/s.

    A run of which the samples are known (`expected`) ends with the last of them; another one when both its time and
    its number of samples are reached.
    """
    samples = expected or expectation.at_least_samples
    missing = max(0, samples - done)
    if missing and rate <= 0:
        return None
    by_samples_s = missing / rate if missing else 0.0
    return by_samples_s if expected else max(by_samples_s, expectation.at_least_s - elapsed_s, 0.0)


def duration_text(seconds: float) -> str:
    """Return a duration as people say it: `8 s`, `3 min 20 s`, `2 h 5 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def rate_text(rate: float) -> str:
    """Return a rate with three digits below 1000."""
    return f"{rate:,.0f}" if rate >= 1000 else f"{rate:.3g}"


class Meter:
    """The current rate over a moving window. `clock` readings come in as arguments."""

    def __init__(self, started_s: float) -> None:
        self._points: deque[tuple[float, int]] = deque([(started_s, 0)])

    def rate(self, now_s: float, done: int) -> float:
        """Note `done` samples at `now_s` and return the rate since the oldest point of the window."""
        self._points.append((now_s, done))
        while len(self._points) > 2 and self._points[1][0] <= now_s - _RATE_WINDOW_S:
            self._points.popleft()
        then_s, before = self._points[0]
        return (done - before) / (now_s - then_s) if now_s > then_s else 0.0


def progress_line(expectation: Expectation, counts: Counts, elapsed_s: float, rate: float) -> str:
    """Return one line of progress."""
    done, expected = counts.done, counts.expected
    total = expected or (expectation.at_least_samples if expectation.at_least_s <= 0 else 0)
    amount = f"{done:,} of {total:,} samples" if total else f"{done:,} samples"
    left_s = time_left_s(expectation, expected, done, elapsed_s, rate)
    left = "time left not known yet" if left_s is None else f"about {duration_text(left_s)} left"
    return f"{expectation.title}: {amount}, {rate_text(rate)} samples/s, {duration_text(elapsed_s)}, {left}"


@dataclass(frozen=True, slots=True)
class Outlet:
    """Where lines go, and whether that is a terminal."""

    stream: TextIO
    is_terminal: bool

    def write(self, line: str) -> None:
        """Show one state of the run; a broken outlet ends no benchmark."""
        with contextlib.suppress(OSError, ValueError):
            self.stream.write(f"\rharness: {line}\x1b[K" if self.is_terminal else f"harness: {line}\n")
            self.stream.flush()

    def close(self) -> None:
        """End a rewritten line, so that the next text stands on a line of its own."""
        if self.is_terminal:
            with contextlib.suppress(OSError, ValueError):
                self.stream.write("\r\x1b[K")
                self.stream.flush()


@contextlib.contextmanager
def open_outlet(environment: Mapping[str, str], stderr: TextIO) -> Iterator[Outlet]:
    """Give the outlet that FD_VARIABLE names, else stderr. A number that is no open file is left alone."""
    number = environment.get(FD_VARIABLE, "")
    if number.isascii() and number.isdigit():
        with contextlib.suppress(OSError), open(int(number), "w", encoding="utf-8", closefd=False) as stream:
            yield Outlet(stream, is_terminal=True)
            return
    yield Outlet(stderr, is_terminal=stderr.isatty())


@contextlib.contextmanager
def progress(expectation: Expectation, counts: Counts) -> Iterator[None]:
    """Report while the block runs; costs the run nothing per sample but its own counting."""
    done = threading.Event()
    started_s = time.monotonic()
    meter = Meter(started_s)

    def report(outlet: Outlet) -> None:
        interval_s = TERMINAL_INTERVAL_S if outlet.is_terminal else LINE_INTERVAL_S
        while not done.wait(interval_s):
            now_s = time.monotonic()
            rate = meter.rate(now_s, counts.done)
            outlet.write(progress_line(expectation, counts, now_s - started_s, rate))

    with open_outlet(os.environ, sys.stderr) as outlet:
        thread = threading.Thread(target=report, args=(outlet,), daemon=True, name="progress")
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            outlet.close()
