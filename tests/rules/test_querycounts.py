"""How long the queries of a run take, said before it begins."""

import pytest

from crowdperf.rules.query_counts import length_note


@pytest.mark.parametrize(
    ("queries", "fewest", "query_s", "at_least_s", "said"),
    [
        (100, 100, 0.01, 2.0, ""),
        (100, 100, 0.09, 2.0, ""),  # 9 s
        (100, 100, 2.1, 2.0, "100 queries, one every 2.1 s, need about 4 min"),
        (662, 662, 0.5, 600.0, ""),
        (60, 100, 5.0, 2.0, "60 queries, one every 5 s, need about 5 min; a test run sends 60 of the 100 queries that"
         " early stopping needs, so it is likely to end INVALID. All of them need about 8 min: --min_query_count=100"),
        (100, 100, 0.0, 2.0, ""),
    ],
)  # fmt: skip
def test_what_a_run_takes_is_known_beforehand(queries, fewest, query_s, at_least_s, said):
    assert length_note(queries, fewest, query_s, at_least_s) == said
