"""What charts draw, and that they say the same in words."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

pytest.importorskip("markupsafe", reason="the packages of the results server are not installed")

from crowdperf.kit.step_plot import StepPoint, steps_of
from crowdperf.web import charts
from crowdperf.web.charts import Bar
from crowdperf.web.formats import minute, plain, quantity

CURVE = [
    StepPoint("1", 100.0, 100.0),
    StepPoint("8", 60.0, 400.0),
    StepPoint("9", 50.0, 300.0),
    StepPoint("64", 20.0, 900.0),
]
DRAWN = {
    "distribution": charts.distribution("Spread", [1.0, 2.0, 2.0, 5.0], "ms", 2.0),
    "history": charts.history("History", [("1.0", [3.0]), ("<2.0>", [4.0, 5.0])], "ms"),
    "curves": charts.curves("Curve", [("<A>", CURVE), ("B", CURVE[:1])]),
    "bars": charts.bars("Bars", [Bar("A", 3.0, 1.0, 4.0), Bar("B", 2.0, 2.0, 2.0)], "ms"),
}


@pytest.mark.parametrize("name", list(DRAWN))
def test_a_chart_is_an_image_with_title_and_description(name: str) -> None:
    root = ElementTree.fromstring(DRAWN[name])
    kinds = [child.tag for child in root]
    assert root.get("role") == "img" and kinds[:2] == ["title", "desc"]
    assert root.get("aria-label") == f"{root[0].text}. {root[1].text}"
    assert " style=" not in DRAWN[name] and "nan" not in DRAWN[name]
    numbers = [float(n) for n in re.findall(r"[MHV](-?\d+\.\d)", " ".join(child.get("d") or "" for child in root))]
    assert all(-1 <= number <= charts.WIDTH for number in numbers)


def test_series_differ_in_shape_and_not_in_colour_alone() -> None:
    marks = [charts.mark(place, 10, 10) for place in range(4)]
    assert len({re.sub(r' class="[^"]*"', "", one) for one in marks}) == 4


def test_a_curve_steps_over_measured_points_only() -> None:
    assert [point.words for point in steps_of(CURVE)] == ["1", "8", "64"]
    drawn = charts.curves("Curve", [("A", CURVE)])
    line = re.search(r'class="line series-1" d="M[\d.]+ [\d.]+((?: [HV][\d.]+)+)"', drawn)
    assert line and len(line[1].split()) == 6
    assert drawn.count("<circle") == len(CURVE)


def test_nothing_is_drawn_of_nothing() -> None:
    assert charts.distribution("x", [1.0], "ms") == "" == charts.history("x", [("1", [1.0])], "ms")
    assert charts.curves("x", [("A", [])]) == ""


@pytest.mark.parametrize("values", [[0.0], [5.0, 5.0], [-3.0, 2.0], [1e-9, 2e-9], [1e15, 2e15], [0.1, 1000.0]])
def test_an_axis_holds_its_values_and_has_round_marks(values: list[float]) -> None:
    found = charts.axis(values, 0.0, 100.0, from_zero=False)
    assert found.low <= min(values) and max(values) <= found.high and 2 <= len(found.marks) <= 8
    assert all(-0.001 <= found.at(value) <= 100.001 for value in values)


def test_texts_show_what_cannot_be_seen() -> None:
    assert plain("a\u202eb\x00\ud800\u200b\U000e0001é\n") == "a\\u202eb\\x00\\ud800\\u200b\\U000e0001é\n"
    assert (quantity(172_084.4), quantity(0.025771), quantity(None)) == ("172,084", "0.02577", "-")
    assert (minute("2026-11-23T10:15:30Z"), minute("2026-11-23"), minute("?")) == (
        "2026-11-23 10:15 UTC",
        "2026-11-23",
        "?",
    )
