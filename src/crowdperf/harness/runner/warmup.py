"""Measures the speed of the code of the test itself, before LoadGen starts. It also warms up caches.

The results choose the shape of the run (see `tuning`) and become LoadGen's expected rate or latency if the request has
none (see `settings`). Responses are discarded, so a measured query costs the same as in the test without LoadGen's own
part.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median, quantiles

from crowdperf.harness.runner.sut import Issue, Work
from crowdperf.harness.watch.progress import Counts
from crowdperf.harness.watch.silence import silence_ends

_MEASURED_S = 0.4
_SLICE_S = 0.05
_MIN_QUERIES = 4
_LONGEST_S = 2.0
"""A slow network is measured less often: no further query is begun after so long."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds of a query: the median, and the 10th percentile (the speed of the machine without disturbance)."""

    median_ms: float
    fast_ms: float


@dataclass(frozen=True, slots=True)
class Rate:
    """Samples per second. fastest: of the fastest slice (the speed of the machine without disturbance). samples and
    duration_s: of all slices, but the first of each measurement if there were others."""

    fastest: float
    samples: int
    duration_s: float

    @property
    def sustained(self) -> float:
        """The rate beside the other programs of the machine: of all slices together."""
        return self.samples / self.duration_s if self.duration_s else 0.0

    def with_other(self, other: Rate) -> Rate:
        """Return the rate of two measurements of the same work."""
        return Rate(
            fastest=max(self.fastest, other.fastest),
            samples=self.samples + other.samples,
            duration_s=self.duration_s + other.duration_s,
        )


@contextlib.contextmanager
def without_loadgen(work: Work, silence_s: float) -> Iterator[Work]:
    """Yield the same work with a sink that discards responses and its own counter. Without any answer for
    `silence_s`, the process ends."""
    sink = replace(work.sink, complete=lambda responses: None)
    alone = replace(work, sink=sink, counts=Counts(len(work.networks)))
    with silence_ends(alone.counts, silence_s, alone.failures.record):
        yield alone


def _timed_s(action: Callable[[], None]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def query_latency(issue: Issue, samples: int, loaded: Sequence[int]) -> Latency:
    """Return the latency of queries of `samples` samples out of the `loaded` ones, asked one after the other."""
    ids = list(range(samples))
    durations_s: list[float] = []
    position = 0
    start = time.perf_counter()
    while True:
        indices = [loaded[(position + offset) % len(loaded)] for offset in range(samples)]
        durations_s.append(_timed_s(lambda indices=indices: issue(ids, indices)))  # type: ignore[misc]
        position += samples
        elapsed_s = time.perf_counter() - start
        enough = elapsed_s >= _MEASURED_S and len(durations_s) > _MIN_QUERIES
        if len(durations_s) >= 3 and (enough or elapsed_s >= _LONGEST_S):
            break
    warm_s = durations_s[1:]
    return Latency(median_ms=median(warm_s) * 1000.0, fast_ms=quantiles(warm_s, n=10, method="inclusive")[0] * 1000.0)


def samples_per_second(issue: Issue, at_once: int, loaded: Sequence[int]) -> Rate:
    """Return the rate of a few slices, each long enough to keep all instances busy. `at_once` is the number of samples
    that they process in one step.

    Slices grow until one takes long enough. On a busy machine a small one may take so long only because other programs
    had the core: then a later one shows it, and the slices grow again.
    """

    def query(count: int) -> float:
        indices = [loaded[position % len(loaded)] for position in range(count)]
        ids = list(range(count))
        return _timed_s(lambda: issue(ids, indices))

    slice_samples, total_s = at_once, 0.0
    slices_s: list[float] = []
    while len(slices_s) < 2 or total_s < _MEASURED_S:
        took_s = query(slice_samples)
        total_s += took_s
        if took_s < (_SLICE_S / 2 if slices_s else _SLICE_S):
            slices_s.clear()
            slice_samples = max(slice_samples * 2, int(slice_samples * _SLICE_S / max(took_s, 1e-6)))
            slice_samples -= slice_samples % at_once  # a smaller batch at the end would be another measurement
            continue
        slices_s.append(took_s)
        if total_s > _LONGEST_S:
            break
    warm_s = slices_s[1:] or slices_s
    return Rate(fastest=slice_samples / min(slices_s), samples=slice_samples * len(warm_s), duration_s=sum(warm_s))
