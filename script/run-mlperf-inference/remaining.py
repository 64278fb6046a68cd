"""How long the runs that are left take, from their least durations and from how long earlier runs took. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from crowdperf.rules.names import Mode, counted, duration_text

from .matrix import RunSpec


@dataclass(frozen=True, slots=True)
class Took:
    """A run of this call that is finished, and how many seconds it took, installing left out."""

    spec: RunSpec
    seconds: float


def _more_s(spec: RunSpec, seconds: float) -> float:
    """What a run takes beside the least duration of its kind."""
    return max(0.0, seconds - least_s(spec))


def least_s(spec: RunSpec) -> float:
    """The least duration of a run; an accuracy run and a search for a target have none."""
    return spec.min_duration_s if spec.mode is Mode.PERFORMANCE and not spec.is_search else 0.0


def left_text(left: Sequence[RunSpec], took: Sequence[Took]) -> str:
    """How long the runs in `left` take: "about 2 min left", where one of each of their kinds is done; else what they
    take at least; empty where nothing is known."""
    least = sum(map(least_s, left))
    known = {mode: [_more_s(one.spec, one.seconds) for one in took if one.spec.mode is mode] for mode in Mode}
    if all(known[spec.mode] for spec in left):
        return f"about {duration_text(least + sum(mean(known[spec.mode]) for spec in left))} left"
    return f"at least {duration_text(least)} left" if least else ""


def took_text(took: Sequence[Took], measured_s: float, total_s: float) -> str:
    """How long finished runs took, next to what was announced: "2 runs took 21 s, 8 s of it measuring (announced: at
    least 2 s)". What a search measured is not known: "1 search took 48 s"."""
    is_search = all(one.spec.is_search for one in took)
    count = counted(len(took), *(("search", "searches") if is_search else ("run",)))
    text = f"{count} took {duration_text(total_s)}"
    if is_search:
        return text
    planned_s = sum(least_s(one.spec) for one in took)
    announced = f" (announced: at least {duration_text(planned_s)})" if planned_s else ""
    return f"{text}, {duration_text(measured_s)} of it measuring{announced}"
