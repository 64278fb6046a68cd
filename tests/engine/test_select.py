"""From a query to recipes, and what a user is told when none fits."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from builders import index_entry
from recipe_engine.errors import NotFound, RequestError, VariationNotFound
from recipe_engine.index import RecipeIndex, build_index
from recipe_engine.select import candidates, nearest_recipes
from recipe_engine.tags import parse_query


def make_index(broken: Mapping[str, str] | None = None) -> RecipeIndex:
    """Five recipes, given in the wrong order."""
    return build_index(
        [
            index_entry("get-llvm", "get,compiler,llvm", variations="debug;version.#"),
            index_entry("get-gcc", "get,compiler,gcc", variations="debug;static"),
            index_entry("get-icc", "get,compiler,icc,old", sort=-1),
            index_entry("get-python3", "get,python,python3", variations="custom-path.#;a,b"),
            index_entry("app-x", "app,x"),
        ],
        broken or {},
    )


def found(tags: str, alias: str = "") -> list[str]:
    """The aliases of the candidates."""
    return [entry.alias for entry in candidates(parse_query(tags), alias, make_index())]


@pytest.mark.parametrize(
    ("tags", "aliases"),
    [
        ("get,compiler", ["get-icc", "get-gcc", "get-llvm"]),
        ("compiler,get", ["get-icc", "get-gcc", "get-llvm"]),
        ("get,compiler,-old", ["get-gcc", "get-llvm"]),
        ("get,compiler,_debug", ["get-gcc", "get-llvm"]),
        ("get,compiler,_debug,_static", ["get-gcc"]),
        ("get,compiler,-_static", ["get-gcc"]),
        ("get,compiler,_version.17", ["get-llvm"]),
        ("get,python3,_custom-path./usr/bin/python3.11", ["get-python3"]),
    ],
)
def test_recipes_that_fit_come_by_sort_and_path_and_must_declare_every_variation(tags: str, aliases: list[str]) -> None:
    assert found(tags) == aliases


def test_a_name_finds_its_recipe_whatever_the_tags() -> None:
    assert found("", "app-x") == ["app-x"]
    assert found("_debug", "get-llvm") == ["get-llvm"]


@pytest.mark.parametrize("tags", ["", "_debug", "-old", "-_debug"])
def test_a_query_that_names_no_recipe_is_refused_instead_of_running_one_of_them(tags: str) -> None:
    with pytest.raises(RequestError) as caught:
        found(tags)
    assert caught.value.message == "no recipe was asked for"
    assert "--tags=get,python3" in caught.value.hint
    assert caught.value.code == 1


def refusal(tags: str, broken: Mapping[str, str] | None = None) -> NotFound:
    """The error of a query that finds nothing."""
    with pytest.raises(NotFound) as caught:
        candidates(parse_query(tags), "", make_index(broken))
    assert caught.value.code == 1
    return caught.value


def test_a_misspelt_tag_is_named_with_the_tags_that_look_like_it() -> None:
    error = refusal("get,pyhton3")
    assert "no recipe has all the tags 'get,pyhton3'" in error.message
    assert "no recipe at all has the tag 'pyhton3'; close ones: python3, python" in error.message
    assert "'get'" not in error.message
    assert "excluded tag" not in error.message


def test_the_nearest_recipes_are_listed_best_first_and_the_hint_finds_the_best() -> None:
    error = refusal("get,pyhton3")
    near = error.message.partition("nearest recipes:")[2].split()
    assert near[:2] == ["get-python3:", "get,python,python3"]
    assert error.hint == "cm find script --tags=get"


def test_tags_that_exist_but_never_together_are_said_to_do_so() -> None:
    message = refusal("app,gcc").message
    assert "each tag exists, but no recipe has all of them together" in message
    assert "no recipe at all" not in message


def test_an_excluded_tag_that_is_the_reason_is_told_with_the_recipes_it_kept_out() -> None:
    message = refusal("icc,-old").message
    assert "only recipes with an excluded tag have them: get-icc" in message
    assert "never" not in message
    assert "each tag exists" not in message


def test_folders_that_cannot_be_read_are_told_because_the_recipe_may_be_there() -> None:
    assert "/r/script/bad (not YAML)" in refusal("no-such", {"/r/script/bad": "not YAML"}).message


def test_nothing_alike_gives_no_guess() -> None:
    error = refusal("qqqq")
    assert "close ones" not in error.message
    assert "nearest recipes" not in error.message
    assert error.hint == "cm find script lists all recipes"


def test_an_unknown_name_is_answered_with_the_nearest_names() -> None:
    with pytest.raises(NotFound) as caught:
        found("", "get-pyton3")
    assert caught.value.message == "no recipe is called 'get-pyton3'"
    assert caught.value.hint.startswith("the nearest are: get-python3")
    assert caught.value.code == 1


def test_a_variation_that_no_recipe_declares_gives_code_16_and_lists_those_there_are() -> None:
    with pytest.raises(VariationNotFound) as caught:
        found("get,gcc,_statik")
    assert caught.value.code == 16
    assert "recipe 'get-gcc' has no variation _statik (close: _static)" in caught.value.message
    assert "its variations: _debug, _static" in caught.value.message
    assert caught.value.hint == "cm run script --tags=get,gcc,_VARIATION"


def test_combined_blocks_are_not_offered_as_variations() -> None:
    with pytest.raises(VariationNotFound) as caught:
        found("get,python3,_zzz")
    assert caught.value.message.endswith("its variations: _custom-path.#")


def test_every_recipe_with_the_tags_tells_what_it_lacks() -> None:
    with pytest.raises(VariationNotFound) as caught:
        found("get,compiler,_static,_version.1")
    assert "recipe 'get-gcc' has no variation _version.1" in caught.value.message
    assert "recipe 'get-llvm' has no variation _static" in caught.value.message
    assert "recipe 'get-icc' has no variation _static, _version.1" in caught.value.message
    assert "its variations: none" in caught.value.message


def test_an_excluded_variation_must_exist_too() -> None:
    with pytest.raises(VariationNotFound, match="has no variation _nope"):
        found("get,gcc,-_nope")


def test_the_hint_of_a_recipe_asked_for_by_name_is_a_command_that_works() -> None:
    with pytest.raises(VariationNotFound) as caught:
        found("_nope", "get-gcc")
    assert caught.value.hint == "cm run script --tags=compiler,gcc,get,_VARIATION"


def test_nearness_counts_shared_tags_fully_and_look_alikes_half() -> None:
    near = nearest_recipes(["get", "pythn"], make_index().entries)
    assert near[0].alias == "get-python3"
    assert len(near) == 3
    assert [entry.alias for entry in nearest_recipes(["get", "compiler"], make_index().entries, 2)] == [
        "get-gcc",
        "get-llvm",
    ]
    assert nearest_recipes(["qqqq"], make_index().entries) == []
