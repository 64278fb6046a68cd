"""Follows docs/howto/add-recipe.md: the files it shows make a recipe that does what the page says."""

from __future__ import annotations

import json
import os
import re
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
    (home / "repos.json").write_text(json.dumps([str(ROOT), str(repo)]), encoding="utf-8")
    return home


def test_the_page_shows_three_files() -> None:
    names = [name for name, _ in BLOCK.findall(PAGE)]
    assert names == [f"script/get-gnu-make/{file}" for file in ("_cm.yaml", "customize.py", "run.sh")]


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
