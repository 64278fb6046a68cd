"""Holds a scorer's line against the recorded line of the official script."""

from collections.abc import Callable

import pytest
from scores.case import Case, digest, recorded
from scores.differences import DIFFERENCES

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.score import Score


def check(metric: str, name: str, case: Case, scorer: Callable[[Case], Score]) -> None:
    """Assert that the scorer prints the recorded line, or ends with a HarnessError where the official script crashed.

    The input must be the one the line was recorded with. Differences on purpose are those in `DIFFERENCES`.
    """
    pair = recorded(metric)[name]
    assert digest(case.responses) == pair["log"], "the case makes another log than the one that was recorded"
    own, _ = DIFFERENCES.get(f"{metric}: {name}", (pair["official"], ""))
    if own is None or own.startswith("crash"):
        with pytest.raises(HarnessError) as raised:
            scorer(case)
        assert raised.value.hint, "an error says what to try"
    else:
        assert scorer(case).line == own
