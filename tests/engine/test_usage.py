"""Which entries are used: noted by time, locked by the process that uses them, and named by others."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from helpers import TemporaryHome, cm_command, finish, shell_wait, wait_until
from recipe_engine.actions.cache_actions import gc_action, remove_action
from recipe_engine.disk import entries
from recipe_engine.disk.entries import EntriesInUse, EntryPaths, details_of
from recipe_engine.disk.locks import is_in_use, last_use_s, unused, users_of
from recipe_engine.disk.store import dependencies
from recipe_engine.rules.model import CacheEntry


def recorded_dependencies(entry: CacheEntry) -> tuple[str, ...]:
    details = details_of(entry)
    assert details is not None
    return details.dependencies


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "a123456789abcdef"
    made.mkdir()
    return made


def test_an_entry_is_in_use_until_its_user_goes(folder: Path) -> None:
    assert not is_in_use(folder)
    assert last_use_s(folder) is None
    first, second = EntriesInUse(folder.parent), EntriesInUse(folder.parent)
    first.claim(folder)
    first.claim(folder)
    second.claim(folder)
    assert is_in_use(folder)
    assert last_use_s(folder) == EntryPaths(folder).used.stat().st_mtime
    del first
    assert is_in_use(folder)
    del second
    assert not is_in_use(folder)


def test_a_killed_process_uses_nothing_any_more(folder: Path) -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        users = EntriesInUse(folder.parent)
        users.claim(folder)
        os.write(writing, b"x")
        signal.pause()
    os.read(reading, 1)
    assert is_in_use(folder)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert not is_in_use(folder)
    os.close(reading)
    os.close(writing)


def test_the_time_of_use_is_kept_to_the_hour(folder: Path) -> None:
    EntriesInUse(folder.parent).claim(folder)
    used = EntryPaths(folder).used
    os.utime(used, (1000, 1000))
    EntriesInUse(folder.parent).claim(folder)
    renewed_s = used.stat().st_mtime
    assert renewed_s > 1000
    os.utime(used, (renewed_s - 3000, renewed_s - 3000))
    EntriesInUse(folder.parent).claim(folder)
    assert used.stat().st_mtime == pytest.approx(renewed_s - 3000)


def test_no_process_begins_to_use_an_entry_that_is_about_to_go(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "REMOVAL_S", 0.01)
    EntriesInUse(folder.parent).claim(folder)
    users = EntriesInUse(folder.parent)
    with unused(folder) as is_free:
        assert is_free
        assert not users.claim(folder)
    assert not is_in_use(folder), "it was not noted"


def test_an_entry_that_is_gone_or_cannot_be_marked_is_no_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    users = EntriesInUse(folder.parent)
    assert not users.claim(folder / "gone")
    monkeypatch.setattr(entries, "MAX_LOCKS_HELD", 0)
    assert users.claim(folder)
    assert not is_in_use(folder)


def test_a_look_at_an_entry_does_not_keep_a_process_from_using_it(folder: Path) -> None:
    """A look locks the file for an instant."""
    EntryPaths(folder).used.touch()
    looker = os.fork()
    if not looker:
        while True:
            is_in_use(folder)
    try:
        users = EntriesInUse(folder.parent)
        for number in range(200):
            other = folder.parent / f"{number:016x}"
            other.mkdir()
            (other / "used").hardlink_to(EntryPaths(folder).used)
            assert users.claim(other)
        assert is_in_use(folder)
    finally:
        os.kill(looker, signal.SIGKILL)
        os.waitpid(looker, 0)


NESTED = 'i["automation"].cmind.access({"action": "run", "automation": "script", "tags": "get,inner", "quiet": True})'
CHILD = f"{cm_command([])[0]} run script --tags=get,inner --quiet --out=json > /dev/null || exit 9"


@pytest.mark.parametrize(
    ("how", "is_cached"),
    [("cm.access in a hook", True), ("cm in run.sh", False), ("cm in a process of run.sh", True)],
)
def test_what_a_run_started_by_a_recipe_uses_is_in_use_as_long_as_the_recipe_runs_and_recorded_with_its_entry(
    home: TemporaryHome, how: str, is_cached: bool
) -> None:
    home.recipe("get-inner", {"cache": True}, run_sh="touch made")
    home.recipe("get-middle", {"cache": True, "tags": ["get", "middle"]}, run_sh=CHILD)
    wait = f"touch {home.work}/used; " + shell_wait(f"[ -e {home.work}/go ]")
    hook = f"def preprocess(i):\n    {NESTED}\n    return {{'return': 0}}\n"
    call = {
        "cm.access in a hook": "",
        "cm in run.sh": CHILD,
        "cm in a process of run.sh": CHILD.replace("inner", "middle"),
    }
    home.recipe(
        "get-outer",
        {"cache": is_cached},
        customize=hook if how == "cm.access in a hook" else "",
        run_sh=f"{call[how]}\n{wait}\n",
    )
    home.run("get,inner")
    inner = home.entry("get-inner")
    child = home.start_run("get,outer")
    wait_until((home.work / "used").exists, "the use of the inner entry")
    assert is_in_use(inner)
    assert "in use" in {row["recipe"]: row["reason"] for row in gc(home)["kept"]}["get-inner"]
    refused = remove_action({"tags": "get,inner", "f": True}, home.engine_home)
    assert (refused["return"], refused["removed"]) == (1, [])
    assert "cache entries were kept" in refused["error"]
    assert users_of(inner) == [child.pid]
    (home.work / "go").touch()
    assert finish(child).code == 0
    assert not is_in_use(inner)
    assert not list((home.store / ".locks").glob("*.uses.lock"))
    entries = {entry.recipe.alias: entry for entry in home.open_store().entries()}
    for alias in ("get-outer",) if is_cached else ():
        assert inner.name in recorded_dependencies(entries[alias])
    if "get-middle" in entries:
        assert recorded_dependencies(entries["get-middle"]) == (inner.name,)


def gc(home: TemporaryHome) -> dict[str, Any]:
    """What ``cm gc cache --max-size=0 --dry-run`` would do."""
    return gc_action({"max_size": "0", "dry_run": True}, home.engine_home)


def test_an_entry_depends_on_what_it_was_made_with_and_what_its_results_name(home: TemporaryHome) -> None:
    home.recipe("get-deep", {"cache": True})
    home.recipe("get-plain", {"deps": [{"tags": "get,deep"}]})
    home.recipe(
        "get-data", {"cache": True, "new_env_keys": ["CM_DATA"]}, run_sh="echo CM_DATA=$PWD/x > tmp-run-env.out"
    )
    deps = [{"tags": "get,plain"}, {"tags": "get,data"}]
    home.recipe("get-top", {"cache": True, "deps": deps, "new_env_keys": ["CM_DATA"]})
    home.recipe("get-other", {"cache": True})
    home.run("get,other")
    home.run("get,data")
    home.run("get,top")
    entries = {entry.recipe.alias: entry for entry in home.open_store().entries()}
    uids = {alias: entry.uid for alias, entry in entries.items()}
    top = entries["get-top"]
    assert set(recorded_dependencies(top)) == {uids["get-deep"], uids["get-data"]}
    assert set(dependencies(top, set(uids.values()))) == {uids["get-deep"], uids["get-data"]}
    assert recorded_dependencies(entries["get-other"]) == ()
    details = json.loads((top.path / "entry.json").read_text())
    del details["dependencies"]
    (top.path / "entry.json").write_text(json.dumps(details))
    assert dependencies(top, set(uids.values())) == (uids["get-data"],)
    assert dependencies(top, set()) == ()


def test_a_renewed_entry_names_what_it_was_made_with_this_time(home: TemporaryHome) -> None:
    home.recipe("get-y", {"cache": True})
    home.recipe("get-x", {"cache": True, "deps": [{"tags": "get,y", "enable_if_env": {"CM_WITH": ["yes"]}}]})
    home.run("get,x", env={"CM_WITH": "yes"})
    (entry,) = [entry for entry in home.open_store().entries() if entry.recipe.alias == "get-x"]
    assert len(recorded_dependencies(entry)) == 1
    home.run("get,x", renew=True)
    (entry,) = [entry for entry in home.open_store().entries() if entry.recipe.alias == "get-x"]
    assert recorded_dependencies(entry) == ()
