"""The rule by which the highest valid Server rate is searched for. Pure: the tries so far come in, the next step goes
out, so that a killed search goes on at the same place.

    1. Try the estimate. Valid: try higher, in growing steps, until a rate fails; else lower, until one holds.
    2. Halve the gap between the highest rate that held and the lowest that failed until it is the tolerance.
    3. Try the failed end a second time: a moment of other work on the machine fails a probe too.
    4. Confirm the rate with a longer run; where that fails, step down until one holds.

One verdict may be noise. Each rate counts by the majority of its probes, and is tried again on a tie; where a higher
rate held than one that failed, the failed one is tried again. A confirmation counts more than any probe.

The same rule searches for the highest number of requests in flight (`Plan.is_whole`). "Rate" then means this number,
which is whole: the search also ends when the next number failed.
"""

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

_STEPS_UP = (1.3, 1.6, 2.0)
_STEPS_DOWN = (0.75, 0.5, 0.25)
_SMALLEST_PART = 0.001
"""Of the estimate: below it nothing is tried any more."""

_MAX_IN_A_ROW = 3
"""After so many runs that held, one after the other, the failed rate above them is tried again: a true end of the
range is missed so often by halving one time in eight."""

_WIDEST_STEP_DOWN = 0.5
_ROUNDING = 1e-4
_AGAIN = "again: one failure may have been other work on the machine"


class Kind(enum.Enum):
    """What a run is for; the value stands in find.json."""

    PROBE = "probe"
    CONFIRMATION = "confirmation"


@dataclass(frozen=True, slots=True)
class Length:
    """The shortest run: it lasts `seconds` and has `queries` at least."""

    seconds: float
    queries: int

    def at(self, rate: float) -> float:
        """Return about how many seconds a run at `rate` queries/s takes."""
        return max(self.seconds, self.queries / rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The bounds of a search. estimate: the first rate. highest: the rate that memory allows, in queries/s.

    overhead_s: what a run takes beside its own length. most_runs counts confirmations too. is_whole: the search is for
    a number of requests in flight.
    """

    estimate: float
    highest: float
    tolerance: float
    budget_s: float
    most_runs: int
    probe: Length
    confirmation: Length
    overhead_s: float
    is_whole: bool = False

    @property
    def noun(self) -> str:
        return "concurrency" if self.is_whole else "rate"

    @property
    def lowest(self) -> float:
        """Below it nothing is tried."""
        return 1.0 if self.is_whole else self.estimate * _SMALLEST_PART

    def above(self, rate: float, factor: float) -> float:
        """Return `factor` times the rate, at most the highest one."""
        wanted = min(self.highest, rate * factor)
        return min(self.highest, max(rate + 1.0, float(round(wanted)))) if self.is_whole else rounded(wanted)

    def below(self, rate: float, factor: float) -> float:
        """Return `factor` times the rate; below `lowest` if there is nothing left to try."""
        if not self.is_whole:
            return rounded(rate * factor)
        return 0.0 if rate <= self.lowest else max(self.lowest, min(rate - 1.0, float(math.floor(rate * factor))))

    def between(self, floor: float, ceiling: float) -> float | None:
        """Return the geometric middle of two rates; None if there is none between them."""
        middle = math.sqrt(floor * ceiling)
        middle = float(round(middle)) if self.is_whole else rounded(middle)
        return middle if floor < middle < ceiling else None

    def takes_s(self, kind: Kind, rate: float) -> float:
        """Return about how long a run takes with everything around it."""
        length = self.probe if kind is Kind.PROBE else self.confirmation
        return length.at(rate) + self.overhead_s

    def is_narrow(self, floor: float, ceiling: float) -> bool:
        """Whether the gap between two rates is the tolerance, but for what rounding the rates makes."""
        return self.are_neighbors(floor, ceiling) or ceiling / floor - 1.0 <= self.tolerance + _ROUNDING

    def are_neighbors(self, floor: float, ceiling: float) -> bool:
        """Whether there is no whole number between two of them."""
        return self.is_whole and ceiling - floor <= 1.0


@dataclass(frozen=True, slots=True)
class Tried:
    """One run and its verdict; holds is None where it had none. is_hopeless: a query alone is too
    slow for the limit."""

    rate: float
    kind: Kind
    holds: bool | None
    is_hopeless: bool = False


@dataclass(frozen=True, slots=True)
class Try:
    """Run this rate next, because of `why`."""

    rate: float
    kind: Kind
    why: str


@dataclass(frozen=True, slots=True)
class HighestRate:
    """The highest rate that held. gap: how far above it the lowest rate that failed is (0.02 is 2 %), None where none
    failed. why: what ended the search."""

    rate: float
    is_confirmed: bool
    gap: float | None
    why: str


@dataclass(frozen=True, slots=True)
class NotFound:
    """No rate held; `why` says what ended the search."""

    why: str


Step: TypeAlias = "Try | HighestRate | NotFound"


def rounded(rate: float) -> float:
    """Return `rate` with five digits: people read it, and equal rates compare equal."""
    return float(f"{rate:.5g}")


def first_step_fits(plan: Plan, spent_s: float) -> bool:
    """Whether a probe of the estimate and its confirmation fit into the budget: a search that cannot end with a
    confirmed rate is not worth its time."""
    needed_s = plan.takes_s(Kind.PROBE, plan.estimate) + plan.takes_s(Kind.CONFIRMATION, plan.estimate)
    return spent_s + needed_s <= plan.budget_s


class _Standing:
    """What the verdicts say together."""

    def __init__(self, tried: Sequence[Tried]) -> None:
        self.tried = [run for run in tried if run.holds is not None]
        holds = {rate: self._holds(rate) for rate in sorted({run.rate for run in self.tried})}
        self.unclear = [rate for rate, verdict in holds.items() if verdict is None]
        self.held = [rate for rate, verdict in holds.items() if verdict is True]
        self.failed = [rate for rate, verdict in holds.items() if verdict is False]
        self.ceiling = min(self.failed, default=None)
        below = [rate for rate in self.held if self.ceiling is None or rate < self.ceiling]
        confirmed = [rate for rate in below if self.is_confirmed(rate)]
        self.floor = max(confirmed or below, default=None)  # what held in a longer run counts more than a probe

    def _holds(self, rate: float) -> bool | None:
        runs = [run for run in self.tried if run.rate == rate]
        confirmations = [run.holds for run in runs if run.kind is Kind.CONFIRMATION]
        if confirmations:
            return confirmations[-1]
        balance = sum(1 if run.holds else -1 for run in runs)
        return None if balance == 0 else balance > 0

    def count(self, rate: float) -> int:
        return sum(run.rate == rate for run in self.tried)

    def held_in_a_row(self) -> int:
        """How many of the last runs held."""
        verdicts = [run.holds for run in reversed(self.tried)]
        return next((number for number, holds in enumerate(verdicts) if not holds), len(verdicts))

    def is_confirmed(self, rate: float) -> bool:
        return any(run.rate == rate and run.kind is Kind.CONFIRMATION and run.holds for run in self.tried)

    @property
    def failed_confirmations(self) -> list[float]:
        return [run.rate for run in self.tried if run.kind is Kind.CONFIRMATION and not run.holds]

    @property
    def is_confirming(self) -> bool:
        """Whether the probes are over."""
        return any(run.kind is Kind.CONFIRMATION for run in self.tried)

    @property
    def gap(self) -> float | None:
        return None if self.ceiling is None or self.floor is None else self.ceiling / self.floor - 1.0


def _bracketing(plan: Plan, standing: _Standing) -> Try | NotFound | None:
    """Return the next rate while one end is missing; None where both are there, or nothing higher is allowed."""
    if standing.floor is None and standing.ceiling is not None:
        if any(run.is_hopeless for run in standing.tried if run.rate == standing.ceiling):
            return NotFound("a single query already takes longer than the limit")
        lower = sum(rate < plan.estimate for rate in standing.failed)
        factor = _STEPS_DOWN[min(lower, len(_STEPS_DOWN) - 1)]
        rate = plan.below(standing.ceiling, factor)
        if rate < plan.lowest:
            return _none_lower(plan, standing, standing.ceiling)
        return Try(rate, Kind.PROBE, f"lower: no {plan.noun} passed yet")
    if standing.floor is not None and standing.ceiling is None and standing.floor < plan.highest:
        higher = sum(rate > plan.estimate for rate in standing.held)
        factor = _STEPS_UP[min(higher, len(_STEPS_UP) - 1)]
        rate = plan.above(standing.floor, factor)
        return Try(rate, Kind.PROBE, "higher: none failed yet") if rate > standing.floor else None
    return None


def _none_lower(plan: Plan, standing: _Standing, lowest: float) -> Try | NotFound:
    """Return what follows when the lowest rate failed: one request at a time may have met other work on the machine."""
    if not plan.is_whole:
        return NotFound(f"rates down to {lowest:g} queries/s failed")
    if standing.count(lowest) == 1:
        return Try(lowest, Kind.PROBE, _AGAIN)
    return NotFound("a single request in flight failed")


def _probing(plan: Plan, standing: _Standing) -> Try | NotFound | None:
    """Return the next probe of steps 1 to 3; None when they are done."""
    for rate in standing.unclear:
        return Try(rate, Kind.PROBE, "again: one run passed, one failed")
    ceiling, floor = standing.ceiling, standing.floor
    if ceiling is not None and standing.held and standing.held[-1] > ceiling and standing.count(ceiling) == 1:
        return Try(ceiling, Kind.PROBE, f"again: a higher {plan.noun} passed")
    bracketing = _bracketing(plan, standing)
    if bracketing is not None or ceiling is None or floor is None:
        return bracketing
    is_narrow = plan.is_narrow(floor, ceiling)
    if standing.count(ceiling) == 1 and (is_narrow or standing.held_in_a_row() >= _MAX_IN_A_ROW):
        return Try(ceiling, Kind.PROBE, _AGAIN)
    if not is_narrow:
        middle = plan.between(floor, ceiling)
        if middle is not None:
            return Try(middle, Kind.PROBE, f"between {floor:g} (passed) and {ceiling:g} (failed)")
    return None


def _confirming(plan: Plan, standing: _Standing) -> Try | None:
    """Return the next confirmation; None when the highest rate is confirmed."""
    failed = standing.failed_confirmations
    if standing.floor is None and not failed:
        return None
    if standing.floor is not None and standing.is_confirmed(standing.floor):
        ceiling = standing.ceiling
        if not failed or ceiling is None or plan.is_narrow(standing.floor, ceiling):
            return None
        middle = plan.between(standing.floor, ceiling)
        why = f"between the confirmed {plan.noun} and the failed one"
        return None if middle is None else Try(middle, Kind.CONFIRMATION, why)
    if not failed:
        return Try(standing.floor or 0.0, Kind.CONFIRMATION, f"a longer run at the highest {plan.noun} that passed")
    step = min(_WIDEST_STEP_DOWN, plan.tolerance * 2.0 ** (len(failed) - 1))
    rate = plan.below(min(failed), 1.0 - step)
    if rate < plan.lowest:
        return None
    return Try(rate, Kind.CONFIRMATION, "lower: the longer run failed")


def _ended(plan: Plan, standing: _Standing, why: str) -> HighestRate | NotFound:
    if standing.floor is None:
        return NotFound(why)
    return HighestRate(standing.floor, standing.is_confirmed(standing.floor), standing.gap, why)


def _kept_s(plan: Plan, rate: float) -> float:
    """Return the time that probes leave for confirmations: for two, because the first one may fail."""
    one_s = plan.takes_s(Kind.CONFIRMATION, rate)
    return max(one_s, min(2.0 * one_s, plan.budget_s / 2.0))


def next_step(plan: Plan, tried: Sequence[Tried], spent_s: float) -> Step:
    """Return what comes next after the runs `tried`, of which the last ended `spent_s` seconds into the budget."""
    standing = _Standing(tried)
    if not standing.tried:
        if spent_s + plan.takes_s(Kind.PROBE, plan.estimate) > plan.budget_s:
            return NotFound(f"the budget of {plan.budget_s:g} s ended before a run did")
        return Try(rounded(plan.estimate), Kind.PROBE, "the estimate")
    runs_left = plan.most_runs - len(tried)
    time_left_s = plan.budget_s - spent_s
    cut = ""
    if not standing.is_confirming:
        step = _probing(plan, standing)
        if isinstance(step, NotFound):
            return step
        if step is not None:
            kept_s = 0.0 if standing.floor is None else _kept_s(plan, standing.floor)
            kept_runs = int(standing.floor is not None)
            if runs_left > kept_runs and time_left_s >= plan.takes_s(step.kind, step.rate) + kept_s:
                return step
            cut = _cut(plan, runs_left <= kept_runs)
    confirmation = _confirming(plan, standing)
    if confirmation is None:
        return _ended(plan, standing, cut or _whole(plan, standing))
    if runs_left > 0 and time_left_s >= plan.takes_s(confirmation.kind, confirmation.rate):
        return confirmation
    return _ended(plan, standing, _cut(plan, runs_left <= 0))


def _cut(plan: Plan, by_runs: bool) -> str:
    return f"the search may have {plan.most_runs} runs" if by_runs else f"the budget of {plan.budget_s:g} s was used up"


def _whole(plan: Plan, standing: _Standing) -> str:
    if standing.ceiling is None:
        return "no higher one is tried" if plan.is_whole else "it is the highest rate that there is memory for"
    if standing.floor is not None and plan.are_neighbors(standing.floor, standing.ceiling):
        return "the next higher number failed"
    return f"the next rate that failed is at most {plan.tolerance:.0%} higher"
