"""crowdperf.kit.html_page: escaping, headers for screen readers, highlighted rows."""

import re
from xml.etree import ElementTree

from crowdperf.kit.html_page import Html, bullets, chart, document, figures, folded, table, text


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


def test_a_row_can_be_highlighted() -> None:
    assert table(("a", "b"), [("x", 1), ("y", 2)], best=[1]).count('<tr class="best"><th scope="row">y') == 1


def test_no_plot_is_shown_of_nothing() -> None:
    assert figures([("x", "")]) == "" == chart("")
