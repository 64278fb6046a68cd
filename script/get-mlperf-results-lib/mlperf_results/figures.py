"""The figure of a run that the official checkers publish, and where a Server rate comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlperf_results.logs import LoadGenLog, MetricValue
from mlperf_results.names import TOKEN_METRIC, Scenario


def published_figure(log: LoadGenLog) -> MetricValue | None:
    """Return tokens per second where LoadGen infers them, else the metric of the scenario; None without either."""
    if log.tokens_per_second is not None:
        return MetricValue(metric=TOKEN_METRIC, value=log.tokens_per_second)
    return log.metric


CHOSEN_ORIGIN = "warm-up estimate"
"""The origin in result.json of a value that the harness chose from its warm-up."""


def has_chosen_rate(result: Mapping[str, Any]) -> bool:
    """Return whether the figure of a Server run is the rate that the harness chose because none was given.

    result: the content of result.json.
    """
    run = result.get("run") or {}
    is_server = (run.get("scenario") or {}).get("value") == Scenario.SERVER.value
    return is_server and (run.get("target_qps") or {}).get("origin") == CHOSEN_ORIGIN
