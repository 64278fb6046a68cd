"""Follows docs/howto/add-recipe.md: the files it shows make a recipe that does what the page says."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "howto" / "add-recipe.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^## \d\. [^\n]*`(script/get-gnu-make/[^`]+)`\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)


def cm(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "CM_REPOS": str(home)}
    command = [str(Path(sys.executable).parent / "cm"), *words]
    return subprocess.run(command, env=env, cwd=home, capture_output=True, text=True, timeout=120)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    repo = tmp_path / "repo"
    for name, text in BLOCK.findall(PAGE):
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text(text, encoding="utf-8")
    (repo / "cmr.yaml").write_text('alias: trial\nuid: "0123456789abcdef"\n', encoding="utf-8")
    home = tmp_path / "home"
    home.mkdir()
    local = home / "repos" / "local"
    local.mkdir(parents=True)
    (local / "cmr.yaml").write_text('alias: local\nuid: "9a3280b14a4285c9"\n', encoding="utf-8")
    (home / "repos.json").write_text(json.dumps([str(local), str(ROOT), str(repo)]), encoding="utf-8")
    return home


def commands(title: str) -> list[list[str]]:
    """The command lines of a section of the page, as words."""
    _, _, rest = PAGE.partition(f"## {title}\n")
    return [shlex.split(line[2:]) for line in rest.partition("\n## ")[0].splitlines() if line.startswith("$ ")]


def test_the_page_shows_three_files() -> None:
    names = [name for name, _ in BLOCK.findall(PAGE)]
    assert names == [f"script/get-gnu-make/{file}" for file in ("_cm.yaml", "customize.py", "run.sh")]


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make on PATH")
def test_the_short_way_makes_a_recipe_that_runs_and_is_sound(home: Path) -> None:
    lines = commands("The short way")
    assert [words[:3] for words in lines] == [["cm", action, "script"] for action in ("add", "run", "audit")]
    done = [cm(home, *words[1:]) for words in lines]
    assert [each.returncode for each in done] == [0, 0, 0], [each.stderr for each in done]
    assert (home / "repos" / "local" / "script" / "get-my-make" / "_cm.yaml").is_file()
    assert "Version of make: " in done[1].stderr
    assert done[2].stdout == ""
    assert "checked 1 recipe: 0 errors, 0 warnings, 0 notes" in done[2].stderr


def test_the_audit_finds_only_that_the_readme_of_the_page_is_missing(home: Path) -> None:
    (words,) = commands("6. Before you send it")
    found = json.loads(cm(home, *words[1:], "--out=json").stdout)["findings"]
    assert [row["code"] for row in found] == ["readme-missing"]


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make on PATH")
def test_the_recipe_of_the_page_runs_and_is_reused(home: Path) -> None:
    first = cm(home, "run", "script", "--tags=get,gnu-make")
    assert first.returncode == 0, first.stderr
    assert "Version of GNU make: " in first.stderr
    second = cm(home, "run", "script", "--tags=get,gnu-make", "--out=json")
    assert "reused from the cache" in second.stderr
    answer = json.loads(second.stdout)
    assert answer["new_env"]["CM_GNU_MAKE_BIN_WITH_PATH"] == shutil.which("make")
    assert f"version-{answer['version']}" in cm(home, "show", "cache", "--tags=get,gnu-make").stdout


def test_a_missing_tool_gives_the_code_and_the_hint_of_the_page(home: Path) -> None:
    failed = cm(home, "run", "script", "--tags=get,gnu-make,_custom.no-such-make")
    assert failed.returncode == 16
    assert "hint: sudo apt-get install -y make" in failed.stderr
