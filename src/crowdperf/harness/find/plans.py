"""How long a search may take, how long its runs are and how exact it is, for each execution mode. Pure."""

from dataclasses import dataclass

from crowdperf.harness.find.search import Length, Plan, rounded
from crowdperf.rules.names import ExecutionMode

TOLERANCE = 0.02
"""The lowest rate that failed is at most so much above the one that is found: LoadGen's verdict on one and the same
system scatters by about as much."""

MAX_RUNS = 40

MIN_QUERIES = 459
"""LoadGen's early stopping at p99 calls no shorter run VALID (6.0.17; 662 with one late query, 838 with two)."""

_OVERHEAD_S = 0.4
"""What LoadGen, its logs and the threads take before and after a run."""

_MAX_PROBES_LONG, _MAX_CONFIRMATIONS_LONG = 15, 4
"""So many of the longest probes, or confirmations, fill the budget."""

_FIRST_PART = 0.7
"""Of the warm-up rate, the first rate: queries come at random times, so a latency limit allows less than what the
system answers when it is never idle."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of one execution mode."""

    budget_s: float
    probe: Length
    confirmation: Length


BOUNDS = {
    ExecutionMode.TEST: Bounds(60.0, Length(3.0, 662), Length(6.0, 662)),
    ExecutionMode.FAST: Bounds(300.0, Length(12.0, 838), Length(40.0, 1322)),
    ExecutionMode.VALID: Bounds(1200.0, Length(45.0, 1322), Length(180.0, 3000)),
}
"""The queries allow one, two or more late ones: with none allowed, a single pause of the machine fails a good rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """What the request itself says; None where it leaves it open. limit_ms: the latency limit. target_qps: the first
    rate. min_query_count: of each run, where early stopping does not ask for more."""

    limit_ms: float
    target_qps: float | None
    min_duration_ms: int | None
    min_query_count: int | None


def _seconds(length: Length, overrides: Overrides, times: float, longest_s: float) -> float:
    """Return how long a run is: as long as an overload of the tolerance takes to become as late as the limit, where
    the budget allows that."""
    if overrides.min_duration_ms is not None:
        return times * overrides.min_duration_ms / 1000.0
    return max(length.seconds, min(longest_s, times * overrides.limit_ms / 1000.0 / TOLERANCE))


def make_plan(mode: ExecutionMode, overrides: Overrides, warm_up_rate: float, highest: float) -> Plan:
    """Return the plan of a search. warm_up_rate: queries/s that the system answers without a pause. highest: the
    rate that memory allows."""
    bounds = BOUNDS[mode]
    estimate = _FIRST_PART * warm_up_rate if overrides.target_qps is None else overrides.target_qps
    fewest = None if overrides.min_query_count is None else max(MIN_QUERIES, overrides.min_query_count)
    probe_s = _seconds(bounds.probe, overrides, 1.0, bounds.budget_s / _MAX_PROBES_LONG)
    confirmation_s = _seconds(bounds.confirmation, overrides, 2.0, bounds.budget_s / _MAX_CONFIRMATIONS_LONG)
    return Plan(
        estimate=rounded(min(estimate, highest)),
        highest=highest,
        tolerance=TOLERANCE,
        budget_s=bounds.budget_s,
        most_runs=MAX_RUNS,
        probe=Length(probe_s, fewest or bounds.probe.queries),
        confirmation=Length(confirmation_s, fewest or bounds.confirmation.queries),
        overhead_s=_OVERHEAD_S,
    )
