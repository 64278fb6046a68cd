"""crowdperf.kit.html_page and plot: escaping, headers for screen readers, plots that say in words what they show."""

import re
from xml.etree import ElementTree

import pytest

from crowdperf.kit.html_page import Html, bullets, document, figures, folded, table, text
from crowdperf.kit.plot import Quantile, distribution_plot, line_plot, nines


def test_every_text_is_escaped_and_finished_html_is_left() -> None:
    assert text('<b>&"') == "&lt;b&gt;&amp;&quot;"
    assert text(Html("<b>x</b>")) == "<b>x</b>"
    assert text(None) == "-"
    page = document("<title>", [bullets(["<li>"]), folded("<x>", "y"), table(("<h>",), [("<c>",)], caption="<cap>")])
    assert not re.search(r"<(?:x|h|c|cap)>", page)


def test_a_table_has_headers_for_its_columns_and_rows() -> None:
    found = table(("Name", "Count"), [("a", 1), ("", 2)], numbers=(1,), caption="Counts", kind="facts")
    root = ElementTree.fromstring(found)
    assert [cell.get("scope") for cell in root.iter("th")] == ["col", "col", "row"]
    assert root.get("aria-label") == "Counts"
    assert [cell.get("class") for cell in root.iter("td")] == ["number", None, "number"]


def test_verdicts_have_their_own_look_beside_their_words() -> None:
    found = table(("a", "b", "c"), [("x", "VALID", "INVALID")])
    assert '<td class="good">VALID</td><td class="bad">INVALID</td>' in found


def test_a_plot_is_xml_and_says_in_words_what_it_shows() -> None:
    svg = distribution_plot("Latency <x>", "ms", [Quantile(50, 1.0), Quantile(99, 2.0), Quantile(100, 3.0)])
    root = ElementTree.fromstring(svg)
    assert root.get("aria-label") == "Latency <x>: 50 % within 1 ms, 99 % within 2 ms, 100 % within 3 ms"
    assert len(list(root.iter("circle"))) == 3
    line = ElementTree.fromstring(line_plot("a & b", "%", [(0.5, 1.0), (1.0, 2.0)]))
    assert line.get("aria-label") == "a & b: 1 to 2 %"


@pytest.mark.parametrize(
    ("values", "marks"), [((1.0, 2.0), ["0", "1", "2"]), ((0.15, 300.0), ["0.1", "1", "10", "100", "1,000"])]
)
def test_a_wide_distribution_gets_a_logarithmic_axis(values, marks) -> None:
    svg = distribution_plot("t", "ms", [Quantile(50, values[0]), Quantile(100, values[1])])
    assert re.findall(r'text-anchor="end">([^<]+)<', svg) == marks


def test_no_plot_is_drawn_of_a_single_point_and_none_is_shown() -> None:
    assert distribution_plot("t", "ms", [Quantile(50, 1.0)]) == ""
    assert figures([("x", "")]) == ""


def test_the_tail_has_room() -> None:
    places = [nines(percent) for percent in (0, 50, 90, 99, 99.9, 100)]
    assert places == sorted(places)
    assert places[2:5] == pytest.approx([1, 2, 3])
