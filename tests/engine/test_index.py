"""The index of recipes: order, names, tags, and which variations a recipe declares."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import index_entry
from recipe_engine.index import build_index, dynamic_name


def test_recipes_are_ordered_by_sort_and_then_by_path() -> None:
    entries = [
        index_entry("d", path="/r/a"),
        index_entry("c", path="/r/c", sort=-1),
        index_entry("b", path="/r/b", sort=-1),
        index_entry("a", path="/r/z", sort=5),
    ]
    index = build_index(entries, {})
    assert [entry.alias for entry in index.entries] == ["b", "c", "d", "a"]
    assert build_index(reversed(entries), {}) == index


def test_a_recipe_is_found_by_alias_and_by_uid_and_by_nothing_else() -> None:
    one, two = index_entry("get-a", uid="a1"), index_entry("get-b", uid="b1")
    index = build_index([one, two], {})
    assert index.by_name("get-a") == (one,)
    assert index.by_name("b1") == (two,)
    assert index.by_name("get") == ()


def test_two_recipes_of_one_name_are_both_found() -> None:
    index = build_index([index_entry("get-a", path="/q/a"), index_entry("get-a", path="/p/a")], {})
    assert [entry.path for entry in index.by_name("get-a")] == [Path("/p/a"), Path("/q/a")]


@pytest.mark.parametrize(
    ("wanted", "unwanted", "found"),
    [
        (["get"], [], ["a", "b", "c"]),
        (["get", "cuda"], [], ["b", "c"]),
        (["cuda", "get"], [], ["b", "c"]),
        (["get"], ["old"], ["a", "b"]),
        (["get"], ["old", "cuda"], ["a"]),
        (["get"], ["no-such-tag"], ["a", "b", "c"]),
        (["cud"], [], []),
        ([], ["get"], ["d"]),
    ],
)
def test_all_wanted_tags_and_none_of_the_unwanted(wanted: list[str], unwanted: list[str], found: list[str]) -> None:
    index = build_index(
        [
            index_entry("a", "get,python"),
            index_entry("b", "get,cuda"),
            index_entry("c", "get,cuda,old"),
            index_entry("d", "app"),
        ],
        {},
    )
    assert [entry.alias for entry in index.by_tags(wanted, unwanted)] == found


@pytest.mark.parametrize(
    ("variation", "dynamic"),
    [
        ("n.8", "n.#"),
        ("n.a.b", "n.#"),
        ("n.", ""),
        ("n.8.", ""),
        ("n", ""),
        ("m.8", ""),
        (".8", ""),
    ],
)
def test_a_name_with_a_value_is_a_case_of_the_dynamic_variation(variation: str, dynamic: str) -> None:
    assert dynamic_name(variation, {"n.#", "n", "a"}) == dynamic


@pytest.mark.parametrize(
    ("variation", "is_declared"), [("a", True), ("n.8", True), ("lit.1", True), ("lit.2", False), ("b", False)]
)
def test_a_recipe_declares_exact_names_and_cases_of_dynamic_ones(variation: str, is_declared: bool) -> None:
    assert index_entry("x", variations="a;n.#;lit.1").declares(variation) is is_declared


def test_all_tags_are_those_of_all_recipes() -> None:
    assert build_index([index_entry("a", "x,y"), index_entry("b", "y,z")], {}).all_tags == {"x", "y", "z"}
    assert build_index([], {}).all_tags == frozenset()
