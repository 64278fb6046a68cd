"""The tables of docs/howto/rules.md, made from the rules that the harness and the gate work with.

A table stands between `<!-- table: NAME -->` and `<!-- end -->`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from crowdperf.rules.benchmarks import BENCHMARKS
from crowdperf.rules.names import (
    FULL_RULES_MIN_DURATION_MS,
    METRIC_OF_SCENARIO,
    MULTI_STREAM_SAMPLES_PER_QUERY,
    ExecutionMode,
    Scenario,
)
from crowdperf.rules.query_counts import MIN_QUERY_COUNT
from crowdperf.rules.rounds import rounds_of, rules_in

RULES_PAGE = Path(__file__).resolve().parent.parent / "docs" / "howto" / "rules.md"
_TABLE = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->\n)", re.DOTALL)

_QUERIES = {
    Scenario.SINGLE_STREAM: "one sample, the next when it is answered",
    Scenario.MULTI_STREAM: f"{MULTI_STREAM_SAMPLES_PER_QUERY} samples, the next query when all are answered",
    Scenario.OFFLINE: "all samples at once, in one query",
    Scenario.SERVER: "one sample, at random moments (Poisson)",
    Scenario.INTERACTIVE: "as Server, with shorter limits for tokens (language models)",
}
_FEWEST = {
    **{scenario: f"{count} queries" for scenario, count in MIN_QUERY_COUNT.items()},
    Scenario.OFFLINE: "the samples of the table below",
    Scenario.SERVER: "100 queries, but early stopping requires 459 without a late one",
    Scenario.INTERACTIVE: "as Server",
}
_LENGTHS = {
    ExecutionMode.TEST: "for trials (labeled, not for submissions)",
    ExecutionMode.FAST: "to compare settings (labeled, not for submissions)",
    ExecutionMode.VALID: "the rules",
}


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _scenarios() -> Iterator[str]:
    yield _row("scenario", "a query", "lasts at least", "has at least", "result")
    yield "|---" * 5 + "|"
    for scenario in Scenario:
        metric = METRIC_OF_SCENARIO[scenario]
        seconds = f"{FULL_RULES_MIN_DURATION_MS // 1000} s"
        yield _row(scenario.value, _QUERIES[scenario], seconds, _FEWEST[scenario], f"{metric.name}, {metric.unit}")


def _lengths() -> Iterator[str]:
    yield _row("`--execution_mode`", "performance run", "for")
    yield "|---" * 3 + "|"
    for mode in ExecutionMode:
        yield _row(f"`{mode.value}`", f"{mode.min_duration_ms // 1000} s at least", _LENGTHS[mode])


def _benchmarks() -> Iterator[str]:
    yield _row("benchmark", "round", "targets", "Server limit", "samples", "in memory", "Offline has at least")
    yield "|---" * 7 + "|"
    for name in BENCHMARKS:
        newest = rounds_of(name)[-1]
        rules = rules_in(name, newest)
        targets = ", ".join(f"{one.metric} {round(one.target, 4):,}" for one in rules.targets)
        limit = f"{rules.server_target_latency_ms:,.0f} ms" if rules.server_target_latency_ms else "none"
        generation = BENCHMARKS[name].record.generation
        if generation is not None:
            tokens = generation.server
            limit = f"{tokens.ttft_ms:,.0f} ms, {tokens.tpot_ms:,.0f} ms a token" if tokens else "none"
        memory = rules.performance_sample_count or rules.dataset_count
        offline = f"{rules.offline_min_sample_count:,}"
        yield _row(f"`{name}`", newest, targets, limit, f"{rules.dataset_count:,}", f"{memory:,}", offline)


def _categories() -> Iterator[str]:
    yield _row("benchmark", "round", "edge", "datacenter", "edge and datacenter")
    yield "|---" * 5 + "|"
    for name in BENCHMARKS:
        rules = rules_in(name, rounds_of(name)[-1])
        is_more = bool(set(rules.both) - {*rules.edge, *rules.datacenter})
        rows = (rules.edge, rules.datacenter, rules.both if is_more else ())
        edge, datacenter, both = (", ".join(one.value for one in row) for row in rows)
        yield _row(f"`{name}`", rounds_of(name)[-1], edge or "none", datacenter or "none", both)


TABLES: Mapping[str, Callable[[], Iterator[str]]] = {
    "scenarios": _scenarios,
    "lengths": _lengths,
    "benchmarks": _benchmarks,
    "categories": _categories,
}


def rules_page(text: str) -> str:
    """The page with its tables as the rules are; raises ValueError where it lacks one of TABLES."""
    names = [found[2] for found in _TABLE.finditer(text)]
    if sorted(names) != sorted(TABLES):
        raise ValueError(f"{RULES_PAGE} has the tables {names}, but it must have {list(TABLES)}")
    return _TABLE.sub(lambda found: found[1] + "\n" + "\n".join(TABLES[found[2]]()) + "\n\n" + found[3], text)
