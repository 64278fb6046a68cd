"""Two steps that need one thing get the same version of it, or the user hears who asked for what."""

from collections.abc import Iterator
from typing import Any

import pytest
from helpers import TemporaryHome
from recipe_engine.rules.cachekey import VersionConflict
from recipe_engine.rules.errors import VariationError
from recipe_engine.rules.query import VersionRange, intersection

FREE = VersionRange()
RANGES = {
    "nothing asked": (FREE, FREE, FREE),
    "one minimum": (VersionRange(minimum="2"), FREE, VersionRange(minimum="2")),
    "the higher minimum": (VersionRange(minimum="2"), VersionRange(minimum="10"), VersionRange(minimum="10")),
    "the lower maximum and its usable one": (
        VersionRange(maximum="3", maximum_usable="2.9"),
        VersionRange(maximum="4", maximum_usable="3.9"),
        VersionRange(maximum="3", maximum_usable="2.9"),
    ),
    "a minimum meets a maximum": (
        VersionRange(minimum="2"),
        VersionRange(maximum="2.0"),
        VersionRange(minimum="2", maximum="2.0"),
    ),
    "exact within": (VersionRange(exact="2.1"), VersionRange(minimum="2", maximum="3"), VersionRange(exact="2.1")),
    "exact twice": (VersionRange(exact="2.1"), VersionRange(exact="2.1"), VersionRange(exact="2.1")),
    "exact in two spellings": (VersionRange(exact="2.1"), VersionRange(exact="2.1.0"), VersionRange(exact="2.1")),
    "two exact ones": (VersionRange(exact="2.1"), VersionRange(exact="2.2"), None),
    "exact below": (VersionRange(exact="1"), VersionRange(minimum="2"), None),
    "exact above": (VersionRange(exact="4"), VersionRange(maximum="3"), None),
    "apart": (VersionRange(minimum="3"), VersionRange(maximum="2"), None),
}


@pytest.mark.parametrize(("first", "second", "both"), RANGES.values(), ids=RANGES.keys())
def test_what_two_ranges_allow_together(first: VersionRange, second: VersionRange, both: VersionRange | None) -> None:
    assert intersection(first, second) == both
    swapped = intersection(second, first)
    assert (swapped is None) == (both is None)


@pytest.fixture
def tools(home: TemporaryHome) -> Iterator[TemporaryHome]:
    """A thing that is made in the version asked for, else in 3; each making of it is a line in made.txt."""
    home.recipe(
        "get-tool",
        {
            "cache": True,
            "default_version": "3",
            "new_env_keys": ["CM_TOOL"],
            "variations": {"dev": {}},
        },
        customize="""
        def plan(i):
            return {"return": 0, "version": i["env"]["CM_VERSION"]}

        def postprocess(i):
            i["env"]["CM_TOOL"] = i["env"]["CM_VERSION"]
            return {"return": 0, "version": i["env"]["CM_VERSION"]}
        """,
        run_sh='echo "$CM_VERSION" >> "$CM_TMP_CURRENT_PATH/made.txt"\n',
    )
    for letter in "ab":
        home.recipe(f"app-{letter}", {"deps": [{"tags": "get,tool"}], "new_env_keys": ["CM_TOOL"]})
    yield home


def made(home: TemporaryHome) -> list[str]:
    path = home.work / "made.txt"
    return path.read_text(encoding="utf-8").split() if path.exists() else []


def wish(tags: str, **wanted: Any) -> dict[str, Any]:
    return {"tags": tags, **wanted}


def test_a_later_exact_demand_decides_for_the_earlier_open_one(tools: TemporaryHome) -> None:
    tools.recipe(
        "app-main",
        {"deps": [wish("app,a"), wish("get,tool", version="2")], "new_env_keys": ["CM_TOOL"]},
    )
    answer = tools.run("app,main")
    assert answer["new_env"]["CM_TOOL"] == "2"
    assert made(tools) == ["3", "2"]
    again = "starting over: get-tool 3 was already selected, but a later step requires == 2 for app-main"
    assert any(again in line for line in tools.story)
    assert [line for line in tools.story if "get-tool 2: reused" in line]


def test_bounds_of_several_steps_are_met_together(tools: TemporaryHome) -> None:
    deps = [
        wish("get,tool", version_max="9", version_max_usable="8"),
        wish("get,tool", version_min="5"),
        wish("get,tool", version_max="6"),
    ]
    tools.recipe("app-main", {"deps": deps, "new_env_keys": ["CM_TOOL"]})
    version = tools.run("app,main")["new_env"]["CM_TOOL"]
    assert version == "5"
    made_before = made(tools)
    assert tools.run("app,main")["new_env"]["CM_TOOL"] == "5"
    assert made(tools) == made_before, "the second run finds what the first one settled on"


def test_a_demand_that_the_choice_suits_changes_nothing(tools: TemporaryHome) -> None:
    tools.recipe("app-main", {"deps": [wish("get,tool"), wish("get,tool", version_min="2")]})
    tools.run("app,main")
    assert made(tools) == ["3"]
    assert not [line for line in tools.story if "starting over" in line]


def test_requirements_that_contradict_each_other_are_both_named_with_their_chains(tools: TemporaryHome) -> None:
    tools.recipe("app-c", {"deps": [wish("get,tool", version="1")]})
    tools.recipe("app-d", {"deps": [wish("get,tool", version_min="2")]})
    tools.recipe("app-main", {"deps": [wish("app,c"), wish("app,d")]})
    with pytest.raises(VersionConflict) as caught:
        tools.run("app,main")
    text = caught.value.describe()
    assert "no version of get-tool satisfies all steps that need it" in text
    assert "== 1 for app-main -> app-c" in text
    assert ">= 2 for app-main -> app-d" in text
    assert "--mixed_versions" in text
    tools.run("app,main", mixed_versions=True)
    assert made(tools)[-1] == "3"


@pytest.mark.parametrize("steps", [["12.2", "12.2"], ["12.2", ""], ["", "12.2"], ["12.2", "12.2.140"]])
def test_an_exact_version_that_is_reported_in_full_still_answers_the_same_request(
    home: TemporaryHome, steps: list[str]
) -> None:
    home.recipe(
        "get-tool",
        {"cache": True, "default_version": "12.2", "new_env_keys": ["CM_TOOL"]},
        customize="""
        def postprocess(i):
            i["env"]["CM_TOOL"] = "12.2.140"
            return {"return": 0, "version": "12.2.140"}
        """,
    )
    home.recipe("app-main", {"deps": [wish("get,tool", **({"version": one} if one else {})) for one in steps]})
    home.run("app,main")
    n_made = len(home.entries("get-tool"))
    assert n_made == (1 if steps[0] else 2)
    home.run("app,main")
    assert len(home.entries("get-tool")) == n_made, "the second run makes nothing"


def test_a_recipe_that_ignores_its_bounds_is_asked_twice_and_no_more(tools: TemporaryHome) -> None:
    tools.recipe(
        "get-tool",
        {"cache": True, "new_env_keys": ["CM_TOOL"]},
        customize='def postprocess(i):\n    return {"return": 0, "version": "1"}\n',
    )
    deps = [wish("app,a"), wish("get,tool", version_min="2"), wish("get,tool", version_min="2")]
    tools.recipe("app-main", {"deps": deps})
    tools.run("app,main")
    assert len([line for line in tools.story if "starting over" in line]) == 1


def test_other_variations_and_inputs_are_other_things(tools: TemporaryHome) -> None:
    deps = [wish("get,tool", version="1"), wish("get,tool,_dev", version="2")]
    tools.recipe("app-main", {"deps": deps})
    tools.run("app,main")
    assert made(tools) == ["1", "2"]


def test_of_several_recipes_the_one_whose_variations_go_together_is_taken(home: TemporaryHome) -> None:
    given = {"new_env_keys": ["CM_X"]}
    grouped = {"a": {"group": "g"}, "b": {"group": "g"}}
    home.recipe("get-x-first", {"tags": ["get", "x"], "sort": -1, "variations": grouped})
    home.recipe("get-x-second", {"tags": ["get", "x"], "variations": {"a": {}, "b": {}}, "env": {"CM_X": "2"}, **given})
    assert home.run("get,x,_a,_b")["new_env"]["CM_X"] == "2"
    home.recipe("get-x-second", {"tags": ["get", "x"], "variations": grouped})
    with pytest.raises(VariationError):
        home.run("get,x,_a,_b")
