"""Which concurrencies a curve is measured at, and what a submission would miss in a choice. Pure."""

import math
from collections.abc import Sequence
from itertools import pairwise

from crowdperf.endpoints.regions import MAX_POINTS, MIN_POINTS, Bounds, Regions, uncovered

_FURTHER = 3
"""Points that the rules leave to the submitter (section 5.3)."""


def _middle(bounds: Bounds) -> int | None:
    """The geometric middle of a region, None for an empty one."""
    if bounds.start > bounds.end:
        return None
    return min(max(round(math.sqrt(bounds.start * bounds.end)), bounds.start), bounds.end)


def _within_widest_gap(points: Sequence[int]) -> int | None:
    """The middle of the two neighbours with the greatest ratio that have a number between them; None if none have."""
    gaps = [(high / low, low, high) for low, high in pairwise(points) if high - low > 1]
    if not gaps:
        return None
    _, low, high = max(gaps, key=lambda gap: gap[0])
    return min(max(round(math.sqrt(low * high)), low + 1), high - 1)


def automatic_points(regions: Regions) -> tuple[int, ...]:
    """Return C_min, the middles of low, medium and high, C_max, and three where the gaps are widest; ascending.

    Middles and gaps are geometric: a curve over concurrency is read on a logarithmic axis.
    """
    middles = (_middle(bounds) for bounds in (regions.low, regions.medium, regions.high))
    points = {regions.c_min, regions.c_max, *(one for one in middles if one is not None)}
    for _ in range(max(_FURTHER, MIN_POINTS - len(points))):
        if (further := _within_widest_gap(sorted(points))) is not None:
            points.add(further)
    return tuple(sorted(points))


def missing(regions: Regions, points: Sequence[int]) -> tuple[str, ...]:
    """Return what the rules want of the points of a curve and these do not have."""
    found = []
    if not MIN_POINTS <= len(points) <= MAX_POINTS:
        found.append(f"a submission has {MIN_POINTS} to {MAX_POINTS} points, got {len(points)}")
    found += [
        f"no point in the region {region.value}: {regions.ultra_low if region.value == 'low_latency' else bounds}"
        for region, bounds in ((one, regions.bounds(one)) for one in uncovered(regions, tuple(points)))
    ]
    return tuple(found)
