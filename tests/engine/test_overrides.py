"""How one block changes the dependencies of another."""

import copy
from typing import Any

import pytest
from builders import dependency
from recipe_engine.rules.model import Dependency
from recipe_engine.rules.schema import (
    append_dependencies,
    apply_overrides,
    change_entry,
    change_merge,
    merge_overrides,
    unknown_handles,
)


def entries(dependencies: tuple[Dependency, ...]) -> list[Any]:
    """The entries as written."""
    return [dict(made.entry) for made in dependencies]


FIRST = [
    {"tags": "get,a", "names": ["a", "tool"]},
    {"tags": "get,b"},
    {"tags": "get,c", "names": ["c"]},
]


@pytest.mark.parametrize(
    ("new", "position"),
    [
        ({"tags": "get,z", "names": ["tool", "a"]}, 0),
        ({"tags": "get,z", "names": ["a"]}, None),
        ({"tags": "get,z", "names": ["a", "tool", "more"]}, None),
        ({"tags": "b,get", "version": "2"}, 1),
        ({"tags": "get,b", "names": ["b"]}, None),
        ({"tags": "c,get", "version": "2"}, 2),
        ({"tags": "get,b,more"}, None),
    ],
)
def test_an_entry_takes_the_place_of_one_with_the_same_names_or_without_names_the_same_tags(
    new: dict[str, Any], position: int | None
) -> None:
    merged = entries(append_dependencies([dependency(**entry) for entry in FIRST], [dependency(**new)]))
    expected = [*FIRST, new] if position is None else [*FIRST[:position], new, *FIRST[position + 1 :]]
    assert merged == expected


def test_entries_of_one_list_are_alternatives_and_never_replace_each_other() -> None:
    ubuntu = {"tags": "get,a", "names": ["a"], "enable_if_env": {"OS": ["ubuntu"]}}
    macos = {"tags": "get,a", "names": ["a"], "enable_if_env": {"OS": ["macos"]}}
    assert entries(append_dependencies([], [dependency(**ubuntu), dependency(**macos)])) == [ubuntu, macos]


def test_alternatives_take_the_places_of_earlier_alternatives_one_by_one() -> None:
    first = [{"tags": "get,a", "version": "1"}, {"tags": "get,a", "version": "2"}, {"tags": "get,b"}]
    second = [{"tags": "a,get", "version": "3"}, {"tags": "a,get", "version": "4"}, {"tags": "a,get", "version": "5"}]
    merged = entries(append_dependencies([dependency(**e) for e in first], [dependency(**e) for e in second]))
    assert merged == [second[0], second[1], first[2], second[2]]


@pytest.mark.parametrize(
    ("entry", "changes", "changed"),
    [
        ({"tags": "get,y"}, {"tags": "_v,get,z"}, {"tags": "get,y,_v,z"}),
        ({}, {"tags": "_v"}, {"tags": "_v"}),
        ({"tags": "get,y"}, {"tags": "_v.<<<A>>>"}, {"tags": "get,y,_v.one"}),
        ({"tags": "get,y"}, {"tags": "_v.<<<NONE>>>,_w"}, {"tags": "get,y,_w"}),
        ({"version": "1"}, {"version": "2"}, {"version": "2"}),
        ({}, {"version_max": "<<<A>>>"}, {"version_max": "one"}),
        (
            {"env": {"P": "1", "Q": {"r": 1}}},
            {"env": {"Q": {"s": 2}, "T": "<<<A>>>"}},
            {"env": {"P": "1", "Q": {"r": 1, "s": 2}, "T": "one"}},
        ),
        ({"force_env_keys": ["A"]}, {"force_env_keys": ["B", "A"]}, {"force_env_keys": ["A", "B"]}),
        ({"extra_cache_tags": "a"}, {"extra_cache_tags": "b"}, {"extra_cache_tags": "b"}),
        ({"version": "1"}, {"enable_if_env": {"A": ["1"]}, "skip_if_any_env": {}}, {"version": "1"}),
        ({}, {"name": "venv"}, {"name": "venv"}),
        ({"names": ["a"]}, {"names": ["b"]}, {"names": ["a", "b"]}),
        ({"tags": None}, {"tags": "_v"}, {"tags": "_v"}),
        ({"x": {"a": 1}}, {"x": "text"}, {"x": "text"}),
        ({"x": "text"}, {"x": {"a": 1}}, {"x": {"a": 1}}),
        ({"x": ["a"]}, {"x": "text"}, {"x": "text"}),
        ({"x": "text"}, {"x": ["a"]}, {"x": ["a"]}),
    ],
)
def test_tags_are_added_mappings_merged_lists_extended_the_rest_replaced_and_conditions_left(
    entry: dict[str, Any], changes: dict[str, Any], changed: dict[str, Any]
) -> None:
    before = copy.deepcopy((entry, changes))
    assert change_entry(entry, changes, {"A": "one"}) == changed
    assert (entry, changes) == before


def test_added_tags_keep_the_order_in_which_they_are_written() -> None:
    words = ",".join(f"_v{number}" for number in range(30))
    assert change_entry({"tags": "get,y"}, {"tags": words}, {})["tags"] == f"get,y,{words}"


@pytest.mark.parametrize(
    ("handle", "changed"),
    [
        ("python", ["1", None]),
        ("python3", ["1", None]),
        ("tool", [None, "1"]),
        ("py", [None, None]),
        ("", [None, None]),
    ],
)
def test_a_handle_changes_the_entries_that_have_it_as_a_whole_name(handle: str, changed: list[str | None]) -> None:
    dependencies = [dependency(names=["python", "python3"]), dependency(names="tool")]
    made = apply_overrides(dependencies, {handle: {"version": "1"}}, {})
    assert [entry.entry.get("version") for entry in made] == changed


def test_a_name_written_as_a_text_is_no_list_of_letters() -> None:
    (made,) = apply_overrides([dependency(names="python-tool")], {"tool": {"version": "1"}}, {})
    assert "version" not in made.entry


def test_several_handles_of_one_entry_all_apply_in_the_order_written() -> None:
    changes = {"a": {"tags": "_one", "version": "1"}, "b": {"tags": "_two", "version": "2"}}
    (made,) = apply_overrides([dependency(names=["b", "a"])], changes, {})
    assert made.tags_text == "get,y,_one,_two"
    assert made.entry["version"] == "2"


@pytest.mark.parametrize(
    ("condition", "is_changed"),
    [
        ({"enable_if_env": {"A": ["one"]}}, True),
        ({"enable_if_env": {"A": ["two"]}}, False),
        ({"skip_if_env": {"A": ["one"]}}, False),
        ({"skip_if_any_env": {"A": ["two"]}}, True),
    ],
)
def test_a_change_with_a_condition_of_its_own_applies_only_while_that_holds(
    condition: dict[str, Any], is_changed: bool
) -> None:
    (made,) = apply_overrides([dependency(names="a")], {"a": {"version": "1", **condition}}, {"A": "one"})
    assert ("version" in made.entry) is is_changed
    assert made.conditions == ()


def test_the_condition_of_a_dependency_survives_its_override() -> None:
    (made,) = apply_overrides(
        [dependency(names="a", enable_if_env={"A": ["1"]})], {"a": {"enable_if_env": {}, "version": "1"}}, {}
    )
    assert made.entry["enable_if_env"] == {"A": ["1"]}
    assert made.conditions == dependency(enable_if_env={"A": ["1"]}).conditions


@pytest.mark.parametrize(
    ("first", "second", "merged"),
    [
        ({"a": {"tags": "x,y"}}, {"a": {"tags": "z,x"}}, {"a": {"tags": "x,y,z"}}),
        ({"a": {"version": "1", "name": "n"}}, {"a": {"version": "2"}}, {"a": {"version": "2", "name": "n"}}),
        ({"a": {"env": {"P": "1", "Q": "1"}}}, {"a": {"env": {"Q": "2"}}}, {"a": {"env": {"P": "1", "Q": "2"}}}),
        ({"a": {"version": "1"}}, {"b": {"version": "2"}}, {"a": {"version": "1"}, "b": {"version": "2"}}),
        ({"a": {"version": "1"}}, {}, {"a": {"version": "1"}}),
        ({}, {"a": {"version": "1"}}, {"a": {"version": "1"}}),
    ],
)
def test_two_blocks_of_overrides_become_one_in_which_the_second_wins_and_tags_unite(
    first: dict[str, Any], second: dict[str, Any], merged: dict[str, Any]
) -> None:
    before = copy.deepcopy((first, second))
    assert merge_overrides(first, second) == merged
    assert (first, second) == before


def test_the_changes_of_one_handle_replace_a_value_of_another_kind() -> None:
    assert change_merge({"env": "text"}, {"env": {"A": "1"}}) == {"env": {"A": "1"}}
    assert change_merge({"env": {"A": "1"}}, {"env": "text"}) == {"env": "text"}
    assert change_merge({"tags": None}, {"tags": "a"}) == {"tags": "a"}


def test_handles_that_no_list_knows_are_unknown() -> None:
    lists = ([dependency(names=["a"])], [dependency(names="b"), dependency()])
    assert unknown_handles({"a": {}, "b": {}, "c": {}, "get": {}}, *lists) == ["c", "get"]
