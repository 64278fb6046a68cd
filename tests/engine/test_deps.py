"""What a dependency is asked for and what it gets to see."""

from typing import Any

import pytest
from builders import dependency, parent, recipe, request
from recipe_engine.rules.configure import configure
from recipe_engine.rules.deps import dependency_request, dependency_tags, hidden_keys, should_run
from recipe_engine.rules.inputs import request_from_inputs
from recipe_engine.rules.model import RunOptions
from recipe_engine.rules.query import TagQuery, VersionRange


@pytest.mark.parametrize(
    ("entry", "only_dynamic", "is_fake", "reason"),
    [
        ({}, False, False, None),
        ({"tags": ""}, False, False, "it has no tags"),
        ({"tags": None}, False, False, "it has no tags"),
        ({}, True, False, "its parent comes from the cache"),
        ({"dynamic": True}, True, False, None),
        ({"dynamic": "no"}, True, False, "its parent comes from the cache"),
        ({"skip_if_fake_run": True}, False, True, "fake run"),
        ({"skip_if_fake_run": True}, False, False, None),
        ({"skip_if_fake_run": "no"}, False, True, None),
        ({"enable_if_env": {"A": ["yes"]}}, False, False, None),
        ({"enable_if_env": {"B": ["yes"]}}, False, False, "enable_if_env: B in [yes]"),
        ({"dynamic": True, "skip_if_env": {"A": ["on"]}}, True, False, "skip_if_env: A in [on]"),
    ],
)
def test_a_dependency_runs_unless_something_named_keeps_it_from_it(
    entry: dict[str, Any], only_dynamic: bool, is_fake: bool, reason: str | None
) -> None:
    verdict = should_run(dependency(**entry), {"A": "1"}, only_dynamic=only_dynamic, is_fake=is_fake)
    assert (verdict.answer, verdict.reason) == (("no", reason) if reason else ("yes", ""))


# --- the words of the query ---

ENV = {"BACKEND": "onnx", "LIST": ["a", "b"], "MANY": "get,_v", "EMPTY": "", "BLANK": "  ", "N": 8, "NONE": None}


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({}, ["get", "y"]),
        ({"tags": "get,<<<BACKEND>>>"}, ["get", "onnx"]),
        ({"tags": "get,<<<ABSENT>>>"}, ["get", "<<<ABSENT>>>"]),
        ({"update_tags_from_env": ["BACKEND"]}, ["get", "y", "onnx"]),
        ({"update_tags_from_env": "BACKEND"}, ["get", "y", "onnx"]),
        ({"update_tags_from_env": ["LIST", "N"]}, ["get", "y", "a", "b", "8"]),
        ({"update_tags_from_env": ["MANY"]}, ["get", "y", "_v"]),
        ({"update_tags_from_env": ["ABSENT", "EMPTY", "BLANK", "NONE"]}, ["get", "y"]),
        ({"update_tags_from_env_with_prefix": {"_": ["BACKEND"]}}, ["get", "y", "_onnx"]),
        ({"update_tags_from_env_with_prefix": {"_": "BACKEND"}}, ["get", "y", "_onnx"]),
        ({"update_tags_from_env_with_prefix": {"_b.": ["BACKEND", "N"]}}, ["get", "y", "_b.onnx", "_b.8"]),
        ({"update_tags_from_env_with_prefix": {"_": ["LIST"]}}, ["get", "y", "_a", "_b"]),
        ({"update_tags_from_env_with_prefix": {"_": ["ABSENT", "EMPTY", "BLANK", "NONE"], "-": None}}, ["get", "y"]),
        ({"update_tags_from_env_with_prefix": {"_": ["BACKEND"]}, "env": {"BACKEND": "own"}}, ["get", "y", "_own"]),
        ({"update_tags_from_env_with_prefix": {"_": ["BACKEND"]}, "env": {"BACKEND": ""}}, ["get", "y", "_onnx"]),
        (
            {"update_tags_from_env_with_prefix": {"_": ["BACKEND"]}, "env": {"BACKEND": "<<<N>>>"}},
            ["get", "y", "_8"],
        ),
        ({"update_tags_from_env": ["BACKEND"], "tags": "onnx,get"}, ["onnx", "get"]),
    ],
)
def test_values_of_the_env_add_words_to_the_query(entry: dict[str, Any], words: list[str]) -> None:
    assert list(dependency_tags(dependency(**entry), parent(env=ENV))) == words


VARIED: dict[str, Any] = {
    "variations": {
        "a": {"base": ["b"]},
        "b": {},
        "n.#": {"group": "size"},
        "g1": {"group": "g", "default": True},
    }
}


@pytest.mark.parametrize(
    ("entry", "tags", "inherited"),
    [
        ({"inherit_variation_tags": True}, "_a,_n.8", ["_a", "_n.8", "_b", "_g1"]),
        ({"inherit_variation_tags": "yes"}, "", ["_g1"]),
        ({"inherit_variation_tags": False}, "_a", []),
        ({}, "_a", []),
        ({"inherit_variation_tags": True, "skip_inherit_variation_groups": ["g"]}, "_a", ["_a", "_b"]),
        ({"inherit_variation_tags": True, "skip_inherit_variation_groups": ["size", "g"]}, "_n.8", []),
        ({"inherit_variation_tags": True, "skip_inherit_variation_groups": "g"}, "", []),
        ({"skip_inherit_variation_groups": ["g"]}, "_a", []),
        ({"inherit_variation_tags": True, "tags": "get,y,-_b"}, "_a", ["-_b", "_a", "_g1"]),
        ({"inherit_variation_tags": True, "tags": "get,y,_-b"}, "_a", ["_-b", "_a", "_g1"]),
        ({"inherit_variation_tags": True, "tags": "get,y,_a"}, "_a", ["_a", "_b", "_g1"]),
    ],
)
def test_a_dependency_inherits_all_variations_that_are_on_but_skipped_groups_and_excluded_ones(
    entry: dict[str, Any], tags: str, inherited: list[str]
) -> None:
    words = dependency_tags(dependency(**entry), parent(VARIED, f"get,x,{tags}"))
    assert list(words) == ["get", "y", *inherited]


def test_the_words_become_the_query_of_the_request() -> None:
    asked = dependency_request(dependency(tags="get,y,-tmp,_v,-_w"), parent(), "deps")
    assert asked.query == TagQuery(all_of=("get", "y"), none_of=("tmp",), variations=("v",), excluded_variations=("w",))


# --- what it sees ---

FULL = {
    "CM_VERSION": "1",
    "CM_VERSION_MIN": "2",
    "CM_TMP_X": "3",
    "CM_GIT_URL": "4",
    "CM_INPUT": "5",
    "OWN_LOCAL": "6",
    "OWN_OTHER": "7",
    "LATE": "8",
    "OPEN": "<<<NONE>>>",
    "A": "9",
}
LOCAL = {"local_env_keys": ["OWN_LOCAL", "OWN_O*"], "clean_env_keys_post_deps": ["LATE"]}


@pytest.mark.parametrize(
    ("entry", "phase", "keys"),
    [
        ({}, "deps", {"A", "LATE"}),
        ({}, "prehook_deps", {"A", "LATE"}),
        ({}, "posthook_deps", {"A", "LATE"}),
        ({}, "post_deps", {"A"}),
        ({"force_env_keys": ["CM_TMP_*", "OWN_LOCAL"]}, "deps", {"A", "LATE", "CM_TMP_X", "OWN_LOCAL"}),
        ({"force_env_keys": "CM_GIT_*"}, "post_deps", {"A", "CM_GIT_URL"}),
        ({"reuse_version": True}, "deps", {"A", "LATE", "CM_VERSION", "CM_VERSION_MIN"}),
        ({"reuse_version": "no"}, "deps", {"A", "LATE"}),
        (
            {"reuse_version": True, "force_env_keys": ["CM_INPUT"]},
            "post_deps",
            {"A", "CM_VERSION", "CM_VERSION_MIN"} | {"CM_INPUT"},
        ),
    ],
)
def test_local_keys_are_hidden_in_all_four_phases_unless_the_entry_forces_them(
    entry: dict[str, Any], phase: Any, keys: set[str]
) -> None:
    asked = dependency_request(dependency(**entry), parent(LOCAL, env=FULL), phase)
    assert asked.env == {key: FULL[key] for key in keys}


def test_the_keys_that_a_recipe_declares_local_join_those_of_the_engine() -> None:
    hidden = hidden_keys(parent(LOCAL).configured, "deps")
    assert {"OWN_LOCAL", "OWN_O*", "CM_TMP_*"} <= set(hidden)
    assert "LATE" not in hidden
    assert "LATE" in hidden_keys(parent(LOCAL).configured, "post_deps")


@pytest.mark.parametrize("env", [{}, {"CM_QUIET": "yes"}], ids=["empty parent env", "env"])
def test_the_env_of_the_entry_reaches_the_child_alone_also_when_the_parents_is_empty(env: dict[str, Any]) -> None:
    asked = dependency_request(dependency(env={"L": "own", "P": "<<<CM_QUIET>>>"}), parent(env=env), "deps")
    assert asked.env == env
    assert asked.local_env == {"L": "own", "P": env.get("CM_QUIET", "<<<CM_QUIET>>>")}
    assert configure(recipe(), asked).env["L"] == "own"


@pytest.mark.parametrize(("mode", "given"), [("fast", {"L": "fast", "K": "own"}), ("slow", {"L": "own", "K": "own"})])
def test_a_conditional_block_of_the_entry_holds_where_its_condition_does(mode: str, given: dict[str, str]) -> None:
    block = {"enable_if_env": {"MODE": ["fast"]}, "env": {"L": "fast"}}
    entry = dependency(env={"L": "own", "K": "own"}, update_meta_if_env=[block])
    assert dependency_request(entry, parent(env={"MODE": mode}), "deps").local_env == given


def test_the_env_of_the_entry_may_give_a_key_that_is_hidden_otherwise() -> None:
    asked = dependency_request(dependency(env={"CM_TMP_X": "own"}), parent(env={"CM_TMP_X": "parent's"}), "deps")
    assert configure(recipe(), asked).env["CM_TMP_X"] == "own"


@pytest.mark.parametrize("const", [{}, {"P": "parent"}], ids=["no parent const", "parent const"])
def test_the_constants_of_parent_and_entry_hold_in_the_child(const: dict[str, Any]) -> None:
    view = parent(env={"A": "one"}, const=const)
    asked = dependency_request(dependency(const={"C": "<<<A>>>"}), view, "deps")
    made = configure(recipe(env={"C": "recipe", "P": "recipe"}), asked)
    assert made.const == {**const, "C": "one"}
    assert made.env["C"] == "one"
    assert made.env["P"] == const.get("P", "recipe")


def test_a_mapped_input_of_the_parent_beats_the_env_of_an_entry() -> None:
    view = parent(const={"XX": "user"}, env={"XX": "user"})
    asked = dependency_request(dependency(env={"XX": "entry"}), view, "deps")
    assert configure(recipe(), asked).env["XX"] == "user"


def test_the_state_of_parent_and_entry_are_merged_for_the_child() -> None:
    view = parent(state={"s": {"a": 1}}, const_state={"k": 1})
    asked = dependency_request(dependency(state={"s": {"b": 2}}, const_state={"c": 2}), view, "deps")
    assert asked.state == {"s": {"a": 1, "b": 2}}
    assert asked.const_state == {"k": 1, "c": 2}
    assert view.state == {"s": {"a": 1}}


def test_other_keys_of_the_entry_are_inputs_of_the_child() -> None:
    entry = {"names": ["y"], "md5sum": "1", "verify": False, "name": "venv", "version_min": 3.8, "env": {"E": "1"}}
    asked = dependency_request(dependency(**entry), parent(), "deps")
    assert asked.inputs == {"md5sum": "1", "verify": False, "name": "venv", "version_min": 3.8}
    made = configure(recipe(input_mapping={"md5sum": "CM_MD5", "verify": "CM_VERIFY"}), asked)
    assert (made.env["CM_MD5"], made.env["CM_VERIFY"]) == ("1", "False")
    assert (made.env["CM_NAME"], made.env["CM_VERSION_MIN"]) == ("venv", "3.8")


@pytest.mark.parametrize(
    ("entry", "lifetime"),
    [({}, None), ({"inherit_cache_expiration": True}, "2h"),
     ({"inherit_cache_expiration": True, "cache_expiration": "1h"}, "1h")],
)  # fmt: skip
def test_an_entry_may_inherit_how_long_its_parent_is_kept(entry: dict[str, Any], lifetime: str | None) -> None:
    view = parent({"cache_expiration": "2h"})
    assert dependency_request(dependency(**entry), view, "deps").inputs.get("cache_expiration") == lifetime


def test_a_name_holds_for_one_recipe_and_not_for_those_below_it() -> None:
    asked = dependency_request(dependency(name="venv"), parent(env={"CM_NAME": "other"}), "deps")
    assert asked.env == {}
    assert asked.local_env == {"CM_NAME": "venv"}


def test_changes_meant_for_the_whole_tree_go_down_and_the_parents_win_over_the_entrys() -> None:
    view = parent(recursive_overrides={"python": {"version": "3.8", "tags": "a"}})
    entry = dependency(adr={"python": {"version": "3.9", "name": "n", "tags": "b"}}, ad={"y": {"version": "1"}})
    asked = dependency_request(entry, view, "deps")
    assert asked.recursive_overrides == {"python": {"version": "3.8", "name": "n", "tags": "b,a"}}
    assert asked.overrides == {"y": {"version": "1"}}


def test_the_flags_of_the_whole_tree_go_down_and_those_of_one_recipe_do_not() -> None:
    view = parent()
    everything = RunOptions(*[True for _ in RunOptions._fields])._replace(lock_timeout_s=2.5)
    view.configured = view.configured._replace(request=view.configured.request._replace(options=everything))
    options = dependency_request(dependency(), view, "deps").options
    handed_down = {name for name in RunOptions._fields if getattr(options, name)}
    assert handed_down == {
        "quiet",
        "silent",
        "steps_hidden",
        "verbose",
        "fake_deps",
        "lock_timeout_s",
        "mixed_versions",
    }


def test_a_dependency_knows_the_chain_that_led_to_it() -> None:
    assert dependency_request(dependency(), parent(trace=("run-x", "get-x")), "deps").trace == ("run-x", "get-x")


def test_unexpanded_parts_of_an_entrys_env_are_filled_in_by_the_child() -> None:
    asked = dependency_request(dependency(env={"A": "<<<CHILD>>>"}), parent(), "deps")
    assert configure(recipe(env={"CHILD": "c"}), asked).env["A"] == "c"


# --- inputs that every recipe understands ---


@pytest.mark.parametrize(
    ("inputs", "env"),
    [
        ({"name": "venv"}, {"CM_NAME": "venv"}),
        ({"input": "/f"}, {"CM_INPUT": "/f"}),
        (
            {"output": "/o", "outdirname": "d", "outbasename": "b"},
            {"CM_OUTPUT": "/o", "CM_OUTDIRNAME": "d", "CM_OUTBASENAME": "b"},
        ),
        ({"skip_run": True}, {"CM_SKIP_RUN": "True"}),
        ({"extra_cache_tags": "a,b"}, {"CM_EXTRA_CACHE_TAGS": "a,b"}),
        ({"extra_cache_tags": ["a", "b"]}, {"CM_EXTRA_CACHE_TAGS": "a,b"}),
        ({"path": "/a"}, {"CM_TMP_PATH": "/a"}),
        ({"path": ["/a", "/b"]}, {"CM_TMP_PATH": "/a:/b"}),
        ({"name": None}, {}),
        ({"other": "1"}, {}),
    ],
)
def test_a_flag_of_every_recipe_becomes_an_env_value_of_this_recipe(
    inputs: dict[str, Any], env: dict[str, str]
) -> None:
    assert request_from_inputs(inputs, options=RunOptions()).local_env == env


def test_bounds_extra_tags_and_whitelists_are_read_from_inputs() -> None:
    asked = request(
        inputs={
            "version": "1",
            "version_min": 1.5,
            "version_max": "3",
            "version_max_usable": "2",
            "extra_cache_tags": "a, b,-c",
            "force_new_env_keys": ["A", "B*"],
            "force_new_state_keys": "s_one",
        }
    )
    assert asked.version == VersionRange(exact="1", minimum="1.5", maximum="3", maximum_usable="2")
    assert asked.extra_cache_tags == ("a", "b", "-c")
    assert asked.new_env_keys == ("A", "B*")
    assert asked.new_state_keys == ("s_one",)


def test_inputs_that_are_not_given_leave_everything_open() -> None:
    asked = request(inputs={})
    assert (asked.version, asked.extra_cache_tags, asked.new_env_keys) == (VersionRange(), (), None)


def test_a_bound_that_is_no_version_counts_as_not_given() -> None:
    assert request(inputs={"version": True, "version_min": None, "version_max": False}).version == VersionRange()


@pytest.mark.parametrize("flag", ["force_cache", "skip_cache", "new", "renew"])
def test_what_the_caller_asks_of_the_cache_holds_whatever_the_inputs_say(flag: str) -> None:
    asked = RunOptions(**{flag: True})
    assert request_from_inputs({}, options=asked).options == asked


@pytest.mark.parametrize("flag", ["force_cache", "skip_cache", "new", "renew"])
@pytest.mark.parametrize(("value", "is_on"), [(True, True), ("yes", True), ("no", False), (False, False)])
def test_an_entry_may_switch_the_cache_for_its_recipe(flag: str, value: object, is_on: bool) -> None:
    options = request_from_inputs({flag: value}, options=RunOptions()).options
    assert getattr(options, flag) is is_on
    assert options == RunOptions(**{flag: is_on})


def test_long_and_short_forms_of_overrides_are_one() -> None:
    asked = request(inputs={"adr": {"a": {"version": "1"}}, "add_deps_recursive": {"a": {"tags": "t"}, "b": {}}})
    assert asked.recursive_overrides == {"a": {"version": "1", "tags": "t"}, "b": {}}
