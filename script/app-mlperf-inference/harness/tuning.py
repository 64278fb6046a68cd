"""Finds the shape of a run by trying: how many instances, how many threads each, how large a batch.

What the request gives is not tried; what is left is measured with the samples in memory, in a time that depends on
the length of the run. On a processor the best batch is often small and the best layout one single-threaded instance
for each core, but a few cores that share their cache, or a network with small operators, turn that round: so it is
measured, not assumed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlperf_results.names import MULTI_STREAM_SAMPLES_PER_QUERY, Scenario

from harness.cores import Core
from harness.settings import WarmUp
from harness.sut import Work, chunked, multi_inline, single_inline, split
from harness.warmup import Latency, query_latency, samples_per_second, without_loadgen

_GAIN = 1.03
"""A later candidate must be so much better than the best before: measurements scatter, and the earlier one is the
simpler."""

SERVER_BATCH_OF_LIMIT = 0.25
"""The largest batch of a Server run takes at most this part of the latency limit: a sample may have to wait for the
batch before its own."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Instances, CPU threads of each, and whether waiting threads keep their cores busy."""

    instances: int
    threads: int
    is_spinning: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What is looked for. batch_size: where the search starts; equal to largest_batch_size: none is looked for.

    limit_ms: Server's latency limit. budget_s: no further candidate is tried after so long.
    """

    scenario: Scenario
    layouts: tuple[Layout, ...]
    batch_size: int
    largest_batch_size: int
    limit_ms: float
    budget_s: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """What was tried and measured. figure: the median latency of a query in ms in the streams, else samples/s."""

    instances: int
    threads: int
    is_spinning: bool
    batch_size: int
    figure: float


@dataclass(frozen=True, slots=True)
class Found:
    """The shape that was fastest, its opened work, what was measured with it, and what was tried, in order."""

    layout: Layout
    batch_size: int
    work: Work
    warm_up: WarmUp
    candidates: tuple[Candidate, ...]


def cpu_layouts(
    scenario: Scenario, cores: Sequence[Core], instances: int | None, threads: int | None
) -> tuple[Layout, ...]:
    """Return the layouts to try, the simplest first. `threads` (given, in all) and `instances` (given) are kept to.

    Streams: one instance with one thread, then with one on each core. Where LoadGen's own thread answers, waiting
    threads may spin. Offline, Server and MultiStream: an instance for each core as well, groups of four on larger
    machines, an instance for each NUMA node, and one for each hyper-thread.
    """
    total = threads or len(cores)
    if instances is not None:
        return (Layout(instances, max(1, total // instances)),)
    alone = [Layout(1, 1), *([Layout(1, total), Layout(1, total, is_spinning=True)] if total > 1 else [])]
    if scenario is Scenario.SINGLE_STREAM:
        return tuple(alone if threads is None else alone[-2:])
    several = [Layout(total, 1)] if total > 1 else []
    if total >= 8:
        several.append(Layout(total // 4, 4))
    nodes = len({core.node for core in cores})
    if threads is None and nodes > 1:
        several.append(Layout(nodes, max(1, total // nodes)))
    processors = sum(len(core.processors) for core in cores)
    if threads is None and processors > total:
        several.append(Layout(processors, 1))
    if scenario is Scenario.MULTI_STREAM:
        return (*(alone if threads is None else alone[-2:]), *several)
    return (*several, Layout(1, total))


def gpu_layouts(gpus: int, instances: int | None) -> tuple[Layout, ...]:
    """Return the layouts to try on GPUs: one and two instances (streams) on each, so that copies overlap with work."""
    if instances is not None:
        return (Layout(instances, 1),)
    return (Layout(gpus, 1), Layout(2 * gpus, 1))


@dataclass(frozen=True, slots=True)
class _Measured:
    """What a layout does. goodness: larger is better. latency: of a stream's queries. rate: samples/s elsewhere."""

    goodness: float
    latency: Latency | None = None
    rate: float = 0.0


class _Tuner:
    """Opens layout after layout and keeps the better one open."""

    def __init__(self, search: Search, open_work: Callable[[Layout], Work], close: Callable[[Work], None]) -> None:
        self._search = search
        self._open = open_work
        self._close = close
        self._end = time.monotonic() + search.budget_s
        self.candidates: list[Candidate] = []

    @property
    def has_time(self) -> bool:
        return time.monotonic() < self._end

    def _note(self, layout: Layout, batch_size: int, figure: float) -> None:
        candidate = Candidate(layout.instances, layout.threads, layout.is_spinning, batch_size, float(f"{figure:.4g}"))
        self.candidates.append(candidate)

    def _measure(self, work: Work, layout: Layout) -> _Measured:
        batch_size = self._search.batch_size
        if self._search.scenario.is_stream:
            latency = self._stream_latency(work)
            self._note(layout, batch_size, latency.median_ms)
            return _Measured(1.0 / latency.median_ms, latency=latency)
        rate = self.rate(work, batch_size)
        self._note(layout, batch_size, rate)
        return _Measured(rate, rate=rate)

    def _stream_latency(self, work: Work) -> Latency:
        alone = without_loadgen(work)
        shape, samples = single_inline(alone), 1
        if self._search.scenario is Scenario.MULTI_STREAM:
            shape = multi_inline(alone) if len(work.networks) == 1 else split(alone)
            samples = MULTI_STREAM_SAMPLES_PER_QUERY
        try:
            return query_latency(shape.issue, samples, work.library.loaded)
        finally:
            shape.close()

    def rate(self, work: Work, batch_size: int) -> float:
        """Return samples per second in batches of `batch_size` on all instances."""
        shape = chunked(without_loadgen(work), batch_size)
        try:
            return samples_per_second(shape.issue, batch_size * len(work.networks), work.library.loaded)
        finally:
            shape.close()

    def best_layout(self) -> tuple[Layout, Work, _Measured]:
        """Return the best layout, opened, and what was measured with it."""
        layouts = self._search.layouts
        best = layouts[0]
        best_work = self._open(best)
        best_measured = self._measure(best_work, best)
        for layout in layouts[1:]:
            if not self.has_time or best_work.failures.is_set:
                break
            work = self._open(layout)
            measured = self._measure(work, layout)
            if measured.goodness > best_measured.goodness * _GAIN:
                self._close(best_work)
                best, best_work, best_measured = layout, work, measured
            else:
                self._close(work)
        return best, best_work, best_measured

    def best_batch(self, work: Work, layout: Layout, known_rate: float) -> tuple[int, float]:
        """Return the batch size with the highest rate, and the rate: doubling while it gains, else halving."""
        search = self._search
        best, best_rate = search.batch_size, known_rate
        if search.batch_size == search.largest_batch_size:
            return best, best_rate
        for factor in (2.0, 0.5):
            batch_size = int(best * factor)
            while 1 <= batch_size <= search.largest_batch_size and self.has_time and not work.failures.is_set:
                rate = self.rate(work, batch_size)
                self._note(layout, batch_size, rate)
                if rate <= best_rate * _GAIN:
                    break
                best, best_rate = batch_size, rate
                batch_size = int(batch_size * factor)
            if best != search.batch_size:
                break
        return best, best_rate


def find_shape(search: Search, open_work: Callable[[Layout], Work], close: Callable[[Work], None]) -> Found:
    """Return the best shape for the scenario with what was measured.

    `open_work` opens the networks in a layout, `close` closes them again; the work in the answer is left open. An
    error of the backend is recorded in the work's failures, as in the test itself.
    """
    tuner = _Tuner(search, open_work, close)
    layout, work, measured = tuner.best_layout()
    if measured.latency is not None:
        warm_up = WarmUp(query_latency_ms=measured.latency.fast_ms, samples_per_second=None)
        return Found(layout, search.batch_size, work, warm_up, tuple(tuner.candidates))
    batch_size, rate = tuner.best_batch(work, layout, measured.rate)
    if search.scenario is Scenario.OFFLINE:
        warm_up = WarmUp(query_latency_ms=None, samples_per_second=rate)
        return Found(layout, batch_size, work, warm_up, tuple(tuner.candidates))
    latency = query_latency(single_inline(without_loadgen(work)).issue, 1, work.library.loaded)
    most = int(search.limit_ms * SERVER_BATCH_OF_LIMIT / 1000.0 * rate / layout.instances)
    warm_up = WarmUp(query_latency_ms=latency.fast_ms, samples_per_second=rate)
    return Found(layout, max(1, min(batch_size, most)), work, warm_up, tuple(tuner.candidates))
