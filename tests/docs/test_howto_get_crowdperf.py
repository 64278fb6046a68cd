"""Types the commands of docs/howto/get-crowdperf.md, word by word; a small git repository stands for crowdperf."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "howto" / "get-crowdperf.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```console\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
KEPT = ("automation", "cmr.yaml", "script/detect-os", "src")
GIT = ("git", "-c", "user.name=test", "-c", "user.email=test@localhost")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A git repository with the engine and one recipe of this checkout, and two commits."""
    folder = tmp_path / "source"
    for name in KEPT:
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, place, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, place)
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"], ["commit", "-qm", "two", "--allow-empty"]):
        subprocess.run([*GIT, *words], cwd=folder, check=True, timeout=60)
    return folder


class Shell:
    """Types lines of the page in a folder, in a CM home of its own."""

    def __init__(self, folder: Path, source: Path) -> None:
        self.folder = folder
        self.env = {**os.environ, "HOME": str(folder), "CM_REPOS": str(folder / "CM"), "CROWDPERF_URL": str(source)}
        self.env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{self.env['PATH']}"
        folder.mkdir()

    def type(self, line: str) -> str:
        """What the line printed; it has to succeed."""
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            input="",
            timeout=120,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def runs_a_recipe(self) -> bool:
        """Whether the pulled repository works."""
        return "detect-os: done" in self.type('cm run script "detect os"')


def line_with(words: str) -> str:
    """The only command of the page with these words."""
    lines = [line.removeprefix("$ ") for block in BLOCKS for line in block.splitlines() if words in line]
    assert len(lines) == 1, lines
    return lines[0]


def test_it_is_pulled_under_a_name_and_found_by_its_own(tmp_path: Path, source: Path) -> None:
    shell = Shell(tmp_path / "a", source)
    shell.type(BLOCKS[1].splitlines()[1].removeprefix("$ ").replace("repo crowdperf", "repo mine"))
    assert (shell.folder / "CM" / "repos" / "mine" / "cmr.yaml").is_file()
    assert "repos/mine/script/detect-os" in shell.type("cm find script crowdperf:detect-os -v")


def test_it_is_pulled_at_one_commit_updated_and_removed(tmp_path: Path, source: Path) -> None:
    shell = Shell(tmp_path / "a", source)
    first = shell.type(f"git -C {source} rev-parse HEAD~1").strip()
    shell.type(line_with("--checkout=COMMIT").replace("COMMIT", first))
    assert shell.runs_a_recipe()
    shell.type("git -C CM/repos/crowdperf switch -q -")
    subprocess.run([*GIT, "commit", "-qm", "three", "--allow-empty"], cwd=source, check=True, timeout=60)
    shell.type(line_with("updates every repository"))
    assert shell.type("git -C CM/repos/crowdperf log --format=%s -1").strip() == "three"
    shell.type(line_with("cm rm repo").replace("--all ", "--all -f "))
    assert not (shell.folder / "CM" / "repos" / "crowdperf").exists()


@pytest.mark.parametrize("form", ["crowdperf.git", "crowdperf.bundle", "cm unpack repo"])
def test_each_form_of_a_mirror_is_made_carried_and_pulled(tmp_path: Path, source: Path, form: str) -> None:
    maker, user = Shell(tmp_path / "maker", source), Shell(tmp_path / "user", Path("/nowhere"))
    maker.type(line_with("git clone --mirror"))
    maker.type(line_with("bundle create"))
    maker.type(BLOCKS[1].splitlines()[1].removeprefix("$ "))
    maker.type(line_with("cm pack repo"))
    for name in ("crowdperf.git", "crowdperf.bundle", "cm.zip"):
        shutil.move(maker.folder / name, user.folder / name)
    user.type(line_with(form if form.startswith("cm") else f"--url=$PWD/{form}"))
    assert user.runs_a_recipe()
