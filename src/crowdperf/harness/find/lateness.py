"""Counts the queries that are late already, while a Server run goes on: what makes it hopeless. Pure.

A query is late when it is not answered a latency limit after it was due. When queries came is written down, and now
and then somebody looks how many are answered: what came before the last latency limit and is not answered is late,
whatever is answered next. So the count is never too high; queries that were late and answered between two looks are
missed.
"""

from __future__ import annotations

import bisect
import math
from array import array

_SIGMAS = 5.0
"""Queries come at random times: so many standard deviations fewer than the rate says are taken as due, or more as
planned."""


def most_queries(rate: float, seconds: float, fewest: int) -> int:
    """Return the most queries that a run of `seconds` at `rate` queries/s may have, `fewest` at least."""
    expected = rate * seconds
    return max(fewest, math.ceil(expected + _SIGMAS * math.sqrt(expected)))


def allowed_late(queries: int, percentile: float) -> int:
    """Return how many of `queries` may be late in a run that could become VALID; `percentile` is 0.99 for p99.

    LoadGen's early stopping allows fewer; so a run with more cannot become VALID.
    """
    return math.ceil((1.0 - percentile) * queries)


class LateCount:
    """The queries of one run that are known to be late. `came` gets the time of each query, in seconds, as it comes."""

    def __init__(self, rate: float, limit_s: float) -> None:
        self._rate = rate
        self._limit_s = limit_s
        self._counted_to = 0
        self.came = array("d")
        self.late = 0

    def _due(self, elapsed_s: float) -> int:
        """Queries that must have come in the first seconds: where LoadGen's own thread answers, it may be behind."""
        expected = self._rate * max(0.0, elapsed_s)
        return int(expected - _SIGMAS * math.sqrt(expected))

    def look(self, now_s: float, answered: int) -> int:
        """Return the late queries so far; `answered` never goes down."""
        if not self.came:
            return 0
        before_s = now_s - self._limit_s
        old = max(bisect.bisect_right(self.came, before_s), self._due(before_s - self.came[0]))
        self.late += max(0, old - max(answered, self._counted_to))
        self._counted_to = max(self._counted_to, old)
        return self.late


class Answered:
    """When queries were answered, which turns into latencies: instances take queries in the order they came."""

    def __init__(self) -> None:
        self.at = array("d")

    def percentile_ms(self, came: array[float], part: float) -> float | None:
        """Return the latency that `part` of the queries answered so far did not exceed; None before the first."""
        latencies_s = sorted(end_s - start_s for start_s, end_s in zip(came, self.at, strict=False))
        if not latencies_s:
            return None
        return latencies_s[min(len(latencies_s) - 1, math.ceil(part * len(latencies_s)))] * 1000.0
