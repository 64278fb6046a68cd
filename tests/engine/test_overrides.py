"""How blocks change the dependencies of others: appending lists, and ``ad``/``adr`` by name."""

from __future__ import annotations

from typing import Any

import pytest
from builders import dependency
from recipe_engine.overrides import (
    append_dependencies,
    apply_overrides,
    change_entry,
    change_merge,
    merge_overrides,
    unknown_handles,
)


def tags_after(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> list[str]:
    """The tags of both lists appended, in order."""
    merged = append_dependencies([dependency(**e) for e in first], [dependency(**e) for e in second])
    return [made.tags_text for made in merged]


@pytest.mark.parametrize(
    ("first", "second", "tags"),
    [
        # the same names take the place, whatever the tags and the order of the names
        ([{"tags": "a", "names": ["n"]}, {"tags": "b"}], [{"tags": "c", "names": ["n"]}], ["c", "b"]),
        ([{"tags": "a", "names": ["n", "m"]}], [{"tags": "c", "names": ["m", "n"]}], ["c"]),
        ([{"tags": "a", "names": ["n", "m"]}], [{"tags": "c", "names": ["n"]}], ["a", "c"]),
        ([{"tags": "a", "names": ["n"]}], [{"tags": "a", "names": ["m"]}], ["a", "a"]),
        # without names the same tags take the place, in any order
        ([{"tags": "a,b"}, {"tags": "c"}], [{"tags": "b,a"}], ["b,a", "c"]),
        ([{"tags": "a,b"}], [{"tags": "a"}], ["a,b", "a"]),
        ([{"tags": "a,_x"}], [{"tags": "a,_y"}], ["a,_x", "a,_y"]),
        ([], [{"tags": "a"}], ["a"]),
        ([{"tags": "a"}], [], ["a"]),
    ],
)
def test_an_entry_of_the_same_names_or_tags_takes_the_place_and_others_are_appended(
    first: list[dict[str, Any]], second: list[dict[str, Any]], tags: list[str]
) -> None:
    assert tags_after(first, second) == tags


def test_alternatives_of_one_name_in_one_list_never_replace_each_other() -> None:
    both = [
        {"tags": "a", "names": ["n"], "enable_if_env": {"A": ["1"]}},
        {"tags": "b", "names": ["n"], "skip_if_env": {"A": ["1"]}},
    ]
    assert tags_after([], both) == ["a", "b"]
    assert tags_after([{"tags": "old", "names": ["n"]}], both) == ["a", "b"]


def changed(entry: dict[str, Any], changes: dict[str, Any], env: dict[str, Any] | None = None) -> dict[str, Any]:
    """The entry with the changes."""
    return change_entry(entry, changes, env or {})


@pytest.mark.parametrize(
    ("entry", "changes", "result"),
    [
        ({"tags": "z,y"}, {"tags": "x,y,a"}, {"tags": "z,y,x,a"}),
        ({"tags": "z"}, {"tags": ["y", "x,z"]}, {"tags": "z,y,x"}),
        ({"tags": ["z", "y"]}, {"tags": "x"}, {"tags": "z,y,x"}),
        ({}, {"tags": "b,a"}, {"tags": "b,a"}),
        ({"tags": "z"}, {"tags": "_v.<<<NONE>>>,a"}, {"tags": "z,a"}),
        ({"tags": "z"}, {"tags": "_v.<<<A>>>"}, {"tags": "z,_v.1"}),
        ({"version": "1"}, {"version": "2"}, {"version": "2"}),
        ({}, {"version_max": "<<<A>>>"}, {"version_max": "1"}),
        ({"env": {"A": "1", "B": "1"}}, {"env": {"B": "2", "C": "3"}}, {"env": {"A": "1", "B": "2", "C": "3"}}),
        ({"names": ["n"]}, {"names": ["m", "n"]}, {"names": ["n", "m"]}),
        (
            {"adr": {"p": {"tags": "a"}}},
            {"adr": {"p": {"version": "1"}}},
            {"adr": {"p": {"tags": "a", "version": "1"}}},
        ),
    ],
)
def test_tags_are_added_in_order_mappings_merged_lists_extended_and_the_rest_replaced(
    entry: dict[str, Any], changes: dict[str, Any], result: dict[str, Any]
) -> None:
    assert changed(entry, changes, {"A": "1"}) == result


@pytest.mark.parametrize("kind", ["enable_if_env", "skip_if_env", "enable_if_any_env", "skip_if_any_env"])
def test_the_condition_of_a_change_is_not_taken_over(kind: str) -> None:
    assert changed({"tags": "a"}, {kind: {"A": ["1"]}, "version": "1"}) == {"tags": "a", "version": "1"}
    own = {"tags": "a", kind: {"B": ["1"]}}
    assert changed(own, {kind: {"A": ["1"]}}) == own


def test_changing_an_entry_leaves_it_as_it_was() -> None:
    entry = {"tags": "a", "env": {"A": "1"}, "names": ["n"]}
    changed(entry, {"tags": "b", "env": {"A": "2"}, "names": ["m"]})
    assert entry == {"tags": "a", "env": {"A": "1"}, "names": ["n"]}


def test_only_the_dependencies_that_have_the_handle_among_their_names_are_changed() -> None:
    dependencies = [
        dependency(tags="a", names=["tool", "t"]),
        dependency(tags="b", names=["python-tool"]),
        dependency(tags="c", names="python-tool"),
        dependency(tags="d"),
        dependency(tags="e", names=["tool"]),
    ]
    after = apply_overrides(dependencies, {"tool": {"tags": "_x"}}, {})
    assert [made.tags_text for made in after] == ["a,_x", "b", "c", "d", "e,_x"]


def test_two_handles_of_one_dependency_both_change_it() -> None:
    (after,) = apply_overrides([dependency(tags="a", names=["n", "m"])], {"n": {"tags": "x"}, "m": {"tags": "y"}}, {})
    assert after.tags_text == "a,x,y"


@pytest.mark.parametrize(("value", "tags"), [("1", "a,x"), ("0", "a")])
def test_a_change_with_a_condition_counts_only_while_it_holds(value: str, tags: str) -> None:
    overrides = {"n": {"tags": "x", "enable_if_env": {"A": ["1"]}}}
    (after,) = apply_overrides([dependency(tags="a", names=["n"])], overrides, {"A": value})
    assert after.tags_text == tags
    assert after.conditions == ()


def test_a_changed_entry_is_read_anew() -> None:
    (after,) = apply_overrides([dependency(tags="a", names=["n"])], {"n": {"dynamic": True, "names": ["m"]}}, {})
    assert after.is_dynamic
    assert after.names == ("n", "m")


def test_no_overrides_change_nothing() -> None:
    given = (dependency(tags="a", names=["n"]),)
    assert apply_overrides(given, {}, {}) == given
    assert apply_overrides(given, {"other": {"tags": "x"}}, {}) == given


def test_of_two_override_blocks_the_second_wins_and_tags_and_mappings_are_united() -> None:
    first = {"p": {"tags": "b,a", "version": "1", "env": {"A": "1", "B": "1"}}, "q": {"tags": "q"}}
    second = {"p": {"tags": "c,a", "version": "2", "env": {"B": "2"}}, "r": {"tags": "r"}}
    assert merge_overrides(first, second) == {
        "p": {"tags": "b,a,c", "version": "2", "env": {"A": "1", "B": "2"}},
        "q": {"tags": "q"},
        "r": {"tags": "r"},
    }
    assert first["p"] == {"tags": "b,a", "version": "1", "env": {"A": "1", "B": "1"}}
    assert second["p"] == {"tags": "c,a", "version": "2", "env": {"B": "2"}}


def test_tags_written_as_lists_are_united_too() -> None:
    assert change_merge({"tags": ["b", "a"]}, {"tags": ["a", "c"]}) == {"tags": "b,a,c"}


def test_a_handle_that_names_no_dependency_is_reported() -> None:
    lists = ([dependency(names=["a"])], [dependency(names="bcd")])
    assert unknown_handles({"a": {}, "x": {}, "bcd": {}, "b": {}}, *lists) == ["x", "b"]
