"""The static pages in a real browser: nothing sticks out at any width, tables and plots are there, nothing is loaded.

Pictures of every page, width and colour scheme are left in the folder of CROWDPERF_SCREENSHOTS, for people to look at.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from headless_browser import BROWSERS, HINT, Browser, BrowserError, find_browser
from recipe_loader import load_module, load_recipe
from results_builder import RECORDED, accuracy_run, recorded_run

ROOT = Path(__file__).resolve().parents[2]

PICTURES_VARIABLE, REQUIRE_VARIABLE = "CROWDPERF_SCREENSHOTS", "CROWDPERF_REQUIRE_BROWSER"
WIDTHS = (360, 1400)
VIEWS = [(width, is_dark) for width in WIDTHS for is_dark in (False, True)]
LOAD = {
    "columns": ["time_s", "rss_bytes", "process_cpu_percent", "machine_cpu_percent"],
    "rows": [[second, 1_000_000 * second, 50.0 + second % 7, 60.0] for second in range(1, 200)],
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all tests of this file."""
    program = find_browser()
    if program is None:
        text = HINT.format(", ".join(BROWSERS))
        if os.environ.get(REQUIRE_VARIABLE):
            pytest.fail(f"{REQUIRE_VARIABLE} is set, but {text}")
        pytest.skip(text)
    with Browser(program) as running:
        yield running


@pytest.fixture(scope="module")
def report_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a results folder with two models, a very long name, an INVALID run and a missed target."""
    import json

    folder = tmp_path_factory.mktemp("report")
    system = folder / "results" / "a_system_with_a_name_that_is_so_long_that_no_narrow_screen_has_room_for_it_x8_TRT"
    for scenario, recording in RECORDED.items():
        run = recorded_run(system / "resnet50" / scenario / "performance" / "run_1", recording, min_duration_ms=2000)
        (run / "load.json").write_text(json.dumps(LOAD))
        score = accuracy_run(system / "resnet50" / scenario / "accuracy", "accuracy=70.000%, good=35000, total=50000")
        metric = {"name": "acc", "value": 70.0, "target": 75.7, "upper_limit": None, "passed": False}
        (score / "accuracy.json").write_text(json.dumps({"metrics": [metric]}))
    recorded_run(system / "bert-99" / "Server" / "performance" / "run_1", "invalid-server-too-late")
    env: dict[str, Any] = {
        "CM_TMP_CURRENT_PATH": str(folder),
        "CM_MLPERF_REPORT_INPUT": "results",
        "CM_MLPERF_REPORT_OUTPUT": "out",
    }
    answer = load_recipe("report-mlperf-submission").preprocess({"env": env, "state": {}})
    assert answer == {"return": 0}, answer
    return folder / "out" / "report.html"


@pytest.fixture(scope="module")
def run_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results.html of a call of run,mlperf,inference."""
    page = load_module("run-mlperf-inference", "page")
    metric = {"name": "throughput", "value": 12.5, "unit": "samples/s"}
    latency = {f"{name}_ns": 1_000_000 for name in ("p50", "p90", "p99", "p99_9", "max")}
    shape = {name: {"value": 2, "origin": "user"} for name in ("instances", "threads")}
    machine = {"processor": "a processor", "core_count": 2}
    performance = {"metric": metric, "valid": True, "latency": latency, "machine": machine, "run": shape}
    accuracy = {"metrics": [{"name": "acc", "value": 99.3, "target": 98.3, "upper_limit": None}]}
    row = {"performance": performance, "accuracy": accuracy, "passed": True, "problems": []}
    results = {
        "run_id": "20261123T000001Z-a_model_with_a_long_name-onnxruntime-cpu",
        "disturbances": ["other programs used 42 % of the CPU during Offline: do not compare these results"],
        "label": "test run, not a valid MLPerf result",
        "notes": ["a note"],
        "missing": [],
        "scenarios": [{"scenario": name, **row} for name in ("SingleStream", "MultiStream", "Offline", "Server")],
    }
    host = {"CM_HOST_CPU_FLAGS": "avx " * 200, "CM_HOST_OS_PACKAGE_MANAGER_INSTALL_CMD": "x" * 300}
    folder = "a_model_with_a_long_name/SingleStream/performance/run_1"
    environment = {
        "crowdperf": {},
        "command": "cm run script " + "--input=value " * 30,
        "host": host,
        "runs": [{"folder": folder, "started_utc": "2026-11-23T00:00:01+00:00"}],
    }
    file = tmp_path_factory.mktemp("run") / "results.html"
    file.write_text(page.render("a model with a backend on a device", results, environment, {folder: LOAD}))
    return file


@pytest.fixture(params=["report_page", "run_page"])
def page_file(request: pytest.FixtureRequest) -> Path:
    """Each of the pages in turn."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Path)
    return found


VISIBLE_TABLES = """[...document.querySelectorAll('table')].filter(table => {
    const box = table.getBoundingClientRect();
    return box.width > 100 && box.height > 20 && getComputedStyle(table).visibility === 'visible'; }).length"""
FIRST_TABLE_TOP = "document.querySelector('table, .cards').getBoundingClientRect().top"
PLOTS = "[...document.querySelectorAll('svg[role=img]')].filter(plot => plot.getClientRects().length)"
UNDRAWN_PLOTS = f"""{PLOTS}.filter(plot => {{
    const line = plot.querySelector('path.line').getBBox(), box = plot.getBoundingClientRect();
    return line.width < 50 || box.width < 250 || box.right > window.innerWidth; }}).length"""
UNNAMED = """[...document.querySelectorAll('svg[role=img]')].filter(plot => !plot.getAttribute('aria-label')).length
    + [...document.querySelectorAll('table')].filter(table => !table.querySelector('th[scope]')).length"""
STICKING_OUT = """[...document.querySelectorAll('body *')].filter(part => !part.closest('.wide, svg')
    && part.getBoundingClientRect().right > window.innerWidth + 1).map(part => part.outerHTML.slice(0, 80))"""
DEAD_LINKS = """[...document.querySelectorAll('a[href^="#"]')].filter(link =>
    !document.getElementById(link.getAttribute('href').slice(1))).length"""
CONTRAST = """(() => { const number = text => text.match(/[0-9.]+/g).slice(0, 3).map(Number);
    const light = rgb => { const [r, g, b] = rgb.map(part => { part /= 255;
        return part <= 0.03928 ? part / 12.92 : Math.pow((part + 0.055) / 1.055, 2.4); });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const paper = light(number(getComputedStyle(document.body).backgroundColor));
    return Math.min(...[...document.querySelectorAll('p, td, th, a, figcaption')].map(part => {
        const ink = light(number(getComputedStyle(part).color));
        return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05); })); })()"""


@pytest.mark.parametrize(("width", "is_dark"), VIEWS)
def test_a_page_is_whole_and_readable_at_every_width_and_in_both_colour_schemes(browser, page_file, width, is_dark):
    page = browser.open(page_file, width, is_dark=is_dark)
    pictures = os.environ.get(PICTURES_VARIABLE)
    if pictures:
        name = f"{page_file.stem}-{width}{'-dark' if is_dark else ''}.png"
        browser.save_picture(Path(pictures) / name)
    assert page.problems == []
    assert (page.inner_width, page.scroll_width) == (width, width)
    assert browser.ask(STICKING_OUT) == []
    assert browser.ask(VISIBLE_TABLES) >= 3
    assert browser.ask(FIRST_TABLE_TOP) < 700
    assert browser.ask(f"{PLOTS}.length") >= 1
    assert browser.ask(UNDRAWN_PLOTS) == 0
    assert browser.ask(UNNAMED) == 0
    assert browser.ask(DEAD_LINKS) == 0
    assert browser.ask(CONTRAST) >= 4.5  # WCAG 2.2, 1.4.3


HIDDEN_VERDICTS = """[...document.querySelectorAll('[data-label=LoadGen], .card .tag')].filter(cell => {
    const box = cell.getBoundingClientRect();
    return box.width < 20 || box.left < 0 || box.right > window.innerWidth; }).length"""


@pytest.mark.parametrize("width", WIDTHS)
def test_every_verdict_of_the_main_table_is_seen_without_scrolling_sideways(browser, page_file, width):
    browser.open(page_file, width)
    assert browser.ask("document.querySelectorAll('[data-label=LoadGen], .card .verdict').length") >= 4
    assert browser.ask(HIDDEN_VERDICTS) == 0


def test_the_dark_page_is_dark_and_the_light_one_light(browser, report_page):
    shade = "getComputedStyle(document.body).backgroundColor"
    browser.open(report_page, 1400)
    assert browser.ask(shade) == "rgb(255, 255, 255)"
    browser.open(report_page, 1400, is_dark=True)
    assert browser.ask(shade) == "rgb(13, 17, 23)"


def test_a_number_leads_to_its_line_in_the_log(browser, report_page):
    browser.open(report_page, 360)
    browser.ask("document.querySelector('a').click()")
    assert browser.ask("document.querySelector(':target').textContent").isdigit()


def test_what_is_wrong_with_a_page_is_seen(browser, tmp_path):
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<!DOCTYPE html><meta name=viewport content='width=device-width'><div style='width:900px'>x</div>"
        "<img src='missing.png'><script>console.error('oh'); missing()</script>"
    )
    page = browser.open(bad, 360)
    assert page.scroll_width > 360
    text = "\n".join(page.problems)
    assert "missing is not defined" in text
    assert "ERR_FILE_NOT_FOUND" in text
    with pytest.raises(BrowserError, match="cannot be opened"):
        browser.open(tmp_path / "nothing.html", 360)


def test_a_browser_that_is_not_there_is_not_found(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CROWDPERF_BROWSER", raising=False)
    assert find_browser() is None
    shutil.copy("/bin/true", tmp_path / "chromium")
    assert find_browser() == str(tmp_path / "chromium")
