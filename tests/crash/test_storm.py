"""The storm as a test: a short one in every run of the suite, the whole one under --full."""

from __future__ import annotations

from pathlib import Path

import pytest
from storm import run


def test_a_short_storm_breaks_no_rule(tmp_path: Path) -> None:
    storm = run(tmp_path, rounds=3, process_count=6, seed=20261121)
    assert storm.problems == []
    assert storm.counts["rounds"] == 3
    assert storm.counts["processes killed"] + storm.counts["groups killed"] > 0
    assert storm.counts["questions asked in the calm"] > 0


@pytest.mark.full
def test_a_storm_of_16_processes_and_200_rounds_breaks_no_rule(tmp_path: Path) -> None:
    storm = run(tmp_path, rounds=200, process_count=16, seed=1)
    assert storm.problems == []
    assert storm.counts["rounds"] == 200
