"""What the files that verify a compliance test say: verify_performance.txt, verify_accuracy.txt, that of TEST06.

    Reference score = 40.5341    num_perf_log_entries = 4169         First token check pass: True
    Test score = 40.5363         num_perf_log_data_mismatch = 0      EOS check pass: True
    TEST PASS                    TEST PASS                           Sample length check pass: True

Sources: verify_performance.py and verify_accuracy.py of TEST01, verify_performance.py of TEST04, run_verification.py of
TEST06, mlcommons/inference at b66003e1 (August 2026), and the 740 tests of the published round v5.1, which all look so.
"""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

PASS = "TEST PASS"
TEST06_LINES = (
    ("First token check pass: True", "First token check pass: Skipped"),
    ("EOS check pass: True",),
    ("Sample length check pass: True",),
)
"""TEST06 has no word for its verdict: one line of each group must stand in its verify_accuracy.txt."""


def missing_lines(test: str, text: str) -> tuple[str, ...]:
    """Return what a file that verifies a test should say and does not, empty where it says that the test passed."""
    if test != "TEST06":
        return () if PASS in text else (PASS,)
    present = {line.strip() for line in text.split("\n")}
    return tuple(" or ".join(choices) for choices in TEST06_LINES if not present.intersection(choices))


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


@functools.lru_cache(maxsize=4)
def printed_counts(text: str) -> Mapping[str, int]:
    """Return the counts of TEST01's verify_accuracy.txt, as `num_perf_log_entries`, by their names."""
    return MappingProxyType({name: int(count) for name, count in dict(_COUNT.findall(text)).items()})
