"""Entries stay usable when the CM home moves: the paths they recorded follow."""

from pathlib import Path
from typing import Any

import pytest
from helpers import TemporaryHome
from recipe_engine.disk.entries import relocated

UID, OTHER = "0123456789abcdef", "fedcba9876543210"
OLD = "/gone/repos/local/cache"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A store with one entry, below a folder whose name looks like the one of an entry."""
    root = tmp_path / OTHER / "cache"
    (root / UID).mkdir(parents=True)
    return root


@pytest.mark.parametrize(
    ("stored", "now"),
    [
        (f"{OLD}/{UID}", "{root}/{UID}"),
        (f"{OLD}/{UID}/bin/tool", "{root}/{UID}/bin/tool"),
        (f"/usr/bin:{OLD}/{UID}/bin:/bin", "/usr/bin:{root}/{UID}/bin:/bin"),
        (f"-I{OLD}/{UID}/include", "-I{root}/{UID}/include"),
        (f"--prefix={OLD}/{UID}", "--prefix={root}/{UID}"),
        (f"/gone/{OTHER}/cache/{UID}/a", "{root}/{UID}/a"),
        ([f"{OLD}/{UID}", 1, None], ["{root}/{UID}", 1, None]),
        ({"a": {"b": f"{OLD}/{UID}"}}, {"a": {"b": "{root}/{UID}"}}),
        ("/my home/cache/" + UID, "{root}/{UID}"),
        (f"{OLD}/{OTHER}/bin", f"{OLD}/{OTHER}/bin"),
        (f"{OLD}/{UID}0/bin", f"{OLD}/{UID}0/bin"),
        (f"see {OLD}/{UID}", f"see {OLD}/{UID}"),
        (UID, UID),
        (f"https://example.org/{OTHER}/x", f"https://example.org/{OTHER}/x"),
    ],
)
def test_a_path_in_an_entry_that_is_here_now_follows_and_any_other_text_stays(
    root: Path, stored: Any, now: Any
) -> None:
    def fill(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: fill(item) for key, item in value.items()}
        if isinstance(value, list):
            return [fill(item) for item in value]
        return value.replace("{root}", str(root)).replace("{UID}", UID) if isinstance(value, str) else value

    assert relocated(stored, root) == fill(now)


def test_a_path_that_is_still_there_stays(root: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / UID).mkdir(parents=True)
    assert relocated(f"{elsewhere}/{UID}/a", root) == f"{elsewhere}/{UID}/a"
    assert relocated(f"{root}/{UID}/a", root) == f"{root}/{UID}/a"


def test_a_moved_home_reuses_its_entries_with_their_new_paths(home: TemporaryHome) -> None:
    meta = {"cache": True, "new_env_keys": ["CM_TOOL", "+PATH"], "new_state_keys": ["tool"]}
    hook = """
    import os

    def postprocess(i):
        i["env"]["CM_TOOL"] = os.path.join(os.getcwd(), "tool")
        i["env"]["+PATH"] = [os.getcwd()]
        i["state"]["tool"] = {"folder": os.getcwd()}
        return {"return": 0}
    """
    home.recipe("make-tool", meta, run_sh="touch tool", customize=hook)
    home.run("make,tool")
    uid = home.entry("make-tool").name
    home.path = home.path.rename(home.folder / "moved")
    home.store = home.path / "repos" / "local" / "cache"
    answer = home.run("make,tool")
    assert "reused from the cache" in "\n".join(home.story)
    folder = str(home.store / uid)
    assert answer["new_env"] == {"CM_TOOL": f"{folder}/tool", "+PATH": [folder]}
    assert answer["new_state"] == {"tool": {"folder": folder}}


def test_an_entry_that_depends_on_another_one_is_whole_after_the_move(home: TemporaryHome) -> None:
    home.recipe(
        "make-tool", {"cache": True, "new_env_keys": ["CM_TOOL"]}, run_sh='echo "CM_TOOL=$PWD" >tmp-run-env.out'
    )
    hook = """
    def postprocess(i):
        i["env"]["CM_GET_DEPENDENT_CACHED_PATH"] = i["env"]["CM_TOOL"]
        return {"return": 0}
    """
    home.recipe("use-tool", {"cache": True, "deps": [{"tags": "make,tool"}]}, customize=hook)
    home.run("use,tool")
    home.path = home.path.rename(home.folder / "moved")
    home.store = home.path / "repos" / "local" / "cache"
    home.run("use,tool")
    assert any("use-tool: reused from the cache" in line for line in home.story)
