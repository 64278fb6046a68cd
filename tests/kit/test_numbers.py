"""The numbers that inputs of recipes hold as text."""

import pytest

from crowdperf.kit.numbers import MAX_DIGITS, positive_number, whole_number

TOO_LONG = pytest.param("9" * 5000, id="too long")
"""Python's int() refuses more than 4,300 digits with an error of its own."""


@pytest.mark.parametrize("text", ["", "-1", "1.5", "1e3", "ten", "²", "٣", "9" * (MAX_DIGITS + 1), TOO_LONG])
def test_what_is_no_whole_number_is_none(text: str) -> None:
    assert whole_number(text) is whole_number(text, 0) is None


def test_whole_numbers_begin_where_they_are_asked_to() -> None:
    assert (whole_number("0"), whole_number("0", 0), whole_number("07"), whole_number("9" * MAX_DIGITS)) == (
        None,
        0,
        7,
        10**MAX_DIGITS - 1,
    )


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "x", TOO_LONG])
def test_a_positive_number_is_finite(text: str) -> None:
    assert positive_number(text) is None
    assert positive_number("1e3") == 1000.0
