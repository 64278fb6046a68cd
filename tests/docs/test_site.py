"""The documentation site: built as ./docs.sh does, every page in the navigation, every link leading somewhere."""

import json
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import make_site
import pytest
import yaml

ZENSICAL = Path(sys.executable).parent / "zensical"


class Page(HTMLParser):
    """The addresses that a page names, its anchors, and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag in ("script", "img", "iframe") and "src" in found:
            self.loaded.append(found["src"])
        if tag == "link" and found.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.append(found["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site") / "site-pages"
    make_site.write_site(out)
    done = subprocess.run([ZENSICAL, "build", "--strict"], cwd=out, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return out / "site"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html") if path.name != "404.html"}


def test_every_page_is_on_the_site(pages: dict[Path, Page], site: Path) -> None:
    places = {site / place.removesuffix(".md") for place in make_site.site_places().values()}
    assert {path.with_suffix("") for path in pages} == places


def test_every_page_is_in_the_navigation(site: Path) -> None:
    nav = yaml.safe_dump(yaml.safe_load((site.parent / "mkdocs.yml").read_text(encoding="utf-8"))["nav"], width=1000)
    assert [place for place in make_site.site_places().values() if f" {place}" not in nav] == []
    named = [line.split()[-1] for line in nav.splitlines() if line.endswith(".md")]
    assert [place for place in named if not (site.parent / "pages" / place).is_file()] == []


def test_no_link_is_broken(pages: dict[Path, Page]) -> None:
    broken = []
    for path, page in pages.items():
        for link in [*page.links, *page.loaded]:
            if link.startswith(("http://", "https://", "data:", "mailto:", "javascript:")):
                continue
            address, _, anchor = unquote(link).partition("#")
            target = (path.parent / address).resolve() if address else path
            anchors = pages[target].anchors if target in pages else set()
            if not target.is_file() or (anchor and target in pages and anchor not in anchors):
                broken.append(f"{path.name}: {link}")
    assert broken == []


def test_no_page_loads_anything_from_another_host(pages: dict[Path, Page]) -> None:
    assert [one for page in pages.values() for one in page.loaded if one.startswith(("http", "//"))] == []


def test_search_finds_pages_of_every_section_without_a_network(site: Path) -> None:
    found = {item["location"].split("/")[0] for item in json.loads((site / "search.json").read_text())["items"]}
    assert {"howto", "reference", "explanation", "recipes", "project"} <= found


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("[a](../reference/audit.md#codes)", "[a](../reference/audit.md#codes)"),
        ("[the `x` of it](../../script/get-cuda/README.md)", "[the `x` of it](../recipes/get-cuda.md)"),
        ("[a](../../README.md)", "[a](../index.md)"),
        ("[a](../../src/crowdperf/kit/)", "a"),
        ("[a](https://mlcommons.org/#x) [b](#here)", "[a](https://mlcommons.org/#x) [b](#here)"),
        ("`[a](../../src/x.py)`", "`[a](../../src/x.py)`"),
        ("```console\n$ echo [a](../../src/x.py)\n```", "```console\n$ echo [a](../../src/x.py)\n```"),
        ("![p](../images/results-page.png)", "![p](../images/results-page.png)"),
    ],
)
def test_links_lead_to_pages_of_the_site(link: str, expected: str) -> None:
    assert make_site.page_for_site("docs/howto/tune.md", link, make_site.site_places()) == expected


def test_a_link_to_a_source_file_leads_into_the_repository_where_its_address_is_known() -> None:
    text = make_site.page_for_site(
        "docs/testing.md", "[a](../test.sh)", make_site.site_places(), "https://git.example/x/"
    )
    assert text == "[a](https://git.example/x/blob/main/test.sh)"
