"""What the official submission checker asks of each benchmark in each MLPerf Inference round, v0.7 to v6.1.

`BENCHMARKS` has the newest round of a benchmark; here is what was different before. Sources: MODEL_CONFIG of the
checkers of mlcommons/inference: tag v4.0 (tools/submission/submission_checker.py) for v0.7 to v4.0, tag v4.1 for v4.1,
tools/submission/submission_checker/constants.py at b66003e1 (August 2026) for v5.0 to v6.1. The Offline minimum of all
benchmarks was 24,576 samples up to v3.1 (OFFLINE_MIN_SPQ), a table since (OFFLINE_MIN_SPQ_SINCE_V4).
"""

from __future__ import annotations

from dataclasses import dataclass

from mlperf_results.benchmarks import BENCHMARKS, AccuracyTarget
from mlperf_results.names import FULL_RULES_MIN_DURATION_MS, Scenario, UnknownName

ROUNDS = ("v0.7", "v1.0", "v1.1", "v2.0", "v2.1", "v3.0", "v3.1", "v4.0", "v4.1", "v5.0", "v5.1", "v6.0", "v6.1")
"""The rounds, oldest first."""

_OFFLINE_MIN_UP_TO_V31 = 24_576
_V07_MIN_DURATION_MS = 60_000
_SS, _MS, _OFF, _SRV = Scenario.SINGLE_STREAM, Scenario.MULTI_STREAM, Scenario.OFFLINE, Scenario.SERVER
_EDGE2, _EDGE3, _CENTER, _ALL = (_SS, _OFF), (_SS, _MS, _OFF), (_OFF, _SRV), (_SS, _MS, _OFF, _SRV)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRules:
    """One benchmark in one round.

    edge, datacenter, both: scenarios of a closed submission of a system of that category ("datacenter,edge" is both),
    required ones and optional ones together; empty: the category does not have the benchmark.
    server_target_latency_ms: None where no category has Server. multi_stream_target_latency_ms: the fixed rate of
    MultiStream before v2.0.
    """

    targets: tuple[AccuracyTarget, ...]
    dataset_count: int
    performance_sample_count: int | None
    offline_min_sample_count: int
    min_duration_ms: int
    edge: tuple[Scenario, ...]
    datacenter: tuple[Scenario, ...]
    both: tuple[Scenario, ...]
    server_target_latency_ms: float | None
    multi_stream_target_latency_ms: float | None


@dataclass(frozen=True, slots=True)
class _Span:
    """Consecutive rounds with the same scenarios.

    both: where it is not edge and datacenter together. reference, count: where the reference score and the size of the
    data set were not those of the newest round.
    """

    first: str
    last: str
    edge: tuple[Scenario, ...]
    datacenter: tuple[Scenario, ...]
    both: tuple[Scenario, ...] | None = None
    reference: float | None = None
    count: int | None = None


_SPANS: dict[str, tuple[_Span, ...]] = {
    "resnet50": (
        _Span("v0.7", "v1.0", _EDGE3, _CENTER),
        _Span("v1.1", "v1.1", _EDGE2, _CENTER),
        _Span("v2.0", "v5.0", _EDGE3, _CENTER),
        _Span("v5.1", "v6.1", _EDGE3, (), both=_ALL),
    ),
    "bert-99": (_Span("v0.7", "v4.1", _EDGE2, _CENTER), _Span("v5.0", "v6.1", _EDGE2, ())),
    "bert-99.9": (_Span("v0.7", "v4.1", (), _CENTER), _Span("v5.0", "v6.1", _EDGE2, ())),
    "3d-unet-brats": (_Span("v0.7", "v1.1", _EDGE2, (_OFF,)),),
    "3d-unet": (
        _Span("v2.0", "v2.0", _EDGE2, (_OFF,), reference=0.86331, count=42),
        _Span("v2.1", "v6.1", _EDGE2, (_OFF,)),
    ),
    "dlrm": (_Span("v0.7", "v3.0", (), _CENTER),),
    "dlrm-v2": (_Span("v3.1", "v5.1", (), _CENTER),),
    "rnnt": (_Span("v0.7", "v4.0", _EDGE2, _CENTER),),
    "ssd-mobilenet": (
        _Span("v0.7", "v1.0", _EDGE3, ()),
        _Span("v1.1", "v1.1", _EDGE2, ()),
        _Span("v2.0", "v2.0", _EDGE3, ()),
    ),
    "ssd-resnet34": (
        _Span("v0.7", "v1.0", _EDGE3, _CENTER),
        _Span("v1.1", "v1.1", _EDGE2, _CENTER),
        _Span("v2.0", "v2.0", _EDGE3, _CENTER),
    ),
    "retinanet": (_Span("v2.1", "v5.1", _EDGE3, _CENTER), _Span("v6.0", "v6.0", (), (), both=_ALL)),
    "gptj": (_Span("v3.1", "v5.0", _EDGE2, _CENTER),),
}
"""By name, or by the part of the name before the accuracy level."""

_MULTI_STREAM_LATENCY_MS = {"resnet50": 50.0, "ssd-mobilenet": 50.0, "ssd-resnet34": 66.0}


def _spans(name: str) -> tuple[_Span, ...]:
    if name not in BENCHMARKS:
        raise UnknownName("benchmark", name, tuple(BENCHMARKS))
    return _SPANS[name] if name in _SPANS else _SPANS[name.rsplit("-", 1)[0]]


def rounds_of(name: str) -> tuple[str, ...]:
    """Return the rounds that have the benchmark, oldest first; raises UnknownName."""
    spans = _spans(name)
    return ROUNDS[ROUNDS.index(spans[0].first) : ROUNDS.index(spans[-1].last) + 1]


def _rescaled(targets: tuple[AccuracyTarget, ...], reference: float | None, name: str) -> tuple[AccuracyTarget, ...]:
    if reference is None:
        return targets
    ratio = 0.999 if name.endswith("-99.9") else 0.99
    return tuple(AccuracyTarget(metric=t.metric, reference=reference, target=reference * ratio) for t in targets)


def rules_in(name: str, round_name: str) -> RoundRules:
    """Return the rules of a benchmark in a round; raises UnknownName for a round that does not have it."""
    allowed = rounds_of(name)
    if round_name not in allowed:
        raise UnknownName(f"round of {name}", round_name, allowed)
    number = ROUNDS.index(round_name)
    span = next(s for s in _spans(name) if ROUNDS.index(s.first) <= number <= ROUNDS.index(s.last))
    newest = BENCHMARKS[name]
    count, is_old = span.count, number < ROUNDS.index("v4.0")
    both = span.both or tuple(scenario for scenario in _ALL if scenario in (*span.edge, *span.datacenter))
    return RoundRules(
        targets=_rescaled(newest.targets, span.reference, name),
        dataset_count=count or newest.dataset_count,
        performance_sample_count=count or newest.performance_sample_count,
        offline_min_sample_count=_OFFLINE_MIN_UP_TO_V31 if is_old else newest.offline_min_sample_count,
        min_duration_ms=_V07_MIN_DURATION_MS if round_name == "v0.7" else FULL_RULES_MIN_DURATION_MS,
        edge=span.edge,
        datacenter=span.datacenter,
        both=both,
        server_target_latency_ms=newest.server_target_latency_ms if _SRV in both else None,
        multi_stream_target_latency_ms=_MULTI_STREAM_LATENCY_MS.get(name) if number < ROUNDS.index("v2.0") else None,
    )


def targets_of(name: str, round_name: str) -> tuple[AccuracyTarget, ...]:
    """Return the accuracy targets of a benchmark in a round; raises UnknownName for a round that does not have it."""
    return rules_in(name, round_name).targets


def scenarios_of(model: str) -> tuple[Scenario, ...]:
    """Return the scenarios that a benchmark has had in any round; all of them for a model MLPerf does not know."""
    row = BENCHMARKS.get(model)
    return _ALL if row is None else tuple(scenario for scenario in _ALL if scenario in row.scenarios)


def current_scenarios(model: str) -> tuple[Scenario, ...]:
    """Return the scenarios of the newest round that has the benchmark, edge and datacenter together."""
    if model not in BENCHMARKS:
        return _ALL
    return rules_in(model, rounds_of(model)[-1]).both
