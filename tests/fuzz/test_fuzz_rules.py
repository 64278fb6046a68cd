"""The pure rules with arguments of every kind: total orders, idempotent merges, and answers or clear errors only."""

from functools import cmp_to_key
from typing import Any

from cases import tag_texts, texts, values
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from recipe_engine.rules.conditions import KINDS, Condition, decide, holds, key_matches
from recipe_engine.rules.configure import resolve_variations
from recipe_engine.rules.env import expand_value, merge_env, merge_state, select_keys
from recipe_engine.rules.errors import RecipeError
from recipe_engine.rules.model import AppliedVariation
from recipe_engine.rules.query import VersionRange, compare, intersection, merge_tag_texts, parse_query, split_words
from recipe_engine.rules.schema import (
    apply_overrides,
    merge_overrides,
    parse_condition_blocks,
    parse_dependency,
    parse_overrides,
    unknown_handles,
)

MANY = settings(max_examples=settings.default.max_examples * 4 if settings.default else 400)

versions = st.one_of(
    st.from_regex(r"v?[0-9]{1,2}(\.[0-9]{1,2}){0,3}((a|b|rc|dev|\+cu|-)[0-9]{0,2})?", fullmatch=True),
    st.text(st.sampled_from("0129.vabrcdev+-_ ²٣"), max_size=10),
    texts,
)


@MANY
@example("9" * 5000, "1." + "9" * 5000, "3.9rc1")
@given(versions, versions, versions)
def test_any_three_versions_have_one_order(first: str, second: str, third: str) -> None:
    assert compare(first, first) == 0
    assert compare(first, second) == -compare(second, first)
    low, middle, high = sorted([first, second, third], key=cmp_to_key(compare))
    assert compare(low, middle) <= 0
    assert compare(middle, high) <= 0
    assert compare(low, high) <= 0


bounds = st.builds(VersionRange, *[st.one_of(st.just(""), versions)] * 4)


@MANY
@given(bounds, bounds, versions)
def test_what_two_ranges_allow_is_what_each_of_them_allows(
    first: VersionRange, second: VersionRange, version: str
) -> None:
    both = intersection(first, second)
    assume(version)
    if both is None:
        assert not (first.holds(version) and second.holds(version))
    elif both.holds(version):
        assert first.admits(version)
        assert second.admits(version)
    assert isinstance(first.clamp(version), str)


env_maps = st.dictionaries(st.sampled_from(["CM_A", "CM_B", "CM_C", "+PATH"]), values, max_size=3)


@MANY
@given(st.lists(texts, max_size=3).map(tuple), values, st.booleans())
def test_a_condition_on_one_key_has_an_answer(accepted: tuple[str, ...], value: Any, is_any: bool) -> None:
    assert key_matches(accepted, value, is_any=is_any) in (True, False)


@MANY
@given(st.dictionaries(st.sampled_from([*KINDS, "env"]), values), env_maps)
def test_condition_blocks_decide_or_are_refused(source: dict[str, Any], env: dict[str, Any]) -> None:
    try:
        conditions = parse_condition_blocks(source, "a: b")
    except RecipeError as error:
        assert error.message
        return
    verdict = decide(conditions, env)
    assert verdict.answer in ("yes", "no", "unknown")
    assert verdict == decide(conditions, env)
    every = Condition("enable_if_env", ())
    assert holds(every, env) == "yes"


@MANY
@example("", "-_plain,_-plain")
@given(tag_texts, tag_texts)
def test_any_text_of_tags_is_a_query_or_a_clear_error(first: str, second: str) -> None:
    for text in (first, merge_tag_texts(first, second)):
        try:
            query = parse_query(text)
        except RecipeError as error:
            assert "both requested and excluded" in error.message
            continue
        assert parse_query(query.text) == query, "what a query says of itself asks for the same again"
    words = split_words(first)
    assert split_words(",".join(words)) == words
    assert merge_tag_texts(merge_tag_texts(first, second), second) == merge_tag_texts(first, second)


dependency_entries = st.dictionaries(
    st.sampled_from(["tags", "names", "env", "version", "enable_if_env", "skip_if_env", "dynamic", "adr", "list"]),
    values,
)
override_blocks = st.dictionaries(
    st.sampled_from(["tool", "", "other"]), st.one_of(dependency_entries, values), max_size=2
)


@MANY
@example({}, {}, {"tool": {1: None}}, {})
@example({}, {}, {"tool": {"tags": 1}}, {})
@given(dependency_entries, override_blocks, override_blocks, env_maps)
def test_overrides_change_a_dependency_or_are_refused(
    entry: dict[str, Any], first: dict[str, Any], second: dict[str, Any], env: dict[str, Any]
) -> None:
    try:
        dependency = parse_dependency({"tags": "get,y", "names": ["tool"], **entry}, "deps[0]")
        overrides = merge_overrides(parse_overrides(first, "adr"), parse_overrides(second, "adr"))
        changed = apply_overrides([dependency], overrides, env)
    except RecipeError as error:
        assert error.message
        return
    assert len(changed) == 1
    assert set(unknown_handles(overrides, changed)) <= set(overrides)


@MANY
@given(env_maps, env_maps, values)
def test_merging_an_env_twice_is_merging_it_once_and_changes_no_argument(
    env: dict[str, Any], new: dict[str, Any], value: Any
) -> None:
    before = repr((env, new))
    once = merge_env(env, new)
    assert repr(merge_env(once, new)) == repr(once)
    state = merge_state(env, new)
    assert repr(merge_state(state, new)) == repr(state)
    expand_value(value, env)
    assert repr((env, new)) == before


@MANY
@given(env_maps, st.lists(texts, max_size=3))
def test_any_pattern_selects_keys(env: dict[str, Any], patterns: list[str]) -> None:
    assert set(select_keys(env, patterns)) <= set(env)


def recipe_with(variations: dict[str, Any]) -> Any:
    """A recipe with these variations, for ``resolve_variations``."""
    from pathlib import Path

    from recipe_engine.rules.schema import parse_recipe

    meta = {"alias": "get-x", "uid": "a0000000000000fa", "tags": ["get", "x"], "variations": variations}
    return parse_recipe(meta, Path("/r/script/get-x"), Path("/r"))


NAMES = ("a", "b", "c", "n.#", "n.1", "a,b")
blocks = st.fixed_dictionaries(
    {},
    optional={
        "group": st.sampled_from(["g", "h"]),
        "default": st.just(True),
        "base": st.lists(st.sampled_from(NAMES), max_size=2),
        "alias": st.sampled_from(NAMES),
        "default_variations": st.dictionaries(st.sampled_from(["g", "h"]), st.sampled_from(NAMES), max_size=2),
    },
)


@MANY
@given(
    st.dictionaries(st.sampled_from(NAMES), blocks, max_size=5),
    st.lists(st.one_of(st.sampled_from(NAMES), texts), max_size=4),
    st.lists(st.sampled_from(NAMES), max_size=2),
)
def test_any_net_of_variations_is_resolved_once_and_for_all_or_refused(
    variations: dict[str, Any], explicit: list[str], excluded: list[str]
) -> None:
    try:
        applied = resolve_variations(recipe_with(variations), tuple(explicit), tuple(excluded))
    except RecipeError as error:
        assert error.message
        return
    names = [one.name for one in applied]
    assert len(names) == len(set(names))
    assert all(isinstance(one, AppliedVariation) and one.reason for one in applied)
    assert not set(names) & set(excluded)
