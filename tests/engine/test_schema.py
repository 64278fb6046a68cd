"""Reading recipe files: what is accepted, and where the error says the mistake is."""

from pathlib import Path
from typing import Any

import pytest
from builders import FILE, FOLDER, recipe
from recipe_engine.rules.conditions import Condition
from recipe_engine.rules.errors import MetaError, RecipeError
from recipe_engine.rules.model import PHASES, InputDescription, RecipeId
from recipe_engine.rules.query import VersionRange
from recipe_engine.rules.schema import is_yes, parse_layer, parse_overrides, parse_recipe, text_of

WRONG: list[tuple[dict[str, Any], str]] = [
    # what the file holds, what the error says behind the name of the file
    *[({key: ["a"]}, f"{key}: expected a mapping, found list ['a']") for key in ("env", "default_env", "const")],
    *[({key: "a"}, f"{key}: expected a mapping, found str 'a'") for key in ("state", "const_state", "docker")],
    *[({key: 5}, f"{key}: expected a mapping, found int 5") for key in ("variations", "versions", "input_mapping")],
    *[({key: ["a"]}, f"{key}: expected a mapping, found list ['a']") for key in ("ad", "adr")],
    *[({key: "a"}, f"{key}: expected a mapping, found str 'a'") for key in ("add_deps", "add_deps_recursive")],
    ({"env_key_mappings": ["a"]}, "env_key_mappings: expected a mapping, found list ['a']"),
    ({"print_env_at_the_end": ["a"]}, "print_env_at_the_end: expected a mapping, found list ['a']"),
    ({"input_description": ["a"]}, "input_description: expected a mapping, found list ['a']"),
    *[({phase: {"tags": "a"}}, f"{phase}: expected a list, found dict {{'tags': 'a'}}") for phase in PHASES],
    *[({phase: ["get,y"]}, f"{phase}[0]: expected a mapping, found str 'get,y'") for phase in PHASES],
    *[({key: {"a": 1}}, f"{key}: expected a list, found dict {{'a': 1}}") for key in ("tags", "new_env_keys")],
    *[({key: 5}, f"{key}: expected a list, found int 5") for key in ("new_state_keys", "clean_files")],
    *[({key: ["a", {"b": 1}]}, f"{key}[1]: expected a text, found dict {{'b': 1}}") for key in ("tags", "warnings")],
    ({"new_env_keys": [["A"]]}, "new_env_keys[0]: expected a text, found list ['A']"),
    ({"valid_variation_combinations": "a"}, "valid_variation_combinations: expected a list, found str 'a'"),
    ({"extra_cache_tags_from_env": ["A"]}, "extra_cache_tags_from_env[0]: expected a mapping, found str 'A'"),
    ({"extra_cache_tags_from_env": [{"env": ["A"]}]}, "extra_cache_tags_from_env[0].env: expected a text, found list"),
    *[({key: ["a"]}, f"{key}: expected a text, found list ['a']") for key in ("script_name", "default_version")],
    *[({key: {"a": 1}}, f"{key}: expected a text, found dict") for key in ("version", "version_min", "version_max")],
    ({"default_variation": ["a"]}, "default_variation: expected a text, found list ['a']"),
    *[({"cache": value}, f"cache: expected yes or no, found str {value!r}") for value in ("ture", "maybe")],
    ({"cache": []}, "cache: expected yes or no, found list []"),
    ({"can_force_cache": {"a": 1}}, "can_force_cache: expected yes or no, found dict {'a': 1}"),
    *[({"required_disk_space": value}, "required_disk_space: expected a whole number") for value in ("a", 1.5, [], {})],
    ({"uid": 5}, "uid: expected a text in quotes, found 5"),
    ({"uid": 4.2e20}, "uid: expected a text in quotes, found 4.2e+20"),
    ({"uid": ""}, "uid: missing"),
    ({"uid": None}, "uid: missing"),
    ({"alias": ["a"]}, "alias: expected a text, found list ['a']"),
    ({"deps": [{}, {"tags": {"a": 1}}]}, "deps[1].tags: expected a list, found dict {'a': 1}"),
    ({"deps": [{"names": 5}]}, "deps[0].names: expected a list, found int 5"),
    ({"deps": [{"names": [["a"]]}]}, "deps[0].names[0]: expected a text, found list ['a']"),
    *[
        ({"deps": [{key: "perhaps"}]}, f"deps[0].{key}: expected yes or no, found str 'perhaps'")
        for key in ("dynamic", "reuse_version", "inherit_variation_tags", "skip_if_fake_run", "continue_on_error")
    ],
    (
        {"deps": [{"update_tags_if_env": {"_x": {"enable_if_env": {"A": {"b": 1}}}}}]},
        "deps[0].update_tags_if_env._x.enable_if_env.A: expected values, found {'b': 1}",
    ),
    *[
        ({"deps": [{key: ["A"]}]}, f"deps[0].{key}: expected a mapping, found list ['A']")
        for key in ("env", "state", "const", "const_state", "update_tags_from_env_with_prefix")
    ],
    *[
        ({"deps": [{key: {"A": 1}}]}, f"deps[0].{key}: expected a list, found dict {{'A': 1}}")
        for key in ("update_tags_from_env", "force_env_keys", "skip_inherit_variation_groups")
    ],
    ({"post_deps": [{"enable_if_env": ["A"]}]}, "post_deps[0].enable_if_env: expected a mapping, found list ['A']"),
    ({"update_meta_if_env": {"env": {}}}, "update_meta_if_env: expected a list, found dict {'env': {}}"),
    ({"update_meta_if_env": ["a"]}, "update_meta_if_env[0]: expected a mapping, found str 'a'"),
    ({"update_meta_if_env": [{"env": "a"}]}, "update_meta_if_env[0].env: expected a mapping, found str 'a'"),
    ({"adr": {"python": "3.8"}}, "adr.python: expected a mapping, found str '3.8'"),
    ({"variations": {"v": ["a"]}}, "variations.v: expected a mapping, found list ['a']"),
    ({"variations": {"v": {"group": ["a"]}}}, "variations.v.group: expected a text, found list ['a']"),
    ({"variations": {"v": {"base": {"a": 1}}}}, "variations.v.base: expected a list, found dict {'a': 1}"),
    ({"variations": {"v": {"alias": ["w"]}}}, "variations.v.alias: expected a text, found list ['w']"),
    ({"variations": {"v": {"default_variations": "a"}}}, "variations.v.default_variations: expected a mapping"),
    ({"versions": {"1.0": "a"}}, "versions.1.0: expected a mapping, found str 'a'"),
    ({"input_description": {"a": 5}}, "input_description.a: expected a mapping, found int 5"),
    ({"input_description": {"a": {"choices": 5}}}, "input_description.a.choices: expected a list, found int 5"),
]


@pytest.mark.parametrize(("meta", "text"), WRONG, ids=[text for _, text in WRONG])
def test_a_value_of_the_wrong_kind_is_refused_with_file_key_path_and_what_was_found(
    meta: dict[str, Any], text: str
) -> None:
    with pytest.raises(MetaError) as caught:
        recipe(**meta)
    assert caught.value.message.startswith(f"{FILE}: {text}")


def test_the_path_of_a_condition_reaches_down_to_the_key() -> None:
    with pytest.raises(MetaError) as caught:
        recipe(prehook_deps=[{"tags": "get,y"}, {"tags": "get,z", "skip_if_env": {"A": {"b": 1}}}])
    assert caught.value.message == f"{FILE}: prehook_deps[1].skip_if_env.A: expected values, found {{'b': 1}}"


def test_a_layer_in_a_layer_keeps_the_whole_path() -> None:
    with pytest.raises(MetaError, match=r"x: variations\.v\.update_meta_if_env\[0\]\.deps\[1\]\.env: expected"):
        parse_layer({"update_meta_if_env": [{"deps": [{}, {"env": 5}]}]}, "x: variations.v")


def test_a_recipe_without_uid_says_what_to_give_it() -> None:
    with pytest.raises(MetaError) as caught:
        parse_recipe({"alias": "get-x"}, FOLDER, Path("/r"))
    assert caught.value.message == f"{FILE}: uid: missing"
    assert caught.value.hint == "give the recipe 16 quoted hex digits as uid"


def test_the_smallest_recipe_takes_its_name_from_its_folder_and_does_nothing() -> None:
    made = parse_recipe({"uid": "a000000000000000"}, FOLDER, Path("/r"))
    assert made.id == RecipeId("get-x", "a000000000000000")
    assert made.tags == ()
    assert made.layer == parse_layer({}, "x")
    assert not made.is_cached


@pytest.mark.parametrize("nothing", [None, ""])
@pytest.mark.parametrize(
    "key", ["env", "deps", "variations", "versions", "adr", "new_env_keys", "tags", "input_description", "script_name"]
)
def test_a_key_with_nothing_behind_it_counts_as_absent(key: str, nothing: object) -> None:
    with_key = recipe(**{"tags": None, key: nothing})
    without = recipe(tags=None)
    assert with_key._replace(meta={}) == without._replace(meta={})


@pytest.mark.parametrize(
    ("value", "is_cached"),
    [
        *[(value, True) for value in (True, 1, "true", "Yes", " on ", "1")],
        *[(value, False) for value in (False, 0, None, "", "False", "NO", "off", "0")],
    ],
)
def test_yes_and_no_may_be_written_in_all_of_cms_words(value: object, is_cached: bool) -> None:
    assert recipe(cache=value).is_cached is is_cached


@pytest.mark.parametrize(
    ("value", "answer"),
    [("yes", True), (" ON ", True), ("1", True), ("no", False), ("", False), ("abc", False), (True, True)],
)
def test_a_flag_value_means_yes_by_cms_words(value: object, answer: bool) -> None:
    assert is_yes(value) is answer


@pytest.mark.parametrize(("value", "text"), [(None, ""), (True, "True"), (3, "3"), (3.1, "3.1"), ("a", "a")])
def test_scalars_become_texts_as_cm_writes_them(value: object, text: str) -> None:
    assert text_of(value) == text


def test_one_text_stands_for_a_list_of_one() -> None:
    made = recipe(new_env_keys="CM_X*", deps=[{"tags": ["get", "y,z"], "names": "tool"}])
    assert made.layer.new_env_keys == ("CM_X*",)
    (dependency,) = made.layer.deps
    assert dependency.tags_text == "get,y,z"
    assert dependency.names == ("tool",)


@pytest.mark.parametrize("tags", [["get", "x"], "get,x", "get, x"])
def test_the_tags_of_a_recipe_are_a_list_or_one_text_with_commas(tags: object) -> None:
    assert recipe(tags=tags).tags == ("get", "x")


def test_a_dependency_keeps_its_entry_as_written_and_tells_what_the_engine_reads() -> None:
    entry = {"tags": " get , y ", "names": ["a", "b"], "dynamic": "yes", "enable_if_env": {"A": ["X"]}, "md5sum": "1"}
    (dependency,) = recipe(deps=[entry]).layer.deps
    assert dependency.entry == entry
    assert dependency.tags_text == "get,y"
    assert dependency.names == ("a", "b")
    assert dependency.is_dynamic
    assert dependency.conditions == (Condition("enable_if_env", (("A", ("x",)),)),)


def test_the_long_form_of_overrides_is_laid_over_the_short_one() -> None:
    layer = parse_layer(
        {
            "ad": {"a": {"version": "1", "tags": "x"}},
            "add_deps": {"a": {"version": "2"}, "b": {"tags": "y"}},
            "adr": {"c": {"version": "3"}},
            "add_deps_recursive": {"c": {"tags": "z"}},
        },
        "x",
    )
    assert layer.overrides == {"a": {"version": "2", "tags": "x"}, "b": {"tags": "y"}}
    assert layer.recursive_overrides == {"c": {"version": "3", "tags": "z"}}


def test_an_override_without_changes_is_an_empty_mapping() -> None:
    assert parse_overrides({"python": None}, "--adr") == {"python": {}}


def test_what_selects_a_variation_is_read_and_its_block_kept_as_written() -> None:
    block = {"group": "g", "default": False, "base": "b", "default_variations": {"h": 8}, "env": {"A": "1"}}
    made = recipe(variations={"v": block, "w": {"alias": "v"}, "n.#": None})
    variation = made.variations["v"]
    assert (variation.group, variation.is_default, variation.base) == ("g", True, ("b",))
    assert variation.default_variations == {"h": "8"}
    assert variation.source == block
    assert made.variations["w"].alias == "v"
    assert made.variations["n.#"].source == {}


def test_the_name_of_a_combined_variation_tells_its_parts() -> None:
    assert recipe(variations={"a, b,c": {}}).variations["a, b,c"].parts == ("a", "b", "c")


def test_versions_and_bounds_may_be_written_as_numbers() -> None:
    made = recipe(version_min=3.8, version_max=4, default_version=3.11, versions={3.11: {"env": {"A": "1"}}})
    assert made.version == VersionRange(minimum="3.8", maximum="4")
    assert made.layer.default_version == "3.11"
    assert made.versions == {"3.11": {"env": {"A": "1"}}}


def test_an_input_is_described_in_full_or_by_one_text() -> None:
    made = recipe(input_description={"a": {"desc": "d", "choices": [1, "two"], "default": 1}, "b": "words", "c": None})
    assert made.inputs == {
        "a": InputDescription(description="d", kind="list of choice", choices=("1", "two"), default="1"),
        "b": InputDescription(description="words"),
        "c": InputDescription(),
    }


def test_combinations_may_name_one_variation_or_several() -> None:
    made = recipe(valid_variation_combinations=["alone", ["b", "c"]], invalid_variation_combinations=[["d", 8]])
    assert made.valid_combinations == (("alone",), ("b", "c"))
    assert made.invalid_combinations == (("d", "8"),)


def test_a_warning_may_stand_alone_or_in_a_list() -> None:
    layer = parse_layer({"warnings": ["one", "two"], "warning": "three"}, "x")
    assert layer.warnings == ("one", "two", "three")


def test_an_unknown_key_does_not_keep_a_recipe_from_being_read() -> None:
    assert recipe(new_env_kyes=["A"], variations={"v": {"alis": "w"}}).id.alias == "get-x"


def test_all_that_a_recipe_file_may_say_arrives() -> None:
    meta = {
        "alias": "get-x",
        "uid": "a000000000000000",
        "tags": ["get", "x"],
        "cache": True,
        "can_force_cache": True,
        "default_variation": "v",
        "version_max_usable": "2",
        "local_env_keys": ["CM_L*"],
        "clean_env_keys_post_deps": ["CM_P"],
        "extra_cache_tags_from_env": [{"env": "CM_T", "prefix": "p-"}],
        "env_key_mappings": {"CM_A_": "B_"},
        "clean_files": ["c"],
        "clean_output_files": ["o"],
        "print_files_if_script_error": ["e"],
        "print_env_at_the_end": {"CM_X": "label"},
        "input_mapping": {"x": "CM_X"},
        "required_disk_space": "5",
        "update_meta_if_env": [{"skip_if_env": {"A": ["1"]}, "env": {"B": "2"}}],
    }
    made = parse_recipe(meta, FOLDER, Path("/r"))
    assert made.meta == meta
    assert (made.path, made.repo_path, made.tags) == (FOLDER, Path("/r"), ("get", "x"))
    assert (made.is_cached, made.can_force_cache, made.default_variation) == (True, True, "v")
    assert made.version == VersionRange(maximum_usable="2")
    assert (made.local_env_keys, made.post_deps_clean_env_keys) == (("CM_L*",), ("CM_P",))
    assert made.extra_cache_tags_from_env == (("CM_T", "p-"),)
    assert made.env_key_mappings == {"CM_A_": "B_"}
    assert (made.clean_files, made.clean_output_files, made.print_files_if_script_error) == (("c",), ("o",), ("e",))
    assert made.print_env_at_the_end == {"CM_X": "label"}
    assert (made.layer.input_mapping, made.layer.required_disk_space_mb) == ({"x": "CM_X"}, 5)
    (conditional,) = made.layer.conditional
    assert conditional.conditions == (Condition("skip_if_env", (("A", ("1",)),)),)
    assert conditional.layer.env == {"B": "2"}


@pytest.mark.parametrize("nothing", [None, "", 0, "0"])
def test_no_disk_space_is_none(nothing: object) -> None:
    assert recipe(required_disk_space=nothing).layer.required_disk_space_mb == 0


def test_every_error_of_a_recipe_file_is_an_expected_one() -> None:
    assert issubclass(MetaError, RecipeError)
    assert MetaError.code == 1
