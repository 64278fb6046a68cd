"""How long the queries of a run take, said before it begins."""

import pytest

from crowdperf.rules.benchmarks import record_of
from crowdperf.rules.names import Scenario
from crowdperf.rules.query_counts import fewest_queries, length_note


@pytest.mark.parametrize(
    ("benchmark", "scenario", "count"),
    [
        ("resnet50", "SingleStream", 100),
        ("resnet50", "MultiStream", 662),
        ("resnet50", "Server", 662),
        ("llama2-70b", "Server", 662),
        ("smollm2", "Server", 64),  # its limits are for the 90th percentile
    ],
)
def test_early_stopping_needs_so_many_queries(benchmark, scenario, count):
    assert fewest_queries(Scenario(scenario), record_of(benchmark)) == count


@pytest.mark.parametrize(
    ("queries", "fewest", "query_s", "at_least_s", "said"),
    [
        (100, 100, 0.01, 2.0, ""),
        (100, 100, 0.09, 2.0, ""),  # 9 s
        (100, 100, 0.12, 2.0, "100 queries, one every 0.12 s, need about 12 s"),
        (100, 100, 2.1, 2.0, "100 queries, one every 2.1 s, need about 4 min"),
        (662, 662, 0.5, 600.0, ""),
        (60, 100, 5.0, 2.0, "60 queries, one every 5 s, need about 5 min; a test run sends 60 of the 100 queries that"
         " early stopping needs, so it is likely to end INVALID. All of them need about 8 min: --min_query_count=100"),
        (100, 100, 0.0, 2.0, ""),
    ],
)  # fmt: skip
def test_what_a_run_takes_is_known_beforehand(queries, fewest, query_s, at_least_s, said):
    assert length_note(queries, fewest, query_s, at_least_s) == said
