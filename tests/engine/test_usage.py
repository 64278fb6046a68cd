"""Which entries are used: noted by time, locked by the process that uses them, and named by others."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from helpers import TemporaryHome
from recipe_engine.disk import usage
from recipe_engine.disk.entryfile import EntryPaths
from recipe_engine.disk.usage import EntriesInUse, dependencies, is_in_use, last_use_s, recorded_dependencies, unused


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "a123456789abcdef"
    made.mkdir()
    return made


def test_an_entry_is_in_use_until_its_user_goes(folder: Path) -> None:
    assert not is_in_use(folder)
    assert last_use_s(folder) is None
    first, second = EntriesInUse(), EntriesInUse()
    first.add(folder)
    first.add(folder)
    second.add(folder)
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
        users = EntriesInUse()
        users.add(folder)
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
    EntriesInUse().add(folder)
    used = EntryPaths(folder).used
    os.utime(used, (1000, 1000))
    EntriesInUse().add(folder)
    renewed_s = used.stat().st_mtime
    assert renewed_s > 1000
    os.utime(used, (renewed_s - 3000, renewed_s - 3000))
    EntriesInUse().add(folder)
    assert used.stat().st_mtime == pytest.approx(renewed_s - 3000)


def test_nobody_begins_to_use_an_entry_that_is_about_to_go(folder: Path) -> None:
    EntriesInUse().add(folder)
    users = EntriesInUse()
    with unused(folder) as is_free:
        assert is_free
        users.add(folder)
    assert not is_in_use(folder), "it was not noted"


def test_an_entry_that_is_gone_or_cannot_be_marked_is_no_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    users = EntriesInUse()
    users.add(folder / "gone")
    monkeypatch.setattr(usage, "MOST_HELD", 0)
    users.add(folder)
    assert not is_in_use(folder)


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
    assert recorded_dependencies(entry) == ()
