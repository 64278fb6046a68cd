"""What the files that verify a compliance test say in figures: verify_performance.txt and verify_accuracy.txt.

    Reference score = 40.5341          num_perf_log_entries = 4169
    Test score = 40.5363               num_perf_log_data_mismatch = 0
    TEST PASS                          TEST PASS

Sources: verify_performance.py and verify_accuracy.py of TEST01, verify_performance.py of TEST04, mlcommons/inference at
b66003e1 (August 2026), and the 313 pairs of files of the published round v5.1, which all look so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_FIGURE = re.compile(
    r"^(?P<which>reference|test) score = (?P<value>\d+(?:\.(?P<digits>\d*))?(?:e[-+]?\d+)?)$", re.I | re.M
)
_LOG_DIGITS = 1e-5
"""LoadGen's detail log has six digits of a figure, its summary, which TEST04 reads, more."""


@dataclass(frozen=True, slots=True)
class PrintedScore:
    """A figure of verify_performance.txt: its text and value, and how far the figure of the log may be from it."""

    text: str
    value: float
    tolerance: float

    def is_of(self, score: float) -> bool:
        """Whether this is `score`, rounded."""
        return abs(self.value - score) <= self.tolerance + _LOG_DIGITS * abs(score)


def printed_scores(text: str) -> Mapping[str, PrintedScore]:
    """Return the figures of a verify_performance.txt by "reference" and "test": what `X score = FIGURE` says, alone on
    its line, in capital or small letters."""
    found = {}
    for match in _FIGURE.finditer(text):
        tolerance = 0.5 * 10.0 ** -len(match["digits"] or "")
        found[match["which"].lower()] = PrintedScore(match["value"], float(match["value"]), tolerance)
    return found


_COUNT = re.compile(r"^(num_\w+) = (\d{1,18})$", re.M)


def printed_counts(text: str) -> Mapping[str, int]:
    """Return the counts of TEST01's verify_accuracy.txt, as `num_perf_log_entries`, by their names."""
    return {name: int(count) for name, count in _COUNT.findall(text)}
