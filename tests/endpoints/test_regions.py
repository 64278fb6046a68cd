"""Regions: the vectors of the rules, the edges, and what covers what."""

import pytest

from crowdperf.endpoints.regions import Region, RegionError, regions_of, uncovered


@pytest.mark.parametrize(
    ("c_max", "c_min", "bounds"),
    [
        (64, 1, "1-1 2-5 6-17 18-64 65-71"),
        (256, 1, "1-1 2-7 8-41 42-256 257-282"),
        (1024, 16, "1-16 17-26 27-117 118-1024 1025-1127"),
        (8192, 32, "1-32 33-52 53-437 438-8192 8193-9012"),
        (33, 32, "1-32 33-33 34-33 34-33 34-37"),
    ],
)
def test_bounds_are_those_of_the_rules(c_max: int, c_min: int, bounds: str):
    regions = regions_of(c_max, c_min)
    assert " ".join(str(regions.bounds(one)) for one in Region) == bounds


def test_a_concurrency_lies_in_one_region_and_may_cover_two():
    regions = regions_of(64, 1)
    assert [regions.region_of(one) for one in (0, 1, 5, 6, 64, 71, 72)] == [
        None, Region.ULTRA_LOW, Region.LOW, Region.MEDIUM, Region.HIGH, Region.MARGIN, None,
    ]  # fmt: skip
    assert [one for one in Region if regions.covers(one, 12)] == [Region.ULTRA_LOW, Region.MEDIUM]


def test_a_declared_c_min_ends_the_ultra_low_region():
    assert regions_of(64, 4, is_override=True).covers(Region.ULTRA_LOW, 5) is False
    assert regions_of(64, 4).covers(Region.ULTRA_LOW, 5) is True


def test_the_margin_covers_nothing():
    assert uncovered(regions_of(64, 1), (1, 4, 12, 70)) == (Region.HIGH,)
    assert uncovered(regions_of(64, 1), (1, 4, 12, 64)) == ()


@pytest.mark.parametrize(
    ("c_max", "c_min", "words"),
    [(32, 1, "C_max must be greater than 32"), (64, 33, "C_min must be 1 to 32"), (64, 0, "got 0")],
)
def test_what_the_rules_do_not_allow_says_what_they_do(c_max: int, c_min: int, words: str):
    with pytest.raises(RegionError, match=words):
        regions_of(c_max, c_min)
