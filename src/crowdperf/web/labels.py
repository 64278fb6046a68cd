"""Labels that follow from what else is in the database: of a key that is new here, of an outlier. They are not kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from crowdperf.store.model import Signer
from crowdperf.store.query import NEW_CONTRIBUTOR
from crowdperf.store.store import Store

OUTLIER: Final = "outlier"
MIN_RESULTS_FOR_OUTLIERS: Final = 5
"""Results of a configuration from which on one of them can be called an outlier."""
FARTHEST_DEVIATIONS: Final = 3.0


@dataclass(frozen=True, slots=True)
class Range:
    """From the least to the greatest value that is no outlier."""

    least: float
    greatest: float

    def labels(self, value: float) -> tuple[str, ...]:
        """The label of a value, if any."""
        return () if self.least <= value <= self.greatest else (OUTLIER,)


EVERYTHING: Final = Range(float("-inf"), float("inf"))


def usual_range(values: Sequence[float]) -> Range:
    """Three median absolute deviations around the median; everything for fewer than five values."""
    if len(values) < MIN_RESULTS_FOR_OUTLIERS:
        return EVERYTHING
    middle = median(values)
    deviation = FARTHEST_DEVIATIONS * median(abs(value - middle) for value in values)
    return Range(middle - deviation, middle + deviation)


def signer_labels(store: Store, signer: Signer | None) -> tuple[str, ...]:
    """The label of a result whose key no moderator knows."""
    known = store.signer(signer.key_id) if signer is not None else None
    return (NEW_CONTRIBUTOR,) if known is not None and known.trust == "none" else ()
