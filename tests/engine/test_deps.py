"""From a dependency and what its parent knows to the request that runs it."""

from __future__ import annotations

from typing import Any

import pytest
from builders import dependency, parent
from recipe_engine.deps import dependency_request, dependency_tags, should_run
from recipe_engine.model import RunOptions

VARIATIONS = {
    "variations": {
        "a": {"group": "device", "default": True},
        "b": {"group": "size"},
        "n.#": {"group": "count"},
        "free": {},
    }
}


@pytest.mark.parametrize(
    ("entry", "env", "tags"),
    [
        ({"tags": "get,y"}, {}, "get,y"),
        ({"tags": "get,y,_v.<<<V>>>"}, {"V": "8"}, "get,y,_v.8"),
        ({"update_tags_from_env_with_prefix": {"_p.": ["A", "B"]}}, {"A": "1", "B": "2"}, "get,y,_p.1,_p.2"),
        ({"update_tags_from_env_with_prefix": {"_p.": "A"}}, {"A": "1"}, "get,y,_p.1"),
        ({"update_tags_from_env_with_prefix": {"_p.": ["A"]}}, {"A": "  "}, "get,y"),
        ({"update_tags_from_env_with_prefix": {"_p.": ["A"]}}, {}, "get,y"),
        ({"update_tags_from_env_with_prefix": {"_p.": ["A"]}, "env": {"A": "own"}}, {"A": "up"}, "get,y,_p.own"),
        ({"update_tags_from_env_with_prefix": {"_p.": ["A"]}, "env": {"A": "<<<B>>>"}}, {"B": "b"}, "get,y,_p.b"),
        ({"update_tags_from_env_with_prefix": {"_p.": ["A"]}, "env": {"A": " "}}, {"A": "up"}, "get,y,_p.up"),
        ({"update_tags_from_env_with_prefix": {"_p.": ["A"]}, "env": {"A": 0}}, {"A": "up"}, "get,y,_p.0"),
        ({"update_tags_from_env": ["A", "B"]}, {"A": "_x,z", "B": ""}, "get,y,_x,z"),
        ({"update_tags_from_env": ["A"]}, {"A": "get"}, "get,y"),
    ],
)
def test_tags_grow_by_placeholders_and_env_values(entry: dict[str, Any], env: dict[str, Any], tags: str) -> None:
    assert ",".join(dependency_tags(dependency(**entry), parent(env=env))) == tags


@pytest.mark.parametrize(
    ("entry", "tags"),
    [
        ({"inherit_variation_tags": True}, "get,y,_b,_n.8,_free,_a"),
        ({}, "get,y"),
        ({"inherit_variation_tags": "no"}, "get,y"),
        ({"inherit_variation_tags": True, "skip_inherit_variation_groups": ["size"]}, "get,y,_n.8,_free,_a"),
        ({"inherit_variation_tags": True, "skip_inherit_variation_groups": ["count", "device"]}, "get,y,_b,_free"),
        ({"inherit_variation_tags": True, "tags": "get,y,-_b"}, "get,y,-_b,_n.8,_free,_a"),
        ({"inherit_variation_tags": True, "tags": "get,y,_b"}, "get,y,_b,_n.8,_free,_a"),
    ],
)
def test_all_variations_of_the_parent_are_inherited_but_skipped_groups_and_excluded_ones(
    entry: dict[str, Any], tags: str
) -> None:
    made = dependency_tags(dependency(**entry), parent(VARIATIONS, "get,x,_b,_n.8,_free"))
    assert ",".join(made) == tags


def request_of(entry: dict[str, Any], phase: Any = "deps", meta: Any = None, **view: Any) -> Any:
    """The request that runs the entry for a parent."""
    return dependency_request(dependency(**entry), parent(meta, **view), phase)


ENV = {"CM_VERSION": "1", "CM_VERSION_MIN": "0", "CM_GIT_URL": "u", "CM_TMP_A": "t", "OWN": "o", "POST": "p", "K": "k"}
META = {"local_env_keys": ["OW?"], "clean_env_keys_post_deps": ["POST"]}


@pytest.mark.parametrize(
    ("entry", "phase", "keys"),
    [
        ({}, "deps", {"K", "POST"}),
        ({}, "prehook_deps", {"K", "POST"}),
        ({}, "posthook_deps", {"K", "POST"}),
        ({}, "post_deps", {"K"}),
        ({"force_env_keys": ["CM_GIT_*"]}, "deps", {"K", "POST", "CM_GIT_URL"}),
        ({"force_env_keys": "OWN"}, "deps", {"K", "POST", "OWN"}),
        ({"reuse_version": True}, "deps", {"K", "POST", "CM_VERSION", "CM_VERSION_MIN"}),
        ({"reuse_version": "no"}, "deps", {"K", "POST"}),
    ],
)
def test_a_dependency_sees_the_env_without_hidden_keys_in_every_phase(
    entry: dict[str, Any], phase: str, keys: set[str]
) -> None:
    assert set(request_of(entry, phase, META, env=ENV).env) == keys


@pytest.mark.parametrize("env", [{}, {"K": "k"}])
def test_env_and_const_of_an_entry_always_reach_the_child_filled_from_the_parent(env: dict[str, Any]) -> None:
    made = request_of({"env": {"A": "<<<K>>>/x"}, "const": {"C": "<<<K>>>"}}, env=env, const={})
    value = env.get("K", "<<<K>>>")
    assert made.local_env == {"A": f"{value}/x"}
    assert made.const == {"C": value}
    assert made.env == env


def test_the_entrys_const_is_put_over_the_parents_and_state_is_merged() -> None:
    view = {"const": {"C": "old", "D": "d"}, "state": {"s": {"a": 1}}, "const_state": {"x": 1}}
    made = request_of({"const": {"C": "new"}, "state": {"s": {"b": 2}}, "const_state": {"y": 2}}, **view)
    assert made.const == {"C": "new", "D": "d"}
    assert made.state == {"s": {"a": 1, "b": 2}}
    assert made.const_state == {"x": 1, "y": 2}
    assert view == {"const": {"C": "old", "D": "d"}, "state": {"s": {"a": 1}}, "const_state": {"x": 1}}


def test_every_other_key_of_an_entry_is_an_input_of_the_child() -> None:
    made = request_of({"names": ["n"], "env": {"A": "1"}, "name": "venv", "md5sum": "0", "version_min": 3})
    assert made.inputs == {"name": "venv", "md5sum": "0", "version_min": 3}
    assert made.local_env == {"CM_NAME": "venv", "A": "1"}
    assert made.version.minimum == "3"


def test_overrides_for_the_whole_tree_go_down_and_those_from_outside_win() -> None:
    made = request_of({"adr": {"p": {"version": "1", "tags": "a"}}}, recursive_overrides={"p": {"version": "2"}})
    assert made.recursive_overrides == {"p": {"version": "2", "tags": "a"}}


def test_flags_for_one_recipe_are_not_inherited_and_those_for_the_tree_are() -> None:
    view = parent()
    options = RunOptions(new=True, renew=True, skip_cache=True, force_cache=True, quiet=True, fake_deps=True)
    configured = view.configured._replace(request=view.configured.request._replace(options=options))
    made = dependency_request(dependency(force_cache="yes"), view._replace(configured=configured), "deps")
    assert made.options == RunOptions(quiet=True, fake_deps=True, force_cache=True)
    assert made.trace == ("get-x",)


@pytest.mark.parametrize(
    ("entry", "only_dynamic", "is_fake", "reason"),
    [
        ({"tags": ""}, False, False, "it has no tags"),
        ({}, True, False, "its parent comes from the cache"),
        ({"skip_if_fake_run": True}, False, True, "fake run"),
        ({"skip_if_env": {"K": ["k"]}}, False, False, "skip_if_env: K in [k]"),
    ],
)
def test_what_keeps_a_dependency_from_running_is_told(
    entry: dict[str, Any], only_dynamic: bool, is_fake: bool, reason: str
) -> None:
    verdict = should_run(dependency(**entry), {"K": "k"}, only_dynamic=only_dynamic, is_fake=is_fake)
    assert (verdict.answer, verdict.reason) == ("no", reason)


def test_a_dynamic_dependency_runs_even_when_its_parent_comes_from_the_cache() -> None:
    assert should_run(dependency(dynamic=True), {}, only_dynamic=True, is_fake=True).answer == "yes"
