"""Keys that nothing reads: found wherever they stand, with the key that was meant."""

from pathlib import Path
from typing import Any

import pytest
from recipe_engine.auditing.metadata import unknown_keys
from recipe_engine.auditing.recipes import blocks_of
from recipe_engine.disk.metadata import read_mapping
from recipe_engine.rules.schema import parse_recipe

SCRIPTS = Path(__file__).resolve().parents[2] / "script"


def found_in(meta: dict[str, Any]) -> list[str]:
    recipe = parse_recipe({"uid": "a" * 16, **meta}, SCRIPTS / "get-x", SCRIPTS.parent)
    return [f"{key} ({hint})" if hint else key for key, hint in unknown_keys(blocks_of(recipe)[0])]


OWN_RECIPES = sorted([*SCRIPTS.glob("*/_cm.yaml"), *SCRIPTS.glob("*/_cm.json")])


@pytest.mark.parametrize(
    ("meta", "found"),
    [
        ({"new_env_kyes": ["A"]}, ["new_env_kyes (did you mean new_env_keys?)"]),
        ({"cahce": True}, ["cahce (did you mean cache?)"]),
        ({"zzzz": 1}, ["zzzz"]),
        ({"  force_cache": True}, ["  force_cache"]),
        ({"variations": {"v": {"alis": "w"}}}, ["variations.v.alis (did you mean alias?)"]),
        (
            {"variations": {"v": {"default-variations": {"g": "w"}}}},
            ["variations.v.default-variations (did you mean default_variations?)"],
        ),
        ({"variations": {"v": {"CM_SOME_KEY": "1"}}}, ["variations.v.CM_SOME_KEY"]),
        ({"variations": {"v": {"variations": {}}}}, ["variations.v.variations"]),
        ({"versions": {"1.0": {"evn": {}}}}, ["versions.1.0.evn (did you mean env?)"]),
        ({"update_meta_if_env": [{"enable_if_env": {}, "evn": {}}]}, ["update_meta_if_env[0].evn (did you mean env?)"]),
        ({"deps": [{"force-cache": True}]}, ["deps[0].force-cache (did you mean force_cache?)"]),
        (
            {"deps": [{}, {"updats_tags_from_env_with_prefix": {}}]},
            ["deps[1].updats_tags_from_env_with_prefix (did you mean update_tags_from_env_with_prefix?)"],
        ),
        (
            {"variations": {"v": {"post_deps": [{"enabel_if_env": {}}]}}},
            ["variations.v.post_deps[0].enabel_if_env (did you mean enable_if_env?)"],
        ),
        ({"docker_input_mapping": {}}, ["docker_input_mapping (only docker.docker_input_mapping counts)"]),
        ({"variations": {"v": {"add_deps_tags": {}}}}, ["variations.v.add_deps_tags (old name of add_deps)"]),
        (
            {"deps": [{"new_env_keys": ["A"]}]},
            ["deps[0].new_env_keys (force_new_env_keys is the one for a dependency)"],
        ),
        (
            {"versions": {"1.0": {"default_version": "2"}}},
            ["versions.1.0.default_version (the version is chosen before its block is read)"],
        ),
        (
            {"update_meta_if_env": [{"deps": []}]},
            ["update_meta_if_env[0].deps (give the dependency itself the condition)"],
        ),
    ],
)
def test_a_key_that_nothing_reads_is_named_with_its_place_and_the_key_that_was_meant(
    meta: dict[str, Any], found: list[str]
) -> None:
    assert found_in(meta) == found


@pytest.mark.parametrize(
    "meta",
    [
        {},
        {"uid": "a", "tags": [], "cache": True, "deps": [], "variations": {}, "docker": {}, "tests": {}},
        {"deps": [{"tags": "get,y", "verify": True, "md5sum": "1", "revision": "main", "name": "n", "env": {}}]},
        {"variations": {"v": None, "w": {"group": "g", "default": True, "env": {}, "exclude-in-test": True}}},
        {"versions": {"1.0": None, "2.0": {"adr": {}}}, "deps": None, "update_meta_if_env": None},
        {"update_meta_if_env": [{"skip_if_any_env": {}, "default_env": {}, "docker": {}}]},
    ],
)
def test_known_keys_and_the_inputs_of_a_dependency_are_not_reported(meta: dict[str, Any]) -> None:
    assert found_in(meta) == []


def test_no_recipe_of_this_repository_holds_a_key_that_nothing_reads() -> None:
    assert {path.parent.name: found for path in OWN_RECIPES if (found := found_in(read_mapping(path)))} == {}
    assert OWN_RECIPES
