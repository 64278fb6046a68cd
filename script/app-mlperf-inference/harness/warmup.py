"""A short run before LoadGen starts: it warms caches up and measures how fast the very same code answers.

The figures become LoadGen's expected rate or latency where the request names none (see `settings`). A door that
leads nowhere takes the place of LoadGen, so a measured query costs what it costs in the test, LoadGen's own part
excepted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from statistics import quantiles

from mlperf_results.names import MULTI_STREAM_SAMPLES_PER_QUERY, Scenario

from harness.settings import WarmUp
from harness.sut import Door, Issue, Work, chunked, multi_inline, single_inline

_MEASURED_S = 0.4
_FEWEST_QUERIES = 4
_SLICES = 8


def _without_loadgen(work: Work) -> Work:
    return replace(work, door=Door(work.door.make_response, lambda responses: None))


def _timed_s(action: Callable[[], None]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def _fast_query_ms(issue: Issue, samples: int, loaded_count: int) -> float:
    """Return the 10th percentile of a query's milliseconds: what the machine does when others leave it alone."""
    ids = list(range(samples))
    durations_s: list[float] = []
    position = 0
    end = time.perf_counter() + _MEASURED_S
    while time.perf_counter() < end or len(durations_s) <= _FEWEST_QUERIES:
        indices = [(position + offset) % loaded_count for offset in range(samples)]
        durations_s.append(_timed_s(lambda indices=indices: issue(ids, indices)))  # type: ignore[misc]
        position += samples
    return quantiles(durations_s[1:], n=10)[0] * 1000.0


def _best_samples_per_second(issue: Issue, batch_size: int, loaded_count: int) -> float:
    """Return the rate of the fastest of a few slices, each long enough to keep all workers busy."""
    slice_samples = batch_size
    while True:
        indices = [position % loaded_count for position in range(slice_samples)]
        duration_s = _timed_s(lambda indices=indices: issue(list(range(len(indices))), indices))  # type: ignore[misc]
        if duration_s >= _MEASURED_S / _SLICES:
            break
        slice_samples = max(slice_samples * 2, int(slice_samples * _MEASURED_S / _SLICES / max(duration_s, 1e-6)))
    ids = list(range(slice_samples))
    slices = _SLICES if duration_s < 1.0 else 2
    return slice_samples / min(_timed_s(lambda: issue(ids, indices)) for _ in range(slices))


def measure(work: Work, scenario: Scenario, batch_size: int, workers: int) -> WarmUp:
    """Return what the scenario's way of answering does; samples 0, 1, 2 ... of the work's library are loaded.

    An error of the backend is recorded in the work's failures, as in the test itself.
    """
    alone = _without_loadgen(work)
    loaded_count = len(work.library.single)
    if scenario is Scenario.OFFLINE:
        shape = chunked(alone, batch_size, workers)
        rate = _best_samples_per_second(shape.issue, batch_size * workers, loaded_count)
        return WarmUp(query_latency_ms=None, samples_per_second=rate)
    if scenario is Scenario.MULTI_STREAM:
        latency_ms = _fast_query_ms(multi_inline(alone).issue, MULTI_STREAM_SAMPLES_PER_QUERY, loaded_count)
    else:
        latency_ms = _fast_query_ms(single_inline(alone).issue, 1, loaded_count)
    return WarmUp(query_latency_ms=latency_ms, samples_per_second=None)
