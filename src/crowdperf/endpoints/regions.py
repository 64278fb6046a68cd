"""The regions of a curve: which concurrencies count as ultra low, low, medium and high.

Sections 5.4 and 5.5 of the MLPerf Endpoints rules (mlcommons/endpoints_policies, draft of v1.0, read in the form that
submission_checker/models/regions.py of the PyPI package endpoints-submission-cli 1.5.3.0 gives them, 2026-11-23).
Boundaries are rounded half to even. The margin of 10 % above the greatest concurrency counts for no region.
"""

import math
from dataclasses import dataclass
from enum import Enum

ULTRA_LOW_MAX = 32
"""The greatest concurrency of the ultra low region, and the greatest C_min (section 5.4)."""

MIN_POINTS, MAX_POINTS = 7, 32
"""Measured points of a curve (section 5.3); a dedicated Offline run is one more."""


class Region(str, Enum):
    """A region in the word of point.yaml. The rules' table of the file still has *_throughput, which is refused."""

    ULTRA_LOW = "low_latency"
    LOW = "low_concurrency"
    MEDIUM = "med_concurrency"
    HIGH = "high_concurrency"
    MARGIN = "margin"


SUBMITTERS_CHOICE = "submitters_choice"
"""The word of point.yaml for a point that no region needs; it lies in a region all the same."""

MANDATORY = (Region.ULTRA_LOW, Region.LOW, Region.MEDIUM, Region.HIGH)
"""Regions that need a point, and an accuracy result."""


class RegionError(ValueError):
    """C_max or C_min is outside the rules; the text says which and what is allowed."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Concurrencies from `start` to `end`, both included; none where start > end."""

    start: int
    end: int

    def __contains__(self, concurrency: int) -> bool:
        return self.start <= concurrency <= self.end

    def __str__(self) -> str:
        return f"{self.start}-{self.end}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Regions:
    """The bounds of all regions for one C_max and C_min. is_override: C_min was declared, not the lowest point."""

    c_max: int
    c_min: int
    low: Bounds
    medium: Bounds
    high: Bounds
    margin: Bounds
    is_override: bool = False

    @property
    def ultra_low(self) -> Bounds:
        """What counts as ultra low: 1 to 32, or 1 to C_min where that was declared."""
        return Bounds(1, self.c_min if self.is_override else ULTRA_LOW_MAX)

    def bounds(self, region: Region) -> Bounds:
        """Return the bounds of a region."""
        return {
            Region.ULTRA_LOW: Bounds(1, self.c_min),
            Region.LOW: self.low,
            Region.MEDIUM: self.medium,
            Region.HIGH: self.high,
            Region.MARGIN: self.margin,
        }[region]

    def region_of(self, concurrency: int) -> Region | None:
        """Return the region in which a concurrency lies, lowest first; None above the margin and below 1."""
        return next((region for region in Region if concurrency in self.bounds(region)), None)

    def covers(self, region: Region, concurrency: int) -> bool:
        """True where a point of this concurrency counts for a mandatory region; one of 1 to 32 may count for two."""
        return concurrency in (self.ultra_low if region is Region.ULTRA_LOW else self.bounds(region))


def regions_of(c_max: int, c_min: int, *, is_override: bool = False) -> Regions:
    """Return the regions of a curve; raises RegionError.

    With I = log2(C_max - C_min) / 3: low ends at C_min + 2^I, medium at C_min + 2^2I, high at C_max, the margin at
    1.1 C_max, rounded up.
    """
    if not 1 <= c_min <= ULTRA_LOW_MAX:
        raise RegionError(f"C_min must be 1 to {ULTRA_LOW_MAX} (the lowest concurrency of the curve), got {c_min}")
    if c_max <= ULTRA_LOW_MAX:
        raise RegionError(f"C_max must be greater than {ULTRA_LOW_MAX}, got {c_max}")
    interval = math.log2(c_max - c_min) / 3
    low_end = round(c_min + 2**interval)
    medium_end = round(c_min + 2 ** (2 * interval))
    return Regions(
        c_max=c_max,
        c_min=c_min,
        low=Bounds(c_min + 1, low_end),
        medium=Bounds(low_end + 1, medium_end),
        high=Bounds(medium_end + 1, c_max),
        margin=Bounds(c_max + 1, math.ceil(1.10 * c_max)),
        is_override=is_override,
    )


def uncovered(regions: Regions, concurrencies: tuple[int, ...]) -> tuple[Region, ...]:
    """Return the mandatory regions in which no point lies."""
    return tuple(one for one in MANDATORY if not any(regions.covers(one, point) for point in concurrencies))
