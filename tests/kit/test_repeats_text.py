"""Medians of repeats as text."""

import pytest

from crowdperf.kit.numbers import repeats_text, spread_percent


@pytest.mark.parametrize(
    ("values", "unit", "text"),
    [
        ([90.0, 110.0, 100.0], "u/s", "100 u/s ±10 % (n=3)"),
        ([99.0, 101.0], "", "100 ±1.0 % (n=2)"),
        ([5.0], "ms", "5 ms ±0.0 % (n=1)"),
        ([0.0, 0.0], "", "0 (n=2)"),
        ([-90.0, -110.0], "", "-100 ±10 % (n=2)"),
    ],
)
def test_the_spread_is_half_the_range_in_percent_of_the_median(values: list[float], unit: str, text: str) -> None:
    assert repeats_text(values, unit) == text
    assert (spread_percent(values) is None) is (values == [0.0, 0.0])
