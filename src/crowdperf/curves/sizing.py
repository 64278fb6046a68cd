"""How many samples a point issues so that its steady state is long enough, and how long a curve takes. Pure.

The client has no least duration for a fixed concurrency: it ends when its samples are used up. So their number comes
from the rate of a short run at the same concurrency, in whole multiples of the data set, as the rules want it.
"""

import math
from collections.abc import Mapping

ROOM = 1.1
"""Samples beyond those that the measured rate asks for: rates drift by some percent during a run."""
MORE_ROOM = 1.3
"""The same for a second run, after a first one that was too short all the same."""
CALIBRATION_S = 20.0
CLIENT_S = 15.0
"""What a run of the client costs beside its load: 12 s of processor time, on an idle machine."""
FLOORS_S: Mapping[str, float] = {"test": 2.0, "fast": 60.0}
"""Least seconds of steady state of a shortened run; `valid` has the rules' own. As of run,mlperf,inference."""


def expected_s(floor_s: float) -> float:
    """Return what a point takes without an accuracy run, whose length depends on the server.

    floor_s: 0 for a dedicated Offline run, which sends everything at once.
    """
    return floor_s * ROOM + (CALIBRATION_S if floor_s else 0.0) + CLIENT_S * (2 if floor_s else 1)


def calibration_s(floor_s: float) -> float:
    """Return the seconds of a calibration: no longer than the run that it is for."""
    return min(CALIBRATION_S, floor_s)


def samples_for(floor_s: float, rate: float, dataset_samples: int, concurrency: int = 1, room: float = ROOM) -> int:
    """Return how many samples to issue: floor_s in s, rate in samples/s; raises ValueError for a rate that is not > 0.

    A multiple of the data set. The last of them that may be in flight together do not count: they are issued at the end
    of the steady state, and only then answered.
    """
    if not rate > 0 or not math.isfinite(rate):
        raise ValueError(f"the rate of the calibration must be above 0, got {rate}")
    return max(1, math.ceil((room * floor_s * rate + concurrency) / dataset_samples)) * dataset_samples
