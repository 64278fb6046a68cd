"""The env that flows between recipes: merging, placeholders, hiding, and what leaves a recipe."""

import copy
from typing import Any

import pytest
from recipe_engine.rules.env import (
    DEPENDENT_PATH_KEYS,
    LOCAL_KEYS,
    append_unique,
    env_for_dependency,
    expand_env,
    expand_text,
    expand_value,
    fill_env,
    has_placeholder,
    merge_env,
    merge_state,
    new_items,
    select_keys,
    with_lists,
)
from recipe_engine.rules.errors import RequestError

HIDDEN = (*LOCAL_KEYS, *DEPENDENT_PATH_KEYS)


@pytest.mark.parametrize(
    ("env", "new", "merged"),
    [
        ({"A": "1", "B": "2"}, {"B": "3", "C": "4"}, {"A": "1", "B": "3", "C": "4"}),
        ({"+PATH": ["/a"]}, {"+PATH": ["/b"]}, {"+PATH": ["/a", "/b"]}),
        ({"+PATH": ["/a", "/b"]}, {"+PATH": ["/b", "/c", "/a"]}, {"+PATH": ["/a", "/b", "/c"]}),
        ({}, {"+PATH": ["/b"]}, {"+PATH": ["/b"]}),
        ({"+PATH": ["/a"]}, {}, {"+PATH": ["/a"]}),
        ({"A": "text"}, {"A": ["list"]}, {"A": ["list"]}),
        ({"A": ["list"]}, {"A": "text"}, {"A": "text"}),
        ({"A": "1"}, {"A": ""}, {"A": ""}),
    ],
)
def test_texts_are_overwritten_and_lists_grow_behind_the_earlier_producer(
    env: dict[str, Any], new: dict[str, Any], merged: dict[str, Any]
) -> None:
    assert merge_env(env, new) == merged


def test_append_unique_keeps_the_first_place_of_each_item() -> None:
    assert append_unique(["b", "a"], ["c", "a", "c"]) == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("state", "new", "merged"),
    [
        ({"a": {"x": 1, "y": 2}}, {"a": {"y": 3}}, {"a": {"x": 1, "y": 3}}),
        ({"a": [1, 2]}, {"a": [2, 3]}, {"a": [1, 2, 3]}),
        ({"a": {"b": {"k": [1, 2]}}}, {"a": {"b": {"k": [1, 2]}}}, {"a": {"b": {"k": [1, 2]}}}),
        ({"a": {"x": 1}}, {"a": 5}, {"a": 5}),
        ({"a": [1]}, {"a": {"x": 1}}, {"a": {"x": 1}}),
        ({"a": 5}, {"a": [1]}, {"a": [1]}),
        ({"a": [1]}, {"a": 5}, {"a": 5}),
        ({"a": 5}, {"a": {"x": 1}}, {"a": {"x": 1}}),
        ({}, {"a": None}, {"a": None}),
    ],
)
def test_state_is_merged_through_all_levels_without_repeated_items(
    state: dict[str, Any], new: dict[str, Any], merged: dict[str, Any]
) -> None:
    assert merge_state(state, new) == merged


def test_a_default_only_fills_a_gap_and_an_empty_value_is_none() -> None:
    assert fill_env({"A": "1", "EMPTY": ""}, {"A": "d", "EMPTY": "d", "B": "d"}) == {"A": "1", "EMPTY": "", "B": "d"}


def test_no_function_changes_what_it_is_given() -> None:
    env: dict[str, Any] = {"A": "<<<B>>>", "B": "b", "+P": ["<<<B>>>"], "CM_TMP_X": "1", "GH_TOKEN": "t"}
    state = {"a": {"k": [1]}}
    before = copy.deepcopy((env, state))
    merge_env(env, {"+P": ["x"], "B": "c"})
    fill_env(env, {"C": "c"})
    expand_env(env)
    env_for_dependency(env, HIDDEN, ())["+P"] = []
    new_items(env, {"+P": []})
    merge_state(state, {"a": {"k": [2]}})["a"]["k"].append(3)
    assert (env, state) == before


def test_a_merged_state_shares_nothing_with_what_was_merged_in() -> None:
    new = {"a": {"k": [1]}}
    merge_state({}, new)["a"]["k"].append(2)
    assert new == {"a": {"k": [1]}}


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("<<<A>>>", "one"),
        ("x<<<A>>>y<<<B>>>z", "xoneytwoz"),
        ("<<<A>>><<<A>>>", "oneone"),
        ("<<<NONE>>>", "<<<NONE>>>"),
        ("<<<A>>>/<<<NONE>>>", "one/<<<NONE>>>"),
        ("<<<N>>>", "5"),
        ("<<A>>", "<<A>>"),
        ("", ""),
    ],
)
def test_a_placeholder_gives_the_value_and_an_unknown_one_stays(text: str, expanded: str) -> None:
    assert expand_text(text, {"A": "one", "B": "two", "N": 5}) == expanded


def test_the_first_source_that_has_the_key_gives_its_value() -> None:
    assert expand_text("<<<A>>><<<B>>>", {"A": "1"}, {"A": "2", "B": "3"}) == "13"


@pytest.mark.parametrize("value", [True, 7, None, 1.5])
def test_a_value_that_is_no_text_is_left_as_it_is(value: object) -> None:
    assert expand_text(value, {}) is value


def test_placeholders_are_replaced_through_lists_and_mappings() -> None:
    value = {"list": ["<<<A>>>", {"deep": "<<<A>>>"}], "<<<A>>>": 1}
    assert expand_value(value, {"A": "one"}) == {"list": ["one", {"deep": "one"}], "<<<A>>>": 1}


@pytest.mark.parametrize(
    ("env", "expanded"),
    [
        ({"A": "<<<B>>>", "B": "b"}, {"A": "b", "B": "b"}),
        ({"A": "<<<B>>>", "B": "<<<C>>>", "C": "c"}, {"A": "c", "B": "c", "C": "c"}),
        ({"C": "c", "B": "<<<C>>>", "A": "<<<B>>>"}, {"A": "c", "B": "c", "C": "c"}),
        ({"+P": ["<<<A>>>/bin", "/x"], "A": "/a"}, {"+P": ["/a/bin", "/x"], "A": "/a"}),
        ({"A": "<<<A>>>"}, {"A": "<<<A>>>"}),
        ({"A": "x<<<NONE>>>"}, {"A": "x<<<NONE>>>"}),
    ],
)
def test_an_env_is_expanded_with_its_own_values_through_chains(env: dict[str, Any], expanded: dict[str, Any]) -> None:
    assert expand_env(env) == expanded


def test_a_long_chain_resolves_to_its_end() -> None:
    env = {f"K{number}": f"<<<K{number + 1}>>>" for number in range(40)}
    assert set(expand_env({**env, "K40": "end"}).values()) == {"end"}


def test_values_that_name_each_other_end_with_a_placeholder_left() -> None:
    assert all(has_placeholder(value) for value in expand_env({"A": "x<<<B>>>", "B": "y<<<A>>>"}).values())


def test_an_expanded_env_has_lists_of_its_own() -> None:
    env = {"+PATH": ["/a"]}
    expand_env(env)["+PATH"].append("/b")
    assert env == {"+PATH": ["/a"]}


@pytest.mark.parametrize(
    ("value", "is_open"),
    [("<<<A>>>", True), (["x", "a<<<A>>>"], True), ("<<<A", False), (["x"], False), (5, False), (None, False)],
)
def test_an_open_placeholder_is_seen_in_texts_and_lists(value: object, is_open: bool) -> None:
    assert has_placeholder(value) is is_open


ENGINE_KEYS = [
    "CM_VERSION",
    "CM_VERSION_MIN",
    "CM_VERSION_MAX",
    "CM_VERSION_MAX_USABLE",
    "CM_DETECTED_VERSION",
    "CM_INPUT",
    "CM_OUTPUT",
    "CM_OUTBASENAME",
    "CM_OUTDIRNAME",
    "CM_NAME",
    "CM_EXTRA_CACHE_TAGS",
    "CM_TMP_ANYTHING",
    "CM_GIT_URL",
    "CM_RENEW_CACHE_ENTRY",
]


@pytest.mark.parametrize("key", ENGINE_KEYS)
def test_the_engines_local_keys_are_hidden_from_dependencies(key: str) -> None:
    assert env_for_dependency({key: "1", "CM_OTHER": "2"}, HIDDEN, ()) == {"CM_OTHER": "2"}


@pytest.mark.parametrize("key", ["CM_VERSIONS", "CM_NAME_OF_X", "MY_CM_TMP_X", "CM_INPUTS", "CM_QUIET"])
def test_a_key_that_only_looks_like_a_local_one_is_handed_down(key: str) -> None:
    assert env_for_dependency({key: "1"}, HIDDEN, ()) == {key: "1"}


@pytest.mark.parametrize(
    ("shown", "visible"),
    [
        ((), {"A"}),
        (("CM_TMP_*",), {"A", "CM_TMP_X", "CM_TMP_Y"}),
        (("CM_TMP_?",), {"A", "CM_TMP_X", "CM_TMP_Y"}),
        (("CM_TMP_X",), {"A", "CM_TMP_X"}),
        (("OPEN",), {"A", "OPEN"}),
    ],
)
def test_shown_keys_and_globs_win_over_hidden_ones(shown: tuple[str, ...], visible: set[str]) -> None:
    env = {"A": "1", "CM_TMP_X": "1", "CM_TMP_Y": "1", "OPEN": "<<<NONE>>>", "+OPEN": ["<<<NONE>>>"]}
    assert set(env_for_dependency(env, HIDDEN, shown)) == visible


def test_a_dependency_gets_lists_of_its_own() -> None:
    env = {"+PATH": ["/a"]}
    env_for_dependency(env, (), ())["+PATH"].append("/b")
    assert env == {"+PATH": ["/a"]}


@pytest.mark.parametrize(
    ("patterns", "keys"),
    [
        ((), set()),
        (("A_ONE",), {"A_ONE"}),
        (("A_*",), {"A_ONE", "A_TWO"}),
        (("A_T?O",), {"A_TWO"}),
        (("+PATH",), {"+PATH"}),
        (("<<<NAME>>>",), {"B"}),
        (("<<<NO_SUCH_KEY>>>",), set()),
        (("A",), set()),
        (("CM_TMP_*", "B"), {"CM_TMP_X", "B"}),
    ],
)
def test_what_leaves_is_chosen_by_name_by_glob_or_by_the_name_that_a_key_holds(
    patterns: tuple[str, ...], keys: set[str]
) -> None:
    env = {"A_ONE": "1", "A_TWO": "2", "B": "3", "NAME": "B", "+PATH": ["/a"], "CM_TMP_X": "4"}
    assert select_keys(env, patterns) == {key: env[key] for key in keys}


@pytest.mark.parametrize(
    ("env", "before", "new"),
    [
        ({"A": "1"}, {"A": "1"}, {"A": "1"}),
        ({"+P": ["/a", "/b"]}, {"+P": ["/a"]}, {"+P": ["/b"]}),
        ({"+P": ["/b", "/a"]}, {"+P": ["/a"]}, {"+P": ["/b"]}),
        ({"+P": ["/a"]}, {"+P": ["/a"]}, {}),
        ({"+P": ["/a"]}, {}, {"+P": ["/a"]}),
        ({"+P": ["/a"]}, {"+P": "text"}, {"+P": ["/a"]}),
        ({"P": "text"}, {"P": ["t"]}, {"P": "text"}),
    ],
)
def test_of_a_list_only_the_items_that_were_not_there_before_leave(
    env: dict[str, Any], before: dict[str, Any], new: dict[str, Any]
) -> None:
    assert new_items(env, before) == new


@pytest.mark.parametrize(
    ("value", "items"),
    [("/a", ["/a"]), ("/a:/b", ["/a:/b"]), (5, [5]), (None, []), ("", []), (("/a",), ["/a"]), (["/a"], ["/a"])],
)
def test_a_plus_key_with_one_text_is_a_list_of_one(value: object, items: list[object]) -> None:
    assert with_lists({"A": "text", "+PATH": value}) == {"A": "text", "+PATH": items}


def test_a_plus_key_that_holds_a_mapping_is_refused_with_the_way_to_write_a_list() -> None:
    with pytest.raises(RequestError) as caught:
        with_lists({"A": "text", "+PATH": {"a": 1}})
    assert "'+PATH' must contain a list" in caught.value.message
    assert "{'a': 1}" in caught.value.message
    assert caught.value.hint == "write --env.+PATH,=VALUE1,VALUE2 to give a list"


def test_keys_without_a_plus_in_front_hold_anything() -> None:
    env = {"+PATH": [], "A": "text", "B": ["list"], "C+": "text"}
    assert with_lists(env) == env
