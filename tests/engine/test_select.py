"""From a query to the recipes that can answer it, and the refusals that help."""

from pathlib import Path

import pytest
from recipe_engine.rules.errors import NotFound, RequestError, VariationNotFound
from recipe_engine.rules.query import (
    IndexEntry,
    RecipeIndex,
    candidates,
    nearest_recipes,
    nearest_to_asker,
    parse_query,
)
from test_index import entry


@pytest.fixture
def index() -> RecipeIndex:
    """Five recipes, two of which answer get,compiler."""
    return RecipeIndex(
        [
            entry("get-llvm", "get,compiler,llvm", "prebuilt", sort=1),
            entry("get-gcc", "get,compiler,gcc"),
            entry("get-cuda", "get,cuda,toolkit", "cudnn,arch.#,a,b", uid="a1b2c3d4e5f60718"),
            entry("get-python3", "get,python,python3"),
            entry("detect-os", "detect,os"),
        ],
        {},
    )


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        ("get,compiler", ["get-gcc", "get-llvm"]),
        ("compiler,get", ["get-gcc", "get-llvm"]),
        ("get,compiler,-gcc", ["get-llvm"]),
        ("get,compiler,_prebuilt", ["get-llvm"]),
        ("get,compiler,-_prebuilt", ["get-llvm"]),
        ("get,cuda,_arch.sm_90,_a", ["get-cuda"]),
        ("get,cuda,_arch.#", ["get-cuda"]),
        ("get,-compiler,-python", ["get-cuda"]),
    ],
)
def test_the_recipes_that_fit_come_by_rank_and_path(index: RecipeIndex, tags: str, found: list[str]) -> None:
    assert [match.alias for match in candidates(parse_query(tags), "", index)] == found


@pytest.mark.parametrize("name", ["get-cuda", "a1b2c3d4e5f60718"])
def test_a_name_chooses_the_recipe_without_tags(index: RecipeIndex, name: str) -> None:
    assert [match.alias for match in candidates(parse_query("_cudnn"), name, index)] == ["get-cuda"]


def test_a_name_that_another_repository_has_is_told_where_it_is(index: RecipeIndex) -> None:
    with pytest.raises(NotFound, match="no recipe of the repository 'mine' is called 'get-cuda'") as caught:
        candidates(parse_query(""), "mine:get-cuda", index)
    assert caught.value.hint == "it is in: r"
    with pytest.raises(NotFound, match="no recipe is called 'get-cudda'"):
        candidates(parse_query(""), "mine:get-cudda", index)


@pytest.mark.parametrize(("name", "found"), [("detect-o*", ["detect-os"]), ("get-?c*", ["get-gcc"])])
def test_a_name_may_be_a_pattern(index: RecipeIndex, name: str, found: list[str]) -> None:
    assert [match.alias for match in candidates(parse_query(""), name, index)] == found


@pytest.mark.parametrize(
    ("tags", "problem"),
    [("gcc", "does not have the tag 'gcc'"), ("get,-cuda", "has the excluded tag 'cuda'")],
)
def test_a_recipe_that_is_named_must_have_the_tags_asked_for(index: RecipeIndex, tags: str, problem: str) -> None:
    with pytest.raises(NotFound, match=f"recipe 'get-cuda' {problem}. Its tags: cuda,get,toolkit"):
        candidates(parse_query(tags), "get-cuda", index)
    assert candidates(parse_query("get,toolkit,-gcc"), "get-cuda", index)[0].alias == "get-cuda"


@pytest.mark.parametrize("tags", ["", "-get", "_cudnn", "-_cudnn"])
def test_a_query_without_any_tag_is_refused_instead_of_taking_some_recipe(index: RecipeIndex, tags: str) -> None:
    with pytest.raises(RequestError) as caught:
        candidates(parse_query(tags), "", index)
    assert caught.value.message == "no recipe was requested"
    assert "cm run script --tags=" in caught.value.hint


def test_an_unknown_tag_is_named_with_its_look_alikes_and_the_nearest_recipes(index: RecipeIndex) -> None:
    with pytest.raises(NotFound) as caught:
        candidates(parse_query("get,pyhton3"), "", index)
    lines = caught.value.message.splitlines()
    assert lines[0] == "no recipe has all the tags 'get,pyhton3'"
    assert lines[1] == "  no recipe at all has the tag 'pyhton3', close ones: python3, python"
    assert lines[2] == "  nearest recipes:"
    assert lines[3] == "    get-python3: get,python,python3"
    assert len(lines) == 6
    assert caught.value.hint == "cm find script --tags=get"
    assert caught.value.code == 1


def test_tags_that_never_come_together_are_told_so(index: RecipeIndex) -> None:
    with pytest.raises(NotFound) as caught:
        candidates(parse_query("get,cuda,gcc"), "", index)
    assert "each tag exists, but no recipe has all of them together" in caught.value.message
    assert "no recipe at all" not in caught.value.message


def test_recipes_ruled_out_by_an_excluded_tag_are_named(index: RecipeIndex) -> None:
    with pytest.raises(NotFound) as caught:
        candidates(parse_query("get,cuda,-toolkit"), "", index)
    assert caught.value.message.splitlines()[:2] == [
        "no recipe has all the tags 'get,cuda,-toolkit'",
        "  only recipes with an excluded tag have them: get-cuda",
    ]


def test_when_nothing_resembles_the_query_no_recipe_is_called_near(index: RecipeIndex) -> None:
    with pytest.raises(NotFound) as caught:
        candidates(parse_query("zzzzzz"), "", index)
    assert caught.value.message.splitlines() == [
        "no recipe has all the tags 'zzzzzz'",
        "  no recipe at all has the tag 'zzzzzz'",
    ]
    assert caught.value.hint == "cm find script lists all recipes"


def test_folders_that_could_not_be_read_are_named_when_nothing_is_found() -> None:
    problem = "/r/script/get-z/_cm.yaml: tags: expected a list, found int 5"
    broken = RecipeIndex([], {"/r/script/get-z": problem, "/r/script/old": "Permission denied"})
    for asked in ((parse_query("get,z"), ""), (parse_query(""), "get-z")):
        with pytest.raises(NotFound) as caught:
            candidates(*asked, broken)
        assert caught.value.message == f"the recipe 'get-z' cannot be read: {problem}"
        assert caught.value.hint == "cm audit script get-z"
    with pytest.raises(NotFound) as caught:
        candidates(parse_query("get,zz"), "", broken)
    assert f"\n  left out, because it cannot be read: {problem}\n" in caught.value.message
    assert caught.value.message.endswith("cannot be read: /r/script/old: Permission denied")


def test_an_unknown_name_is_refused_with_its_look_alikes(index: RecipeIndex) -> None:
    with pytest.raises(NotFound) as caught:
        candidates(parse_query(""), "get-pyhton3", index)
    assert caught.value.message == "no recipe is called 'get-pyhton3'"
    assert caught.value.hint == "the nearest are: get-python3"


def test_a_value_without_an_equals_sign_is_told_how_to_write_it(index: RecipeIndex) -> None:
    with pytest.raises(NotFound) as caught:  # --tags=get,python3 --model resnet50
        candidates(parse_query("get,python3"), "resnet50", index)
    assert caught.value.hint == "if it is the value of an input, both are one word: --INPUT=resnet50"


def test_part_of_names_says_how_to_list_them(index: RecipeIndex) -> None:
    with pytest.raises(NotFound) as caught:
        candidates(parse_query(""), "cud", index)
    assert caught.value.hint == "cm find script '*cud*' lists those with it"


def test_an_unknown_name_that_resembles_none_says_how_to_list_them(index: RecipeIndex) -> None:
    with pytest.raises(NotFound) as caught:
        candidates(parse_query(""), "zzzzzz", index)
    assert caught.value.hint == "cm find script lists all recipes"


@pytest.mark.parametrize(
    ("tags", "named", "hinted"),
    [
        ("get,cuda,_cudn", "recipe 'get-cuda' has no variation _cudn (close: _cudnn)", "get,cuda,_cudnn"),
        ("get,cuda,-_cudn", "recipe 'get-cuda' has no variation _cudn (close: _cudnn)", "get,cuda,-_cudnn"),
        ("get,cuda,_a,_zzz", "recipe 'get-cuda' has no variation _zzz\n", "get,cuda,_a,_VARIATION"),
        ("get,cuda,_arch.", "recipe 'get-cuda' has no variation _arch. (close: _arch.#)", "get,cuda,_arch.#"),
        ("detect,os,_v", "recipe 'detect-os' has no variation _v\n  its variations: none", "detect,os"),
    ],
)
def test_a_variation_that_no_candidate_has_is_code_16_and_named(
    index: RecipeIndex, tags: str, named: str, hinted: str
) -> None:
    with pytest.raises(VariationNotFound) as caught:
        candidates(parse_query(tags), "", index)
    assert named in caught.value.message
    assert caught.value.code == 16
    assert caught.value.hint == f"cm run script --tags={hinted}"


def test_the_variations_that_there_are_are_listed_for_each_candidate(index: RecipeIndex) -> None:
    with pytest.raises(VariationNotFound) as caught:
        candidates(parse_query("get,compiler,_zzz"), "", index)
    assert "recipe 'get-gcc' has no variation _zzz\n  its variations: none" in caught.value.message
    assert "recipe 'get-llvm' has no variation _zzz\n  its variations: _prebuilt" in caught.value.message
    assert caught.value.hint == "cm run script --tags=get,compiler,_VARIATION"


def test_combined_variations_are_not_offered_because_nobody_can_ask_for_them() -> None:
    only = RecipeIndex([entry("a", "get,x")._replace(variations=frozenset({"v", "w", "v,w"}))], {})
    with pytest.raises(VariationNotFound) as caught:
        candidates(parse_query("get,x,_zzz"), "", only)
    assert caught.value.message.endswith("its variations: _v, _w")


def test_the_nearest_recipes_share_most_tags_and_look_alikes_count_half() -> None:
    entries = [
        entry("one", "get,other,more"),
        entry("two", "get,python"),
        entry("alike", "get,pythno,long,list"),
        entry("none", "a,b"),
    ]
    near = nearest_recipes(["get", "python"], entries)
    assert [found.alias for found in near] == ["two", "alike", "one"]
    assert [found.alias for found in nearest_recipes(["get", "python"], entries, 1)] == ["two"]
    long = entry("long", "python,a,b,c,d")
    assert [found.alias for found in nearest_recipes(["python"], [entry("alike", "pythno"), long])] == ["long", "alike"]


def test_a_recipe_chosen_by_name_is_hinted_at_by_its_tags(index: RecipeIndex) -> None:
    with pytest.raises(VariationNotFound) as caught:
        candidates(parse_query("_zzz"), "get-cuda", index)
    assert caught.value.hint == "cm run script --tags=cuda,get,toolkit,_VARIATION"


@pytest.mark.parametrize(
    ("rows", "asker", "picked"),
    [
        ([("a", "one", 0), ("b", "two", 0)], "two", ["b"]),
        ([("a", "one", 0), ("b", "two", 0), ("c", "two", 5)], "two", ["b", "c"]),
        ([("a", "one", -1), ("b", "two", 0)], "two", ["a", "b"]),
        ([("a", "one", 0), ("b", "two", 1)], "two", ["a", "b"]),
        ([("a", "one", 0), ("b", "two", 0)], "three", ["a", "b"]),
        ([("a", "one", 0), ("b", "two", 0)], None, ["a", "b"]),
    ],
)
def test_a_dependency_goes_to_the_repository_of_the_recipe_that_asks_unless_another_sorts_before(
    rows: list[tuple[str, str, int]], asker: str | None, picked: list[str]
) -> None:
    found = tuple(
        IndexEntry(name, "u", Path(repo) / name, Path(repo), repo, frozenset(), frozenset(), sort, False)
        for name, repo, sort in rows
    )
    kept = nearest_to_asker(found, Path(asker) if asker else None)
    assert [entry.alias for entry in kept] == picked
