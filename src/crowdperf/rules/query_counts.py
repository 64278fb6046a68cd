"""How many queries a performance run needs before early stopping can call it VALID, known before it begins. Pure."""

from crowdperf.rules.names import Scenario, counted, duration_text
from crowdperf.rules.record import Record

MIN_QUERY_COUNT = {Scenario.SINGLE_STREAM: 100, Scenario.MULTI_STREAM: 662}
"""LoadGen's embedded mlperf.conf (6.0.17), all models; fewer cannot satisfy early stopping in MultiStream."""

SERVER_QUERY_COUNT = 662
"""This project's choice: the rule is 100 (LoadGen's embedded mlperf.conf, 6.0.17), but early stopping at p99 calls no
run VALID with fewer than 459 queries without a late one, or 662 with one late query."""

SERVER_QUERY_COUNT_P90 = 64
"""The same at p90: 44 queries without a late one, 64 with one."""

LONGEST_TEST_S = 300.0
"""A test run asks for fewer queries than the rules where they would take longer. It then ends INVALID, because early
stopping asks for them, but it ends."""


def fewest_queries(scenario: Scenario, record: Record) -> int:
    """Return the fewest queries of a run of a scenario that has queries of its own (not Offline)."""
    if not scenario.is_server:
        return MIN_QUERY_COUNT[scenario]
    limits = record.generation.server if record.generation is not None else None
    return SERVER_QUERY_COUNT_P90 if limits is not None and limits.percentile == 90 else SERVER_QUERY_COUNT


_WORTH_SAYING = 2.0
"""Where queries take so many times the shortest duration, and more than 10 s, that is said: this project's choice."""


def length_note(queries: int, fewest: int, query_s: float, at_least_s: float) -> str:
    """Return how long the queries of a performance run take where that is much longer than its shortest duration, and
    that a test run makes fewer than it needs; empty where neither is so. queries: that are made at least; fewest: that
    early stopping needs; query_s: of one query, or between two."""
    if query_s <= 0:
        return ""
    found = []
    if queries * query_s > max(_WORTH_SAYING * at_least_s, 10.0):
        found.append(f"{counted(queries, 'query', 'queries')}, one every {query_s:.2g} s, need about "
                     f"{duration_text(queries * query_s)}")  # fmt: skip
    if queries < fewest:
        found.append(
            f"a test run sends {queries:,} of the {fewest:,} queries that early stopping needs, so it is likely to end "
            f"INVALID. All of them need about {duration_text(fewest * query_s)}: --min_query_count={fewest}"
        )
    return "; ".join(found)
