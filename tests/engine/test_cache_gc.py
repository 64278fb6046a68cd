"""cm gc, pin and unpin cache: what goes, what stays, what is asked, on real folders."""

import contextlib
import errno
import fcntl
import gc as garbage
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import TemporaryHome, Terminal, shell_wait, wait_until
from recipe_engine.actions import cache_actions
from recipe_engine.actions.adapter import answer_cm
from recipe_engine.actions.cache_actions import LEFT_FOR_S, gc_action, limits_of, pin_action
from recipe_engine.actions.cache_report import show_action
from recipe_engine.disk.entries import CACHE_AUTOMATION_UID, EntriesInUse
from recipe_engine.disk.locks import is_locked, lock
from recipe_engine.disk.store import Store
from recipe_engine.rules.errors import NothingFound, RequestError
from recipe_engine.rules.retention import Limits

DAY_S = 86_400


@pytest.fixture
def filled(home: TemporaryHome) -> TemporaryHome:
    """``get-old``, used ten days ago, and ``get-new``, used one day ago, which was made with ``get-base`` (20 days)."""
    home.recipe("get-old", {"cache": True}, run_sh="head -c 50000 /dev/zero > data")
    home.recipe("get-base", {"cache": True}, run_sh="head -c 30000 /dev/zero > data")
    home.recipe("get-new", {"cache": True, "deps": [{"tags": "get,base"}]})
    home.run("get,old")
    home.run("get,new")
    for alias, days in (("get-old", 10), ("get-base", 20), ("get-new", 1)):
        age(home.entry(alias), days)
    return home


def age(entry: Path, days: float) -> None:
    """Makes an entry one that was made and used so many days ago."""
    then_s = time.time() - days * DAY_S
    meta = json.loads((entry / "_cm.json").read_text())
    if "crowdperf" in meta:
        meta["crowdperf"]["created_utc"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(then_s))
        (entry / "_cm.json").write_text(json.dumps(meta))
    (entry / "used").touch()
    for path in (*entry.rglob("*"), entry):
        os.utime(path, (then_s, then_s))


def gc(home: TemporaryHome, **i: Any) -> dict[str, Any]:
    garbage.collect()  # runs of this very process use their entries as long as their stores live
    answer = gc_action(i, home.engine_home)
    json.dumps(answer)
    return answer


def going(home: TemporaryHome, **i: Any) -> dict[str, str]:
    """Recipe (or folder) to the reason of what a dry run would remove; nothing goes."""
    before = sorted(home.store.rglob("*"))
    answer = gc(home, dry_run=True, **i)
    assert sorted(home.store.rglob("*")) == before
    assert answer["removed"] == []
    return {row["recipe"] or Path(row["path"]).name: row["reason"] for row in answer["to_remove"]}


def aliases(home: TemporaryHome) -> set[str]:
    return {meta["associated_script_artifact"].split(",")[0] for meta in home.entries()}


ALL = {"get-old", "get-new", "get-base"}


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, set()),
        ({"older-than": "9d"}, {"get-old"}),
        ({"older_than": "12h"}, ALL),
        ({"max_size": "60kB"}, {"get-old"}),
        ({"max-size": "20kB"}, ALL),
    ],
)
def test_the_limits_decide_what_goes(filled: TemporaryHome, limits: dict[str, str], expected: set[str]) -> None:
    assert set(going(filled, **limits)) == expected
    answer = gc(filled, f=True, **limits)
    assert aliases(filled) == ALL - expected
    assert len(answer["removed"]) == len(expected)
    assert answer["freed_bytes"] == answer["would_free_bytes"]


def test_what_is_left_works_and_what_went_is_made_again(filled: TemporaryHome) -> None:
    gc(filled, f=True, older_than="9d")
    filled.run("get,new")
    assert any("get-new: reused" in line for line in filled.story)
    filled.run("get,old")
    assert aliases(filled) == ALL
    assert list((filled.store / ".trash").iterdir()) == []
    assert list((filled.store / ".locks").iterdir()) == []


def test_limits_are_read_with_dashes_or_underscores_and_refused_when_they_make_no_sense(home: TemporaryHome) -> None:
    assert limits_of({}) == Limits(None, None)
    assert limits_of({"max-size": "1kB", "older_than": "1d"}) == Limits(1000, DAY_S)
    for name, value in (("max_size", "big"), ("older_than", 30), ("max_size", True), ("max-size", "")):
        with pytest.raises(RequestError, match=r"is not an? (size|age)"):
            gc(home, f=True, **{name: value})


# --- what stays ---


def test_a_pinned_entry_stays_with_what_it_needs_until_it_is_unpinned(filled: TemporaryHome) -> None:
    pin_action({"tags": "get,new"}, filled.engine_home, is_pinned=True)
    answer = gc(filled, f=True, max_size="0")
    assert aliases(filled) == {"get-new", "get-base"}
    kept = {row["recipe"]: row["reason"] for row in answer["kept"]}
    assert kept == {"get-new": "pinned", "get-base": f"needed by {filled.entry('get-new').name}, which is pinned"}
    pin_action({"artifact": filled.entry("get-new").name}, filled.engine_home, is_pinned=False)
    gc(filled, f=True, max_size="0")
    assert aliases(filled) == set()


def test_a_pin_survives_a_renewal_and_one_that_was_broken_off(filled: TemporaryHome) -> None:
    pin_action({"tags": "get,old"}, filled.engine_home, is_pinned=True)
    filled.run("get,old", renew=True)
    filled.recipe("get-old", {"cache": True}, run_sh="exit 3")
    with pytest.raises(Exception, match="exit code 3"):
        filled.run("get,old", renew=True)
    filled.recipe("get-old", {"cache": True}, run_sh="true")
    filled.run("get,old")
    rows = show_action({"tags": "get,old"}, filled.engine_home)["entries"]
    assert {row["is_complete"]: row["is_pinned"] for row in rows} == {True: True, False: False}


def test_pinning_needs_a_name_and_finished_entries(filled: TemporaryHome) -> None:
    with pytest.raises(RequestError, match="no cache entry was selected"):
        pin_action({}, filled.engine_home, is_pinned=True)
    with pytest.raises(NothingFound):
        pin_action({"tags": "none"}, filled.engine_home, is_pinned=True)
    uid = filled.entry("get-old").name
    assert pin_action({"tags": "get,old"}, filled.engine_home, is_pinned=True)["changed"] == [uid]
    assert pin_action({"tags": "get,old"}, filled.engine_home, is_pinned=True)["changed"] == []
    assert pin_action({"tags": "get,old"}, filled.engine_home, is_pinned=False)["changed"] == [uid]


def test_a_pin_that_cannot_be_written_is_an_error(filled: TemporaryHome, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "touch", refuse)
    answer = answer_cm(lambda i: pin_action(i, filled.engine_home, True), {"tags": "get,old"}, None)
    assert answer["error"].startswith(f"cannot write to the cache {filled.store} of ")
    assert "CROWDPERF_CACHE" in answer["error"]


def test_an_entry_in_use_stays_with_what_it_needs(filled: TemporaryHome) -> None:
    user = EntriesInUse(filled.store)
    user.claim(filled.entry("get-new"))
    answer = gc(filled, f=True, max_size="0")
    assert aliases(filled) == {"get-new", "get-base"}
    assert {row["recipe"]: row["reason"] for row in answer["kept"]}["get-new"] == "in use by a running process"
    del user


def test_what_a_run_below_used_is_in_use_as_long_as_the_run_lasts(filled: TemporaryHome) -> None:
    run, below = EntriesInUse(filled.store), EntriesInUse(filled.store)
    run.watch_children()
    uid = filled.entry("get-new").name
    below.note(uid)
    assert run.used == [uid]
    gc(filled, f=True, max_size="0")
    assert "get-new" in aliases(filled)
    run.close()
    gc(filled, f=True, max_size="0")
    assert "get-new" not in aliases(filled)


def test_what_a_run_below_uses_counts_though_another_process_looks_at_the_list_when_it_is_made(
    filled: TemporaryHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock_file, looks = fcntl.flock, [BlockingIOError(errno.EAGAIN, "another process looks")] * 4

    def flock(handle: int, how: int) -> None:
        if how & fcntl.LOCK_EX and looks:
            raise looks.pop()
        lock_file(handle, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    user = EntriesInUse(filled.store)
    user.watch_children()
    (uses,) = (filled.store / ".locks").glob("*.uses.lock")
    assert (looks, is_locked(uses)) == ([], True)
    user.close()


def test_what_a_running_process_reused_or_is_making_stays(filled: TemporaryHome) -> None:
    run_sh = "touch started; " + shell_wait("[ -e go ]")
    filled.recipe("get-slow", {"cache": True, "deps": [{"tags": "get,old"}]}, run_sh=run_sh)
    child = filled.start_run("get,slow")
    (path,) = wait_until(lambda: list(filled.store.glob("*/started")), "the script")
    answer = gc(filled, f=True, max_size="0", older_than="0s")
    assert aliases(filled) == {"get-old", "get-slow"}
    kept = {row["recipe"]: row["reason"] for row in answer["kept"]}
    assert kept == {"get-old": "in use by a running process", "get-slow": "being built right now"}
    (path.parent / "go").touch()
    child.communicate()
    assert child.returncode == 0
    gc(filled, f=True, max_size="0")
    assert aliases(filled) == set()


def test_an_entry_taken_between_the_look_and_the_removal_stays(
    filled: TemporaryHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = [EntriesInUse(filled.store)]

    class SlowTerminal(Terminal):
        def readline(self, *_: Any) -> str:
            users[0].claim(filled.entry("get-old"))
            pin_action({"tags": "get,base"}, filled.engine_home, is_pinned=True)
            return "y\n"

    monkeypatch.setattr(sys, "stdin", SlowTerminal())
    gc(filled, max_size="0")
    assert aliases(filled) == {"get-old", "get-base"}


# --- left-overs ---


def test_an_unfinished_entry_goes_unless_it_is_half_loaded_today(filled: TemporaryHome) -> None:
    filled.recipe("get-part", {"cache": True}, run_sh="touch big.part; exit 1")
    filled.recipe("get-fail", {"cache": True}, run_sh="exit 1")
    for tags in ("get,part", "get,fail"):
        with pytest.raises(Exception, match="exit code 1"):
            filled.run(tags)
    assert going(filled) == {"get-fail": "it was never finished"}
    (part,) = [meta["path"] for meta in filled.entries("get-part")]
    age(part, 2)
    assert set(going(filled)) == {"get-fail", "get-part"}
    gc(filled, f=True)
    assert aliases(filled) == ALL


def test_a_broken_entry_goes_unless_another_names_it(filled: TemporaryHome) -> None:
    customize = "def postprocess(i):\n    return {'return': 0, 'files': ['data']}\n"
    filled.recipe(
        "get-b",
        {"cache": True, "new_env_keys": ["CM_B"]},
        customize=customize,
        run_sh="echo 1 > data; echo CM_B=$PWD/data > tmp-run-env.out",
    )
    filled.recipe("get-c", {"cache": True, "deps": [{"tags": "get,b"}], "new_env_keys": ["CM_B"]})
    filled.run("get,c")
    first = filled.entry("get-b")
    (first / "data").write_text("2\n")
    filled.run("get,b")
    assert going(filled) == {}
    answer = gc(filled, dry_run=True)
    assert [row["uid"] for row in answer["kept"]] == [first.name]
    assert "needed by" in answer["kept"][0]["reason"]
    filled.run("get,c", renew=True)
    assert going(filled) == {"get-b": f"its file {first / 'data'} was edited (the SHA-256 differs)"}


def test_an_entry_whose_time_is_over_goes(filled: TemporaryHome) -> None:
    path = filled.entry("get-old") / "_cm.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "cache_expiration": time.time() - 1}))
    assert going(filled) == {"get-old": "it has expired (cache_expiration)"}


def test_a_renewed_entry_that_was_in_use_goes_once_no_process_uses_it(filled: TemporaryHome) -> None:
    user, old = EntriesInUse(filled.store), filled.entry("get-old")
    user.claim(old)
    filled.run("get,old", renew=True)
    new = filled.entry("get-old")
    assert new != old
    (row,) = gc(filled, f=True)["kept"]
    assert (row["uid"], row["reason"]) == (old.name, f"replaced by {new.name}, but in use by a running process")
    assert old.exists()
    user.close()
    assert going(filled) == {"get-old": f"replaced by {new.name}"}
    gc(filled, f=True)
    assert not old.exists()
    assert filled.entry("get-old") == new


def test_a_removal_of_many_entries_lists_the_cache_once(filled: TemporaryHome, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []
    listed = Store.entries
    monkeypatch.setattr(Store, "entries", lambda store, **how: looks.append(how) or listed(store, **how))
    assert len(gc(filled, f=True, max_size="0")["removed"]) == 3
    assert len(looks) == 1


def foreign_entry(home: TemporaryHome, name: str, tags: list[str]) -> Path:
    folder = home.store / name
    folder.mkdir(parents=True)
    meta = {"automation_uid": CACHE_AUTOMATION_UID, "tags": tags, "associated_script_artifact": "get-f,a0"}
    (folder / "_cm.json").write_text(json.dumps(meta))
    return folder


def test_entries_of_cm_itself_count_too_and_young_unfinished_ones_are_left_alone(filled: TemporaryHome) -> None:
    unfinished = foreign_entry(filled, "c123456789abcdef", ["tmp", "get"])
    finished = foreign_entry(filled, "d123456789abcdef", ["get", "f"])
    assert going(filled) == {}
    age(unfinished, 2)
    age(finished, 40)
    reasons = {row["uid"]: row["reason"] for row in gc(filled, dry_run=True, older_than="30d")["to_remove"]}
    assert set(reasons) == {unfinished.name, finished.name}


def test_what_killed_processes_left_goes_when_it_is_surely_theirs(filled: TemporaryHome) -> None:
    store = filled.store
    left = [store / ".trash" / "x.1234", store / ".locks" / "ab.new", store / "nameless", store / "c3"]
    for folder in left:
        folder.mkdir(parents=True)
        (folder / "file").write_text("12345")
    (store / "c3" / "_cm.json").write_text("[]")
    files = [store / ".README.md.1.new", store / ".locks" / "ab.lock"]
    for file in files:
        file.write_text("{}")
    (store / "mine.txt").write_text("of the user")
    assert set(going(filled)) == {"x.1234", "ab.new"}, "the others may be somebody's who is at work"
    for path in (*left, *files):
        for inner in (*path.rglob("*"), path) if path.is_dir() else (path,):
            os.utime(inner, (time.time() - LEFT_FOR_S - 60,) * 2)
    assert set(going(filled)) == {path.name for path in (*left, *files)}
    gc(filled, f=True)
    assert not [path for path in (*left, *files) if path.exists()]
    assert (store / "mine.txt").exists()
    assert aliases(filled) == ALL


def test_a_lock_file_that_goes_during_the_look_is_no_error(
    filled: TemporaryHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = cache_actions._paths_in
    gone = [filled.store / ".locks" / name for name in ("a.lock", "b.new")]
    monkeypatch.setattr(cache_actions, "_paths_in", lambda folder: [*listed(folder), *gone])
    assert going(filled) == {}


def test_what_a_process_begins_to_make_after_the_look_is_left_to_it(
    filled: TemporaryHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    staging = filled.store / ".locks" / "ab.new"
    with contextlib.ExitStack() as stack:

        def agreed_late(*_: Any, **__: Any) -> bool:
            stack.enter_context(lock(staging.with_suffix(".lock"), "another process"))
            return True

        staging.mkdir(parents=True)
        monkeypatch.setattr(cache_actions, "is_forced", agreed_late)
        assert gc(filled, f=True)["removed"] == []
        assert staging.is_dir()
    monkeypatch.undo()
    assert gc(filled, f=True)["removed"] == [str(staging)]


def test_an_empty_or_missing_cache_is_no_error(home: TemporaryHome) -> None:
    assert gc(home, f=True, max_size="0")["to_remove"] == []
    assert not home.store.exists()


# --- asking and telling ---


@contextlib.contextmanager
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        yield


def test_without_force_and_terminal_nothing_goes(filled: TemporaryHome, monkeypatch: pytest.MonkeyPatch) -> None:
    with no_terminal(monkeypatch):
        with pytest.raises(RequestError, match="stdin is not a terminal") as caught:
            gc(filled, max_size="0")
        assert "--dry-run" in caught.value.hint
        assert gc(filled)["to_remove"] == [], "nothing to remove, nothing to ask"
    assert aliases(filled) == ALL


@pytest.mark.parametrize(("answer", "is_removed"), [("y", True), ("Y", True), ("", False), ("n", False)])
def test_at_a_terminal_one_question_is_asked(
    filled: TemporaryHome,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answer: str,
    is_removed: bool,
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(answer + "\n"))
    gc(filled, max_size="0")
    assert capsys.readouterr().err.count("[y/N]") == 1
    assert aliases(filled) == (set() if is_removed else ALL)


def test_the_console_tells_what_why_and_how_much(filled: TemporaryHome) -> None:
    garbage.collect()
    filled.cm("pin", "cache", "--tags=get,base")
    shown = filled.cm("gc", "cache", "--dry-run", "--max-size=10kB")
    assert shown.code == 0, shown.stderr
    lines = shown.stdout.splitlines()
    old, new, base = (filled.entry(alias).name for alias in ("get-old", "get-new", "get-base"))
    assert [line.split(",")[0] for line in lines[-4:-1]] == [
        f"- {old} (get-old)",
        f"- {new} (get-new)",
        f"  kept: {base} (get-base)",
    ]
    assert "not used for 10 d 0 h: least recently used, and the cache is larger than --max-size" in lines[-4]
    assert "would remove: 2 with " in lines[-1]
    refused = filled.cm("gc", "cache", "--max-size=10kB")
    assert refused.code == 1
    assert "-f" in refused.stderr
    assert aliases(filled) == ALL
    answer = filled.cm("gc", "cache", "--max-size=10kB", "-f", "--out=json").answer
    assert len(answer["removed"]) == 2
    assert aliases(filled) == {"get-base"}
    assert filled.cm("unpin", "cache", base).code == 0
    assert "Pinned" not in filled.cm("show", "cache").stdout
