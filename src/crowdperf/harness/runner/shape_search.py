"""Finds the shape of a run by measurement: number of instances, threads of each, batch size.

Values given by the request are kept. The others are measured with the samples in memory, in a time that depends on the
length of the run. On a CPU the best batch is often small and the best layout one single-threaded instance for each
core, but a few cores that share their cache, or a network with small operators, reverse that: so it is measured, not
assumed.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from crowdperf.harness.base.cores import Core
from crowdperf.harness.base.errors import OutOfDeviceMemory
from crowdperf.harness.runner.settings import WarmUp
from crowdperf.harness.runner.sut import Work, chunked, multi_inline, single_inline, split
from crowdperf.harness.runner.warmup import Latency, Rate, query_latency, samples_per_second, without_loadgen
from crowdperf.harness.watch.silence import FIRST_CALLS_S
from crowdperf.rules.names import MULTI_STREAM_SAMPLES_PER_QUERY, Scenario

_GAIN = 1.03
"""A later candidate must be so much better than the best before: measurements scatter, and the earlier one is the
simpler."""

_NEAR = 1.35
"""Candidates whose first results are nearer than this are measured again, in turn. A core of a virtual machine on a
shared host changed its speed between seconds by 1.45 (2 cores, 2026-11-28): a single measurement of each proved
little."""

_REMATCHES = 2

_NO_RATE = Rate(fastest=0.0, samples=0, duration_s=0.0)

SERVER_BATCH_OF_LIMIT = 0.25
"""The largest batch of a Server run lasts at most this part of the latency limit: a sample may have to wait for the
batch before its own."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Instances, CPU threads of each, and whether waiting threads keep their cores busy."""

    instances: int
    threads: int
    is_spinning: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The goal of the search. batch_size: the start of the search. If smallest_batch_size equals largest_batch_size,
    batch sizes are not searched.

    limit_ms: Server's latency limit, None in other scenarios of benchmarks without one. budget_s: measuring time after
    which no further candidate is tried (without opening networks, which may need longer on a GPU). is_cold_at_first:
    the first use of a batch size sets libraries up and is not measured. silence_s: maximum time without an answer.
    """

    scenario: Scenario
    layouts: tuple[Layout, ...]
    batch_size: int
    smallest_batch_size: int
    largest_batch_size: int
    limit_ms: float | None
    budget_s: float
    is_cold_at_first: bool = False
    silence_s: float = FIRST_CALLS_S

    @property
    def has_batch_search(self) -> bool:
        return self.smallest_batch_size != self.largest_batch_size and not self.scenario.is_stream

    def allows(self, batch_size: int) -> bool:
        """Whether a batch size is one that the search could find."""
        if self.has_batch_search:
            return self.smallest_batch_size <= batch_size <= self.largest_batch_size
        return batch_size == self.batch_size


@dataclass(frozen=True, slots=True)
class Candidate:
    """A measured candidate. figure: the median latency of a query in ms in the streams, else samples/s."""

    instances: int
    threads: int
    is_spinning: bool
    batch_size: int
    figure: float


@dataclass(frozen=True, slots=True)
class BestShape:
    """The fastest shape, its opened work, its measurements, and the candidates, in order."""

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
    """Return the layouts to try on GPUs: one and two instances (streams) on each.

    The second instance shares the weights, and copies its batch while the first one computes. Two batches in one
    instance would save its working memory alone, and would split each model's `predict` into the parts before and after
    a network. Not run on hardware.
    """
    if instances is not None:
        return (Layout(instances, 1),)
    return (Layout(gpus, 1), Layout(2 * gpus, 1))


@dataclass(frozen=True, slots=True)
class _Measured:
    """The measurement of a layout. goodness: larger is better. latency: of a stream's queries. rate: elsewhere, in
    batches of `batch_size`."""

    goodness: float
    batch_size: int
    latency: Latency | None = None
    rate: Rate = _NO_RATE

    def with_other(self, other: _Measured | None) -> _Measured:
        """Return the better of two measurements of one candidate, with the rate of both. None: the second failed."""
        if other is None:
            return self
        return replace(max(self, other, key=lambda one: one.goodness), rate=self.rate.with_other(other.rate))


Again: TypeAlias = "Callable[[], _Measured | None]"
"""Measures a candidate once more."""


class _Tuner:
    """Opens layout after layout and keeps the better one open."""

    def __init__(self, search: Search, open_work: Callable[[Layout], Work], close: Callable[[Work], None]) -> None:
        self._search = search
        self._open = open_work
        self._close = close
        self._measured_s = 0.0
        self.batch_size = search.batch_size  # halved where the device has not the memory for it
        self.candidates: list[Candidate] = []

    @property
    def has_time(self) -> bool:
        return self._measured_s < self._search.budget_s

    def _note(self, layout: Layout, batch_size: int, figure: float) -> None:
        candidate = Candidate(layout.instances, layout.threads, layout.is_spinning, batch_size, float(f"{figure:.4g}"))
        self.candidates.append(candidate)

    def _noted(self, layout: Layout, batch_size: int, rate: Rate) -> _Measured:
        self._note(layout, batch_size, rate.fastest)
        return _Measured(rate.fastest, batch_size, rate=rate)

    def _measure(self, work: Work, layout: Layout) -> _Measured:
        if self._search.scenario.is_stream:
            latency = self._stream_latency(work)
            self._note(layout, self.batch_size, latency.median_ms)
            return _Measured(1.0 / latency.median_ms, self.batch_size, latency=latency)
        rate = self.rate(work, self.batch_size)
        while rate is None and self.batch_size > self._search.smallest_batch_size:
            self.batch_size //= 2
            work.failures.forget()
            rate = self.rate(work, self.batch_size)
        return self._noted(layout, self.batch_size, rate or _NO_RATE)

    def _compared(self, best: _Measured, candidate: _Measured, again: Again, its_again: Again) -> tuple[_Measured, ...]:
        """Return the best that each of two does: near ones are measured again in turn, `again` the first and
        `its_again` the second, so that both meet the machine at its slow and its quick moments."""
        for _ in range(_REMATCHES):
            low, high = sorted((best.goodness, candidate.goodness))
            if not self.has_time or high > low * _NEAR:
                break
            best, candidate = best.with_other(again()), candidate.with_other(its_again())
        return best, candidate

    def _stream_latency(self, work: Work) -> Latency:
        with without_loadgen(work, self._search.silence_s) as alone:
            shape, samples = single_inline(alone), 1
            if self._search.scenario is Scenario.MULTI_STREAM:
                shape = multi_inline(alone) if len(work.networks) == 1 else split(alone)
                samples = MULTI_STREAM_SAMPLES_PER_QUERY
            try:
                if self._search.is_cold_at_first:
                    shape.issue(list(range(samples)), _some(work, samples))
                with self._counted():
                    return query_latency(shape.issue, samples, work.library.loaded)
            finally:
                shape.close()

    def rate(self, work: Work, batch_size: int) -> Rate | None:
        """Return the rate in batches of `batch_size` on all instances, or None if the device does not have
        enough memory for it."""
        at_once = batch_size * len(work.networks)
        with without_loadgen(work, self._search.silence_s) as alone:
            shape = chunked(alone, batch_size)
            try:
                if self._search.is_cold_at_first:
                    shape.issue(list(range(at_once)), _some(work, at_once))
                with self._counted():
                    rate = samples_per_second(shape.issue, at_once, work.library.loaded)
            finally:
                shape.close()
        return None if isinstance(work.failures.first, OutOfDeviceMemory) else rate

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        start = time.monotonic()
        yield
        self._measured_s += time.monotonic() - start

    def best_layout(self) -> tuple[Layout, Work, _Measured]:
        """Return the best layout, opened, and its measurements."""
        layouts = self._search.layouts
        best = layouts[0]
        best_work = self._open(best)
        best_measured = self._measure(best_work, best)
        for layout in layouts[1:]:
            if not self.has_time or best_work.failures.is_set:
                break
            try:
                work = self._open(layout)
            except OutOfDeviceMemory:
                break
            measured = self._measure(work, layout)
            if isinstance(work.failures.first, OutOfDeviceMemory):
                work.failures.forget()
            if not (best_work.failures.is_set or work.failures.is_set):
                again, its_again = partial(self._measure, best_work, best), partial(self._measure, work, layout)
                best_measured, measured = self._compared(best_measured, measured, again, its_again)
            if measured.goodness > best_measured.goodness * _GAIN:
                self._close(best_work)
                best, best_work, best_measured = layout, work, measured
            else:
                self._close(work)
        return best, best_work, best_measured

    def best_batch(self, work: Work, layout: Layout, known: _Measured) -> _Measured:
        """Return the measurement of the batch size with the highest rate: doubled while the rate rises, else halved.
        One doubling is tried even if no time is left."""
        search, start, best = self._search, known.batch_size, known
        if not search.has_batch_search:
            return best
        for factor in (2.0, 0.5):
            batch_size, is_certain = int(best.batch_size * factor), factor > 1.0
            while search.smallest_batch_size <= batch_size <= search.largest_batch_size:
                if work.failures.is_set or not (self.has_time or is_certain):
                    break
                is_certain = False
                tried = self._batch(work, layout, batch_size)
                if tried is None:
                    work.failures.forget()
                    break
                again = partial(self._batch, work, layout, best.batch_size)
                its_again = partial(self._batch, work, layout, batch_size)
                if not work.failures.is_set:
                    best, tried = self._compared(best, tried, again, its_again)
                if tried.goodness <= best.goodness * _GAIN:
                    break
                best = tried
                batch_size = int(batch_size * factor)
            if best.batch_size != start:
                break
        return best

    def _batch(self, work: Work, layout: Layout, batch_size: int) -> _Measured | None:
        """Return the measurement of batches of this size, or None if the device does not have enough memory for
        them."""
        rate = self.rate(work, batch_size)
        return None if rate is None else self._noted(layout, batch_size, rate)


def _some(work: Work, count: int) -> list[int]:
    """Return `count` of the loaded samples, with repetitions if there are fewer."""
    return [work.library.loaded[number % len(work.library.loaded)] for number in range(count)]


def find_shape(search: Search, open_work: Callable[[Layout], Work], close: Callable[[Work], None]) -> BestShape:
    """Return the best shape for the scenario with its measurements.

    `open_work` opens the networks in a layout, `close` closes them again. The work in the answer is left open. An error
    of the backend is recorded in the work's failures, as in the test itself.
    """
    tuner = _Tuner(search, open_work, close)
    layout, work, measured = tuner.best_layout()
    if measured.latency is not None:
        warm_up = WarmUp(query_latency_ms=measured.latency.fast_ms, samples_per_second=None)
        return BestShape(layout, search.batch_size, work, warm_up, tuple(tuner.candidates))
    best = tuner.best_batch(work, layout, measured)
    batch_size, rate = best.batch_size, best.rate
    latency_ms = None
    if search.scenario is not Scenario.OFFLINE:
        with without_loadgen(work, search.silence_s) as alone:
            latency_ms = query_latency(single_inline(alone).issue, 1, work.library.loaded).fast_ms
        limit_ms = search.limit_ms or math.inf
        most = min(batch_size, limit_ms * SERVER_BATCH_OF_LIMIT / 1000.0 * rate.fastest / layout.instances)
        batch_size = max(1, int(most))
    warm_up = WarmUp(
        query_latency_ms=latency_ms, samples_per_second=rate.fastest, sustained_samples_per_second=rate.sustained
    )
    return BestShape(layout, batch_size, work, warm_up, tuple(tuner.candidates))
