"""Tells on stderr how a run goes: its phase, samples done, time left, current rate.

LoadGen first makes its queries, then asks and measures, then sorts the latencies and writes its logs; each phase may
take minutes, and time and rate count from the first sample on. A terminal gets one line that is rewritten every second
and never longer than the terminal is wide, anything else a line every five seconds. The core counts in `Counts`, one
slot for each thread that answers, so that counting needs no lock; a thread of its own reads them here.
"""

import contextlib
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TextIO

FD_VARIABLE = "HARNESS_PROGRESS_FD"
"""Environment variable: number of an open file that ends at a terminal. For callers that catch stderr: the rewritten
line then goes there."""

TERMINAL_INTERVAL_S = 1.0
LINE_INTERVAL_S = 5.0
_RATE_WINDOW_S = 10.0
"""The current rate is that of the last so many seconds: slow models finish nothing for seconds on end."""

_MIN_COLUMNS = 20
"""A terminal that says it is narrower says nothing (0 is common)."""
_USUAL_COLUMNS = 80


class Counts:
    """Samples answered so far; slot `n` is written by instance `n` alone: `counts.slots[n] += len(batch)`.

    asked: samples that LoadGen has issued for the slots; its one thread writes it. The quickest queries are answered
    while it waits, and cost one addition: answering: samples of such a query now, answered: those of all before it.
    begun: answers of which the first token is told. expected: samples of the whole run where they are known only after
    it began (Offline's one query), else 0. is_flushed: LoadGen has asked everything that it will ask.
    """

    def __init__(self, instances: int = 1) -> None:
        self.slots = [0] * instances
        self.asked = self.begun = 0
        self.answering = self.answered = 0
        self.expected = 0
        self.is_flushed = False

    @property
    def done(self) -> int:
        """All answers together; exact between two batches, never too high."""
        return sum(self.slots) + self.answered

    @property
    def open(self) -> int:
        """Samples that LoadGen has issued and nobody has answered."""
        return self.asked - sum(self.slots) + self.answering

    @property
    def signs(self) -> int:
        """Signs of life: answers, and first tokens of them."""
        return self.done + self.begun

    def flush(self) -> None:
        """Note that no more queries come; LoadGen calls it once."""
        self.is_flushed = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What a run has at least before it: `at_least_s` seconds (0 in accuracy mode) and `at_least_samples` samples."""

    title: str
    at_least_s: float
    at_least_samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A run as it is seen now. waited_s: since it began; measured_s: since the first sample, None before it; rate:
    samples/s; is_over: everything is answered, and LoadGen sorts and writes."""

    done: int
    expected: int
    waited_s: float
    measured_s: float | None
    rate: float
    is_over: bool


def time_left_s(expectation: Expectation, moment: Moment) -> float | None:
    """Return about how long the measuring still takes; None while that is not known.

    A run of which the samples are known (`expected`) ends with the last of them; another one when both its time and
    its number of samples are reached.
    """
    samples = moment.expected or expectation.at_least_samples
    missing = max(0, samples - moment.done)
    if moment.measured_s is None or (missing and moment.rate <= 0):
        return None
    by_samples_s = missing / moment.rate if missing else 0.0
    return by_samples_s if moment.expected else max(by_samples_s, expectation.at_least_s - moment.measured_s, 0.0)


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


def left_text(left_s: float | None) -> str:
    """Return the time left in words. What is past its least duration is not said to have 0 s left for minutes."""
    if left_s is None:
        return "time left not known yet"
    return "ends soon" if left_s < 1.0 else f"about {duration_text(left_s)} left"


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


class Story:
    """Follows one run from look to look."""

    def __init__(self, counts: Counts, started_s: float) -> None:
        self._counts, self._started_s, self._seen_s, self._done = counts, started_s, started_s, 0
        self._expected = counts.expected
        self._first_s: float | None = None
        self._meter = Meter(started_s)

    def look(self, now_s: float) -> Moment:
        """Return the run as it is now. The first sample was asked for between this look and the one before it: one is
        answered, or it is known only now how many there are (Offline's one query)."""
        done, before = self._counts.done, self._done
        if self._first_s is None and (done or self._counts.expected != self._expected):
            self._first_s = self._seen_s
            self._meter = Meter(self._seen_s)
        self._seen_s, self._done = now_s, done
        is_all = done >= self._counts.expected if self._counts.expected else done == before
        return Moment(
            done=done,
            expected=self._counts.expected,
            waited_s=now_s - self._started_s,
            measured_s=None if self._first_s is None else now_s - self._first_s,
            rate=self._meter.rate(now_s, done),
            is_over=self._counts.is_flushed and done > 0 and is_all,
        )


def progress_lines(expectation: Expectation, moment: Moment) -> tuple[str, ...]:
    """Return one line of progress, and shorter forms of it."""
    title, short = expectation.title, expectation.title.partition(" ")[0]
    if moment.measured_s is None:
        words = f"LoadGen is making queries and loading samples, {duration_text(moment.waited_s)}"
        return f"{title}: {words}", f"{short}: {words}", words
    total = moment.expected or (expectation.at_least_samples if expectation.at_least_s <= 0 else 0)
    amount = f"{moment.done:,} of {total:,} samples" if total else f"{moment.done:,} samples"
    elapsed = duration_text(moment.measured_s)
    if moment.is_over:
        words = "LoadGen is sorting latencies and writing its logs"
        return f"{title}: {amount}, {elapsed}, {words}", f"{short}: {words}", words
    left, rate = left_text(time_left_s(expectation, moment)), f"{rate_text(moment.rate)} samples/s"
    return (
        f"{title}: measuring, {amount}, {left}, {rate}, {elapsed}",
        f"{title}: {amount}, {left}",
        f"{short}: {amount}, {left}",
        f"{amount}, {left}",
    )


def fitted(lines: Sequence[str], columns: int) -> str:
    """Return the first of the lines that a terminal of so many columns holds, or as much as it holds of the last. The
    last column stays free: some terminals begin a new line there."""
    room = columns - 1
    return next((line for line in lines if len(line) <= room), lines[-1][:room])


def clearing(length: int, columns: int) -> str:
    """Return what removes a line of `length` letters from a terminal that is now `columns` wide, where it may stand in
    several rows."""
    rows = max(0, length - 1) // columns
    return (f"\x1b[{rows}A" if rows else "") + "\r\x1b[J"


@dataclass(slots=True)
class Outlet:
    """Where lines go, and whether that is a terminal. length: of what stands in a terminal's line now."""

    stream: TextIO
    is_terminal: bool
    length: int = field(default=0, init=False)

    def _columns(self) -> int:
        """The width of the terminal; where the stream is a pipe to it, of the one that the user types in."""
        for stream in (self.stream, sys.stdin):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                columns = os.get_terminal_size(stream.fileno()).columns
                return columns if columns >= _MIN_COLUMNS else _USUAL_COLUMNS
        return _USUAL_COLUMNS

    def write(self, lines: Sequence[str]) -> None:
        """Show one state of the run in the first of these forms that fits; a broken outlet ends no benchmark.

        A blank ends a line that is rewritten: cm, which hides secrets in what it hands on, holds the last letter back.
        """
        with contextlib.suppress(OSError, ValueError):
            if self.is_terminal:
                columns = self._columns()
                line = fitted([f"harness: {form} " for form in lines] + [f"{lines[-1]} "], columns)
                self.stream.write(clearing(self.length, columns) + line)
                self.length = len(line)
            else:
                self.stream.write(f"harness: {lines[0]}\n")
            self.stream.flush()

    def close(self) -> None:
        """End a rewritten line, so that the next text stands on a line of its own."""
        if self.is_terminal:
            with contextlib.suppress(OSError, ValueError):
                self.stream.write(clearing(self.length, self._columns()))
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
    story = Story(counts, started_s)

    def report(outlet: Outlet) -> None:
        interval_s = TERMINAL_INTERVAL_S if outlet.is_terminal else LINE_INTERVAL_S
        written_s = started_s
        while not done.wait(min(interval_s, TERMINAL_INTERVAL_S)):
            now_s = time.monotonic()
            moment = story.look(now_s)
            if now_s - written_s >= interval_s * 0.99:  # a timer may be early by a little
                outlet.write(progress_lines(expectation, moment))
                written_s = now_s

    with open_outlet(os.environ, sys.stderr) as outlet:
        thread = threading.Thread(target=report, args=(outlet,), daemon=True, name="progress")
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            outlet.close()
