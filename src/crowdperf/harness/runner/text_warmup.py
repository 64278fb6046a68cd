"""Measures the speed of an engine before LoadGen starts: its latency alone, and its rate with many requests in flight.
The results become LoadGen's expected latency or rate if the request has none.

Waves of 1, 2, 4, ... requests are answered one after the other, until a larger wave is not faster per request, the next
one would exceed the remaining time, or it is larger than the number of requests that the engine works on at once.
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from crowdperf.harness.base.errors import HarnessError, hint_of
from crowdperf.harness.base.failures import Failures
from crowdperf.harness.base.responses import ResponseSink
from crowdperf.harness.runner.settings import WarmUp
from crowdperf.harness.runner.text_sut import TextSut, TextWork
from crowdperf.harness.text.engine import SERVER_HINT
from crowdperf.harness.text.tally import Tally
from crowdperf.harness.watch.progress import Counts
from crowdperf.rules.names import counted

_ALONE = 3
"""Requests that are answered one at a time, if there is time for so many."""

_GAIN = 1.05
"""A larger wave must be faster by this factor, or the engine is considered busy."""

_LARGEST_WAVE = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The plan of the measurement. needs_rate: also measure the rate with many in flight. budget_s: no further wave
    is begun that would last longer. most: requests that the engine works on at once, None if unknown. limit_s: of
    one wave."""

    needs_rate: bool
    budget_s: float
    most: int | None
    limit_s: float


class _Waves:
    """Sends waves of requests and waits for their answers."""

    def __init__(self, work: TextWork, limit_s: float) -> None:
        self._answered = threading.Semaphore(0)
        sink = ResponseSink(lambda *values: values, self._count)  # type: ignore[arg-type]
        self._work = replace(
            work,
            sink=sink,
            has_first=False,
            replayed_s=None,
            dialogues=None,
            failures=Failures(),
            counts=Counts(),
            tally=Tally(),
        )
        self._limit_s, self._position = limit_s, 0
        self._loaded = list(work.library.prompts)
        self._sut = TextSut(self._work)
        work.engine.start(self._sut)

    def _count(self, responses: Sequence[Any]) -> None:
        for _ in responses:
            self._answered.release()

    def wave(self, size: int) -> float:
        """Return the seconds until the answers of `size` requests were complete. Raises HarnessError if one got
        none."""
        start_s = time.perf_counter()
        indices = [self._loaded[(self._position + offset) % len(self._loaded)] for offset in range(size)]
        self._position += size
        self._sut.issue(list(range(size)), indices)
        for number in range(size):
            if not self._answered.acquire(timeout=max(0.0, start_s + self._limit_s - time.perf_counter())):
                words = f"the engine answered {number} of {size} prompts before the test in {self._limit_s:g} s"
                raise HarnessError(words, "allow more time, or use less at once")
        self._work.failures.settle()
        if self._work.failures.first is not None:
            first = self._work.failures.first
            raise HarnessError(f"the engine failed before the test: {first}", hint_of(first)) from first
        if self._work.tally.failed:
            why = "; ".join(self._work.tally.reasons)
            failed = counted(self._work.tally.failed, "prompt")
            hint = SERVER_HINT if "endpoint" in self._work.engine.record() else ""
            raise HarnessError(f"the engine could not answer {failed} before the test: {why}", hint)
        return time.perf_counter() - start_s


def warm_up(work: TextWork, plan: Plan) -> WarmUp:
    """Return the measurements with the loaded prompts: the mean latency of a request alone, and the rate if the plan
    needs it. Raises HarnessError if the engine cannot answer.

    The first answer, which may be slow, counts only if there is no other.
    """
    waves, start_s = _Waves(work, plan.limit_s), time.perf_counter()
    alone = [waves.wave(1)]
    while len(alone) <= _ALONE and time.perf_counter() - start_s + alone[-1] < plan.budget_s / 2:
        alone.append(waves.wave(1))
    latency_s = fmean(alone[1:] or alone)
    rate = 1 / latency_s
    size, took_s = 2, latency_s
    most = min(plan.most or _LARGEST_WAVE, _LARGEST_WAVE)
    while plan.needs_rate and size // 2 < most and time.perf_counter() - start_s + 2 * took_s < plan.budget_s:
        took_s = waves.wave(min(size, most))
        found = min(size, most) / took_s
        is_better = found > rate * _GAIN
        rate = max(rate, found)
        if not is_better:
            break
        size *= 2
    return WarmUp(query_latency_ms=latency_s * 1000.0, samples_per_second=rate if plan.needs_rate else None)
