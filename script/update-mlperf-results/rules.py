"""Which runs count, how many are kept and which is the better one, by round, as data. Pure.

Source of v0.7: what NVIDIA's update_results asked of a run's summary (closed/NVIDIA/scripts of the v0.7 results
repository), the inference rules of that round. Rounds since v2.0 have early stopping, which is part of LoadGen's
verdict; v1.0 and v1.1 asked for the same counts as v0.7 (checker of tag v4.0, `min-queries`).
"""

from collections.abc import Mapping

from crowdperf.logs.run_facts import RunFacts, benchmark_behind
from crowdperf.rules.benchmarks import BENCHMARKS
from crowdperf.rules.names import Scenario
from crowdperf.rules.rounds import ROUNDS, rounds_of, rules_in

_SS, _MS, _OFF, _SRV = Scenario.SINGLE_STREAM, Scenario.MULTI_STREAM, Scenario.OFFLINE, Scenario.SERVER
MIN_QUERIES_UP_TO_V11: Mapping[Scenario, int] = {_SS: 1024, _MS: 270_336, _SRV: 270_336}
MIN_OFFLINE_SAMPLES = 24_576
"""Of a model that no round knows."""

SERVER_RUNS_V07 = 5


def serves_higher_level(benchmark: str) -> bool:
    """True for the level 99 of a benchmark whose runs may be those of the level 99.9: one engine serves both."""
    row = BENCHMARKS.get(benchmark)
    return row is not None and row.level == 0.99 and row.record.serves_higher_level


def is_up_to(round_name: str, last: str) -> bool:
    """True for a round that is not newer than ``last``."""
    return ROUNDS.index(round_name) <= ROUNDS.index(last)


def kept_count(round_name: str, scenario: Scenario) -> int:
    """How many performance runs of a scenario are kept."""
    return SERVER_RUNS_V07 if round_name == "v0.7" and scenario is _SRV else 1


def least_offline_samples(model: str, round_name: str) -> int:
    """The samples that an Offline run must have at least."""
    benchmark = benchmark_behind(model, round_name)
    if benchmark is None or round_name not in rounds_of(benchmark):
        return MIN_OFFLINE_SAMPLES
    return rules_in(benchmark, round_name).offline_min_sample_count


def query_shortage(facts: RunFacts, round_name: str) -> str:
    """Why a performance run has too few queries for a round, by the settings in its summary; empty when it has not."""
    if facts.run.scenario is _OFF:
        name, least = "samples_per_query", least_offline_samples(facts.run.model, round_name)
    elif is_up_to(round_name, "v1.1"):
        name, least = "min_query_count", MIN_QUERIES_UP_TO_V11[facts.run.scenario.issued_as]
    else:
        return ""
    found = facts.summary.number(name)
    if found is not None and found >= least:
        return ""
    return f"{name} is {'not in its summary' if found is None else f'{found:,.0f}'}, {round_name} asks for {least:,}"


def merit(facts: RunFacts, round_name: str) -> float:
    """How good a performance run is; more is better. Server and MultiStream of v0.7 by the latency of 99 %."""
    if round_name == "v0.7" and facts.run.scenario in (_SRV, _MS):
        latency_ms = next((found.value for found in facts.latencies if found.name == "99"), None)
        return float("-inf") if latency_ms is None else -latency_ms
    if facts.figure is None:
        return float("-inf")
    return -facts.figure.value if facts.figure.unit == "ms" else facts.figure.value


def skip_reason(model: str, scenario: Scenario, category: str, round_name: str) -> str:
    """Why a system of this category does not submit the scenario; empty when it does, or nothing is known of the model.

    category: edge, datacenter, or empty for any.
    """
    benchmark = benchmark_behind(model, round_name)
    if not category or benchmark is None or round_name not in rounds_of(benchmark):
        return ""
    rules = rules_in(benchmark, round_name)
    allowed = rules.edge if category == "edge" else rules.datacenter
    if scenario in allowed:
        return ""
    what = f"{benchmark} in {scenario.value}" if allowed else benchmark
    return f"{round_name} has no {what} for {category} systems"
