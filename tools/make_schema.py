"""Writes docs/reference/cm-recipe.schema.json, the JSON Schema of recipe files, from the keys that the engine knows.

    python tools/make_schema.py [--check]

The keys of each place are those of ``recipe_engine.rules.keys``; this file adds the type and a line of help for each.
Editors complete and check a recipe whose first line is the comment that ours have (docs/reference/recipe-schema.md).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent
ENGINE = CHECKOUT / "automation" / "recipe_engine"
TARGET = CHECKOUT / "docs" / "reference" / "cm-recipe.schema.json"

if "recipe_engine" not in sys.modules:
    spec = importlib.util.spec_from_file_location(
        "recipe_engine", ENGINE / "__init__.py", submodule_search_locations=[str(ENGINE)]
    )
    assert spec is not None
    assert spec.loader is not None
    sys.modules["recipe_engine"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["recipe_engine"])

from recipe_engine.disk.repos import SCRIPT_AUTOMATION_UID  # noqa: E402
from recipe_engine.rules.conditions import FALSE_WORDS, KINDS, TRUE_WORDS  # noqa: E402
from recipe_engine.rules.keys import FOR_PEOPLE, LIVE_KEYS, UNREAD  # noqa: E402
from recipe_engine.rules.model import PHASES  # noqa: E402
from recipe_engine.rules.schema import LIFETIME_UNITS_S  # noqa: E402

Schema = dict[str, Any]

WORDS = sorted({word for low in (*TRUE_WORDS, *FALSE_WORDS) for word in (low, low.capitalize())})
LIFETIME = rf"^(0|[0-9]+[{''.join(LIFETIME_UNITS_S)}]|.*<<<.+>>>.*)$"


def _list_of(item: Mapping[str, Any]) -> Schema:
    return {"type": ["array", "null"], "items": dict(item)}


def _map_of(item: Mapping[str, Any]) -> Schema:
    return {"type": ["object", "null"], "additionalProperties": dict(item)}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


SCALAR: Schema = {"type": ["string", "number", "boolean", "null"]}
NEED: Schema = {"anyOf": [{"type": ["string", "boolean"]}, {"type": "array", "items": {"type": "string"}}]}
MEGABYTES: Schema = {"type": "integer", "minimum": 0, "description": "in MB of 10**6 bytes"}

TYPES: dict[str, Schema] = {
    "text": SCALAR,
    "version": {"type": "string"},
    "whole": {"anyOf": [{"type": "integer"}, {"type": "string", "pattern": "^[0-9]*$"}]},
    "flag": {"anyOf": [{"type": ["boolean", "null"]}, {"enum": [*WORDS, ""]}, {"enum": [0, 1]}]},
    "anything": {},
    "texts": {"anyOf": [{"type": "string"}, _list_of({"type": ["string", "number", "boolean"]})]},
    "env": _map_of({}),
    "env_names": _map_of({"type": "string"}),
    "mapping": {"type": ["object", "null"]},
    "lifetime": {"anyOf": [{"type": "string", "pattern": LIFETIME}, {"const": 0}]},
    "uid": {"type": "string", "pattern": "^[0-9a-f]{16}$"},
    "automation_uid": {"const": SCRIPT_AUTOMATION_UID},
    "tags": {
        "type": "array",
        "minItems": 1,
        "uniqueItems": True,
        "items": {"type": "string", "pattern": "^[^_,-][^,]*$"},
    },
    "condition": _map_of({"anyOf": [SCALAR, {"type": "array", "items": SCALAR}]}),
    "members": _map_of({"type": ["string", "number"]}),
    "combinations": _list_of({"type": "array", "items": {"type": ["string", "number"]}, "minItems": 1}),
    "tags_by_prefix": _map_of({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
    "tags_by_condition": _map_of(_ref("conditions")),
    "deps": _list_of(_ref("dependency")),
    "overrides": _map_of(_ref("override")),
    "variations": _map_of({"anyOf": [_ref("variation"), {"type": "null"}]}),
    "versions": _map_of({"anyOf": [_ref("version_block"), {"type": "null"}]}),
    "conditional": _list_of(_ref("conditional_block")),
    "inputs": _map_of({"anyOf": [{"type": "string"}, _ref("input")]}),
    "cache_tags": _list_of(_ref("cache_tag")),
    "docker": {"type": ["object", "null"], "properties": {"run": _ref("flag"), "real_run": _ref("flag")}},
    "needs": _ref("needs_block"),
    "tests": {
        "type": ["object", "null"],
        "properties": {
            "run_inputs": {"type": "array", "items": {"type": "object"}, "description": "inputs of each run"}
        },
    },
}
"""Type name to its schema; each becomes an entry of ``$defs``."""

DEPS_HELP = "recipes to run {when}; one entry a recipe, found by its tags"
HELP: dict[str, tuple[str, str]] = {
    "_base": ("text", "another recipe (script::ALIAS) whose metadata this one takes over"),
    "ad": ("overrides", "changes to own dependencies by their names; an unknown name is an error"),
    "add_deps": ("overrides", "long form of ad"),
    "add_deps_recursive": ("overrides", "long form of adr"),
    "adr": ("overrides", "changes to dependencies by their names, own ones and all below them"),
    "alias": ("text", "the recipe's name, equal to its folder; for a variation: the one that it is another word for"),
    "automation_uid": ("automation_uid", "the automation that runs recipes"),
    "base": ("texts", "variations that are switched on with this one"),
    "cache": ("flag", "whether the result is kept in the cache and reused"),
    "cache_expiration": ("lifetime", "how long an entry of the cache may be used: 90m, 2h, 3d, 0"),
    "can_force_cache": ("flag", "whether a caller may have a recipe cached that is not by itself"),
    "clean_env_keys_post_deps": ("texts", "env keys that post_deps do not see"),
    "clean_files": ("texts", "files to delete in the working folder before the run"),
    "clean_output_files": ("texts", "files to delete before it is decided whether to reuse an entry"),
    "const": ("env", "env that nothing overrides, here and in all dependencies"),
    "const_state": ("mapping", "state that nothing overrides"),
    "continue_on_error": ("flag", "go on when this dependency fails"),
    "customize": ("anything", "free settings that hooks read as i['meta']['customize']"),
    "default": ("anything", "present: the member of its group that is on when none is chosen; the value is not read"),
    "default_env": ("env", "env for keys that have no value yet"),
    "default_variation": ("text", "the variation that is on when no variation at all is asked for"),
    "default_variations": ("members", "group to the member that is on when none of the group is chosen"),
    "default_version": ("version", "the version when nobody asks for one"),
    "deps": ("deps", DEPS_HELP.format(when="first, before preprocess")),
    "docker": ("docker", "settings for containers; handed on in state.docker"),
    "dynamic": ("flag", "run this dependency also when its parent is reused from the cache"),
    "enable_if_any_env": ("condition", "only when one key has one of its values"),
    "enable_if_env": ("condition", "only when each key has one of its values"),
    "env": ("env", "env keys and values; they replace what the caller gave"),
    "env_key_mappings": ("env_names", "prefix to prefix: env keys doubled under another name for the native script"),
    "extra_cache_tags": ("texts", "tags for the child's entry in the cache"),
    "extra_cache_tags_from_env": ("cache_tags", "env keys whose values become tags of the cache entry"),
    "force_cache": ("flag", "cache the child though it is not cached by itself (needs its can_force_cache)"),
    "force_env_keys": ("texts", "env keys or globs that the child sees although they are local to the parent"),
    "force_new_env_keys": ("texts", "what leaves the child instead of its new_env_keys"),
    "force_new_state_keys": ("texts", "what leaves the child instead of its new_state_keys"),
    "group": ("text", "variations of one group exclude each other"),
    "ignore_script_error": ("flag", "go on when the child's native script fails"),
    "inherit_cache_expiration": ("flag", "the child's entry lives as long as the parent's"),
    "inherit_variation_tags": ("flag", "ask the child for the parent's variations too"),
    "input": ("text", "what the child works on (CM_INPUT)"),
    "input_description": ("inputs", "help for each input"),
    "input_mapping": ("env_names", "input of the command line to the env key that gets its value"),
    "invalid_variation_combinations": ("combinations", "variations that do not go together"),
    "local_env_keys": ("texts", "env keys or globs that own dependencies do not see"),
    "min_cm_version": ("version", "the oldest cmind that can run the recipe"),
    "name": ("text", "a name for people; for a dependency: the input CM_NAME of the child"),
    "names": ("texts", "handles by which ad and adr change this dependency"),
    "needs": ("needs", "what a run needs of the machine and its user; cm plan script tells it"),
    "new_env_keys": ("texts", "env keys or globs that leave the recipe; nothing else does"),
    "new_state_keys": ("texts", "state keys or globs that leave the recipe"),
    "outbasename": ("text", "base name for what the child writes (CM_OUTBASENAME)"),
    "outdirname": ("text", "folder in which the child runs (CM_OUTDIRNAME)"),
    "output": ("text", "where the child puts its result (CM_OUTPUT)"),
    "path": ("texts", "folders in which the child searches (CM_TMP_PATH)"),
    "post_deps": ("deps", DEPS_HELP.format(when="last, after postprocess")),
    "posthook_deps": ("deps", DEPS_HELP.format(when="after the native script, before postprocess")),
    "predeps": ("flag", "false: a predeps hook is not called"),
    "prehook_deps": ("deps", DEPS_HELP.format(when="after preprocess, before the native script")),
    "print_env_at_the_end": ("env_names", "env key to the label under which its value is shown"),
    "print_files_if_script_error": ("texts", "files to show when the native script fails"),
    "required_disk_space": ("whole", "disk space in MB"),
    "reuse_version": ("flag", "ask the child for the version that the parent is asked for"),
    "script_name": ("text", "base name of the native script instead of run"),
    "skip_cache": ("flag", "run the child though an entry fits"),
    "skip_if_any_env": ("condition", "not when one key has one of its values"),
    "skip_if_env": ("condition", "not when each key has one of its values"),
    "skip_if_fake_run": ("flag", "not in a fake run of the parent"),
    "skip_inherit_variation_groups": ("texts", "groups that inherit_variation_tags leaves out"),
    "sort": ("whole", "rank among recipes with the same tags; the lowest is preferred"),
    "state": ("mapping", "state to merge in"),
    "tags": ("text", "tags and _variations of the recipe to run, with commas"),
    "uid": ("uid", "16 lower-case hex digits that no other recipe has, in quotes"),
    "tags_help": ("text", "the tags to show in examples"),
    "tests": ("tests", "runs that cm test script makes"),
    "exclude-in-test": ("flag", "left out of a test of all variations"),
    "update_meta_if_env": ("conditional", "blocks that count while their conditions hold"),
    "update_tags_from_env": ("texts", "env keys whose values are added to the tags"),
    "update_tags_from_env_with_prefix": (
        "tags_by_prefix",
        "prefix to env keys: prefix and value are added to the tags",
    ),
    "update_tags_if_env": ("tags_by_condition", "tag to the condition under which it is added"),
    "valid_variation_combinations": ("combinations", "variations of which one line must be complete"),
    "variations": (
        "variations",
        "named changes, asked for as _NAME; a,b counts when both are on; name.# takes a value",
    ),
    "version": ("version", "the one version to have"),
    "version_max": ("version", "the newest version to have"),
    "version_max_usable": ("version", "the version to take when version_max rules out the default one"),
    "version_min": ("version", "the oldest version to have"),
    "versions": ("versions", "version to the block that counts for it"),
    "warning": ("texts", "a text that the user sees before the run"),
    "warnings": ("texts", "texts that the user sees before the run"),
}
"""Key to its type and help; for keys of all places."""

OF_RECIPE: dict[str, tuple[str, str]] = {
    "tags": ("tags", "what users and other recipes find the recipe by"),
    "docker": ("docker", "settings for containers; handed on in state.docker"),
}
"""Where a key of the recipe itself differs from the key of that name elsewhere."""

NEEDS: Schema = {
    "type": ["object", "null"],
    "additionalProperties": False,
    "properties": {
        "downloads": {
            "type": "array",
            "description": "what a run fetches",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["what"],
                "properties": {
                    "what": {"type": "string", "minLength": 1, "description": 'an address, or a name: "PyPI: numpy"'},
                    "size_bytes": {"type": "integer", "minimum": 0},
                    "sha256": {"type": "string", "pattern": "^([0-9a-fA-F]{64}|.*<<<.+>>>.*)$"},
                    "licence": {"type": "string", "description": "SPDX name, or where its text is"},
                },
            },
        },
        "disk_mb": {**MEGABYTES, "description": "disk space that stays taken, in MB of 10**6 bytes"},
        "memory_mb": {**MEGABYTES, "description": "memory at the peak, in MB of 10**6 bytes"},
        "sudo": {**NEED, "description": "what for, when rights of the administrator are needed"},
        "container": {**NEED, "description": "what for, when a container is started"},
        "gpu": {**NEED, "description": "what for, when a GPU is needed"},
        "tokens": {"type": "array", "items": {"type": "string"}, "description": "env keys with secrets it asks for"},
    },
}


def _properties(keys: Iterable[str], own: Mapping[str, tuple[str, str]] | None = None) -> Schema:
    found = {}
    for key in sorted(keys):
        kind, text = (own or {}).get(key) or HELP[key]
        found[key] = {**_ref(kind), "description": text}
    return found


def _for_people(place: str) -> Schema:
    return {key: {"description": text} for key, text in sorted(FOR_PEOPLE.get(place, {}).items())}


def _closed(keys: Iterable[str], place: str) -> Schema:
    """An object with these keys and those that only people read, and no other."""
    properties = {**_properties(keys), **_for_people(place)}
    return {"type": "object", "additionalProperties": False, "properties": dict(sorted(properties.items()))}


def make_schema() -> Schema:
    """The whole schema."""
    open_names = {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$", "not": {"enum": sorted(UNREAD["dependency"])}}
    recipe = {**_properties(LIVE_KEYS["recipe"], OF_RECIPE), **_for_people("recipe")}
    places: dict[str, Schema] = {
        "variation": _closed(LIVE_KEYS["variation"], "variation"),
        "version_block": _closed(LIVE_KEYS["version"], "version"),
        "conditional_block": _closed(LIVE_KEYS["update_meta_if_env"], "update_meta_if_env"),
        "dependency": {
            "type": "object",
            "properties": _properties(LIVE_KEYS["dependency"]),
            "propertyNames": open_names,
            "description": "any further key is an input of the recipe that is run",
        },
        "override": {
            "type": ["object", "null"],
            "properties": _properties(LIVE_KEYS["dependency"] | LIVE_KEYS["override"]),
            "propertyNames": open_names,
        },
        "conditions": {
            "type": "object",
            "additionalProperties": False,
            "properties": _properties(KINDS),
        },
        "input": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                **_for_people("input_description"),
                "desc": {"type": "string", "description": "what it is, for the user"},
                "default": {"description": "what counts when the input is not given; for the user, nothing sets it"},
                "choices": {"type": "array", "description": "all values that make sense"},
                "is_path": {**_ref("flag"), "description": "a relative path counts from the folder of the command"},
            },
        },
        "cache_tag": {
            "type": "object",
            "additionalProperties": False,
            "required": ["env"],
            "properties": {"env": {"type": "string"}, "prefix": {"type": "string"}},
        },
        "needs_block": NEEDS,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Recipe (_cm.yaml)",
        "description": "A recipe of the CM format as the engine of crowdperf reads it; made by tools/make_schema.py.",
        "type": "object",
        "required": ["uid", "tags"],
        "additionalProperties": False,
        "properties": dict(sorted(recipe.items())),
        "$defs": dict(sorted({**TYPES, **places}.items())),
    }


def schema_text() -> str:
    """The text of the published file."""
    assert all(phase in HELP for phase in PHASES)
    return json.dumps(make_schema(), indent=2) + "\n"


def main() -> int:
    """Writes the file, or with ``--check`` tells whether it is up to date by the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 when the file would change")
    if parser.parse_args().check:
        return 0 if TARGET.is_file() and TARGET.read_text(encoding="utf-8") == schema_text() else 1
    TARGET.write_text(schema_text(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
