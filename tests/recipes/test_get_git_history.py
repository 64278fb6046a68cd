"""get-git-history: an empty bare repository that knows its remote and asks for no files of old commits."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers import TemporaryHome
from recipe_loader import load_recipe

HookInput = Callable[..., dict[str, Any]]
recipe = load_recipe("get-git-history")


def config(folder: str, name: str) -> str:
    command = ["git", f"--git-dir={folder}", "config", name]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize(
    ("given", "address"), [("https://x.org/A/b.git", "https://x.org/A/b.git"), ("/a%20b/c%2Cd", "/a b/c,d")]
)
def test_the_repository_knows_where_to_fetch_from(
    hook_input: HookInput, inside: Path, given: str, address: str
) -> None:
    i = hook_input({"CM_GIT_URL": given})
    assert recipe.preprocess(i)["return"] == 0
    folder = i["env"]["CM_GIT_HISTORY_PATH"]
    assert Path(folder).parent == inside
    assert config(folder, "remote.origin.url") == address
    assert config(folder, "remote.origin.partialclonefilter") == "blob:none"


@pytest.mark.parametrize("given", ["", "--upload-pack=x"])
def test_what_is_no_address_is_refused(hook_input: HookInput, inside: Path, given: str) -> None:
    answer: dict[str, Any] = recipe.preprocess(hook_input({"CM_GIT_URL": given}))
    assert answer["return"] == 1 and "hint:" in answer["error"] and not list(inside.iterdir())


def test_a_plan_changes_nothing(hook_input: HookInput, inside: Path) -> None:
    i = hook_input({"CM_GIT_URL": "https://x.org/b.git"})
    assert recipe.plan(i)["return"] == 0 and i["env"]["CM_GIT_HISTORY_PATH"] and not list(inside.iterdir())


def test_each_address_has_an_entry_of_its_own_that_is_used_again(home: TemporaryHome) -> None:
    answers = [home.run_cm(f"get,git,history,_repo.{name}").answer for name in ("/a/B", "/a/b", "/a/B")]
    first, second, again = (answer["new_env"]["CM_GIT_HISTORY_PATH"] for answer in answers)
    assert first == again != second
