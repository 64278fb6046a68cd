"""Makes the metrics that VirtualClient itself makes of a metadata.json, faults included. Pure.

For comparing with figures that its users have. Its arithmetic was read in MLPerfMetricsParser (microsoft/VirtualClient,
the commit before 7bf6b814, November 2026): the suffix is looked for in `scenario`, the figure is the second word of
`summary_string` without its last letter, one score of several counts, and its verdict is believed.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from crowdperf.fronts.metrics.metrics import CATEGORIES, HIGHER, Metric
from crowdperf.rules.names import Mode


class UpstreamFails(Exception):
    """VirtualClient ends with an exception here; the text names it."""


def _needed(content: Mapping[str, Any], key: str) -> Any:
    if content.get(key) is None:
        raise UpstreamFails(f"NullReferenceException: {key} is missing")
    return content[key]


def upstream_metrics(content: Mapping[str, Any], mode: Mode) -> tuple[Metric, ...]:
    """Return its metrics of a file that it takes for one of `mode`. Raises UpstreamFails where it throws."""
    suffix = "_p99_9" if "99_9" in _needed(content, "scenario") else "_p99"
    names = ("config_name", "benchmark_short", "benchmark_full", "scenario")
    about = {name: str(content.get(name) or "") for name in names}
    make = partial(Metric, category=CATEGORIES[mode], metadata=about)
    if mode is Mode.PERFORMANCE:
        is_valid = float(content.get("result_validity") == "VALID")
        stem = "latency_ns" if "latency" in _needed(content, "scenario_key") else "samples_per_second"
        return (
            make(name=f"PerformanceMode{suffix}", value=is_valid, unit="VALID/INVALID", relativity=HIGHER),
            make(name=f"{stem}{suffix}", value=_second_word(_needed(content, "summary_string"))),
        )
    listed = _needed(content, "accuracy")
    if not listed:
        raise UpstreamFails("ArgumentOutOfRangeException: accuracy is empty")
    passed, threshold, value = (_needed(listed[0], key) for key in ("pass", "threshold", "value"))
    ratio = value / threshold if threshold else float("nan")
    return (
        make(name=f"AccuracyMode{suffix}", value=float(passed), unit="PASS/FAIL", relativity=HIGHER),
        make(name=f"ThresholdValue{suffix}", value=float(threshold)),
        make(name=f"AccuracyValue{suffix}", value=float(value)),
        make(name=f"AccuracyThresholdRatio{suffix}", value=ratio, relativity=HIGHER),
    )


def _second_word(summary: str) -> float:
    words = summary.split(" ")
    if len(words) < 2 or not words[1]:
        raise UpstreamFails("IndexOutOfRangeException: summary_string has no second word")
    try:
        return float(words[1][:-1].replace(",", ""))
    except ValueError:
        raise UpstreamFails(f"FormatException: {words[1][:-1]!r} is not a number") from None
