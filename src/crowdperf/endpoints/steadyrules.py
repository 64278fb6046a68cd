"""Rule E14: what point.yaml claims of its steady state is what follows from the events, or less.

A claim that makes a result better than its events do is refused: a window that is none, another window, a metric that
is said to be level and drifts by 5 % or more. Any other difference is a warning: smaller drifts, TTFT (which does not
decide by the rules' table of terms), a claim of less than there is.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from crowdperf.endpoints.findings import POINT_RULES, CurveView, Finding, PointView, Says, rule
from crowdperf.endpoints.pointfiles import POINT, PROVENANCE
from crowdperf.endpoints.steady import PLATEAU, STEADY, SteadyState, steady_state
from crowdperf.endpoints.trends import TooLong

_CLOSE = 0.01
_NEEDS = f"events.jsonl of the point and --tokenizer, or its steady_state in {PROVENANCE}"


@rule("E14", "A window of steady state follows from the events.", POINT_RULES)
def steady_state_follows(point: PointView, curve: CurveView) -> Iterator[Finding]:
    claim, says = point.declared.steady, Says("E14", f"{point.path}/{POINT}")
    if claim is None:
        return
    if point.config.load_pattern != "concurrency":
        if claim.is_official:
            yield says.error(f"steady_state of a {point.config.load_pattern} run", "a run at a fixed concurrency")
        return
    wrong = list(_impossible(claim, point, curve.dataset_samples(point), says)) if claim.is_official else []
    yield from wrong
    if wrong:
        return
    try:
        found = _found(point, curve)
    except TooLong as error:
        yield says.unchecked(f"status = {claim.status}: {error}", "a run of fewer passes")
        return
    if found is not None:
        yield from _Compared(claim, found, says).findings()
    elif claim.is_official:
        yield from _by_times_of_issue(claim, point, says)


def _impossible(claim: SteadyState, point: PointView, size: int | None, says: Says) -> Iterator[Finding]:
    """What is wrong with a claimed window whatever the events are."""
    first, last, issued = claim.first_pass, claim.last_pass, point.summary.issued
    if first is None or last is None or claim.pass_size is None or claim.duration_s is None:
        yield says.error("steady_state.window is not complete", "super_pass_start, _end, _size and duration_s")
    elif size and claim.pass_size != size:
        yield says.error(f"super_pass_size = {claim.pass_size}", f"{size}, the data set's samples")
    elif not 0 <= first <= last or last * claim.pass_size >= issued:
        yield says.error(
            f"super-passes {first} to {last} of {claim.pass_size} samples", f"within the {issued} issued samples"
        )
    elif claim.samples is not None and claim.samples > (last - first + 1) * claim.pass_size:
        yield says.error(f"n_samples = {claim.samples}", f"at most {(last - first + 1) * claim.pass_size}")


def _found(point: PointView, curve: CurveView) -> SteadyState | None:
    """What the events say, or what the tree's maker found in them. Raises TooLong."""
    size = curve.dataset_samples(point) or (point.declared.steady.pass_size if point.declared.steady else None)
    if point.derived is not None and size:
        floor_s = curve.edition.floor_s(point.number, is_agentic=curve.is_agentic)
        found = steady_state(point.derived.timings, size, floor_s)
        if found is not None:
            return found
    return point.provenance.steady if point.provenance else None


def _by_times_of_issue(claim: SteadyState, point: PointView, says: Says) -> Iterator[Finding]:
    """What can be said of a claimed window without times per token."""
    if point.derived is None:
        yield says.error(f"duration_s = {claim.duration_s:g} without events to derive it from", _NEEDS)
        return
    first, last, size = claim.first_pass or 0, claim.last_pass or 0, claim.pass_size or 0
    span = point.derived.issue_span_s(first * size, (last - first + 1) * size)
    if not math.isclose(claim.duration_s or 0.0, span, rel_tol=_CLOSE):
        yield says.error(f"duration_s = {claim.duration_s:g}", f"{span:.1f}, by the times of issue")
    else:
        yield says.unchecked("whether TPOT is level over the window", "--tokenizer, which counts the tokens")


@dataclass(frozen=True, slots=True)
class _Compared:
    """A claim beside what was found."""

    claim: SteadyState
    found: SteadyState
    says: Says

    def findings(self) -> Iterator[Finding]:
        claim, found = self.claim, self.found
        if claim.is_official and not found.is_official:
            yield self.says.error(f"status = {claim.status}", f"{found.status}: {_shown(found)}, by the events")
            return
        if claim.status != found.status:
            yield self.says.warning(f"status = {claim.status}", f"{found.status}, by the events")
            return
        if claim.first_pass is not None and not self._is_same_window():
            yield self._says(f"window: {_shown(claim)}", f"{_shown(found)}, by the events", is_error=claim.is_official)
        yield from self._drifts()

    def _says(self, claimed: str, allowed: str, *, is_error: bool) -> Finding:
        return self.says.error(claimed, allowed) if is_error else self.says.warning(claimed, allowed)

    def _is_same_window(self) -> bool:
        """Some programs count super-passes from behind the ramp."""
        claim, found = self.claim, self.found
        window = (claim.first_pass, claim.last_pass)
        same = [
            (found.first_pass - ramp, found.last_pass - ramp)
            for ramp in (0, found.left_out)
            if found.first_pass is not None and found.last_pass is not None
        ]
        return (
            window in same
            and _is_close(claim.duration_s, found.duration_s)
            and (claim.samples is None or _is_close(claim.samples, found.samples))
        )

    def _drifts(self) -> Iterator[Finding]:
        claim, found = self.claim, self.found
        far = {metric for metric in found.far if metric.startswith("tpot")}
        if claim.verdict != found.verdict:
            is_better = claim.verdict == STEADY or (not claim.verdict and claim.is_official)
            is_error = is_better and (not found.verdict.startswith("drifting") or bool(far))
            yield self._says(f"verdict = {claim.verdict!r}", f"{found.verdict!r}, by the events", is_error=is_error)
        for metric, state in claim.states.items():
            actual = found.states.get(metric, state)
            if actual != state:
                is_error = state == PLATEAU and metric in far
                yield self._says(f"state.{metric} = {state!r}", f"{actual!r}, by the events", is_error=is_error)


def _is_close(value: float | None, found: float | None) -> bool:
    return value is not None and found is not None and math.isclose(value, found, rel_tol=_CLOSE)


def _shown(block: SteadyState) -> str:
    if block.first_pass is None:
        return "no window"
    seconds = "" if block.duration_s is None else f", issued over {block.duration_s:.1f} s"
    return f"super-passes {block.first_pass} to {block.last_pass}{seconds}"
