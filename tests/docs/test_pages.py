"""README.md and docs/: each command names recipes, variations and inputs that exist, and each link leads somewhere."""

import re
import shlex
from pathlib import Path

import cmind.cli
import pytest
from helpers import checkout_home
from recipe_engine.actions.run import new_engine, parse_request
from recipe_engine.running.engine import Engine, check_inputs

ROOT = Path(__file__).resolve().parents[2]
OTHERS = ["README.md", "AGENTS.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "automation/README.md"]
PAGES = [*(ROOT / name for name in OTHERS), *sorted(ROOT.glob("docs/**/*.md"))]
README_OF_RECIPES = sorted(ROOT.glob("script/*/README.md"))
WITH_RECIPES_OF_THEIR_OWN = {"add-recipe.md", "when-a-run-fails.md", "audit.md"}
"""Pages whose commands run recipes that the page shows; tests of their own run these."""
PLACEHOLDERS = ("...", "onnx_reference", "--model=squares")
"""Words that the reader replaces, and what add-backend.md and add-model.md add: such a command is not looked at."""
RUN_SH = "./run.sh"
RUN_SH_WORDS = ["cm", "run", "script", "--tags=run,mlperf,inference", "--quiet"]
"""What run.sh runs; further words follow."""
ACTIONS = ("run", "plan", "explain", "lock")
COMMAND = re.compile(r"^(?:\$ |    (?=cm ))(.*)$", re.MULTILINE)
"""A line of a console, or of an indented block that begins with cm."""
INLINE = re.compile(r"(?<!`)`((?:\./)?cm [^`\n]*--tags=[^`\n]+)`")
"""A command in a sentence or in a table, where a bar has a backslash before it."""
LINK = re.compile(r"\]\(([^)\s]+)\)")


def commands_of(page: Path) -> list[list[str]]:
    """The commands of a page that run, plan, explain or lock a recipe, as words."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    text = re.sub(r"<[^<>\n]+>", "VALUE", text)
    lines = [*COMMAND.findall(text), *(line.replace("\\|", "|") for line in INLINE.findall(text))]
    found = []
    for line in lines:
        words = shlex.split(line, comments=True) if line.startswith(("cm ", "./cm ", RUN_SH)) else []
        if words and words[0] == RUN_SH:
            words = [*RUN_SH_WORDS, *words[1:]]
        elif words and words[0] == "./cm":
            words = ["cm", *words[1:]]
        if len(words) > 3 and words[0] == "cm" and words[1] in ACTIONS and words[2] == "script":
            found.append(words[: words.index(">")] if ">" in words else words)
    return found


WITH_COMMANDS = [
    pytest.param(words, id=str(page.relative_to(ROOT)))
    for page in [*PAGES, *README_OF_RECIPES]
    if page.name not in WITH_RECIPES_OF_THEIR_OWN
    and (words := [words for words in commands_of(page) if not any(one in " ".join(words) for one in PLACEHOLDERS)])
]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """The recipes of this checkout, and an empty cache."""
    return new_engine(checkout_home(tmp_path_factory.mktemp("pages")), None)


def test_the_pages_have_commands() -> None:
    names = {page.name for page in PAGES if commands_of(page)}
    assert {"README.md", "submit.md", "run-a-benchmark.md", "prepare-a-machine.md", "command-line.md"} <= names


@pytest.mark.parametrize("commands", WITH_COMMANDS)
def test_a_command_names_recipes_variations_and_inputs_that_there_are(
    engine: Engine, commands: list[list[str]]
) -> None:
    for words in commands:
        i = cmind.cli.parse(words[1:])["cm_input"]
        asked = {key: value for key, value in i.items() if key != "env" or isinstance(value, dict)}
        request = parse_request({**asked, "quiet": True})
        check_inputs(engine.source.recipe(engine.choose(request).entry), request, engine)


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


def test_every_page_is_reached_from_the_readme() -> None:
    found, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in found or not page.is_file():
            continue
        found.add(page)
        links = [link.partition("#")[0] for link in LINK.findall(page.read_text(encoding="utf-8"))]
        waiting += [(page.parent / link).resolve() for link in links if link.endswith(".md")]
    assert [str(page.relative_to(ROOT)) for page in ROOT.glob("docs/**/*.md") if page not in found] == []
