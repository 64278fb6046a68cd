"""Where the rate of a run comes from, and which one to try next."""

from collections.abc import Mapping
from typing import Any

from crowdperf.kit.terminal import aligned
from crowdperf.logs.interference import clock_step_s, disturbances
from crowdperf.logs.run_log import LATE_REASON, SHORT_REASON
from crowdperf.rules.names import METRIC_OF_SCENARIO, TARGETS, Scenario, parse_scenario

CHOSEN_ORIGIN = "warm-up estimate"
"""The origin in result.json of a value that the harness chose from its warm-up."""

KEPT_ORIGIN = "found by an earlier run, shape.json"
"""The origin of a shape that an earlier run of the same folder found, measured again."""

CHANGED_ORIGIN = "changed after an INVALID run"
"""The origin of a rate that run-mlperf-inference chose when a run at the harness's own rate was INVALID."""

LOWER_PART = 0.5
"""Part of the rate of a Server run that was too late, for the next one: its queries waited for one another, so a rate
somewhat below what it answered would still be too high."""

LONGER_PART, MUCH_LONGER_PART = 1.5, 2.5
"""Times the rate of an Offline run that was too short, for the next one: LoadGen makes as many samples as such a rate
needs for the minimum duration, and the machine may answer faster in another minute. The larger one is for a run shorter
than MIN_JUDGED_S: the start of the server weighs much in its rate, and more samples cost little."""

MIN_JUDGED_S = 60.0
"""The shortest run whose figure is called better or worse than another. This project's choice: on a virtual machine of
2 cores, with nothing else running, the speed of ten windows of 2 s differed by 24 %, of 40 s by 13 % (2026-11-28)."""

_SAYS_LESS = (
    "Reduce target QPS", "TTFT constrain not met", "TPOT constrain not met", "early stopping not satisfied",
    "Increase expected QPS",
)  # fmt: skip
"""How the other reasons of such a run begin: LoadGen's advice (6.0.17) names no rate, and early stopping follows from
the late queries."""

_RATED = {
    Scenario.SERVER.value: LATE_REASON, Scenario.INTERACTIVE.value: LATE_REASON, Scenario.OFFLINE.value: SHORT_REASON
}  # fmt: skip
"""The scenarios with a rate, and the reason of INVALID that another rate helps against."""


_SERVERS = tuple(scenario.value for scenario in Scenario if scenario.is_server)


def _scenario(result: Mapping[str, Any]) -> str:
    return str(((result.get("run") or {}).get("scenario") or {}).get("value"))


def batch_of(scenario: str, performance: Mapping[str, Any]) -> int | None:
    """Return how many samples are computed together at most; 1 where each query is answered as it comes. None in the
    scenarios whose queries say it themselves (SingleStream, MultiStream), and where nothing tells.

    scenario: by its official name. performance: a result.json, or its part in results.json.
    """
    if scenario != Scenario.OFFLINE.value and scenario not in _SERVERS:
        return None
    if str(performance.get("issue_shape") or "").startswith("inline"):
        return 1
    setting = (performance.get("run") or {}).get("batch_size")
    value = setting.get("value") if isinstance(setting, Mapping) else setting
    return int(value) if isinstance(value, int | float) else None


def _rate(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the setting `target_qps`; empty for a run without one."""
    return (result.get("run") or {}).get("target_qps") or {}


def _rate_input(result: Mapping[str, Any]) -> str:
    """Return the input that gives the rate of the run's scenario, in every recipe that makes runs."""
    return f"--{TARGETS[parse_scenario(_scenario(result))][1]}"


def is_own_rate(result: Mapping[str, Any]) -> bool:
    """Return whether the rate of a run was chosen here because none was given.

    result: the content of result.json.
    """
    return _rate(result).get("origin") in (CHOSEN_ORIGIN, CHANGED_ORIGIN)


def has_chosen_rate(result: Mapping[str, Any]) -> bool:
    """Return whether the figure of a Server run is a rate that was chosen here because none was given.

    result: the content of result.json.
    """
    return _scenario(result) in _SERVERS and is_own_rate(result)


def chosen_rate_text(result: Mapping[str, Any]) -> str:
    """Return what is said beside the figure of such a run, with the input that finds or gives another rate.

    result: the content of result.json.
    """
    if result.get("text"):  # engines have no search
        return f"at a conservative rate chosen by the harness (to change it, add {_rate_input(result)})"
    return "at a conservative rate chosen by the harness (to find the maximum, add --find=yes)"


def why_not_judged(result: Mapping[str, Any]) -> tuple[str, ...]:
    """Return why the figure of a run says nothing about whether another one is better or worse, whatever its length and
    whatever slowed it down (`slowed_by`). Empty where it does.

    result: the content of result.json.
    """
    reasons = [] if result["valid"] else ["INVALID"]
    if has_chosen_rate(result):
        reasons.append(chosen_rate_text(result))
    return (*reasons, *(str(found) for found in disturbances(result) if not found.is_slowing))


def slowed_by(result: Mapping[str, Any]) -> list[dict[str, str | float | None]]:
    """Return what can only have made a run slower, as its record has it: the words with a gap for the amount, the
    amount, and its percent.

    result: the content of result.json.
    """
    found = [one for one in disturbances(result) if one.is_slowing]
    return [{"words": one.words, "amount": one.amount, "percent": one.percent} for one in found]


def why_not_judged_alone(result: Mapping[str, Any]) -> tuple[str, ...]:
    """Return why the figure of this one run says nothing, but repeats of it do: it was short.

    result: the content of result.json.
    """
    is_short = float(result.get("duration_s") or 0.0) < MIN_JUDGED_S
    return (f"less than {MIN_JUDGED_S:.0f} s were measured",) if is_short else ()


def better_rate(result: Mapping[str, Any]) -> float | None:
    """Return the rate to try after an INVALID run: a lower one after a Server run that answered too late (queries/s), a
    higher one after an Offline run that ended too early (samples/s); None for any other run, and where the machine's
    clock was set meanwhile.

    result: the content of result.json.
    """
    asked, metric, scenario = _rate(result).get("value"), result.get("metric"), _scenario(result)
    if result["valid"] or not asked or metric is None or _RATED.get(scenario) not in result["invalid_reasons"]:
        return None
    if clock_step_s(result):
        return None
    answered = (result.get("text") or {}).get("samples_per_second") or metric["value"]
    if scenario in _SERVERS:
        rate = LOWER_PART * min(asked, answered)
    else:
        is_brief = float(result.get("duration_s") or MIN_JUDGED_S) < MIN_JUDGED_S
        rate = (MUCH_LONGER_PART if is_brief else LONGER_PART) * max(asked, answered)
    return float(f"{rate:.3g}")


def rate_text(result: Mapping[str, Any]) -> str:
    """Return the rate that a run was given: "1,838 queries/s were sent", "it was planned for 90,000 samples/s"."""
    rate = f"{_rate(result)['value']:,.10g}"
    if _scenario(result) in _SERVERS:
        return f"{rate} queries/s were sent"
    return f"it was planned for {rate} samples/s"


def reasons_text(result: Mapping[str, Any]) -> str:
    """Return why a run is INVALID; where another rate helps, with the rate that it had and the one to give instead;
    where the machine's clock was set meanwhile, that, without LoadGen's advice.

    result: the content of result.json.
    """
    reasons = list(map(str, result["invalid_reasons"]))
    rate = better_rate(result)
    if rate is not None:
        reasons = [reason for reason in reasons if not reason.startswith(_SAYS_LESS)]
        reasons.append(f"{rate_text(result)}, try {_rate_input(result)}={rate:.10g}")
    if reasons and (step_s := clock_step_s(result)):
        reasons = [reason for reason in reasons if not reason.startswith(_SAYS_LESS)]
        reasons.append(
            f"the machine's clock was set by {step_s:+.6g} s during the run, so no rate follows from it: rerun"
        )
    return "; ".join(reasons)


def found_table(finds: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the lines of a table of searched targets: by scenario the result that was measured, and the target for
    later runs with the setting's name.

    finds: by scenario `measured` (a number, or None) and `settings`, each with its `value`, as in find.json.
    """
    rows = [("Scenario", "Measured", "", "Target of later runs", "")]
    for name, found in finds.items():
        measured = "-" if found["measured"] is None else f"{found['measured']:,.4g}"
        unit = METRIC_OF_SCENARIO[parse_scenario(name)].unit
        rows += [(name, measured, unit, f"{one['value']:,.4g}", key) for key, one in found["settings"].items()]
    return aligned(rows, frozenset(("Measured", "Target of later runs")))
