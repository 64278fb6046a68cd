"""What the official submission checker asks of each benchmark in each MLPerf Inference round, v0.7 to v6.1.

Records state the newest round of a benchmark; here is what was different before. Sources: MODEL_CONFIG of the
checkers of mlcommons/inference: tag v4.0 (tools/submission/submission_checker.py) for v0.7 to v4.0, tag v4.1 for v4.1,
tools/submission/submission_checker/constants.py at b66003e1 (August 2026) for v5.0 to v6.1. The Offline minimum of all
benchmarks was 24,576 samples up to v3.1 (OFFLINE_MIN_SPQ), a table since (OFFLINE_MIN_SPQ_SINCE_V4).
"""

from collections.abc import Collection
from dataclasses import dataclass

from crowdperf.rules.benchmarks import BENCHMARKS, RECORDS, AccuracyTarget, model_of
from crowdperf.rules.names import FULL_RULES_MIN_DURATION_MS, Scenario, UnknownName
from crowdperf.rules.record import ALL_SCENARIOS, Span

ROUNDS = ("v0.7", "v1.0", "v1.1", "v2.0", "v2.1", "v3.0", "v3.1", "v4.0", "v4.1", "v5.0", "v5.1", "v6.0", "v6.1")
"""The rounds, oldest first."""


def is_since(round_name: str, first: str) -> bool:
    """Return whether a round is `first` or newer; both of `ROUNDS`."""
    return ROUNDS.index(round_name) >= ROUNDS.index(first)


_OFFLINE_MIN_UP_TO_V31 = 24_576
_V07_MIN_DURATION_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRules:
    """One benchmark in one round.

    edge, datacenter, both: scenarios of a closed submission of a system of that category ("datacenter,edge" is both),
    required ones and optional ones together; empty: the category does not have the benchmark. Of Server and
    Interactive one is enough. accuracy_sample_count: samples of an accuracy run.
    server_target_latency_ms: None where no category has Server. multi_stream_target_latency_ms: the fixed rate of
    MultiStream before v2.0.
    """

    targets: tuple[AccuracyTarget, ...]
    dataset_count: int
    accuracy_sample_count: int
    performance_sample_count: int | None
    offline_min_sample_count: int
    min_duration_ms: int
    edge: tuple[Scenario, ...]
    datacenter: tuple[Scenario, ...]
    both: tuple[Scenario, ...]
    server_target_latency_ms: float | None
    multi_stream_target_latency_ms: float | None


def _spans(name: str) -> tuple[Span, ...]:
    if name not in BENCHMARKS:
        raise UnknownName("benchmark", name, tuple(BENCHMARKS))
    row = BENCHMARKS[name]
    return (row.record.spans_of_999 if row.level == 0.999 else ()) or row.record.spans


def rounds_of(name: str) -> tuple[str, ...]:
    """Return the rounds that have the benchmark, oldest first; raises UnknownName."""
    spans = _spans(name)
    return ROUNDS[ROUNDS.index(spans[0].first) : ROUNDS.index(spans[-1].last) + 1]


def rules_in(name: str, round_name: str) -> RoundRules:
    """Return the rules of a benchmark in a round; raises UnknownName for a round that does not have it."""
    allowed = rounds_of(name)
    if round_name not in allowed:
        raise UnknownName(f"round of {name}", round_name, allowed)
    span = next(s for s in _spans(name) if is_since(round_name, s.first) and is_since(s.last, round_name))
    row, is_old = BENCHMARKS[name], not is_since(round_name, "v4.0")
    record, count = row.record, span.count
    return RoundRules(
        targets=row.targets(span.reference),
        dataset_count=count or record.dataset_count,
        accuracy_sample_count=count or record.accuracy_sample_count or record.dataset_count,
        performance_sample_count=count or record.performance_sample_count,
        offline_min_sample_count=_OFFLINE_MIN_UP_TO_V31 if is_old else record.offline_min_sample_count,
        min_duration_ms=_V07_MIN_DURATION_MS if round_name == "v0.7" else FULL_RULES_MIN_DURATION_MS,
        edge=span.edge,
        datacenter=span.datacenter,
        both=span.scenarios,
        server_target_latency_ms=record.server_target_latency_ms if Scenario.SERVER in span.scenarios else None,
        multi_stream_target_latency_ms=None if is_since(round_name, "v2.0") else record.multi_stream_target_latency_ms,
    )


def targets_of(name: str, round_name: str) -> tuple[AccuracyTarget, ...]:
    """Return the accuracy targets of a benchmark in a round; raises UnknownName for a round that does not have it."""
    return rules_in(name, round_name).targets


def scenarios_of(model: str) -> tuple[Scenario, ...]:
    """Return the scenarios that a benchmark has had in any round; those that suit it for one MLPerf does not know."""
    if model not in BENCHMARKS:
        record = RECORDS.get(model_of(model))
        return ALL_SCENARIOS if record is None else record.own_scenarios
    had = {scenario for span in BENCHMARKS[model].record.spans for scenario in span.scenarios}
    return tuple(scenario for scenario in Scenario if scenario in had)


def current_scenarios(model: str) -> tuple[Scenario, ...]:
    """Return the scenarios of the newest round that has the benchmark, edge and datacenter together."""
    return _spans(model)[-1].scenarios if model in BENCHMARKS else scenarios_of(model)


def chosen_scenarios(words: Collection[str], model: str) -> tuple[tuple[Scenario, ...], str]:
    """Return the scenarios that names ask for, in their order: for `all` those of the newest round; and what is wrong
    with them: the benchmark never had one."""
    if "all" in words:
        return tuple(scenario for scenario in Scenario if scenario in current_scenarios(model)), ""
    wanted, allowed = tuple(scenario for scenario in Scenario if scenario.value in words), scenarios_of(model)
    missing = ", ".join(scenario.value for scenario in wanted if scenario not in allowed)
    known = ", ".join(scenario.value for scenario in allowed)
    return wanted, f"{model} has no {missing}, only {known}" if missing else ""
