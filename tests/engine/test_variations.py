"""Which variations are on, why, and in which order their blocks count."""

from typing import Any

import pytest
from builders import configured, recipe
from recipe_engine.rules.configure import fill_in_value, groups_of, matching_combinations, resolve_variations
from recipe_engine.rules.errors import VariationError
from recipe_engine.rules.query import parse_query


def on(variations: dict[str, Any], asked: str = "", **meta: Any) -> list[str]:
    """The names that are on, in order, when ``asked`` (``_a,-_b``) is asked of a recipe with these variations."""
    return list(reasons(variations, asked, **meta))


def reasons(variations: dict[str, Any], asked: str = "", **meta: Any) -> dict[str, str]:
    """The names that are on with the reason for each."""
    query = parse_query(asked)
    applied = resolve_variations(recipe(variations=variations, **meta), query.variations, query.excluded_variations)
    return {variation.name: variation.reason for variation in applied}


def refusal(variations: dict[str, Any], asked: str = "", **meta: Any) -> VariationError:
    """The error that asking raises."""
    with pytest.raises(VariationError) as caught:
        on(variations, asked, **meta)
    return caught.value


ALIASED: dict[str, Any] = {"a": {"alias": "b"}, "b": {}, "c": {"alias": "a"}, "z": {}}
GROUPED: dict[str, Any] = {
    "g1": {"group": "g", "default": True},
    "g2": {"group": "g"},
    "h1": {"group": "h"},
    "free": {},
}
BASED: dict[str, Any] = {"top": {"base": ["middle"]}, "middle": {"base": ["n.7"]}, "n.#": {}, "pair": {"base": ["top"]}}
DEFAULTING: dict[str, Any] = {
    "a": {"default_variations": {"g": "g2"}},
    "b": {"default_variations": {"g": "g1"}},
    "n": {"default_variations": {"g": "gd.8"}},
    "c": {"base": ["g1"], "default_variations": {"g": "g2"}},
    "g1": {"group": "g", "default": True},
    "g2": {"group": "g"},
    "gd.#": {"group": "g"},
}


@pytest.mark.parametrize(
    ("variations", "asked", "names"),
    [
        # explicit ones, in the order asked
        ({"a": {}, "b": {}}, "", []),
        ({"a": {}, "b": {}}, "_b,_a", ["b", "a"]),
        # alias: the other one is switched on behind all that were asked for; an alias of an alias is not followed
        (ALIASED, "_a,_z", ["a", "z", "b"]),
        (ALIASED, "_b,_a", ["b", "a"]),
        (ALIASED, "_c", ["c", "a"]),
        # base: recursively; a dynamic base yields to any value that is on already
        (BASED, "_top", ["top", "middle", "n.7"]),
        (BASED, "_top,_n.3", ["top", "n.3", "middle"]),
        (BASED, "_pair", ["pair", "top", "middle", "n.7"]),
        (BASED, "_middle,_top", ["middle", "top", "n.7"]),
        # groups: the default is added last, unless a member is on or the default is excluded
        (GROUPED, "", ["g1"]),
        (GROUPED, "_free", ["free", "g1"]),
        (GROUPED, "_g2", ["g2"]),
        (GROUPED, "_h1", ["h1", "g1"]),
        (GROUPED, "-_g1", []),
        ({"g1": {"group": "g", "default": False}}, "", ["g1"]),
        ({"g1": {"group": "g", "default": True, "base": ["b"]}, "b": {}}, "", ["g1", "b"]),
        # default_variations: only when the group has no member among those that are on at the start
        (DEFAULTING, "_a", ["a", "g2"]),
        (DEFAULTING, "_a,_g1", ["a", "g1"]),
        (DEFAULTING, "_a,-_g2", ["a", "g1"]),
        (DEFAULTING, "_a,-_g2,-_g1", ["a"]),
        (DEFAULTING, "_n", ["n", "gd.8"]),
        (DEFAULTING, "_n,_gd.9", ["n", "gd.9"]),
        (DEFAULTING, "_n,-_gd.#", ["n", "g1"]),
        # combined variations bring their base and defaults when all their parts are on
        ({"a": {}, "b": {}, "a,b": {"base": ["c"]}, "c": {}}, "_a", ["a"]),
        ({"a": {}, "b": {}, "a,b": {"base": ["c"]}, "c": {}}, "_b,_a", ["b", "a", "c"]),
        (
            {
                "a": {},
                "b": {},
                "a,b": {"default_variations": {"g": "g2"}},
                "g1": {"group": "g", "default": True},
                "g2": {"group": "g"},
            },
            "_a,_b",
            ["a", "b", "g2"],
        ),
        ({"a": {"base": ["b"]}, "b": {}, "a,b": {"base": ["c"]}, "c": {}}, "_a", ["a", "b", "c"]),
        # dynamic ones: a name of its own wins over name.#, exclusion of another value does not matter
        ({"n.#": {}}, "_n.8", ["n.8"]),
        ({"n.#": {"group": "g"}, "g1": {"group": "g", "default": True}}, "_n.a.b", ["n.a.b"]),
        ({"n.#": {}, "n.8": {"base": ["b"]}, "b": {}}, "_n.8", ["n.8", "b"]),
        ({"n.#": {}, "m": {}}, "_m,-_n.8", ["m"]),
        # names that only mark the cache
        ({"n.#": {}, "m.#": {}}, "_n.1,_m.2", ["n.1", "m.2"]),
        ({"~mark": {"base": ["a"], "alias": "a"}, "a": {}}, "_~mark", []),
    ],
)
def test_what_is_on_follows_from_what_was_asked_for(variations: dict[str, Any], asked: str, names: list[str]) -> None:
    assert on(variations, asked) == names


@pytest.mark.parametrize(("asked", "names"), [("", ["v"]), ("_w", ["w"]), ("-_w", ["v"]), ("-_v", []), ("_v", ["v"])])
def test_the_default_variation_of_a_recipe_counts_when_none_was_asked_for(asked: str, names: list[str]) -> None:
    assert on({"v": {}, "w": {}}, asked, default_variation="v") == names


def test_each_variation_says_why_it_is_on() -> None:
    variations = {
        "a": {"alias": "b"},
        "b": {"base": ["c"]},
        "c": {"default_variations": {"g": "g1"}},
        "g1": {"group": "g"},
        "h1": {"group": "h", "default": True},
    }
    assert reasons(variations, "_a") == {
        "a": "asked for",
        "b": "alias of _a",
        "c": "base of _b",
        "g1": "default of group 'g' by _c",
        "h1": "default of group 'h'",
    }
    assert reasons({"v": {}}, default_variation="v") == {"v": "default variation of the recipe"}


REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    # what is wrong, the variations, what was asked, a part of the message
    ("unknown", {"verbose": {}}, "_verbos", "has no variation _verbos (asked for)"),
    ("unknown alias", {"a": {"alias": "z"}}, "_a", "has no variation _z (alias of _a)"),
    ("unknown base", {"a": {"base": ["z"]}}, "_a", "has no variation _z (base of _a)"),
    ("unknown dynamic base", {"a": {"base": ["z.1"]}}, "_a", "has no variation _z.1 (base of _a)"),
    ("base without value", {"a": {"base": ["n"]}, "n.#": {}}, "_a,_n.1", "has no variation _n (base of _a)"),
    ("alias with group", {"a": {"alias": "b", "group": "g"}, "b": {}}, "_a", "_a has an alias together with a group"),
    ("alias with default", {"a": {"alias": "b", "default": False}, "b": {}}, "_a", "_a has an alias together with"),
    ("excluded alias", ALIASED, "_a,-_b", "variation _b (alias of _a) is excluded by the request"),
    ("excluded base", BASED, "_top,-_middle", "variation _middle (base of _top) is excluded by the request"),
    ("excluded dynamic base", BASED, "_top,-_n.7", "variation _n.7 (base of _middle) is excluded by the request"),
    ("all values excluded", {"n.#": {}}, "_n.5,-_n.#", "variation _n.5 (asked for) is excluded by the request"),
    (
        "two of a group",
        GROUPED,
        "_g1,_g2",
        "several variations of the group 'g' are on: _g1 (asked for), _g2 (asked for)",
    ),
    (
        "two defaults for one group",
        DEFAULTING,
        "_a,_b",
        "variations of the group 'g' are on: _g2 (default of group 'g' by _a), _g1 (default of group 'g' by _b)",
    ),
    ("base against default", DEFAULTING, "_c", "several variations of the group 'g' are on: _g1 (base of _c), _g2"),
    ("dynamic and plain of a group", DEFAULTING, "_gd.8,_g1", "several variations of the group 'g' are on: _gd.8"),
    (
        "group default whose base is in another group",
        {"g1": {"group": "g", "default": True, "base": ["h2"]}, "h1": {"group": "h"}, "h2": {"group": "h"}},
        "_h1",
        "several variations of the group 'h' are on: _h1 (asked for), _h2 (base of _g1)",
    ),
    (
        "two defaults of one group",
        {"g1": {"group": "g", "default": True}, "g2": {"group": "g", "default": True}},
        "_g1",
        "the group 'g' has several defaults: _g1, _g2",
    ),
    (
        "default of a group that is not one of it",
        {"a": {"default_variations": {"g": "h1"}}, "g1": {"group": "g"}, "h1": {"group": "h"}},
        "_a",
        "variation _a wants _h1 as default of group 'g', whose members are: _g1",
    ),
    (
        "default of an unknown group",
        {"a": {"default_variations": {"g": "b"}}, "b": {}},
        "_a",
        "variation _a wants _b as default of group 'g', whose members are: none",
    ),
    (
        "unknown default",
        {"a": {"default_variations": {"g": "z"}}, "g1": {"group": "g"}},
        "_a",
        "has no variation _z (default of group 'g' by _a)",
    ),
    ("two values", {"n.#": {}}, "_n.8,_n.9", "variation _n.# can have one value, found: _n.8 (asked for) and _n.9"),
    ("no value", {"n.#": {}}, "_n.#", "variation _n.# (asked for) needs a value"),
    ("base without a value", {"a": {"base": ["n.#"]}, "n.#": {}}, "_a", "variation _n.# (base of _a) needs a value"),
    ("two grouped values", DEFAULTING, "_gd.8,_gd.9", "variation _gd.# can have one value, found: _gd.8 (asked for)"),
    (
        "value by alias against one asked for",
        {"n.#": {}, "a": {"alias": "n.1"}},
        "_n.8,_a",
        "variation _n.# can have one value, found: _n.8 (asked for) and _n.1 (alias of _a)",
    ),
]


@pytest.mark.parametrize(("variations", "asked", "text"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_a_contradiction_is_refused_and_named(variations: dict[str, Any], asked: str, text: str) -> None:
    error = refusal(variations, asked)
    assert text in error.message
    assert "recipe 'get-x'" in error.message
    assert error.code == 1


@pytest.mark.parametrize(
    ("variations", "asked", "hint"),
    [
        ({"verbose": {}}, "_verbos", "the nearest are: _verbose"),
        ({"verbose": {}}, "_zzz", "cm help script get-x"),
        ({"verbose": {"base": ["zzz"]}}, "_verbose", "cm audit script get-x"),
        (BASED, "_top,-_middle", "drop -_middle from the tags"),
        ({"n.#": {}}, "_n.5,-_n.#", "drop -_n.# from the tags"),
        (GROUPED, "_g1,_g2", "request one of: _g1, _g2"),
        ({"n.#": {}}, "_n.8,_n.9", "keep either _n.8 or _n.9"),
        ({"n.#": {}}, "_n.#", "write the value in place of the #: _n.VALUE"),
    ],
)
def test_a_refusal_says_what_to_do(variations: dict[str, Any], asked: str, hint: str) -> None:
    assert refusal(variations, asked).hint == hint


def test_an_unknown_default_variation_of_the_recipe_is_refused() -> None:
    assert "has no variation _z (default variation of the recipe)" in refusal({"v": {}}, default_variation="z").message


@pytest.mark.parametrize("asked", ["_n.8,_n.8", "_n.8"])
def test_the_same_value_twice_is_one(asked: str) -> None:
    assert on({"n.#": {}}, asked) == ["n.8"]


def test_a_name_of_its_own_is_no_value_of_the_dynamic_one() -> None:
    assert on({"n.#": {}, "n.8": {}}, "_n.8,_n.9") == ["n.8", "n.9"]


@pytest.mark.parametrize(
    ("asked", "is_valid"), [("_a,_b", True), ("_b,_a,_c", True), ("_c", True), ("_a", False), ("", False)]
)
def test_of_the_valid_combinations_one_must_be_on(asked: str, is_valid: bool) -> None:
    variations: dict[str, Any] = {"a": {}, "b": {}, "c": {}}
    valid = [["a", "b"], ["c"]]
    if is_valid:
        on(variations, asked, valid_variation_combinations=valid)
    else:
        error = refusal(variations, asked, valid_variation_combinations=valid)
        assert f"the variations {asked or '(none)'} are not a valid combination" in error.message
        assert error.hint == "valid ones are: _a, _b; _c"


def test_defaults_count_for_the_combinations() -> None:
    assert on(GROUPED, "_free", valid_variation_combinations=[["free", "g1"]]) == ["free", "g1"]
    assert (
        "(selected: _free, _g1)" in refusal(GROUPED, "_free", invalid_variation_combinations=[["g1", "free"]]).message
    )


@pytest.mark.parametrize(("asked", "is_valid"), [("_a,_b", False), ("_c,_b,_a", False), ("_a,_c", True), ("", True)])
def test_an_invalid_combination_must_not_be_on(asked: str, is_valid: bool) -> None:
    variations: dict[str, Any] = {"a": {}, "b": {}, "c": {}}
    if is_valid:
        on(variations, asked, invalid_variation_combinations=[["a", "b"]])
    else:
        message = refusal(variations, asked, invalid_variation_combinations=[["a", "b"]]).message
        assert "the variations _a, _b cannot be combined (selected: _" in message


# --- applying: the value of WINNER tells which block came last, TRACE which blocks count at all ---


def marked(*names: str, **more: dict[str, Any]) -> dict[str, Any]:
    """Variations with these names; each writes its name to WINNER and adds a warning with its name."""
    return {name: {"env": {"WINNER": name}, "warnings": [name], **more.get(name, {})} for name in names}


@pytest.mark.parametrize(
    ("variations", "asked", "winner", "applied"),
    [
        (marked("a", "b"), "_a,_b", "b", ["a", "b"]),
        (marked("a", "b"), "_b,_a", "a", ["b", "a"]),
        # a base counts after the one that names it, an alias after those asked for, a group default last
        (marked("a", "b", a={"base": ["b"]}), "_a", "b", ["a", "b"]),
        (marked("a", "b", "z", a={"alias": "b"}), "_a,_z", "b", ["a", "z", "b"]),
        (marked("a", "g", g={"group": "g", "default": True}), "_a", "g", ["a", "g"]),
        # a complete combination counts behind every single one, longer combinations behind shorter ones
        (marked("a", "b", "a,b"), "_a,_b", "a,b", ["a", "a,b", "b"]),
        (marked("a", "b", "c", "a,b,c", "a,b", "b,c"), "_c,_b,_a", "a,b,c", ["c", "a,b", "b,c", "a,b,c", "b", "a"]),
        (marked("a", "b", "a,b"), "_a", "a", ["a"]),
        (marked("a", "b", "a,b", a={"base": ["b"]}), "_a", "a,b", ["a", "a,b", "b"]),
        # the parts of a combination are names as asked for, never name.#
        (marked("a", "n.#", "a,n.#", "a,n.8"), "_a,_n.8", "a,n.8", ["a", "a,n.8", "n.8"]),
        (marked("a", "n.#", "a,n.#"), "_a,_n.8", "n.8", ["a", "n.8"]),
        # a name of its own wins over name.#
        (marked("n.#", "n.9"), "_n.9", "n.9", ["n.9"]),
    ],
)
def test_the_blocks_count_in_the_order_of_the_names_and_combinations_last(
    variations: dict[str, Any], asked: str, winner: str, applied: list[str]
) -> None:
    made = configured({"variations": variations}, f"get,x,{asked}")
    assert made.env["WINNER"] == winner
    assert list(made.layer.warnings) == applied


def test_the_longest_combination_wins_even_over_a_group_default() -> None:
    variations = marked("a", "g2", "b", "a,b", "a,g2", "a,b,g2", a={"base": ["b"]}, g2={"group": "g"})
    assert configured({"variations": variations}, "get,x,_a,_g2").env["WINNER"] == "a,b,g2"


def test_combinations_with_fewer_parts_come_first() -> None:
    made = recipe(variations={"a": {}, "b": {}, "c": {}, "a,b,c": {}, "b,c": {}})
    assert [found.name for found in matching_combinations(made, ["c", "b", "a"])] == ["b,c", "a,b,c"]


def test_groups_list_their_members_in_file_order() -> None:
    assert groups_of(recipe(variations=GROUPED)) == {"g": ["g1", "g2"], "h": ["h1"]}


@pytest.mark.parametrize(
    ("block", "filled"),
    [
        ("v#", "v8"),
        ("#-#", "8-8"),
        ({"A": "#", "#": "x"}, {"A": "8", "#": "x"}),
        (
            [{"tags": "get,_#", "version": 5, "flag": True, "none": None}],
            [{"tags": "get,_8", "version": 5, "flag": True, "none": None}],
        ),
        ({"a": {"b": {"c": [{"d": "#"}]}}}, {"a": {"b": {"c": [{"d": "8"}]}}}),
        (True, True),
    ],
)
def test_the_value_takes_the_place_of_every_hash_at_any_depth(block: Any, filled: Any) -> None:
    assert fill_in_value(block, "8") == filled


def test_the_value_is_all_behind_the_first_dot() -> None:
    made = configured({"variations": {"n.#": {"env": {"A": "<#>"}}}}, "get,x,_n.a.b")
    assert made.env["A"] == "<a.b>"


def test_each_request_fills_in_its_own_value() -> None:
    meta = {"variations": {"n.#": {"env": {"A": "#"}, "deps": [{"tags": "get,_#", "dynamic": True}]}}}
    assert configured(meta, "get,x,_n.8").env["A"] == "8"
    second = configured(meta, "get,x,_n.9")
    assert second.env["A"] == "9"
    assert second.layer.deps[0].tags_text == "get,_9"
    assert meta["variations"]["n.#"]["env"] == {"A": "#"}


def test_a_value_that_only_a_base_or_default_wants_yields_to_the_one_that_is_on() -> None:
    based = {"n.#": {}, "a": {"base": ["n.1"]}, "b": {"default_variations": {"g": "n.2"}}, "n.2": {"group": "g"}}
    assert on({"n.#": {}, "a": {"base": ["n.1"]}}, "_n.8,_a") == ["n.8", "a"]
    assert on({"n.#": {"group": "g"}, "b": {"default_variations": {"g": "n.2"}}}, "_n.8,_b") == ["n.8", "b"]
    assert "n.1" in on(based, "_a,_b")


def test_a_number_sign_stays_in_a_variation_that_takes_no_value() -> None:
    variations = {"plain": {"env": {"A": "issue #1"}}, "n.#": {"env": {"B": "#1"}}}
    env = configured({"variations": variations}, "get,x,_plain,_n.x").env
    assert (env["A"], env["B"]) == ("issue #1", "x1")
