"""The collector's pages in a real Chromium: without JavaScript, hostile texts, accessibility, requests.

Needs playwright and axe-playwright-python from PyPI, which `./test.sh --full` puts into an environment of its own,
and an installed Chromium. Pictures of every page are left in the folder of CROWDPERF_SCREENSHOTS.
"""

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")


import axe_playwright_python
from headless_browser import BROWSERS, HINT, find_browser
from playwright.sync_api import sync_playwright
from running_collector import Running, running
from test_collector_pages import HOSTILE, hostile_result
from web_builder import SOURCE, fill, signer

from crowdperf.store.store import Store
from crowdperf.web.static_site import write_site

pytestmark = pytest.mark.full
PICTURES_VARIABLE = "CROWDPERF_SCREENSHOTS"
AXE_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
VIEWS = [(width, scheme) for width in (360, 1280) for scheme in ("light", "dark")]


@dataclasses.dataclass
class Site:
    """A running collector with results, and its pages by name."""

    running: Running
    ids: list[str]
    pages: dict[str, str]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A Chromium that reaches no host but this one."""
    program = find_browser()
    if program is None:
        pytest.skip(HINT.format(", ".join(BROWSERS)))
    flags = ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
    with sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=program, args=flags)
        yield found
        found.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A collector with results of all kinds."""
    database = tmp_path_factory.mktemp("site") / "results.sqlite"
    with Store.open(database) as store, store.transaction():
        ids = fill(store)
        row = store.find(limit=100).rows[-1]
    pages = {
        "home": "/",
        "all": "/?all=1",
        "nothing": "/?all=1&q=nothinghasthisword",
        "result": f"/r/{ids[0]}",
        "published": f"/r/{ids[20]}",
        "configuration": f"/c/{row.key}",
        "system": f"/system/{row.system_key}",
        "signer": f"/signer/{row.signer}",
        "curve": f"/curve/{ids[14]}?with={ids[15]}",
        "compare": f"/compare?a={ids[0]}&b={ids[1]}&c={ids[2]}",
        "refused": f"/compare?a={ids[0]}&b={ids[20]}",
        "about": "/about",
        "moderation": "/moderation",
        "missing": "/r/none",
    }
    with running(database) as started:
        yield Site(started, ids, pages)


def watched(context: Any, url: str) -> tuple[Any, list[str]]:
    """A new tab, and what goes wrong in it: requests to others, messages of the console, dialogs, errors."""
    page, problems = context.new_page(), []

    def request(found: Any) -> None:
        if not found.url.startswith((url, "data:")):
            problems.append(f"asked for {found.url}")

    def dialog(found: Any) -> None:
        problems.append(f"dialog {found.message}")
        found.dismiss()

    page.on("request", request)
    page.on("dialog", dialog)
    page.on(
        "console", lambda found: problems.append(f"{found.type}: {found.text}") if "404" not in found.text else None
    )
    page.on("pageerror", lambda found: problems.append(str(found)))
    return page, problems


@pytest.mark.parametrize(("width", "scheme"), VIEWS)
def test_no_page_has_an_accessibility_violation_or_is_wider_than_its_window(
    browser: Any, site: Site, width: int, scheme: str
) -> None:
    axe = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
    pictures = os.environ.get(PICTURES_VARIABLE)
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page, problems = watched(context, site.running.url)
    found = {}
    for name, address in site.pages.items():
        page.goto(site.running.url.rstrip("/") + address)
        page.evaluate(axe)
        answer = page.evaluate("rules => axe.run({runOnly: rules})", AXE_RULES)
        found |= {f"{name}: {one['id']}": one["nodes"][0]["html"] for one in answer["violations"]}
        scroll_width = page.evaluate("document.documentElement.scrollWidth")
        if scroll_width > width:
            found[f"{name}: wide"] = str(scroll_width)
        if pictures:
            page.screenshot(path=f"{pictures}/collector-{name}-{width}-{scheme}.png", full_page=True)
    context.close()
    assert not found and not problems


def test_everything_works_without_javascript(browser: Any, site: Site) -> None:
    context = browser.new_context(java_script_enabled=False, accept_downloads=True)
    page, problems = watched(context, site.running.url)
    page.goto(site.running.url)
    page.get_by_role("link", name="All results").click()
    page.get_by_label("Benchmark", exact=True).select_option("digits")
    page.get_by_role("button", name="Show").click()
    assert page.get_by_text("14 results", exact=True).is_visible()
    page.get_by_role("link", name="Value").click()
    values = [cell.inner_text() for cell in page.locator("td.value").all()]
    numbers = [float(value.split()[0].replace(",", "")) for value in values]
    assert numbers == sorted(numbers, reverse=True) and len(numbers) == 14
    page.get_by_label("Search").fill("volunteer 1.31")
    page.get_by_role("button", name="Show").click()
    assert page.get_by_text("4 results", exact=True).is_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    assert Path(download.value.path()).read_text().startswith("id,kind,suite,benchmark")
    for box in page.get_by_role("checkbox", name="Compare digits").all()[:2]:
        box.check()
    page.get_by_role("button", name="Compare selected").click()
    assert page.get_by_role("heading", name="digits Offline: comparison").is_visible()
    page.get_by_role("link", name="digits Offline").first.click()
    page.get_by_role("link", name="All results of this configuration").click()
    assert page.get_by_role("img").first.is_visible()
    context.close()
    assert not problems


def test_the_keyboard_reaches_the_content_first(browser: Any, site: Site) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(site.running.url)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.url.endswith("#content")
    context.close()


def test_hostile_texts_do_nothing_in_a_browser(browser: Any, tmp_path: Path) -> None:
    database = tmp_path / "results.sqlite"
    with Store.open(database) as store, store.transaction():
        sender = dataclasses.replace(signer(1), alias="<script>alert(1)</script>")
        ids = [store.add(hostile_result(text, n), SOURCE, sender).id for n, text in enumerate(HOSTILE)]
        rows = store.find(limit=100).rows
    with running(database, "--name=<script>alert(1)</script>") as started:
        context = browser.new_context()
        page, problems = watched(context, started.url)
        pages = [
            "",
            "?all=1",
            f"signer/{sender.key_id}",
            f"compare?a={ids[0]}&b={ids[0]}",
            "?q=<script>alert(1)</script>",
        ]
        pages += [f"r/{one}" for one in ids] + [f"curve/{one}" for one in ids] + [f"c/{row.key}" for row in rows]
        for address in pages:
            page.goto(started.url + address)
            assert page.evaluate("document.scripts.length") == 0
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), address
        context.close()
    assert not problems


def test_static_pages_open_from_a_disk(browser: Any, site: Site, tmp_path: Path) -> None:
    with Store.open(tmp_path / "results.sqlite") as store:
        with store.transaction():
            ids = fill(store)
        write_site(store, tmp_path / "site", "Results")
    context = browser.new_context(java_script_enabled=False)
    page, problems = watched(context, "file://")
    for name in ("index.html", f"r/{ids[0]}.html", f"curve/{ids[14]}.html", "about.html"):
        page.goto((tmp_path / "site" / name).as_uri())
        assert page.get_by_role("heading", level=1).is_visible()
    context.close()
    assert not problems
