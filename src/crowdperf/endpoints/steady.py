"""The window of steady state of a run, derived from the times of its samples: section 4.4 of the Endpoints rules.

Samples in the order of their issue are cut into super-passes, each as large as the data set. The ramp at the beginning
is left out. A plateau is a contiguous stretch of at least four super-passes over which TPOT at p50 and at p90 are
level: spread and trend within the limits of trends.py. The first plateau whose times of issue span the least duration
of a run (section 6.2) is the window; where none does, the longest, and its figures are not official.

    status  windowable | insufficient_duration | insufficient_passes | partial_dataset
    verdict STEADY STATE | drifting_up | drifting_down | anomaly | not found

Sources: endpoints_rules.md of mlcommons/endpoints_policies, section 4.4 (stored version with the status table, read
2026-11-23); the words and the form of the block in point.yaml: submission_checker/models/file/steady_state.py of
endpoints-submission-cli 1.5.3.0. The rules' table of terms gates on TPOT alone, and so does the client's own detector;
the paragraph behind it names TTFT as well. Here TPOT decides, and the states of TTFT are given beside it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crowdperf.endpoints.trends import (
    MIN_PASSES,
    Effort,
    Growing,
    Trend,
    has_change_of_level,
    leading_off_level,
    trend_of,
)
from crowdperf.kit.text_documents import Json

WINDOWABLE = "windowable"
STEADY, NOT_FOUND = "STEADY STATE", "not found"
PLATEAU = "Plateau"
_STATES: Mapping[Trend, str] = {"level": PLATEAU, "up": "Drifting Up", "down": "Drifting Down"}
_OTHER_LEVEL = 0.05
"""A later plateau is another level where its mean TPOT differs by more than this share."""
_GATING = ("tpot_p50", "tpot_p90")


@dataclass(frozen=True, slots=True)
class Timing:
    """When one sample was issued, and its times in nanoseconds; None without a first token, an end, or tokens."""

    issued_ns: int
    ttft_ns: int | None = None
    latency_ns: int | None = None
    tpot_ns: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyState:
    """The block steady_state of point.yaml. Super-passes count from the run's first, 0; the last is included.

    states: by metric and percentile (tpot_p90). far: those that drift by 5 % or more. Numbers are None where there is
    no window, or none is stated.
    """

    status: str
    verdict: str
    first_pass: int | None = None
    last_pass: int | None = None
    pass_size: int | None = None
    samples: int | None = None
    duration_s: float | None = None
    states: Mapping[str, str]
    far: frozenset[str] = frozenset()
    left_out: int = 0
    """Super-passes before the window's series: the ramp. Some programs count from behind them."""

    @property
    def is_official(self) -> bool:
        """True where the figures over the window are the result, not those of the whole run."""
        return self.status == WINDOWABLE

    def fields(self) -> dict[str, Json]:
        """Return the block as point.yaml has it."""
        window: dict[str, Json] = {}
        if self.first_pass is not None:
            window = {
                "super_pass_start": self.first_pass,
                "super_pass_end": self.last_pass,
                "super_pass_size": self.pass_size,
                "n_samples": self.samples,
                "duration_s": self.duration_s,
            }
        return {"status": self.status, "verdict": self.verdict, "window": window, "state": dict(self.states)}


@dataclass(frozen=True, slots=True)
class _Pass:
    """One super-pass. tpot_ns: ascending."""

    samples: Sequence[Timing]
    tpot_ns: Sequence[float]
    ttft_ns: Sequence[int]

    def figure(self, metric: str) -> float | None:
        """A percentile, the lower of two elements; None where no sample has it."""
        name, _, percent = metric.partition("_p")
        values: Sequence[float] = self.tpot_ns if name == "tpot" else self.ttft_ns
        return float(values[(len(values) - 1) * int(percent) // 100]) if values else None


def _passes(timings: Sequence[Timing], size: int) -> list[_Pass]:
    found = []
    for begin in range(0, len(timings), size):
        part = timings[begin : begin + size]
        tpot = sorted(one.tpot_ns for one in part if one.tpot_ns is not None)
        found.append(_Pass(part, tpot, sorted(one.ttft_ns for one in part if one.ttft_ns is not None)))
    return found


def _series(passes: Sequence[_Pass], metric: str) -> list[float]:
    """A figure along super-passes; those without it are left out."""
    return [value for one in passes if (value := one.figure(metric)) is not None]


def _plateau_from(passes: Sequence[_Pass], begin: int, effort: Effort) -> int | None:
    """The end, not included, of the longest stretch from `begin` that is level at each of its lengths."""
    series = {metric: Growing() for metric in _GATING}
    end: int | None = None
    for index in range(begin, len(passes)):
        figures = {metric: passes[index].figure(metric) for metric in _GATING}
        for metric, value in figures.items():
            if value is None:
                return end
            series[metric].add(value)
        if index + 1 - begin < MIN_PASSES:
            continue
        if not all(one.is_level(effort) for one in series.values()):
            return end
        end = index + 1
    return end


def _plateaus(passes: Sequence[_Pass], effort: Effort) -> list[range]:
    found, begin = [], 0
    while begin <= len(passes) - MIN_PASSES:
        end = _plateau_from(passes, begin, effort)
        if end is None:
            begin += 1
        else:
            found.append(range(begin, end))
            begin = end
    return found


def _mean_tpot(passes: Sequence[_Pass]) -> float:
    values = [value for one in passes for value in one.tpot_ns]
    return sum(values) / len(values) if values else 0.0


def _is_other_level(passes: Sequence[_Pass], window: range, later: Sequence[range]) -> bool:
    """True where a later plateau has another TPOT, and a test finds the change as well."""
    level = _mean_tpot(passes[window.start : window.stop])
    others = [_mean_tpot(passes[one.start : one.stop]) for one in later]
    if not level or not any(abs(one - level) > _OTHER_LEVEL * level for one in others):
        return False
    return has_change_of_level([_mean_tpot([one]) for one in passes])


@dataclass(frozen=True, slots=True)
class _Drift:
    """Of each metric whether it drifts from the window's beginning to the end of the run; far: by 5 % or more."""

    states: Mapping[str, str]
    far: frozenset[str]


def _drift(passes: Sequence[_Pass], effort: Effort) -> _Drift:
    states, far = {}, set()
    for metric in (*_GATING, "ttft_p50", "ttft_p90"):
        series = Growing()
        for value in _series(passes, metric):
            series.add(value)
        if len(series.values) < MIN_PASSES:
            continue
        states[metric] = _STATES[trend_of(series.values, effort)]
        if states[metric] != PLATEAU and series.is_far:
            far.add(metric)
    return _Drift(states, frozenset(far))


def _verdict(states: Mapping[str, str], is_other_level: bool) -> str:
    if is_other_level:
        return "anomaly"
    found = [states.get(metric, PLATEAU) for metric in _GATING]
    if _STATES["up"] in found:
        return "drifting_up"
    return "drifting_down" if _STATES["down"] in found else STEADY


def steady_state(timings: Sequence[Timing], pass_size: int, floor_s: float) -> SteadyState | None:
    """Return the steady state of a run at a fixed concurrency; None where no sample has a TPOT (no tokenizer).

    timings: in the order of issue. floor_s: the least duration of the point. Raises trends.TooLong.
    """
    if not any(one.tpot_ns is not None for one in timings):
        return None
    if len(timings) < pass_size:
        return SteadyState(status="partial_dataset", verdict=NOT_FOUND, states={})
    effort = Effort()
    every = _passes(timings, pass_size)
    left_out = leading_off_level(_series(every, "tpot_p50"))
    passes = every[left_out:]
    plateaus = _plateaus(passes, effort)
    if not plateaus:
        drift = _drift(passes, effort)
        return SteadyState(status="insufficient_passes", verdict=NOT_FOUND, states=drift.states, far=drift.far)
    spans = [(passes[one[-1]].samples[-1].issued_ns - passes[one[0]].samples[0].issued_ns) / 1e9 for one in plateaus]
    chosen = next((at for at, span in enumerate(spans) if span >= floor_s), spans.index(max(spans)))
    window = plateaus[chosen]
    drift = _drift(passes[window.start :], effort)
    inside = [one for part in passes[window.start : window.stop] for one in part.samples]
    return SteadyState(
        status=WINDOWABLE if spans[chosen] >= floor_s else "insufficient_duration",
        verdict=_verdict(drift.states, _is_other_level(passes, window, plateaus[chosen + 1 :])),
        first_pass=left_out + window[0],
        last_pass=left_out + window[-1],
        pass_size=pass_size,
        samples=sum(one.latency_ns is not None for one in inside),
        duration_s=round(spans[chosen], 3),
        states=drift.states,
        far=drift.far,
        left_out=left_out,
    )
