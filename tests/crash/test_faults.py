"""The sweep of failing system calls as a test: a part of it in every run of the suite, the whole one under --full."""

from pathlib import Path

import pytest
from faults import SCENARIOS, sweep


def test_whichever_call_fails_the_error_is_plain_and_the_next_run_is_right(tmp_path: Path) -> None:
    done = sweep(tmp_path, stride=61)
    assert done.problems == []
    assert all(done.counts[scenario.name] >= 2 for scenario in SCENARIOS)


@pytest.mark.full
def test_whichever_of_all_calls_fails_the_error_is_plain_and_the_next_run_is_right(tmp_path: Path) -> None:
    done = sweep(tmp_path, stride=1)
    assert done.problems == []
    assert sum(done.counts.values()) > 1000
