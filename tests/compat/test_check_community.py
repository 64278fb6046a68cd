"""The tool that loads and plans community recipes tells apart what it must, by its exit status and its lines."""

import subprocess
import sys
from pathlib import Path

import pytest
from helpers import CHECKOUT, write_recipe

TOOL = CHECKOUT / "tests" / "compat" / "check_community.py"
PAGE = """# A page

## Community recipes

| file | reason |
|---|---|
| `get-named/_cm.json` | its deps are a text |

## Another section

| `get-broken/_cm.json` | not of the list |
"""


def check(folder: Path, *words: str) -> tuple[int, str]:
    page = folder / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    command = [sys.executable, str(TOOL), f"--recipes={folder}", f"--named={page}", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def recipes(tmp_path: Path) -> Path:
    write_recipe(tmp_path, "get-a", {"deps": [{"tags": "get,b"}], "variations": {"v": {}, "n.#": {}, "v,n.1": {}}})
    write_recipe(tmp_path, "get-b", customize="def preprocess(i):\n    raise SystemExit('it ran')\n")
    write_recipe(tmp_path, "get-named", {"deps": "get,b"})
    (tmp_path / "script" / "notes").mkdir()
    return tmp_path


def test_sound_recipes_and_named_broken_ones_are_fine(recipes: Path) -> None:
    code, text = check(recipes, "--plan", "--variations")
    assert code == 0, text
    assert "loaded 2 recipes" in text
    assert "broken   get-named/_cm.json: " in text
    assert "no recipe in folder notes" in text
    assert "planned 4, refused with a reason 0, failed 0" in text
    assert not (recipes / "local").exists()


def test_a_broken_recipe_that_is_not_named_fails_the_check(recipes: Path) -> None:
    write_recipe(recipes, "get-broken", {"uid": ""})
    code, text = check(recipes)
    assert code == 1
    assert "get-broken/_cm.json" in text
    assert "uid: missing" in text
    assert "not named in the page" in text


def test_a_named_recipe_that_loads_fails_the_check(recipes: Path) -> None:
    write_recipe(recipes, "get-named")
    code, text = check(recipes)
    assert code == 1
    assert "named as broken, but loads: get-named/_cm.json" in text


def test_a_refusal_is_told_and_no_failure(recipes: Path) -> None:
    write_recipe(recipes, "get-c", {"deps": [{"tags": "get,nothing"}]})
    code, text = check(recipes, "--plan", "--only=get-c")
    assert code == 0
    assert "refused  get-c: in the plan: NotFound: no recipe has all the tags 'get,nothing'" in text


def test_a_folder_without_recipes_fails_the_check(tmp_path: Path) -> None:
    (tmp_path / "script").mkdir()
    assert check(tmp_path)[0] == 1


def test_the_page_of_this_project_has_the_section() -> None:
    page = (CHECKOUT / "docs" / "compat.md").read_text(encoding="utf-8")
    assert "\n## Community recipes\n" in page
