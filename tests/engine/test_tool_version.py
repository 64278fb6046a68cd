"""Which crowdperf made a result: version and commit of the checkout itself, never of a folder around or elsewhere."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from recipe_engine.disk.repos import CHECKOUT
from recipe_engine.running import toolversion

import crowdperf

ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org", "GIT_CONFIG_GLOBAL": os.devnull,
}  # fmt: skip


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def checkout(folder: Path, *, is_repository: bool = True) -> Path:
    (folder / "script").mkdir(parents=True)
    (folder / "src" / "crowdperf").mkdir(parents=True)
    (folder / "src" / "crowdperf" / "__init__.py").write_text('__version__ = "7.8.9"\n')
    (folder / "script" / "a.py").write_text("a = 1\n")
    if is_repository:
        git(folder, "init", "-q")
        git(folder, "add", ".")
        git(folder, "commit", "-qm", "first")
    return folder


@pytest.fixture(autouse=True)
def _asked_anew():
    toolversion.tool_version.cache_clear()


@pytest.mark.parametrize("place", ["script", "src", "automation"])
def test_a_checkout_has_its_commit_and_says_when_what_runs_was_modified(tmp_path: Path, place: str) -> None:
    folder = checkout(tmp_path / "c")
    commit = git(folder, "rev-parse", "HEAD")
    found = toolversion.tool_version(folder)
    assert found == toolversion.ToolVersion("7.8.9", commit, False)
    assert found.text == f"7.8.9+g{commit[:12]}"
    (folder / "notes.txt").write_text("mine\n")  # a result does not depend on it
    toolversion.tool_version.cache_clear()
    assert toolversion.tool_version(folder).is_modified is False
    (folder / place).mkdir(exist_ok=True)
    (folder / place / "new.py").write_text("b = 2\n")
    toolversion.tool_version.cache_clear()
    assert toolversion.tool_version(folder).text == f"7.8.9+g{commit[:12]}.modified"


def test_the_repository_of_a_wheel_has_the_commit_that_it_was_built_from(tmp_path: Path) -> None:
    folder = checkout(tmp_path / "c", is_repository=False)
    (folder / "built-from.json").write_text('{"commit": "%s", "is_modified": true}' % ("0123456789" * 4))
    assert toolversion.tool_version(folder).text == "7.8.9+g012345678901.modified"


@pytest.mark.parametrize("is_around", [True, False])
def test_a_copy_without_git_has_its_version_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_around: bool
) -> None:
    outer = checkout(tmp_path / "outer")
    inner = checkout((outer if is_around else tmp_path) / "inner", is_repository=False)
    monkeypatch.chdir(outer)
    assert toolversion.tool_version(inner) == toolversion.ToolVersion("7.8.9", "", None)
    assert toolversion.tool_version(inner).text == "7.8.9"


def test_the_repository_that_the_environment_names_is_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, theirs = checkout(tmp_path / "mine"), checkout(tmp_path / "theirs")
    git(theirs, "commit", "-q", "--allow-empty", "-m", "second")
    monkeypatch.setenv("GIT_DIR", str(theirs / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(theirs))
    monkeypatch.chdir(theirs)
    assert toolversion.tool_version(mine).commit == git(mine, "rev-parse", "HEAD")


def test_without_the_program_git_the_version_stands_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = checkout(tmp_path / "c")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert toolversion.tool_version(folder) == toolversion.ToolVersion("7.8.9", "", None)


def test_the_version_is_written_in_one_place() -> None:
    version = toolversion.project_version(CHECKOUT)
    assert version == crowdperf.__version__
    written = re.compile(rf"version[\W_]{{1,6}}{re.escape(version)}\b", re.IGNORECASE)
    places = (
        "pyproject.toml",
        "cmr.yaml",
        "setup.py",
        "CITATION.cff",
        *(f"{top}/**/*.py" for top in ("automation", "src")),
    )
    found = [path for pattern in places for path in CHECKOUT.glob(pattern) if written.search(path.read_text("utf-8"))]
    assert [path.relative_to(CHECKOUT).as_posix() for path in found] == ["src/crowdperf/__init__.py"]
