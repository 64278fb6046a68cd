"""The figure of a run that the official checkers publish."""

from __future__ import annotations

from mlperf_results.logs import LoadGenLog, MetricValue
from mlperf_results.names import TOKEN_METRIC


def published_figure(log: LoadGenLog) -> MetricValue | None:
    """Return tokens per second where LoadGen infers them, else the metric of the scenario; None without either."""
    if log.tokens_per_second is not None:
        return MetricValue(metric=TOKEN_METRIC, value=log.tokens_per_second)
    return log.metric
