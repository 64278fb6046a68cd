"""docs/explanation/architecture.md: drawn from the imports; every module, function and folder in it exists."""

import ast
import re
from pathlib import Path
from xml.etree import ElementTree

import make_architecture_page
import pytest
from rooms import FLOORS, ROOMS, ROOT

PAGE = ROOT / "docs" / "explanation" / "architecture.md"
PICTURE = ROOT / "docs" / "images" / "architecture.svg"
TEXT = PAGE.read_text(encoding="utf-8")
STOPS = re.findall(r"\[[^\]]*\]\(([^)\s]+\.py)\) `(\w+)`", TEXT)
"""A module of a trip and the name to begin at."""

TRIPS = re.findall(r"^### (.+)\n\n((?:\d+\. .+\n)+)", TEXT, re.MULTILINE)
PATHS = sorted(set(re.findall(r"`((?:src|tests|tools|script|harness)/[\w/.*]+)`", TEXT)))


def test_the_picture_and_the_table_are_up_to_date() -> None:
    assert make_architecture_page.main(["--check"]) == 0, "run: python tools/make_architecture_page.py"


def test_the_picture_names_every_room_and_floor_and_says_what_each_dot_means() -> None:
    svg = "{http://www.w3.org/2000/svg}"
    picture = ElementTree.fromstring(PICTURE.read_text(encoding="utf-8"))
    words = [text.text for text in picture.iter(f"{svg}text")]
    assert {*ROOMS, *FLOORS, "script/"} <= set(words)
    assert "imports no room, and no room imports it" in words
    dots = [dot for dot in picture.iter(f"{svg}circle") if dot.get("class") == "dot"]
    told = [title.text for dot in dots for title in dot.iter(f"{svg}title")]
    assert len(told) == len(dots) - 3  # those of the legend stand beside their words
    assert "gate uses logs: 10 to 99 imports" in told
    assert "prefers-color-scheme:dark" in PICTURE.read_text(encoding="utf-8")


def test_there_are_three_short_trips() -> None:
    assert len(TRIPS) == 3
    for title, steps in TRIPS:
        lines = steps.splitlines()
        assert len(lines) < 10, title
        assert all(re.match(r"\d+\. \[", line) for line in lines), title


@pytest.mark.parametrize(("link", "name"), STOPS, ids=[f"{Path(link).name} {name}" for link, name in STOPS])
def test_each_stop_of_a_trip_is_in_its_module(link: str, name: str) -> None:
    tree = ast.parse((PAGE.parent / link).read_text(encoding="utf-8"))
    kinds = ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef
    assert name in {node.name for node in tree.body if isinstance(node, kinds)}


@pytest.mark.parametrize("path", [path for path in PATHS if "NAME" not in path])
def test_each_place_for_something_new_is_there(path: str) -> None:
    folder = ROOT / "src" / "crowdperf" if path.startswith("harness/") else ROOT
    assert list(folder.glob(path))
