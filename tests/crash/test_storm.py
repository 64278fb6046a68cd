"""The storm as a test: a short one in every run of the suite, the whole one under --full."""

from pathlib import Path

import pytest
from storm import run


def test_a_short_storm_breaks_no_rule(tmp_path: Path) -> None:
    storm = run(tmp_path, kills=12, process_count=6, seed=20261121)
    assert not storm.problems, "\n".join(storm.problems)
    assert storm.counts["kills"] >= 12
    assert storm.counts["questions asked in the calm"] > 0


@pytest.mark.full
def test_a_storm_with_1000_kills_breaks_no_rule(tmp_path: Path) -> None:
    storm = run(tmp_path, kills=1000, process_count=16, seed=1)
    assert not storm.problems, "\n".join(storm.problems)
    assert storm.counts["kills"] >= 1000
