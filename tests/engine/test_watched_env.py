"""The env of ``plan(i)``: what counts as a look at a value that is not known, and what as setting one."""

from collections.abc import Callable
from typing import Any

import pytest
from recipe_engine.planning.planned_step import WatchedEnv
from recipe_engine.rules.conditions import Unknown, symbol

UNKNOWN = Unknown((("CM_MAYBE", "get-a"), ("CM_ANY_*", "get-b")))


def watched() -> WatchedEnv:
    return WatchedEnv({"CM_KNOWN": "1", "CM_OPEN": symbol("CM_OPEN", "get-c")}, UNKNOWN)


@pytest.mark.parametrize("look", [list, dict, WatchedEnv.copy, lambda e: e | {}, lambda e: {} | e, lambda e: {**e}])
def test_a_look_at_all_keys_is_one_at_every_unknown_key(look: Callable[[WatchedEnv], Any]) -> None:
    env = watched()
    assert set(look(env)) == {"CM_KNOWN", "CM_OPEN"}
    assert set(env.read_unknown) == {"CM_OPEN", "CM_ANY_*"} and not env.changed


@pytest.mark.parametrize("key", ["CM_OPEN", "CM_MAYBE", "CM_ANY_X"])
def test_a_look_at_an_unknown_key_is_kept_unless_it_was_set_before(key: str) -> None:
    looks: list[Callable[[WatchedEnv], Any]] = [lambda e: e.get(key), lambda e: key in e, lambda e: e.pop(key, None)]
    for look in looks:
        env = watched()
        look(env)
        assert set(env.read_unknown) == {key}
        env = watched()
        env[key] = "mine"
        look(env)
        assert not env.read_unknown
    assert watched().get("CM_KNOWN") == "1" and watched().get("CM_NEVER") is None


def test_setting_and_removing_count_as_changes_and_not_as_looks() -> None:
    env = watched()
    env.update({"CM_OPEN": "2"}, CM_NEW="3")
    env |= {"CM_MAYBE": "4"}
    del env["CM_KNOWN"]
    assert env.changed == {"CM_OPEN", "CM_NEW", "CM_MAYBE", "CM_KNOWN"} and not env.read_unknown
    assert env.plain == {"CM_OPEN": "2", "CM_NEW": "3", "CM_MAYBE": "4"} and len(env) == 3
    cleared = watched()
    cleared.clear()
    assert cleared.changed == {"CM_KNOWN", "CM_OPEN"} and not cleared.read_unknown and not cleared.plain
    assert watched().setdefault("CM_KNOWN", "2") == "1"
