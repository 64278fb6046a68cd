"""One LoadGen run of a search, and its verdict. A Server run is given up when it cannot become VALID any more.

LoadGen sends Server queries by a clock and cannot be told to stop. But it ends a test in which too many queries wait
for an answer. So a run that is given up answers nothing any more: within about two latency limits LoadGen has seen
enough, says so (`flush`), and then gets all answers at once. All runs of a search are in one process: the networks
stay open and the samples in memory.
"""

from __future__ import annotations

import enum
import math
import threading
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from crowdperf.harness.base.environment_errors import read_whole_logs
from crowdperf.harness.base.failures import Failures
from crowdperf.harness.base.responses import Response, ResponseSink
from crowdperf.harness.find.lateness import Answered, LateCount, allowed_late, most_queries
from crowdperf.harness.find.search import Length
from crowdperf.harness.runner.loadgen import Calls, Pace, Samples, Series
from crowdperf.harness.runner.loadgen_run import raise_recorded
from crowdperf.harness.runner.run import Prepared
from crowdperf.harness.runner.sut import INLINE_SERVER_LIMIT_MS, Issue, Work
from crowdperf.harness.watch.progress import Counts, Expectation, progress
from crowdperf.harness.watch.silence import silence_ends
from crowdperf.logs.layout import RunPaths
from crowdperf.logs.run_log import LoadGenLog
from crowdperf.rules.names import Mode

_LOOK_S = 0.05
"""How often a run is looked at."""

_FEW_WAITING = 16
_WAITING_PART = 0.02
"""Beside what two latency limits bring, so many queries, and such a part of all, may wait before LoadGen ends a test:
more than a run that can become VALID ever has."""


class Verdict(enum.Enum):
    """What a run said; the value stands in find.json. The first two are LoadGen's words."""

    VALID = "VALID"
    INVALID = "INVALID"
    ABANDONED = "ABANDONED"
    OUT_OF_TIME = "OUT OF TIME"

    @property
    def holds(self) -> bool | None:
        """Whether the rate held; None: not known."""
        return {"VALID": True, "INVALID": False, "ABANDONED": False}.get(self.value)

    @property
    def is_loadgens(self) -> bool:
        """Whether the run went to its end."""
        return self in (Verdict.VALID, Verdict.INVALID)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run brought. late: queries that were seen to be late while it went on, at least. p50_ms, p99_ms: of
    a run that was given up, those of what was answered until then, as seen from here; None where nobody looked."""

    verdict: Verdict
    reason: str
    log: LoadGenLog
    late: int
    p50_ms: float | None
    p99_ms: float | None


class _Halt(Failures):
    """As in any run, and a way to end the work without an error."""

    def halt(self) -> None:
        """Let the instances answer without their networks from now on."""
        self.is_set = True


class _Gate:
    """Between LoadGen and the instances; shut, it keeps the queries until no more come."""

    def __init__(self, issue: Issue, work: Work, halt: _Halt, late: LateCount, answered: Answered) -> None:
        self._issue, self._sink, self._halt = issue, work.sink, halt
        self._came, self._answered = late.came, answered
        self._note_came = late.came.append
        self._held: list[int] = []
        self.is_shut = False
        self.p50_ms: float | None = None
        self.p99_ms: float | None = None

    def issue(self, ids: list[int], indices: list[int]) -> None:
        self._note_came(time.monotonic())
        if self.is_shut:
            self._held.extend(ids)
        else:
            self._issue(ids, indices)

    def shut(self) -> None:
        self.is_shut = True
        self.p50_ms = self._answered.percentile_ms(self._came, 0.5)  # the rest gets no true answer
        self.p99_ms = self._answered.percentile_ms(self._came, 0.99)
        self._halt.halt()

    def flush(self) -> None:
        if self._held:
            self._sink.complete([self._sink.make_response(identifier, 0, 0) for identifier in self._held])
            self._held.clear()


class _Watch:
    """Looks at a Server run now and then, in a thread of its own, and gives it up when it is hopeless or late."""

    def __init__(
        self, gate: _Gate, halt: _Halt, counts: Counts, late: LateCount, allowed: int, deadline_s: float
    ) -> None:
        self._gate, self._counts, self._late = gate, counts, late
        self._allowed, self._deadline_s = allowed, deadline_s
        self._done = threading.Event()
        self._thread = threading.Thread(target=halt.guarded(self._look), daemon=True, name="watch")
        self.verdict: Verdict | None = None

    @property
    def late(self) -> int:
        return self._late.late

    def _look(self) -> None:
        while not self._done.wait(_LOOK_S):
            now_s = time.monotonic()
            if self._late.look(now_s, self._counts.done) > self._allowed:
                self.verdict = Verdict.ABANDONED
            elif now_s > self._deadline_s:
                self.verdict = Verdict.OUT_OF_TIME
            if self.verdict is not None:
                self._gate.shut()
                return

    def __enter__(self) -> _Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()


class ProbeRunner:
    """The runs of one search."""

    def __init__(self, prepared: Prepared, paths: RunPaths) -> None:
        self._prepared = prepared
        self._series = Series(prepared.test(), paths)
        self._loaded: set[int] = set()

    def _samples(self, work: Work) -> Samples:
        """Return the samples, which stay in memory from run to run."""

        def load(indices: Sequence[int]) -> None:
            wanted = set(indices)
            if wanted != self._loaded:
                self._loaded.clear()
                work.library.load(indices)
                self._loaded = wanted

        return Samples(count=work.library.count, load=work.failures.guarded(load), unload=lambda indices: None)

    def _watched(self, work: Work) -> AbstractContextManager[None]:
        return silence_ends(work.counts, self._prepared.silence_s, work.failures.record)

    def measure(self, paths: RunPaths, title: str) -> Outcome:
        """Run a scenario other than Server to its end."""
        settings = self._prepared.settings
        failures = Failures()
        work = replace(
            self._prepared.found.work, failures=failures, counts=Counts(len(self._prepared.found.work.networks))
        )
        shape = self._prepared.issue_shape(work)
        pace = Pace(min_duration_ms=settings.min_duration_ms.value, min_query_count=settings.min_query_count.value)
        expectation = Expectation(title=title, at_least_s=pace.min_duration_ms / 1000.0, at_least_samples=1)
        with self._watched(work), progress(expectation, work.counts):
            self._series.run(pace, Calls(shape.issue, work.counts.flush), self._samples(work), paths)
        raise_recorded(work)
        shape.close()
        log = read_whole_logs(paths, Mode.PERFORMANCE)
        return _outcome(Verdict.VALID if log.is_valid else Verdict.INVALID, "; ".join(log.invalid_reasons), log, 0)

    def probe(self, rate: float, length: Length, paths: RunPaths, deadline_s: float, title: str) -> Outcome:
        """Run Server at `rate` queries/s; at `deadline_s` of the monotonic clock it is given up. `paths.folder` must
        exist."""
        settings = self._prepared.settings
        limit = settings.target_latency_ms
        limit_s = limit.value / 1000.0 if limit is not None else 0.0
        planned = most_queries(rate, length.seconds, length.queries)
        allowed = allowed_late(planned, self._series.server_percentile)
        pace = Pace(
            min_duration_ms=max(1, round(length.seconds * 1000.0)),
            min_query_count=length.queries,
            target_qps=rate,
            most_waiting=_FEW_WAITING + math.ceil(2.0 * limit_s * rate + _WAITING_PART * planned),
        )
        halt = _Halt()
        opened = self._prepared.found.work
        late, answered = LateCount(rate, limit_s), Answered()
        work = replace(opened, failures=halt, counts=Counts(len(opened.networks)))
        if (self._prepared.found.warm_up.query_latency_ms or 0.0) >= INLINE_SERVER_LIMIT_MS:  # else it costs too much
            work = replace(work, sink=_noting(work.sink, answered))
        shape = self._prepared.issue_shape(work)
        gate = _Gate(shape.issue, opened, halt, late, answered)
        watch = _Watch(gate, halt, work.counts, late, allowed, deadline_s)
        expectation = Expectation(title=title, at_least_s=length.seconds, at_least_samples=length.queries)
        with self._watched(work), watch, progress(expectation, work.counts):
            calls = Calls(halt.guarded(gate.issue), halt.guarded(gate.flush))
            self._series.run(pace, calls, self._samples(work), paths)
        raise_recorded(work)
        shape.close()
        log = read_whole_logs(paths, Mode.PERFORMANCE)
        verdict, reason = _judged(log, watch, pace, allowed, planned)
        if verdict.is_loadgens:
            return _outcome(verdict, reason, log, late.late)
        return Outcome(verdict=verdict, reason=reason, log=log, late=late.late, p50_ms=gate.p50_ms, p99_ms=gate.p99_ms)


def _noting(sink: ResponseSink, answered: Answered) -> ResponseSink:
    """Return a sink that notes when queries are answered."""

    def complete(responses: list[Response]) -> None:
        sink.complete(responses)
        now_s = time.monotonic()
        answered.at.extend([now_s] * len(responses))

    return replace(sink, complete=complete)


def _outcome(verdict: Verdict, reason: str, log: LoadGenLog, late: int) -> Outcome:
    latencies = log.latencies
    p50_ms, p99_ms = (None, None) if latencies is None else (latencies.p50_ns / 1e6, latencies.p99_ns / 1e6)
    return Outcome(verdict=verdict, reason=reason, log=log, late=late, p50_ms=p50_ms, p99_ms=p99_ms)


def _judged(log: LoadGenLog, watch: _Watch, pace: Pace, allowed: int, planned: int) -> tuple[Verdict, str]:
    if watch.verdict is Verdict.OUT_OF_TIME:
        return Verdict.OUT_OF_TIME, "the budget was used up"
    if watch.verdict is Verdict.ABANDONED:
        return Verdict.ABANDONED, f"{watch.late} queries were late, at most {allowed} of {planned} may be"
    if any("Too many outstanding" in error for error in log.errors):
        return Verdict.ABANDONED, f"more than {pace.most_waiting} queries waited for an answer"
    return (Verdict.VALID if log.is_valid else Verdict.INVALID), "; ".join(log.invalid_reasons)
