"""README.md and docs/: each command names recipes, variations and inputs that exist, and each link leads somewhere."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from helpers import recipe_metas
from recipe_engine.rules.deps import FLAGS

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "AGENTS.md", ROOT / "automation" / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
WITH_RECIPES_OF_THEIR_OWN = {"add-recipe.md", "when-a-run-fails.md", "audit.md"}
"""Pages whose commands run recipes that the page shows; tests of their own run these."""
ELSEWHERE = {"device", "backend", "implementation", "adr.python.name", "name", "tar_file"}
"""Inputs of the tutorial that a recipe may also pass on without naming them."""
RUN_SH = "./run.sh"
RUN_SH_WORDS = ["cm", "run", "script", "--tags=run,mlperf,inference", "--quiet"]
"""What run.sh runs; further words follow."""
ACTIONS = ("run", "plan", "explain", "lock")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def commands_of(page: Path) -> list[list[str]]:
    """The commands of a page that run, plan, explain or lock a recipe, as words."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line[2:] for line in text.splitlines() if line.startswith("$ ")]
    found = []
    for line in lines:
        words = shlex.split(line, comments=True)
        if words and words[0] == RUN_SH:
            words = [*RUN_SH_WORDS, *words[1:]]
        elif words and words[0] == "./cm":
            words = ["cm", *words[1:]]
        if words[:1] == ["cm"] and words[1:2] and words[1] in ACTIONS and words[2] == "script":
            found.append(words[: words.index(">")] if ">" in words else words)
    return found


COMMANDS = [
    pytest.param(words, id=f"{page.name}: {' '.join(words[1:4])[:60]}")
    for page in PAGES
    if page.name not in WITH_RECIPES_OF_THEIR_OWN
    for words in commands_of(page)
]


@cache
def recipes() -> list[dict[str, Any]]:
    """All recipes in the order in which the engine chooses among several: by ``sort``, then by path."""
    return sorted(recipe_metas(), key=lambda recipe: int(recipe.get("sort", 0)))


def tags_of(words: list[str]) -> list[str]:
    given = next((word.removeprefix("--tags=") for word in words if word.startswith("--tags=")), "")
    return given.split(",") if given else words[3].split()


def test_the_pages_have_commands() -> None:
    names = {page.name for page in PAGES if commands_of(page)}
    assert {"README.md", "submit.md", "run-a-benchmark.md", "prepare-a-machine.md", "command-line.md"} <= names


@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_names_what_there_is(words: list[str]) -> None:
    tags = tags_of(words)
    plain = {tag for tag in tags if not tag.startswith("_")}
    variations = {tag[1:] for tag in tags if tag.startswith("_")}
    fitting = [recipe for recipe in recipes() if plain <= {*recipe["tags"], recipe["alias"]}]
    named = [recipe for recipe in fitting if variations <= set(recipe.get("variations") or {})]
    assert named, f"no recipe for {tags}"
    flags = [word[2:].partition("=")[0].replace("-", "_") for word in words if word.startswith("--")]
    recipe = named[0]
    known = {*(recipe.get("input_mapping") or {}), *(recipe.get("input_description") or {}), *FLAGS, *ELSEWHERE}
    known |= {"tags", "out", "version", "step", "graph"}
    assert [flag for flag in flags if flag not in known] == [], recipe["alias"]


def anchors_of(page: Path) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_link_leads_to_a_file_and_heading_of_this_repository(page: Path) -> None:
    broken = []
    for link in LINK.findall(
        re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    ):
        if link.startswith(("http:", "https:")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            broken.append(link)
    assert broken == []


def test_the_readme_links_to_every_page() -> None:
    linked = {(ROOT / link.partition("#")[0]).resolve() for link in LINK.findall((ROOT / "README.md").read_text())}
    assert [str(page.relative_to(ROOT)) for page in ROOT.glob("docs/**/*.md") if page not in linked] == []
