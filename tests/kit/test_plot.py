"""What charts draw, that they say the same in words, and that the parts of a drawing keep clear of each other."""

import re
from xml.etree import ElementTree

import pytest

from crowdperf.kit.drawing import MAX_MARKS, NARROW, ROOMY, Drawing, axis, key_mark, legend, mark, path
from crowdperf.kit.html_page import plain
from crowdperf.kit.numbers import quantity
from crowdperf.kit.plot import (
    Bar,
    Dot,
    Quantile,
    Spread,
    StepPoint,
    bars,
    box_plot,
    curve_plot,
    histogram_plot,
    history_plot,
    latency_plot,
    line_plot,
    nines,
    spread_plot,
    steps_of,
    strip_plot,
)

CURVE = [
    StepPoint("1", 100.0, 100.0),
    StepPoint("8", 60.0, 400.0),
    StepPoint("9", 50.0, 300.0),
    StepPoint("64", 20.0, 900.0, True),
]
LATENCIES = [Quantile(50, 1.0), Quantile(99, 2.0), Quantile(100, 3.0)]
DRAWN = {
    "box": box_plot("Spread", [1.0, 2.0, 2.0, 5.0], "ms", 2.0),
    "history": history_plot("History", [("1.0", [3.0]), ("<2.0>", [4.0, 5.0])], "ms"),
    "curves": curve_plot("Curve", [("<A>", CURVE), ("B", CURVE[:1])], [("limit", 50.0)]),
    "bars": bars("Bars", [Bar("A", 3.0, 1.0, 4.0), Bar("B", 2.0, 2.0, 2.0, "(+8 %)")], "ms"),
    "latency": latency_plot("Latency <x>", "ms", [("<A>", LATENCIES), ("B", LATENCIES)], [("limit", 200.0)]),
    "strip": strip_plot("Strip", [("<GPU>", [Dot(1.0, "<one>", False), Dot(300.0, "two", True)])], "samples/s"),
    "spread": spread_plot(
        "Sweep", "u/s", ["1", "<2>"], [("a", [Spread(1, 2, 3), None]), ("b", [None, Spread(4, 4, 4)])]
    ),
    "line": line_plot("a & b", "%", [(0.5, 1.0), (1.0, None), (1.5, 2.0)]),
    "histogram": histogram_plot("Tokens", [(0, 4), (50, 0), (100, 12)], 50),
}


def drawings(name: str) -> list[ElementTree.Element]:
    """The SVGs of a chart: two where it has the width of a page."""
    root = ElementTree.fromstring(DRAWN[name])
    return [root] if root.tag == "svg" else list(root)


@pytest.mark.parametrize("name", list(DRAWN))
def test_a_chart_is_an_image_with_title_and_description_within_its_frame(name: str) -> None:
    found = drawings(name)
    widths = [float((drawn.get("viewBox") or "").split()[2]) for drawn in found]
    assert widths == ([NARROW] if name in ("line", "histogram") else [ROOMY, NARROW])
    for drawn, width in zip(found, widths, strict=True):
        assert drawn.get("role") == "img" and [child.tag for child in drawn][:2] == ["title", "desc"]
        assert drawn.get("aria-label") == f"{drawn[0].text}: {drawn[1].text}"
        numbers = [float(n) for n in re.findall(r"[MHV](-?\d+\.\d)", " ".join(one.get("d") or "" for one in drawn))]
        assert all(-1 <= number <= width for number in numbers)
    assert " style=" not in DRAWN[name] and "nan" not in DRAWN[name]


def test_a_chart_says_in_words_what_it_shows() -> None:
    said = [drawings(name)[0].findtext("desc") for name in ("latency", "spread", "line", "histogram")]
    assert said == [
        "<A> p50 1, p99 2, max 3; B p50 1, p99 2, max 3, in ms",
        "a 1 2 u/s, b <2> 4 u/s",
        "1 to 2 %",
        "most have 100 to 149, from 0 to 149 in all",
    ]
    assert "<title>&lt;A&gt; p99: 2 ms</title>" in DRAWN["latency"], "a tooltip"


def test_series_differ_in_shape_and_not_in_color_alone() -> None:
    marks = [mark(place, 10, 10) for place in range(4)]
    assert len({re.sub(r' class="[^"]*"', "", one) for one in marks}) == 4
    assert "hollow" in mark(4, 10, 10) and "hollow" in key_mark(0, is_hollow=True)
    assert legend(["one"]) == "" and legend(["<a>", "b"]).count("&lt;a&gt;") == 1


def test_a_curve_steps_over_measured_points_only() -> None:
    assert [point.words for point in steps_of(CURVE)] == ["1", "8", "64"]
    drawn = ElementTree.fromstring(curve_plot("Curve", [("A", CURVE)]))[0]
    line = next(one.get("d") or "" for one in drawn if one.get("class") == "line series-1")
    assert len(re.findall("[HV]", line)) == 6
    assert len(drawn.findall("circle")) == len(CURVE)
    assert len([one for one in drawn.iter("circle") if "hollow" in (one.get("class") or "")]) == 1


def test_nothing_is_drawn_of_nothing() -> None:
    assert box_plot("x", [1.0], "ms") == "" == history_plot("x", [("1", [1.0])], "ms")
    assert curve_plot("x", [("A", [])]) == "" == strip_plot("x", [], "ms")
    assert latency_plot("x", "ms", [("A", [Quantile(50, 1.0)])]) == "" == spread_plot("x", "", ["a"], [("b", [None])])
    assert line_plot("x", "u", []) == "" == line_plot("x", "u", [(0.5, None)])
    assert histogram_plot("Tokens", [], 1) == ""


def test_a_histogram_draws_no_bar_without_answers() -> None:
    line = next(one.get("d") or "" for one in drawings("histogram")[0] if one.get("class") == "line series-1")
    assert line.count("M") == 2
    assert ">20</text>" in DRAWN["histogram"] and ">0 tokens</text>" in DRAWN["histogram"]


@pytest.mark.parametrize("is_log", [False, True])
@pytest.mark.parametrize(
    "values", [[0.0], [5.0, 5.0], [-3.0, 2.0], [1e-9, 2e-9], [1e15, 2e15], [0.1, 1000.0], [1.0], [1e-9, 1e15], [3, 4]]
)
def test_an_axis_contains_its_values_and_has_round_marks(values: list[float], is_log: bool) -> None:
    found = axis(values, 0.0, 100.0, from_zero=False, is_log=is_log)
    assert found.low <= min(values) * (1 + 1e-9) and max(values) <= found.high * (1 + 1e-9)
    assert 2 <= len(found.marks) <= MAX_MARKS + 1
    assert all(-0.001 <= found.at(value) <= 100.001 for value in values)
    words = [found.words(one) for one in found.marks]
    assert len(set(words)) == len(words)


@pytest.mark.parametrize(("value", "top"), [(0.4, 0.5), (1, 1), (1.5, 2), (3, 5), (5.1, 10), (199, 200), (201, 500)])
def test_the_axis_of_a_small_plot_ends_at_a_round_number(value: float, top: float) -> None:
    assert axis([value], 0, 1, steps=1).high == pytest.approx(top)


@pytest.mark.parametrize(
    ("values", "marks"),
    [([1.0, 2.0], ["0", "0.5", "1.0", "1.5", "2.0"]), ([0.15, 300.0], ["0.1", "1", "10", "100", "1,000"])],
)
def test_wide_latencies_get_a_logarithmic_axis(values: list[float], marks: list[str]) -> None:
    row = [Quantile(50, values[0]), Quantile(100, values[1])]
    drawn = ElementTree.fromstring(latency_plot("t", "ms", [("a", row)]))[0]
    assert [one.text for one in drawn.iter("text") if one.get("text-anchor") == "end" and one.text != "max"] == marks


def test_an_axis_that_does_not_begin_at_zero_says_so() -> None:
    drawn = history_plot("t", [("1", [1000.0]), ("2", [1080.0])], "x")
    assert drawn.count('class="axis break"') == 2 and ">1,080<" in drawn.replace("1,080 x", "")
    assert "break" not in bars("t", [Bar("a", 5.0, 5.0, 5.0)], "x")


def test_a_gap_in_the_values_breaks_the_line() -> None:
    assert path([(0, 1), None, (2, 2), (3, 2)]) == "M0.0 1.0 M2.0 2.0 L3.0 2.0"


def test_labels_cover_neither_marks_nor_each_other() -> None:
    drawing = Drawing(NARROW, 200)
    places = [(100.0 + 3 * n, 100.0 + n) for n in range(6)]
    for x, y in places:
        drawing.mark(0, x, y, "m")
    for x, y in places:
        drawing.label(x, y, "a long label")
    boxes = [
        (float(x), float(y) - 10, float(x) + 6.6 * 12, float(y) + 1)
        for x, y in re.findall(r'<text x="([\d.]+)" y="([\d.]+)"', "".join(drawing.parts))
    ]
    assert 1 <= len(boxes) < len(places), "some have no room"
    for place, one in enumerate(boxes):
        for other in boxes[place + 1 :]:
            assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


def test_the_tail_of_latencies_has_room() -> None:
    places = [nines(percent) for percent in (0, 50, 90, 99, 99.9, 100)]
    assert places == sorted(places)
    assert places[2:5] == pytest.approx([1, 2, 3])


@pytest.mark.parametrize(
    ("value", "words"),
    [(172_084.4, "172,084"), (0.025771, "0.02577"), (None, "-"), (0.04467, "0.04467"), (999.94, "999.9"),
     (5971.7, "5,972"), (0.0, "0"), (-12_345.6, "-12,346")],
)  # fmt: skip
def test_numbers_are_shown_with_four_digits(value: float | None, words: str) -> None:
    assert quantity(value) == words
    assert (quantity(999.6, 3), quantity(12_345.6, 5)) == ("1,000", "12,346")


def test_texts_show_what_cannot_be_seen() -> None:
    assert plain("a\u202eb\x00\ud800\u200b\U000e0001é\n") == "a\\u202eb\\x00\\ud800\\u200b\\U000e0001é\n"
