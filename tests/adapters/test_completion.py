"""Completion of ``cm``: what is offered for a line, and that real shells offer it. Those that are not installed are
skipped.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tools" / "completion"
Offer = Callable[[str], list[str]]
RECIPES: dict[str, dict[str, Any]] = {
    "get-tool": {
        "tags": ["get", "tool", "fast"],
        "variations": {"big": {}, "size.#": {}, "big,size.3": {}},
        "input_mapping": {"mode": "CM_MODE", "model": "CM_MODEL"},
        "input_description": {"mode": {"desc": "how", "choices": ["all", "alone", "none"]}},
    },
    "get-tool-too": {"tags": ["get", "tool", "slow"], "tags_help": "get tool", "input_mapping": {"speed": "CM_SPEED"}},
    "get-data": {"tags": ["get", "data"]},
}


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The process environment of a user whose CM home knows a repository with three recipes."""
    home = tmp_path_factory.mktemp("cm home")
    for number, (alias, meta) in enumerate(RECIPES.items()):
        folder = home / "repos" / "mine" / "script" / alias
        folder.mkdir(parents=True)
        row = {"alias": alias, "uid": f"00112233445566f{number}", "automation_alias": "script", **meta}
        (folder / "_cm.json").write_text(json.dumps(row), encoding="utf-8")
    (home / "repos.json").write_text('["mine"]', encoding="utf-8")
    (home / "runs" / "20261123T010203.456Z-3f9a").mkdir(parents=True)
    return {**os.environ, "CM_REPOS": str(home)}


@pytest.fixture
def offer(env: dict[str, str]) -> Offer:
    """The candidates for a line, as the program prints them."""

    def call(line: str) -> list[str]:
        command = [sys.executable, str(FOLDER / "complete.py"), line]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True)
        return done.stdout.splitlines()

    return call


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("cm ru", ["run ", "runs "]),
        ("cm gc ", ["cache "]),
        ("cm find ", ["script ", "cache "]),
        ("cm completion ", ["bash ", "zsh ", "fish "]),
        ("cm nosuch ", []),
        ("cm run script --tags=g", ["--tags=get"]),
        ("cm run script --tags=get,", [f"--tags=get,{tag}" for tag in ("data", "fast", "slow", "tool")]),
        ("cm run script --tags=get,tool,s", ["--tags=get,tool,slow"]),
        ("cm plan script --tags=get,tool,_", ["--tags=get,tool,_big", "--tags=get,tool,_size."]),
        ("cm run script --tags=get,tool,_big,_", ["--tags=get,tool,_big,_size."]),
        ("cm run script --tags=get,data,_", []),
        ("cm run script --tags=get,fast --mo", ["--mode=", "--model="]),
        ("cm run script --tags=get,fast --mode=a", ["--mode=all ", "--mode=alone "]),
        ("cm run script --tags=get,fast --model=", []),
        ("cm run script get-tool --mode=n", ["--mode=none "]),
        ("cm run script --tags=get,tool --sp", ["--speed=", "--space "]),
        ("cm help script get-t", ["get-tool ", "get-tool-too "]),
        ("cm help script run", ["run ", "runs "]),
        ("cm gc cache --", ["--dry-run ", "--max-size=", "--older-than="]),
        ("cm resume script 2026", ["20261123T010203.456Z-3f9a "]),
        ("cm diff script ", []),
        ("cm", []),
        ("", []),
    ],
)
def test_a_line_is_completed_from_recipes_and_help_texts(offer: Offer, line: str, offered: list[str]) -> None:
    found = offer(line)
    if "--sp" in line:  # the first recipe by tags_help, and flags of the engine
        assert found[0] == offered[0]
    else:
        assert sorted(found) == sorted(offered)


def test_the_recipe_index_of_the_home_is_used_and_kept(env: dict[str, str], offer: Offer) -> None:
    offer("cm run script --tags=get,")
    files = sorted((Path(env["CM_REPOS"]) / "recipe-index").iterdir())
    before = [path.stat().st_mtime_ns for path in files]
    assert before
    offer("cm run script --tags=get,")
    assert [path.stat().st_mtime_ns for path in files] == before


def script_for(shell: str) -> str:
    """What ``./cm completion SHELL`` prints, calling the Python of the tests."""
    text = (FOLDER / f"cm.{shell}").read_text(encoding="utf-8")
    return text.replace("@COMPLETE@", shlex.join([sys.executable, str(FOLDER / "complete.py")]))


@pytest.mark.parametrize(
    ("line", "replies"),
    [
        ("cm gc ca", ["cache "]),
        ("./cm run script --tags=get,to", ["get,tool"]),
        ("cm run script --tags=get,tool,_", ["get,tool,_big", "get,tool,_size."]),
        ("cm run script --tags=get,fast --mode=al", ["all ", "alone "]),
        ("cm run script --tags=get,fast --mod", ["--mode=", "--model="]),
        ("cm diff script ", []),
    ],
)
def test_bash_completes(env: dict[str, str], line: str, replies: list[str]) -> None:
    """bash breaks words at ``=`` and replaces the last part only."""
    code = "\n".join(
        [
            script_for("bash"),
            f"COMP_LINE={shlex.quote(line)}",
            "COMP_POINT=${#COMP_LINE}",
            "complete -p cm >/dev/null && _crowdperf_cm",
            "printf '<%s>' \"${COMPREPLY[@]}\"",
        ]
    )
    folder = env["CM_REPOS"]  # ./cm of a checkout would be completed from the home of the checkout
    done = subprocess.run(["bash", "-c", code], cwd=folder, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    shown = done.stdout.replace("<>", "")
    assert sorted(shown.strip("<>").split("><") if shown else []) == sorted(replies)


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_completes(env: dict[str, str]) -> None:
    stub = "compdef() { :; }; compadd() { shift 4; printf '<%s>' \"$@\"; }\n"
    call = 'LBUFFER="cm gc ca"; _crowdperf_cm'
    done = subprocess.run(["zsh", "-fc", f"{stub}{script_for('zsh')}\n{call}"], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "<cache >"), done.stderr


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes(env: dict[str, str]) -> None:
    code = f"{script_for('fish')}\ncomplete -C 'cm gc ca'"
    done = subprocess.run(["fish", "-N", "-c", code], env=env, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["cache"], done.stderr
