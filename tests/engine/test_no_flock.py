"""A cache on a file system without flock: entries can be used; making or removing one is refused with the way out."""

import errno
import fcntl
import os
from typing import Any

import pytest
from helpers import TemporaryHome
from recipe_engine.actions.cache_actions import gc_action, remove_action
from recipe_engine.actions.cache_report import show_action, verify_action
from recipe_engine.disk.files import mount_point
from recipe_engine.rules.errors import StoreError

ERRNOS = [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP]


@pytest.fixture(params=ERRNOS, ids=lambda number: errno.errorcode[number])
def unlockable(home: TemporaryHome, monkeypatch: pytest.MonkeyPatch, request: Any) -> TemporaryHome:
    """A home with an entry of get-thing whose file system then stops to lock files."""
    for alias in ("get-thing", "get-other"):
        home.recipe(alias, {"cache": True}, run_sh="echo CM_THING=1 > tmp-run-env.out")
    home.recipe("print-thing", run_sh="echo printed")
    home.run("get,thing")

    def refuse(*_: object) -> None:
        raise OSError(request.param, os.strerror(request.param))

    monkeypatch.setattr(fcntl, "flock", refuse)
    return home


def test_without_flock_an_entry_is_not_made_and_the_mount_and_another_cache_are_named(
    unlockable: TemporaryHome,
) -> None:
    with pytest.raises(StoreError) as caught:
        unlockable.run("get,other")
    assert f"mounted at {mount_point(unlockable.store)} does not support flock" in caught.value.message
    assert "CROWDPERF_CACHE" in caught.value.hint
    assert caught.value.trace == ("get-other",)
    assert len(unlockable.entries()) == 1


def test_without_flock_entries_and_recipes_that_are_not_cached_can_be_used(unlockable: TemporaryHome) -> None:
    assert unlockable.run("get,thing")["cache_entry"]
    assert unlockable.run("print,thing")["return"] == 0
    assert verify_action({}, unlockable.engine_home)["return"] == 0
    shown = show_action({}, unlockable.engine_home)
    assert [entry["is_in_use"] for entry in shown["entries"]] == [False]


def test_without_flock_nothing_is_removed(unlockable: TemporaryHome) -> None:
    for action, i in ((gc_action, {"max_size": "1"}), (remove_action, {"tags": "get,thing"})):
        with pytest.raises(StoreError, match="does not support flock"):
            action({**i, "f": True}, unlockable.engine_home)
    assert len(unlockable.entries("get-thing")) == 1
