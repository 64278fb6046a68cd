"""The page, the table and the CSV of a curve: only measured valid points, every text as text."""

import csv
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from crowdperf.curves.page import CurvePage, PointRow, curve_csv, html_page, step_points, summary_text
from crowdperf.kit.drawing import ROOMY
from crowdperf.kit.plot import StepPoint, curve_plot, falls, steps_of

HOSTILE = "<script>alert(1)</script>\"onmouseover='=cmd()"


def row(number: int, user: float, system: float, state: str = "done") -> PointRow:
    outcome = {"system_tps": system, "tps_per_user": user, "ttft_p90_ms": 12.5, "steady_s": 601.0, "samples": 704,
               "failed": 0, "accuracy": 0.84, "samples_per_s": 1.0, "reasons": []}  # fmt: skip
    return PointRow(name=f"r{number}" if number else "offline", concurrency=number, region="low_latency", state=state,
                    reason="", label="", outcome=outcome)  # fmt: skip


ROWS = (
    row(1, 100, 100),
    row(4, 90, 300),
    row(12, 95, 200),
    row(40, 50, 250),
    row(56, 40, 900, "invalid"),
    row(0, 9, 999),
)


def page(rows: tuple[PointRow, ...] = ROWS, name: str = "curve") -> CurvePage:
    return CurvePage(name=name, label="synthetic", facts=[("model", "m")], rows=rows, findings=["E12 error: short"])


def test_the_steps_go_through_points_that_no_other_beats() -> None:
    points = step_points(ROWS)
    assert [one.words for one in points] == ["r1", "r4", "r12", "r40"], "valid ones at a fixed concurrency"
    best = steps_of(points)
    assert [one.words for one in best] == ["r1", "r12", "r4"]
    assert [(one.words, height) for one, height in falls(best)] == [("r4", 200), ("r12", 100), ("r1", 0.0)]


@pytest.mark.parametrize("points", [(StepPoint("r1", 0.0, 0.0),), step_points(ROWS), (StepPoint(HOSTILE, 1e-3, 1e6),)])
def test_the_drawing_is_well_formed_and_stays_within_its_frame(points: tuple[StepPoint, ...]) -> None:
    for drawn in ElementTree.fromstring(curve_plot(HOSTILE, [(HOSTILE, points)], [(HOSTILE, 12.5)])):
        assert drawn.get("role") == "img" and drawn.findtext("title") == HOSTILE
        circles = drawn.findall("circle")
        assert len(circles) == len(points)
        for circle in circles:
            assert 0 <= float(circle.get("cx") or -1) <= ROOMY and 0 <= float(circle.get("cy") or -1) <= 400
    assert curve_plot("none", []) == "" == curve_plot("none", [("A", [])])


def test_the_page_says_that_it_is_unofficial_and_asks_nobody() -> None:
    html = html_page(page())
    assert "Unofficial: not reviewed by MLCommons, and no MLPerf result. synthetic" in html
    assert not re.search(r"<script|src=|href=|@import|url\(", html)
    assert "E12 error: short" in html and html.count("<h1>") == 1


def test_what_comes_from_files_is_text_everywhere() -> None:
    hostile = replace(ROWS[0], name=HOSTILE, region=HOSTILE, state="failed", reason=HOSTILE, outcome={"tps": HOSTILE})
    html = html_page(page((hostile, *ROWS), HOSTILE))
    assert "<script" not in html and '"onmouseover' not in html
    cells = list(csv.reader(curve_csv((replace(hostile, name="=cmd()"),)).splitlines()))[1]
    assert cells[0] == "'=cmd()"


@pytest.mark.parametrize("wrong", [10**400, float("inf"), float("nan"), "x", [5], True])
def test_an_outcome_of_any_shape_has_a_page(wrong: object) -> None:
    odd = replace(ROWS[0], outcome={**dict.fromkeys(ROWS[0].outcome, wrong)})
    text = summary_text(page((odd, *ROWS[1:])))
    assert odd.figure("system_tps") is None and "<svg" in html_page(page((odd, *ROWS[1:]))) and "r4" in text


def test_the_table_names_why_a_point_does_not_count() -> None:
    short = replace(ROWS[4], outcome={**ROWS[4].outcome, "reasons": ["samples were issued for 3 s"]})
    text = summary_text(page((ROWS[0], short)))
    assert "r56: samples were issued for 3 s" in text and "synthetic" in text
    assert re.search(r"r1 +low_latency +done +100\.0 +100\.00 +12\.50 +601\.0 +0\.8400", text)
