"""cm show, find and rm cache, without the console."""

import json
import os
import sys
from typing import Any

import pytest
from helpers import TemporaryHome, Terminal, shell_wait, wait_until
from recipe_engine.actions import cache_actions, cache_report
from recipe_engine.actions.cache_actions import (
    remove_action,
    search_entries,
)
from recipe_engine.actions.cache_report import show_action
from recipe_engine.actions.run import new_engine, parse_request
from recipe_engine.planning.plan_action import make_plan
from recipe_engine.planning.plan_text import summary_lines
from recipe_engine.rules.errors import RequestError


@pytest.fixture
def filled(home: TemporaryHome) -> TemporaryHome:
    """A home whose cache holds ``get-a`` (with a variation and a version) and ``get-b``."""
    meta: dict[str, Any] = {"cache": True, "new_env_keys": ["CM_*"], "new_state_keys": ["s"]}
    a_meta = {**meta, "variations": {"v": {}}, "default_version": "1.2", "env": {"CM_A": "1", "CM_A_TOKEN": "secret"}}
    home.recipe("get-a", {**a_meta, "state": {"s": 7}})
    home.recipe("get-b", meta, run_sh="head -c 5000 /dev/zero > data")
    home.run("get,a,_v")
    home.run("get,b")
    return home


def test_a_shown_entry_has_tags_path_version_maker_size_and_age(
    filled: TemporaryHome, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = cache_actions.time.time()
    monkeypatch.setattr(cache_actions.time, "time", lambda: now_s + 3700)
    answer = show_action({"out": "con", "tags": "get,a"}, filled.engine_home)
    (row,) = answer["entries"]
    entry = filled.entry("get-a")
    assert row["path"] == str(entry)
    assert row["version"] == "1.2"
    assert row["size_bytes"] == sum(path.stat().st_size for path in entry.iterdir())
    assert 3690 <= row["age_s"] <= 3760
    assert row["is_complete"]
    assert row["tags"][-1] == "_v", "variations come last"
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == ""
    assert lines[1].startswith("* Tags: a,get,")
    assert lines[2:5] == [f"  Path: {entry}", "  Version: 1.2", f"  Recipe: {row['recipe']}"]
    assert lines[5].endswith("made 1 h 1 min ago")
    assert row["recipe"].startswith("get-a,")


def test_an_entry_whose_recipe_has_changed_since_is_marked(
    filled: TemporaryHome, capsys: pytest.CaptureFixture[str]
) -> None:
    (filled.repo / "script" / "get-b" / "run.sh").write_text("echo another\n")
    answer = show_action({"out": "con"}, filled.engine_home)
    assert {row["recipe"].partition(",")[0]: row["is_outdated"] for row in answer["entries"]} == {
        "get-a": False, "get-b": True,
    }  # fmt: skip
    lines = capsys.readouterr().out.splitlines()
    assert ["[outdated]" in line for line in lines if line.startswith("get-")] == [False, True]
    assert "[outdated]: its recipe has changed since. It is reused, and --renew rebuilds it" in lines
    show_action({"out": "con", "tags": "get,b"}, filled.engine_home)
    assert "  Outdated: its recipe has changed since. --renew rebuilds the entry" in capsys.readouterr().out
    plan = make_plan(new_engine(filled.engine_home, None), parse_request({"tags": "get,b"}))
    text = "\n".join(summary_lines(plan, 120))
    assert "= get-b (built by another version of this recipe)" in text


@pytest.mark.parametrize(
    ("i", "hint"),
    [
        ({"tags": "gte,a"}, "the nearest are: get"),
        ({"tags": "get,v,-b"}, "the nearest are: _v"),
        ({"tags": "get,a,b"}, "cm show cache lists all entries"),
        ({"artifact": "gte b"}, "the nearest are: get"),
    ],
)
def test_where_no_entry_fits_the_tags_that_are_nearest_are_named(
    filled: TemporaryHome, monkeypatch: pytest.MonkeyPatch, i: dict[str, Any], hint: str
) -> None:
    said: list[str] = []
    monkeypatch.setattr(cache_report.logger, "info", said.append)
    assert show_action({**i, "out": "con"}, filled.engine_home)["entries"] == []
    assert said == [f"no matching cache entry in {filled.store}\n  hint: {hint}"]


def test_an_empty_cache_is_called_empty(home: TemporaryHome, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(cache_report.logger, "info", said.append)
    assert show_action({"out": "con"}, home.engine_home)["return"] == 0
    assert said == [f"no matching cache entry in {home.store}\n  hint: the cache is empty"]


def test_entries_are_chosen_by_tags_uid_or_all(filled: TemporaryHome) -> None:
    def shown(**i: Any) -> list[str]:
        return [row["recipe"].split(",")[0] for row in show_action(i, filled.engine_home)["entries"]]

    assert shown() == ["get-a", "get-b"]
    assert shown(tags="get") == ["get-a", "get-b"]
    assert shown(tags="get,_v") == shown(tags="version-1.2") == ["get-a"]
    assert shown(tags="get,-_v") == ["get-b"]
    assert shown(artifact="get b") == ["get-b"]
    assert shown(artifact=filled.entry("get-b").name) == ["get-b"]
    assert shown(artifact=filled.entry("get-b").name[:6] + "*") == ["get-b"]
    assert shown(artifact="*") == shown(artifact="?" * 16) == ["get-a", "get-b"]
    assert shown(tags="none") == []


def test_env_and_state_are_shown_without_secrets(filled: TemporaryHome, capsys: pytest.CaptureFixture[str]) -> None:
    show_action({"out": "con", "tags": "get,a", "env": True}, filled.engine_home)
    out = capsys.readouterr().out
    assert '    New env:\n{\n      "CM_A": "1",\n' in out
    assert '    New state:\n{\n      "s": 7\n}\n' in out
    assert "secret" not in out
    show_action({"out": "con", "tags": "get,a"}, filled.engine_home)
    assert "CM_A" not in capsys.readouterr().out


def test_an_unfinished_entry_is_shown_as_such(filled: TemporaryHome, capsys: pytest.CaptureFixture[str]) -> None:
    filled.recipe("get-c", {"cache": True}, run_sh="exit 1")
    with pytest.raises(Exception, match="exit code 1"):
        filled.run("get,c")
    (row,) = show_action({"out": "con", "tags": "get,c"}, filled.engine_home)["entries"]
    assert not row["is_complete"]
    assert "State: unfinished" in capsys.readouterr().out


def test_found_entries_are_printed_as_paths(filled: TemporaryHome, capsys: pytest.CaptureFixture[str]) -> None:
    found = search_entries({"out": "con", "tags": "get"}, filled.engine_home)
    paths = [filled.entry("get-a"), filled.entry("get-b")]
    assert [entry.path for entry in found] == paths
    assert capsys.readouterr().out.splitlines() == [str(path) for path in paths]


@pytest.mark.parametrize("flag", ["f", "force"])
def test_entries_are_removed_by_force(filled: TemporaryHome, flag: str) -> None:
    entry = filled.entry("get-a")
    answer = remove_action({"tags": "get,a", flag: True}, filled.engine_home)
    assert answer == {"return": 0, "removed": [entry.name], "busy": []}
    assert not entry.exists()
    assert filled.entry("get-b").exists()
    filled.run("get,a,_v")
    assert filled.entry("get-a") != entry


@pytest.mark.parametrize(
    ("answer", "is_removed"), [("y", True), ("Y ", True), ("", False), ("n", False), ("yes!\nn", False)]
)
def test_without_force_each_entry_is_asked_for(
    filled: TemporaryHome, monkeypatch: pytest.MonkeyPatch, answer: str, is_removed: bool
) -> None:
    entry = filled.entry("get-a")
    monkeypatch.setattr(sys, "stdin", Terminal(answer + "\n"))
    remove_action({"tags": "get,a"}, filled.engine_home)
    assert entry.exists() is not is_removed


def test_without_force_and_without_a_terminal_nothing_is_removed(
    filled: TemporaryHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        with pytest.raises(RequestError, match=r"2 cache entries.*stdin is not a terminal") as caught:
            remove_action({}, filled.engine_home)
    assert "-f" in caught.value.hint
    assert len(filled.entries()) == 2


def test_an_entry_that_a_process_is_making_stays(filled: TemporaryHome) -> None:
    filled.recipe("get-c", {"cache": True}, run_sh="touch started; " + shell_wait("[ -e go ]"))
    child = filled.start_run("get,c")
    (path,) = wait_until(lambda: list(filled.store.glob("*/started")), "the script")
    answer = remove_action({"f": True}, filled.engine_home)
    assert answer["busy"] == [path.parent.name]
    assert len(answer["removed"]) == 2
    (path.parent / "go").touch()
    child.communicate()
    assert child.returncode == 0
    assert filled.entry("get-c") == path.parent


def test_rows_are_json(filled: TemporaryHome) -> None:
    json.dumps(show_action({}, filled.engine_home))


def test_a_narrow_table_still_says_which_entries_are_unfinished() -> None:
    from recipe_engine.actions.cache_report import table_lines

    row = {"recipe": "get-cudnn,0123", "version": "", "size_bytes": 1, "age_s": 60, "uid": "942bb3a0b35d3d9d",
           "is_complete": False, "retired": "", "is_pinned": False, "is_in_use": False}  # fmt: skip
    *_, line = table_lines([row], ["_pip,_cu12,with-a-long-list-of-other-words"], 80)
    assert "[unfinished]" in line and "942bb3a0b35d3d9d" in line and len(line) <= 80
