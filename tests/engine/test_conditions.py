"""Conditions of dependencies: the whole table of CM's rules, and what is not known yet."""

import pytest
from recipe_engine.rules.conditions import (
    KINDS,
    Answer,
    Condition,
    Kind,
    decide,
    holds,
    overlap,
    shown,
    symbol,
)
from recipe_engine.rules.errors import MetaError
from recipe_engine.rules.schema import parse_condition_blocks

TRUE = ("yes", "on", "true", "1")
FALSE = ("no", "off", "false", "0")
MISSING = None

TABLE: list[tuple[list[str], object, bool, bool]] = [
    # accepted values, the env value (None: no such key), holds in an all-block, holds in an any-block
    *[([word], MISSING, False, False) for word in TRUE],
    *[([word], value, True, True) for word in TRUE for value in (*TRUE, "none", "2", "xyz", True)],
    *[([word], value, False, False) for word in TRUE for value in (*FALSE, "", "  ", False)],
    *[([word], MISSING, True, False) for word in FALSE],
    *[([word], value, True, True) for word in FALSE for value in (*FALSE, "", "  ", False)],
    *[([word], value, False, False) for word in FALSE for value in (*TRUE, "none", "2", "xyz", True)],
    ([""], MISSING, True, False),
    ([""], "", True, True),
    ([""], "  ", True, True),
    *[([""], value, False, True) for value in FALSE],
    *[([""], value, False, False) for value in (*TRUE, "xyz")],
    (["cpu", "gpu"], MISSING, False, False),
    (["cpu", "gpu"], "gpu", True, True),
    (["cpu", "gpu"], " GPU ", True, True),
    (["Linux"], "linux", True, True),
    (["cpu", "gpu"], "tpu", False, False),
    (["cpu", "gpu"], "", False, False),
    *[(["cpu", "gpu"], value, False, False) for value in (*TRUE, *FALSE)],
    (["8"], 8, True, True),
    ([], "cpu", False, False),
    ([], MISSING, False, False),
    # mixed lists, which no community recipe has: a true-word decides, then a false-word
    (["yes", "cpu"], "gpu", True, True),
    (["yes", "no"], "no", False, False),
    (["yes", "no"], MISSING, True, False),
    (["no", "cpu"], "off", True, True),
    (["no", "cpu"], "cpu", True, True),
    (["no", "cpu"], "gpu", False, False),
    (["", "cpu"], MISSING, True, False),
    (["", "cpu"], "cpu", True, True),
]


def block(kind: Kind, **wanted: object) -> Condition:
    """A condition block as a recipe writes it."""
    (condition,) = parse_condition_blocks({kind: wanted}, "deps[0]")
    return condition


@pytest.mark.parametrize(("accepted", "value", "in_all", "in_any"), TABLE)
def test_one_key_holds_by_the_table_in_all_four_kinds(
    accepted: list[str], value: object, in_all: bool, in_any: bool
) -> None:
    env = {} if value is MISSING else {"KEY": value}
    for kind in KINDS:
        expected = in_any if kind.endswith("_any_env") else in_all
        condition = block(kind, KEY=accepted)
        assert holds(condition, env) == ("yes" if expected else "no"), kind
        runs = expected if kind.startswith("enable") else not expected
        assert decide((condition,), env).answer == ("yes" if runs else "no"), kind


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("enable_if_env", "yes"),
        ("skip_if_env", "no"),
        ("enable_if_any_env", "no"),
        ("skip_if_any_env", "yes"),
    ],
)
def test_an_empty_block_holds_when_all_keys_must_and_fails_when_one_must(kind: Kind, answer: Answer) -> None:
    assert decide((block(kind),), {"KEY": "yes"}).answer == answer


@pytest.mark.parametrize(
    ("kind", "env", "answer"),
    [
        ("enable_if_env", {"A": "1", "B": "x"}, "yes"),
        ("enable_if_env", {"A": "1", "B": "y"}, "no"),
        ("enable_if_env", {"B": "x"}, "no"),
        ("skip_if_env", {"A": "1", "B": "x"}, "no"),
        ("skip_if_env", {"A": "1"}, "yes"),
        ("enable_if_any_env", {"A": "0", "B": "x"}, "yes"),
        ("enable_if_any_env", {"A": "1"}, "yes"),
        ("enable_if_any_env", {"A": "0", "B": "y"}, "no"),
        ("skip_if_any_env", {"B": "x"}, "no"),
        ("skip_if_any_env", {}, "yes"),
    ],
)
def test_all_blocks_need_every_key_and_any_blocks_need_one(kind: Kind, env: dict[str, str], answer: Answer) -> None:
    assert decide((block(kind, A=["yes"], B=["x"]),), env).answer == answer


@pytest.mark.parametrize(
    ("env", "answer"),
    [
        ({"ON": "1", "ANY": "1"}, "yes"),
        ({"ON": "0", "ANY": "1"}, "no"),
        ({"ON": "1", "OFF": "1", "ANY": "1"}, "no"),
        ({"ON": "1"}, "no"),
        ({"ON": "1", "ANY": "1", "NONE": "1"}, "no"),
    ],
)
def test_each_kind_on_one_entry_can_veto(env: dict[str, str], answer: Answer) -> None:
    conditions = parse_condition_blocks(
        {
            "enable_if_env": {"ON": ["1"]},
            "skip_if_env": {"OFF": ["1"]},
            "enable_if_any_env": {"ANY": ["1"]},
            "skip_if_any_env": {"NONE": ["1"]},
        },
        "deps[0]",
    )
    assert decide(conditions, env).answer == answer


def test_nothing_to_decide_means_yes() -> None:
    assert decide((), {}).answer == "yes"


def test_a_veto_names_the_block_that_gave_it() -> None:
    conditions = (block("enable_if_env", A=["yes"]), block("skip_if_env", B=["cpu", "gpu"]))
    verdict = decide(conditions, {"A": "1", "B": "cpu"})
    assert verdict.answer == "no"
    assert verdict.reason == "skip_if_env: B in [cpu, gpu]"


def test_a_veto_by_an_empty_block_says_so() -> None:
    assert decide((block("skip_if_env"),), {}).reason == "skip_if_env: (empty)"


@pytest.mark.parametrize(
    ("kind", "wanted", "env", "answer"),
    [
        ("enable_if_env", {"LATER": ["1"]}, {}, "unknown"),
        ("enable_if_env", {"LATER": ["1"], "A": ["1"]}, {"A": "1"}, "unknown"),
        ("enable_if_env", {"LATER": ["1"], "A": ["1"]}, {"A": "0"}, "no"),
        ("enable_if_env", {"A": ["1"]}, {"A": "1"}, "yes"),
        ("enable_if_any_env", {"LATER": ["1"], "A": ["1"]}, {"A": "1"}, "yes"),
        ("enable_if_any_env", {"LATER": ["1"], "A": ["1"]}, {"A": "0"}, "unknown"),
        ("skip_if_env", {"LATER": ["1"], "A": ["1"]}, {"A": "0"}, "yes"),
        ("skip_if_any_env", {"LATER": ["1"], "A": ["1"]}, {"A": "1"}, "no"),
        ("enable_if_env", {"LATER": ["1"]}, {"LATER": "1"}, "unknown"),
    ],
)
def test_a_key_that_may_still_change_leaves_open_only_what_it_can_decide(
    kind: Kind, wanted: dict[str, object], env: dict[str, str], answer: Answer
) -> None:
    assert decide((block(kind, **wanted),), env, {"LATER"}).answer == answer


def test_an_open_answer_names_the_keys_it_waits_for_once() -> None:
    conditions = (block("enable_if_env", Q=["1"], P=["1"], A=["1"]), block("skip_if_any_env", P=["1"]))
    verdict = decide(conditions, {"A": "1"}, {"P", "Q"})
    assert verdict.answer == "unknown"
    assert verdict.waiting_for == ("Q", "P")


def test_a_veto_counts_even_when_another_block_is_open() -> None:
    conditions = (block("enable_if_env", LATER=["1"]), block("skip_if_env", A=["1"]))
    assert decide(conditions, {"A": "1"}, {"LATER"}).answer == "no"


@pytest.mark.parametrize("written", ["cpu", 8, True, None])
def test_one_value_stands_for_a_list_of_one(written: object) -> None:
    assert block("enable_if_env", KEY=written) == block("enable_if_env", KEY=[written])


def test_accepted_values_are_compared_in_lower_case_and_without_blanks() -> None:
    assert block("enable_if_env", KEY=[" CPU ", True, 8]).wanted == (("KEY", ("cpu", "true", "8")),)


def test_a_block_that_is_no_mapping_is_refused_with_its_place() -> None:
    with pytest.raises(MetaError, match=r"enable_if_env: expected a mapping, found list \['A'\]"):
        parse_condition_blocks({"enable_if_env": ["A"]}, "x/_cm.yaml: deps[0]")


@pytest.mark.parametrize("accepted", [{"a": 1}, [["a"]], [{"a": 1}]])
def test_an_accepted_value_that_is_no_plain_value_is_refused_with_its_place(accepted: object) -> None:
    with pytest.raises(MetaError, match=r"x/_cm\.yaml: deps\[0\]\.skip_if_env\.KEY: expected values, found"):
        parse_condition_blocks({"skip_if_env": {"KEY": accepted}}, "x/_cm.yaml: deps[0]")


@pytest.mark.parametrize(
    ("patterns", "allowed", "expected"),
    [
        (["CM_*"], ["CM_X", "OTHER"], ("CM_X",)),
        (["CM_X", "CM_Y"], ["CM_*", "A"], ("CM_X", "CM_Y")),
        (["CM_X", "CM_Y"], ["CM_X", "A"], ("CM_X",)),
        (["CM_A*"], ["CM_*B", "X*"], ("CM_A*",)),
        (["CM_?"], ["CM_LONG"], ()),
    ],
)
def test_the_keys_that_both_sides_may_match(patterns: list[str], allowed: list[str], expected: tuple[str, ...]) -> None:
    assert overlap(patterns, allowed) == expected


def test_unknown_values_are_in_words_however_deep_they_lie() -> None:
    value = {"A": [symbol("CM_A", "get-a,b")], "B": {"C": f"{symbol('CM_C', 'get-c')}/bin"}, "D": 3}
    assert shown(value) == {"A": ["<CM_A from get-a,b>"], "B": {"C": "<CM_C from get-c>/bin"}, "D": 3}
