"""CM's order of versions and its bounds."""

import itertools

import pytest
from recipe_engine.rules.query import VersionRange, compare

IN_ORDER = [
    ["main", "1"],
    ["r4.0", "3.0"],
    ["r3.1", "r4.0", "r4.1-dev", "r4.1", "r4.1.1", "r10.0"],
    ["3.8", "3.9rc1", "3.9", "3.9.1", "3.10"],
    ["1.0.dev3", "1.0a1", "1.0b2", "1.0rc1", "1.0rc2", "1.0", "1.0.post1", "1.0.1"],
    ["2.0.0", "2.1.0", "2.1.0+cu118", "2.1.0+cu121", "2.1.1"],
    ["5.15.0", "5.15.0-91-generic", "5.15.0-100-generic", "5.15.1"],
    ["1.1.1-pre1", "1.1.1", "1.1.1a", "1.1.1b", "1.1.1c", "1.1.1c-fips", "1.1.1k", "1.1.1w", "1.1.2"],
    ["0.9.8", "0.9.8z", "0.9.8za", "0.9.8zh", "0.9.9"],
    ["3.0a1", "3.0.alpha", "3.0-beta", "3.0c1", "3.0", "3.0a", "3.0c", "3.0.1"],
    ["9", "10", "10.0.1"],
    ["", "0.1"],
]


@pytest.mark.parametrize(("lower", "higher"), [pair for chain in IN_ORDER for pair in itertools.combinations(chain, 2)])
def test_versions_are_ordered_by_number_and_pre_releases_come_first(lower: str, higher: str) -> None:
    assert compare(lower, higher) == -1
    assert compare(higher, lower) == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [("3.9", "3.9"), ("3.9", "3.9.0"), ("3", "3.0.0.0"), ("v2.9.0", "2.9"), (" 1.2 ", "1.2"), ("1.0RC1", "1.0rc1")],
)
def test_missing_numbers_count_as_zero_and_spelling_does_not_count(first: str, second: str) -> None:
    assert compare(first, second) == 0
    assert compare(second, first) == 0


def test_a_word_against_a_number_compares_where_the_reference_engine_raises() -> None:
    assert compare("3.9rc1", "3.9.1") == -1


@pytest.mark.parametrize(
    ("bounds", "version", "is_admitted"),
    [
        (VersionRange(), "1.0", True),
        (VersionRange(minimum="1.0"), "1.0", True),
        (VersionRange(minimum="1.0"), "0.9", False),
        (VersionRange(maximum="2.0"), "2.0", True),
        (VersionRange(maximum="2.0"), "2.0.1", False),
        (VersionRange(minimum="1.0", maximum="2.0"), "1.5", True),
        (VersionRange(minimum="3.9"), "3.10", True),
        (VersionRange(minimum="2.1.0"), "2.1.0+cu118", True),
        (VersionRange(minimum="1.0", maximum="2.0"), "", True),
        (VersionRange(maximum_usable="1.0"), "2.0", True),
    ],
)
def test_bounds_admit_what_lies_between_them_and_a_version_that_is_not_known(
    bounds: VersionRange, version: str, is_admitted: bool
) -> None:
    assert bounds.admits(version) is is_admitted


@pytest.mark.parametrize(
    ("bounds", "default", "chosen"),
    [
        (VersionRange(), "1.5", "1.5"),
        (VersionRange(), "", ""),
        (VersionRange(minimum="1.0"), "", ""),
        (VersionRange(minimum="2.0"), "1.5", "2.0"),
        (VersionRange(minimum="1.0"), "1.5", "1.5"),
        (VersionRange(minimum="1.5.0"), "1.5", "1.5"),
        (VersionRange(maximum="1.5.0", maximum_usable="1.4"), "1.5", "1.5"),
        (VersionRange(maximum="1.0"), "1.5", "1.0"),
        (VersionRange(maximum="1.0", maximum_usable="0.9"), "1.5", "0.9"),
        (VersionRange(maximum="2.0", maximum_usable="0.9"), "1.5", "1.5"),
        (VersionRange(minimum="1.10"), "1.9", "1.10"),
    ],
)
def test_a_default_is_moved_to_the_minimum_or_to_the_usable_maximum(
    bounds: VersionRange, default: str, chosen: str
) -> None:
    assert bounds.clamp(default) == chosen


@pytest.mark.parametrize(
    ("bounds", "text", "pip_text"),
    [
        (VersionRange(), "any version", ""),
        (VersionRange(exact="1.2"), "== 1.2", "==1.2"),
        (VersionRange(minimum="1"), ">= 1", ">=1"),
        (VersionRange(maximum="2"), "<= 2", "<=2"),
        (VersionRange(minimum="1", maximum="2"), ">= 1, <= 2", ">=1,<=2"),
        (VersionRange(exact="1.2", minimum="1", maximum="2"), "== 1.2, >= 1, <= 2", "==1.2"),
        (VersionRange(maximum_usable="2"), "any version", ""),
    ],
)
def test_bounds_are_shown_in_words_and_as_pip_wants_them(bounds: VersionRange, text: str, pip_text: str) -> None:
    assert bounds.text == text
    assert bounds.pip_text == pip_text
