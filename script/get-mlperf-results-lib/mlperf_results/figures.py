"""The figure of a run that the official checkers publish; where a Server rate comes from, and which one to try next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlperf_results.logs import LATE_REASON, LoadGenLog, MetricValue
from mlperf_results.names import TOKEN_METRIC, Scenario


def published_figure(log: LoadGenLog) -> MetricValue | None:
    """Return tokens per second where LoadGen infers them, else the metric of the scenario; None without either."""
    if log.tokens_per_second is not None:
        return MetricValue(metric=TOKEN_METRIC, value=log.tokens_per_second)
    return log.metric


CHOSEN_ORIGIN = "warm-up estimate"
"""The origin in result.json of a value that the harness chose from its warm-up."""

LOWERED_ORIGIN = "lowered after an INVALID run"
"""The origin of a Server rate that run-mlperf-inference chose when a run at the harness's own rate was INVALID."""

LOWER_PART = 0.5
"""Part of the rate of a Server run that was too late, for the next one: its queries waited for one another, so a rate
somewhat below what it answered would still be too high."""

_SAYS_LESS = ("Reduce target QPS", "early stopping not satisfied")
"""How the other reasons of such a run begin: LoadGen's advice (6.0.17) names no rate, and early stopping follows from
the late queries."""


def _sent(result: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the setting `target_qps` of a Server run; None for any other."""
    run = result.get("run") or {}
    is_server = (run.get("scenario") or {}).get("value") == Scenario.SERVER.value
    return (run.get("target_qps") or {}) if is_server else None


def has_chosen_rate(result: Mapping[str, Any]) -> bool:
    """Return whether the figure of a Server run is a rate that was chosen here because none was given.

    result: the content of result.json.
    """
    return (_sent(result) or {}).get("origin") in (CHOSEN_ORIGIN, LOWERED_ORIGIN)


def lower_rate(result: Mapping[str, Any]) -> float | None:
    """Return the rate in queries/s to try after a Server run that answered too late; None for any other run.

    result: the content of result.json.
    """
    sent = (_sent(result) or {}).get("value")
    metric = result.get("metric")
    if result["valid"] or not sent or metric is None or LATE_REASON not in result["invalid_reasons"]:
        return None
    return float(f"{LOWER_PART * min(sent, metric['value']):.3g}")


def reasons_text(result: Mapping[str, Any], rate_input: str = "--target_qps") -> str:
    """Return why a run is INVALID; of a Server run that was too late with the rate sent and the one to give instead.

    result: the content of result.json. rate_input: the input that gives a Server rate.
    """
    reasons = list(map(str, result["invalid_reasons"]))
    rate = lower_rate(result)
    if rate is not None:
        reasons = [reason for reason in reasons if not reason.startswith(_SAYS_LESS)]
        sent = (_sent(result) or {})["value"]
        reasons.append(f"{sent:,g} queries/s were sent, try {rate_input}={rate:.10g}")
    return "; ".join(reasons)
