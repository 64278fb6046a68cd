"""Tells a run from a copy whose latencies were all shifted, all scaled, or both: they keep their proportions. Pure.

Of the 877 different runs of the published round v5.1 no two have one percentile in such a proportion by chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

LATENCIES = (
    "result_50.00_percentile_latency_ns", "result_90.00_percentile_latency_ns", "result_99.00_percentile_latency_ns",
    "result_min_latency_ns", "result_95.00_percentile_latency_ns", "result_97.00_percentile_latency_ns",
    "result_99.90_percentile_latency_ns", "result_max_latency_ns",
)  # fmt: skip
"""In nanoseconds. The first three give the proportion by which a copy is found."""

Latencies: TypeAlias = Sequence[float]

_MIN_SPREAD_NS = 100_000
"""From the median to the 99th percentile; below it nanoseconds agree by chance."""

_WRITTEN_NS = 2.0
"""Latencies are whole nanoseconds in both logs."""

_ENOUGH = 3


def proportion(latencies: Latencies) -> float | None:
    """Return where the 90th percentile lies from the median, 0, to the 99th, 1; None where they are too near."""
    median, p90, p99 = latencies[:3]
    return (p90 - median) / (p99 - median) if p99 - median >= _MIN_SPREAD_NS else None


def slack(latencies: Latencies) -> float:
    """Return how far the proportion of a copy may be from this one's, because it was written in whole nanoseconds."""
    return 4 * _WRITTEN_NS / (latencies[2] - latencies[0])


def is_copy(one: Latencies, other: Latencies) -> bool:
    """Return whether at least three more latencies of the one give those of the other by one factor and one summand."""
    spread = one[2] - one[0]
    factor = (other[2] - other[0]) / spread
    agreeing = {
        mine
        for mine, its in zip(one, other, strict=True)
        if mine not in (one[0], one[2])
        and abs(other[0] + factor * (mine - one[0]) - its)
        <= _WRITTEN_NS * (1 + max(1.0, factor) * abs(mine - one[0]) / spread)
    }
    return len(agreeing) >= _ENOUGH
