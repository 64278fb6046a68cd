"""Which points a curve has, and how many samples each issues."""

import random

import pytest

from crowdperf.curves.choice import automatic_points, missing
from crowdperf.curves.recorded import c_max_of
from crowdperf.curves.sizing import calibration_s, expected_s, samples_for
from crowdperf.endpoints.regions import MIN_POINTS, RegionError, regions_of, uncovered


@pytest.mark.parametrize(
    ("c_max", "c_min", "expected"),
    [
        (64, 1, (1, 2, 3, 5, 10, 18, 34, 64)),
        (256, 1, (1, 2, 4, 8, 18, 43, 104, 256)),
    ],
)
def test_automatic_points(c_max: int, c_min: int, expected: tuple[int, ...]) -> None:
    points = automatic_points(regions_of(c_max, c_min))
    assert len(points) == 8
    assert points == expected


def test_automatic_points_are_a_submission_wherever_there_is_room() -> None:
    generator = random.Random(20261123)
    for _ in range(300):
        c_min = generator.randint(1, 32)
        regions = regions_of(generator.randint(c_min + 40, 10_000), c_min)
        points = automatic_points(regions)
        assert points[0] == c_min and points[-1] == regions.c_max
        assert len(points) >= MIN_POINTS and sorted(set(points)) == list(points)
        assert uncovered(regions, points) == () and missing(regions, points) == ()


def test_what_a_choice_lacks_is_named() -> None:
    found = missing(regions_of(64, 1), (1, 64))
    assert found == (
        "a submission has 7 to 32 points, got 2",
        "no point in the region low_concurrency: 2-5",
        "no point in the region med_concurrency: 6-17",
    )


@pytest.mark.parametrize(
    ("floor_s", "rate", "dataset", "concurrency", "samples"),
    [
        (600, 1.0, 64, 1, 704),  # 660 samples, 10.3 data sets
        (600, 0.01, 6396, 1, 6396),  # the whole data set once, however slow
        (2, 99.0, 10, 3, 230),  # 217.8 samples, and 3 in flight at the end
        (2, 1.0, 16, 100, 112),  # as many as are in flight
    ],
)
def test_samples_are_whole_data_sets_that_last_long_enough(
    floor_s: float, rate: float, dataset: int, concurrency: int, samples: int
) -> None:
    assert samples_for(floor_s, rate, dataset, concurrency) == samples


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="must be above 0"):
        samples_for(600, rate, 64)


def test_expected_seconds() -> None:
    assert expected_s(1200) == pytest.approx(1320 + 20 + 30)
    assert expected_s(0) == 15
    assert (calibration_s(2.0), calibration_s(1200.0)) == (2.0, 20.0)


def test_a_curve_without_a_fixed_concurrency_has_no_regions() -> None:
    with pytest.raises(RegionError, match="no run with a fixed concurrency"):
        c_max_of(())
