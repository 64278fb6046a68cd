"""What is known of all recipes without reading their files."""

from pathlib import Path
from typing import Any

import pytest
from recipe_engine.rules.query import IndexEntry, RecipeIndex, declared_as


def entry(alias: str, tags: str = "get,x", variations: str = "", **fields: Any) -> IndexEntry:
    """An index entry of the recipe ``alias``."""
    known: dict[str, Any] = {
        "uid": alias.encode().hex().ljust(16, "a")[:16],
        "path": Path("/r/script") / alias,
        "repo_path": Path("/r"),
        "repo_alias": "r",
        "sort": 0,
        "is_cached": False,
        **fields,
    }
    names = frozenset(variations.split(",")) - {""}
    return IndexEntry(alias=alias, tags=frozenset(tags.split(",")), variations=names, **known)


def test_recipes_are_ordered_by_rank_and_then_by_path() -> None:
    made = [entry("c"), entry("late", sort=5), entry("a"), entry("z", sort=-1), entry("b", path=Path("/a/script/b"))]
    assert [found.alias for found in RecipeIndex(made, {}).entries] == ["z", "b", "a", "c", "late"]


@pytest.mark.parametrize(
    ("wanted", "unwanted", "found"),
    [
        (["get"], [], ["a", "b"]),
        (["get", "cuda"], [], ["b"]),
        (["cuda", "get"], ["dev"], []),
        (["get"], ["cuda"], ["a"]),
        (["nothing"], [], []),
        ([], [], ["a", "b"]),
    ],
)
def test_tags_find_the_recipes_that_have_all_wanted_and_no_unwanted_ones(
    wanted: list[str], unwanted: list[str], found: list[str]
) -> None:
    index = RecipeIndex([entry("a", "get,x"), entry("b", "get,cuda,dev")], {})
    assert [match.alias for match in index.by_tags(wanted, unwanted)] == found


def test_a_recipe_is_found_by_alias_and_by_uid_and_not_by_a_part_of_them() -> None:
    index = RecipeIndex([entry("get-x", uid="a1b2c3d4e5f60718"), entry("get-y")], {})
    assert [match.alias for match in index.by_name("get-x")] == ["get-x"]
    assert [match.alias for match in index.by_name("a1b2c3d4e5f60718")] == ["get-x"]
    assert index.by_name("get") == ()


def test_all_tags_are_those_of_any_recipe() -> None:
    assert RecipeIndex([entry("a", "get,x"), entry("b", "get,y")], {}).all_tags == {"get", "x", "y"}
    assert RecipeIndex([], {}).all_tags == frozenset()


@pytest.mark.parametrize(
    ("variation", "declared", "name"),
    [
        ("n.8", ["n.#"], "n.#"),
        ("n.a.b", ["n.#"], "n.#"),
        ("n.#", ["n.#"], "n.#"),
        ("n.8", ["m.#"], ""),
        ("n", ["n.#"], ""),
        ("n.", ["n.#"], ""),
        ("n.8.", ["n.#"], ""),
        ("nn.8", ["n.#"], ""),
        ("n.8", ["n.#", "n.8"], "n.8"),
    ],
)
def test_a_variation_is_declared_as_itself_or_as_the_name_with_a_hash(
    variation: str, declared: list[str], name: str
) -> None:
    assert declared_as(variation, declared) == name


@pytest.mark.parametrize(("variation", "is_declared"), [("v", True), ("n.8", True), ("n", False), ("w", False)])
def test_a_recipe_declares_a_variation_by_its_name_or_by_a_dynamic_one(variation: str, is_declared: bool) -> None:
    assert entry("a", variations="v,n.#").declares(variation) is is_declared
