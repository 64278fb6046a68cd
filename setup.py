"""Puts the CM repository (recipes, engine, cmr.yaml) into the wheel as crowdperf/repository; see pyproject.toml."""

import json
import shutil
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

CHECKOUT = Path(__file__).resolve().parent


def _git(*words: str) -> str:
    """What git says of the checkout; empty without git or a checkout."""
    try:
        done = subprocess.run(["git", "-C", str(CHECKOUT), *words], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 and (CHECKOUT / ".git").exists() else ""


class BuildWithRepository(build_py):
    """The packages of src/, and the repository as data."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib) / "crowdperf" / "repository"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for name in ("cmr.yaml", "pyproject.toml"):
            shutil.copyfile(CHECKOUT / name, target / name)
        for name in ("automation", "script"):
            shutil.copytree(CHECKOUT / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
        commit = _git("rev-parse", "--verify", "HEAD")
        if commit:  # as recipe_engine/running/toolversion.py reads it
            changes = _git("status", "--porcelain", "--", "automation", "script", "src", "cmr.yaml", "pyproject.toml")
            built = {"commit": commit, "is_modified": bool(changes)}
            (target / "built-from.json").write_text(json.dumps(built) + "\n", encoding="utf-8")


setup(cmdclass={"build_py": BuildWithRepository})
