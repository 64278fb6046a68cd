"""Puts the CM repository (recipes, engine, cmr.yaml) into the wheel as crowdperf/repository, and the recorded machines
of --machine=NAME as crowdperf/machine/recorded; see pyproject.toml.

Wheels are built from a clone or from an sdist. MANIFEST.in puts the same folders into the sdist; both carry
built-from.json, which recipe_engine/running/toolversion.py reads.
"""

import json
import shutil
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

CHECKOUT = Path(__file__).resolve().parent
BUILT_FROM = "built-from.json"
RECORDED_MACHINES = "tests/machine/fixtures"
WHAT_IS_PACKED = ("automation", "script", "src", "cmr.yaml", "pyproject.toml", RECORDED_MACHINES)


def _git(*words: str) -> str:
    """What git says of the checkout; empty without git or a checkout."""
    try:
        done = subprocess.run(["git", "-C", str(CHECKOUT), *words], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 and (CHECKOUT / ".git").exists() else ""


def _write_built_from(folder: Path) -> None:
    """Writes the commit of the clone into a folder, or copies what an unpacked sdist has; nothing where neither is."""
    target, known = folder / BUILT_FROM, CHECKOUT / BUILT_FROM
    commit = _git("rev-parse", "--verify", "HEAD")
    if commit:
        built = {"commit": commit, "is_modified": bool(_git("status", "--porcelain", "--", *WHAT_IS_PACKED))}
        target.write_text(json.dumps(built) + "\n", encoding="utf-8")
    elif known.is_file():
        shutil.copyfile(known, target)


class BuildWithRepository(build_py):
    """The packages of src/, and the repository as data."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib) / "crowdperf" / "repository"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        shutil.copyfile(CHECKOUT / "cmr.yaml", target / "cmr.yaml")
        for name in ("automation", "script"):
            shutil.copytree(CHECKOUT / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
        _write_built_from(target)
        recorded = Path(self.build_lib) / "crowdperf" / "machine" / "recorded"
        shutil.rmtree(recorded, ignore_errors=True)
        if (CHECKOUT / RECORDED_MACHINES).is_dir():  # not in a folder that holds the code alone
            shutil.copytree(CHECKOUT / RECORDED_MACHINES, recorded)


class SdistWithCommit(sdist):
    """The files of MANIFEST.in, and the commit that they are of."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        _write_built_from(Path(base_dir))


setup(cmdclass={"build_py": BuildWithRepository, "sdist": SdistWithCommit})
