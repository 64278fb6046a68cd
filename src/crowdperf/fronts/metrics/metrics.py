"""Makes the metrics of a run under VirtualClient's names, with the values that are right. Pure.

Names, categories and the verbosity are those of its MLPerfMetricsParser and MLPerfExecutor (microsoft/VirtualClient,
the commit before 7bf6b814, read November 2026). Suffix `_p99` or `_p99_9` is the accuracy level, never a percentile of
latency: that one is in the metric's metadata.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from crowdperf.fronts.metrics.metadata import RunMetadata, Score
from crowdperf.rules.benchmarks import record_of
from crowdperf.rules.names import Mode, UnknownName

HIGHER, LOWER, UNDEFINED = "HigherIsBetter", "LowerIsBetter", "Undefined"
CATEGORIES = {Mode.PERFORMANCE: "PerformanceMode", Mode.ACCURACY: "AccuracyMode"}
VERBOSITY = 5
"""What VirtualClient gives a metric that sets none."""

_FIGURES = {"latency": ("latency_ns", "nanoseconds", LOWER), "tokens": ("tokens_per_second", "tokens/sec", HIGHER),
            "samples": ("samples_per_second", "samples/sec", HIGHER)}  # fmt: skip
_PERCENTILE = re.compile(r"result_(\d+(?:\.\d+)?)_percentile")


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric. `metadata` goes into its telemetry as it is; values are texts."""

    name: str
    value: float
    unit: str = ""
    relativity: str = UNDEFINED
    category: str = ""
    verbosity: int = VERBOSITY
    metadata: Mapping[str, str] = field(default_factory=dict)


def run_metadata(run: RunMetadata) -> dict[str, str]:
    """Return what stands beside each figure of a run, as texts; upstream's four names first."""
    found = _PERCENTILE.match(run.figure_key)
    values = {
        "config_name": run.config_name,
        "benchmark_short": run.short_name,
        "benchmark_full": run.benchmark,
        "scenario": run.scenario,
        "system_name": run.system_name,
        "percentile": f"{float(found[1]):g}" if found else "",
        "label": run.label,
        "remarks": " | ".join(run.remarks),
    }
    return {name: value for name, value in values.items() if value}


def metrics_of(run: RunMetadata) -> tuple[Metric, ...]:
    """Return the metrics of a run in upstream's order; those that the run has no result for are left out."""
    return _performance(run) if run.mode is Mode.PERFORMANCE else _accuracy(run)


def _performance(run: RunMetadata) -> tuple[Metric, ...]:
    """A run below ten minutes counts as INVALID, as in NVIDIA's own summary of it."""
    make = partial(Metric, category=CATEGORIES[run.mode], metadata=run_metadata(run))
    is_valid = run.is_valid and not run.is_short
    found = [
        make(name=f"PerformanceMode_p{run.level}", value=float(is_valid), unit="VALID/INVALID", relativity=HIGHER),
    ]
    if run.figure is not None:
        kind = next((word for word in _FIGURES if word in run.figure_key), "samples")
        stem, unit, relativity = _FIGURES[kind]
        found.append(make(name=f"{stem}_p{run.level}", value=float(run.figure), unit=unit, relativity=relativity))
    return tuple(found)


def _official(run: RunMetadata) -> tuple[Score, ...]:
    """The scores that the rules of the benchmark name; all of a benchmark that is not known here."""
    try:
        names = {reference.metric.lower() for reference in record_of(run.benchmark).references}
    except UnknownName:
        names = set()
    return tuple(score for score in run.scores if score.name.lower() in names) or run.scores


def _accuracy(run: RunMetadata) -> tuple[Metric, ...]:
    """One verdict for all scores; threshold, value and ratio of each official one, by its name where there are several.

    Scores that the rules do not name are told in the metadata.
    """
    make = partial(Metric, category=CATEGORIES[run.mode])
    scores = _official(run)
    others = ", ".join(f"{score.name} {score.value:g}" for score in run.scores if score not in scores)
    about = {**run_metadata(run), **({"other_scores": others} if others else {})}
    found = []
    if run.accuracy_passed is not None:
        name, value = f"AccuracyMode_p{run.level}", float(run.accuracy_passed)
        found.append(make(name=name, value=value, unit="PASS/FAIL", relativity=HIGHER, metadata=about))
    for score in scores:
        suffix = f"_{score.name}_p{run.level}" if len(scores) > 1 else f"_p{run.level}"
        limit = {} if score.upper_limit is None else {"upper_limit": f"{score.upper_limit:g}"}
        own = {**about, "score": score.name, **limit}
        better = HIGHER if score.upper_limit is None else UNDEFINED
        if score.threshold is not None:
            found.append(make(name=f"ThresholdValue{suffix}", value=float(score.threshold), metadata=own))
        found.append(make(name=f"AccuracyValue{suffix}", value=float(score.value), relativity=better, metadata=own))
        if score.threshold:
            ratio = score.value / score.threshold
            found.append(make(name=f"AccuracyThresholdRatio{suffix}", value=ratio, relativity=better, metadata=own))
    return tuple(found)
