"""How many queries a performance run needs before early stopping can call it VALID, known before it begins. Pure."""

from __future__ import annotations

from mlperf_results.names import Scenario
from mlperf_results.record import Record

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
