"""Two processes that hold the locks of different requests and meet at one entry: only one of them may change it.

An entry made with more than it is asked for serves several requests, each with a lock of its own; validate_cache.sh,
which runs between finding an entry and changing it, holds the processes of these tests at the moment that matters.
"""

from pathlib import Path

import pytest
from helpers import TemporaryHome, finish, wait_until
from recipe_engine.actions.cache_actions import remove_action
from recipe_engine.disk.locks import is_locked
from recipe_engine.disk.store import Store
from recipe_engine.rules.model import CacheEntry

META = {"cache": True, "new_env_keys": ["CM_THING_FILE"]}
RUN = """
    mkdir busy || { echo "somebody else works in $PWD" >&2; exit 9; }
    sleep 0.3
    echo right > thing.txt
    rmdir busy
    echo "CM_THING_FILE=$PWD/thing.txt" > tmp-run-env.out
"""
VALIDATE = """
    [ -n "${CM_AT:-}" ] || exit 0
    touch "$CM_TMP_CURRENT_PATH/$CM_AT"
    for turn in $(seq 3000); do [ -e "$CM_TMP_CURRENT_PATH/go-$CM_AT" ] && break; sleep 0.02; done
    exit "${CM_CODE:-0}"
"""


@pytest.fixture
def mine(home: TemporaryHome) -> Path:
    """The file of an entry that was made with a cache tag of the user's and serves requests without it as well."""
    home.recipe("get-thing", META, run_sh=RUN, files={"validate_cache.sh": VALIDATE})
    return Path(home.run("get,thing", extra_cache_tags="mine")["new_env"]["CM_THING_FILE"])


def start(home: TemporaryHome, at: str, *words: str) -> object:
    """Starts a run and waits until it has found the entry and looks at it."""
    child = home.start_run("get,thing", f"--env.CM_AT={at}", *words)
    wait_until((home.work / at).exists, f"the look of {at}")
    return child


def test_two_renewals_that_found_the_same_entry_never_work_in_it_together(home: TemporaryHome, mine: Path) -> None:
    plain = start(home, "plain", "--renew")
    tagged = start(home, "tagged", "--renew", "--extra_cache_tags=mine")
    for at in ("plain", "tagged"):
        (home.work / f"go-{at}").touch()
    for child in (plain, tagged):
        done = finish(child)
        assert done.code == 0, done.stderr
        assert Path(done.answer["new_env"]["CM_THING_FILE"]).read_text() == "right\n"
    assert not mine.exists()
    for path in (meta["path"] for meta in home.entries()):
        assert (path / "thing.txt").read_text() == "right\n"


def test_an_entry_that_replaced_a_refused_one_is_not_marked_for_what_that_was(home: TemporaryHome, mine: Path) -> None:
    refusing = start(home, "late", "--renew", "--env.CM_CODE=1")
    assert home.run_cm("get,thing", "--renew", "--extra_cache_tags=mine").code == 0
    (home.work / "go-late").touch()
    done = finish(refusing)
    assert done.code == 0, done.stderr
    kept = [meta for meta in home.entries() if "mine" in meta["tags"]]
    assert [meta["path"] == mine.parent for meta in kept] == [False]
    assert ["tmp" in meta["tags"] for meta in home.entries()] == [False, False]


def test_nobody_can_begin_to_make_an_entry_while_it_is_removed(
    home: TemporaryHome, mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    was_locked = []
    remove = Store.remove

    def watched(store: Store, entry: CacheEntry) -> None:
        was_locked.append(is_locked(store._lock_of(entry)))
        remove(store, entry)

    monkeypatch.setattr(Store, "remove", watched)
    assert len(remove_action({"tags": "get,thing", "f": True}, home.engine_home)["removed"]) == 1
    assert was_locked == [True]
    assert not mine.exists()
