"""Whether a short series of numbers stays level: spread, trend and change of level, for the rules of steady state.

Methods: Mann and Kendall's rank test with the variance of Hamed and Rao for series that are correlated with themselves;
Pettitt's rank test for one change of level. Limits: src/inference_endpoint/metrics/steady_state_diagnostics.py of
mlcommons/endpoints 40b78bfe (read 2026-11-23), which section 4.4 of the Endpoints rules names for its "exact test and
parameters". Pure; no other package.
"""

import math
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Literal

MIN_PASSES = 4
"""MIN_TREND_N of the rules: over fewer values nothing is said of a trend."""
_Z_95 = 1.96
_SIGNIFICANT = 0.05
_MIN_DRIFT = 0.05
"""A trend that changes less than this share of the level from one end to the other is within the noise."""
_MAX_SPREAD = 0.08
"""The widest standard deviation over mean (the loosest of the method's three bounds)."""
_RAMP_BAND = 0.05
_NEVER_ZERO = 1e-9

Trend = Literal["up", "down", "level"]


class TooLong(ValueError):
    """A series is too long to be tested in reasonable time."""


@dataclass(slots=True)
class Effort:
    """How many steps of the slow test are left, for all windows of a run together."""

    steps: int = 100_000_000

    def spend(self, length: int) -> None:
        """Account for one test of a series; raises TooLong."""
        self.steps -= length * length
        if self.steps < 0:
            raise TooLong("too many super-passes")


@dataclass(slots=True)
class Growing:
    """A series that grows at its end, with what its spread and drift follow from, so that adding costs little.

    The sums are those of the differences to the first value: numbers of nanoseconds are large and close together.
    """

    values: list[float] = field(default_factory=list)
    _ordered: list[float] = field(default_factory=list)
    _sum: float = 0.0
    _squares: float = 0.0
    _moments: float = 0.0

    def add(self, value: float) -> None:
        """Append a value."""
        delta = value - self.values[0] if self.values else 0.0
        self._sum += delta
        self._squares += delta * delta
        self._moments += len(self.values) * delta
        self.values.append(value)
        insort(self._ordered, value)

    @property
    def is_even(self) -> bool:
        """True where the values lie close enough together."""
        count = len(self.values)
        mean = self._sum / count
        level = abs(self.values[0] + mean)
        spread = math.sqrt(max(self._squares / count - mean * mean, 0.0))
        return not level or spread <= _MAX_SPREAD * level

    @property
    def drift(self) -> float:
        """The change along the straight line through the values, as a share of their median."""
        count = len(self.values)
        middle = (count - 1) / 2
        slope = (self._moments - middle * self._sum) / (count * (count * count - 1) / 12)
        half = count // 2
        level = self._ordered[half] if count % 2 else (self._ordered[half - 1] + self._ordered[half]) / 2
        return slope * (count - 1) / (level or _NEVER_ZERO)

    @property
    def is_far(self) -> bool:
        """True where the drift is more than noise."""
        return abs(self.drift) >= _MIN_DRIFT

    def is_level(self, effort: Effort) -> bool:
        """True where spread and trend allow the values to be one steady level. Raises TooLong."""
        if len(self.values) < MIN_PASSES or not self.is_even:
            return False
        return not self.is_far or trend_of(self.values, effort) == "level"


def trend_of(values: Sequence[float], effort: Effort) -> Trend:
    """Return whether values rise or fall in a way that is not chance (5 %). Raises TooLong."""
    count = len(values)
    if count < MIN_PASSES:
        return "level"
    effort.spend(count)
    score = _rises_less_falls(values)
    variance = _variance(values) * _correction(values)
    if not score:
        return "level"
    z = (abs(score) - 1) / math.sqrt(variance) if variance > 0 else math.inf
    if math.erfc(z / math.sqrt(2)) >= _SIGNIFICANT:
        return "level"
    return "up" if score > 0 else "down"


def _rises_less_falls(values: Sequence[float]) -> int:
    """Kendall's S: of all pairs, those where the later value is greater, less those where it is smaller."""
    before: list[float] = []
    score = 0
    for value in values:
        score += bisect_left(before, value) - (len(before) - bisect_right(before, value))
        insort(before, value)
    return score


def _variance(values: Sequence[float]) -> float:
    """The variance of S where nothing is behind the order; equal values take some of it away."""
    count = len(values)
    ties = sum(same * (same - 1) * (2 * same + 5) for same in Counter(values).values())
    return (count * (count - 1) * (2 * count + 5) - ties) / 18


def _correction(values: Sequence[float]) -> float:
    """Hamed and Rao's factor, from the autocorrelations of the ranks that are not chance; 1 where it is below 0."""
    count = len(values)
    ranks = [0.0] * count
    for rank, index in enumerate(sorted(range(count), key=lambda one: values[one])):
        ranks[index] = rank - (count - 1) / 2
    power = sum(rank * rank for rank in ranks)
    total = 0.0
    for lag in range(1, count):
        correlation = sum(map(float.__mul__, ranks[lag:], ranks[:-lag])) / power
        if abs(correlation) > _Z_95 / math.sqrt(count):
            total += (count - lag) * (count - lag - 1) * (count - lag - 2) * correlation
    factor = 1 + 2 / (count * (count - 1) * (count - 2)) * total
    return factor if factor > 0 else 1.0


def has_change_of_level(values: Sequence[float]) -> bool:
    """True where Pettitt's test finds a point before and after which the values differ (5 %)."""
    count = len(values)
    if count < MIN_PASSES:
        return False
    ordered, below, greatest = sorted(values), 0.0, 0.0
    for index, value in enumerate(values[:-1], 1):
        below += (bisect_left(ordered, value) + 1 + bisect_right(ordered, value)) / 2
        greatest = max(greatest, abs(2 * below - index * (count + 1)))
    return 2 * math.exp(-6 * greatest * greatest / (count**3 + count**2)) < _SIGNIFICANT


def leading_off_level(values: Sequence[float]) -> int:
    """Return how many values at the beginning are further than 5 % from the level of the second half.

    At least one, at most half: the ramp at the beginning of a run, which counts for nothing.
    """
    count = len(values)
    if count < MIN_PASSES:
        return 1
    level = median(values[count // 2 :]) or _NEVER_ZERO
    off = 0
    while off < max(1, count // 2) and abs(values[off] - level) / abs(level) > _RAMP_BAND:
        off += 1
    return max(1, off)
