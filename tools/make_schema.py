"""Writes docs/reference/cm-recipe.schema.json, the JSON Schema of recipe files, from the keys that the engine knows.

    python tools/make_schema.py [--check]

The keys of each place, their kinds and help are those of ``recipe_engine.rules.keys``; this file adds a type for each
kind.
Editors complete and check a recipe whose first line is the comment that ours have (docs/reference/recipe-schema.md).
"""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import engine_package  # noqa: F401 - the next imports need it
from reader import exit_code
from recipe_engine.disk.metadata import SCRIPT_AUTOMATION_UID
from recipe_engine.rules.conditions import FALSE_WORDS, TRUE_WORDS
from recipe_engine.rules.keys import (
    CHILD_KEYS,
    CONDITION_KEYS,
    CONDITIONAL_KEYS,
    COSTS,
    DEPENDENCY_KEYS,
    FOR_PEOPLE,
    INPUT_TYPES,
    LIST_OF,
    RECIPE_KEYS,
    UNREAD,
    VARIATION_KEYS,
    VERSION_KEYS,
    Keys,
)
from recipe_engine.rules.schema import LIFETIME_UNITS_S

CHECKOUT = Path(__file__).resolve().parent.parent
TARGET = CHECKOUT / "docs" / "reference" / "cm-recipe.schema.json"

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
                    "license": {"type": "string", "description": "SPDX name, or where its text is"},
                    "licence": {"type": "string", "description": "the same as license, in older recipes"},
                },
            },
        },
        "disk_mb": {**MEGABYTES, "description": "disk space that stays in use, in MB of 10**6 bytes"},
        "memory_mb": {**MEGABYTES, "description": "memory at the peak, in MB of 10**6 bytes"},
        "sudo": {**NEED, "description": "what for, when rights of the administrator are needed"},
        "container": {**NEED, "description": "what for, when a container is started"},
        "gpu": {**NEED, "description": "what for, when a GPU is needed"},
        "tokens": {"type": "array", "items": {"type": "string"}, "description": "env keys with secrets it requires"},
    },
}


def _properties(keys: Keys) -> Schema:
    return {key: {**_ref(kind), "description": text} for key, (kind, text) in sorted(keys.items())}


def _for_people(place: str) -> Schema:
    return {key: {"description": text} for key, text in sorted(FOR_PEOPLE.get(place, {}).items())}


def _closed(keys: Keys, place: str) -> Schema:
    """An object with these keys and those that only people read, and no other."""
    properties = {**_properties(keys), **_for_people(place)}
    return {"type": "object", "additionalProperties": False, "properties": dict(sorted(properties.items()))}


def make_schema() -> Schema:
    """The whole schema."""
    open_names = {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$", "not": {"enum": sorted(UNREAD["dependency"])}}
    recipe = {**_properties(RECIPE_KEYS), **_for_people("recipe")}
    recipe["cost"] |= {
        "type": "object",
        "additionalProperties": False,
        "properties": {key: {"type": "string", "description": text} for key, text in COSTS.items()},
    }
    recipe["hardware_status"]["type"] = "string"
    entry = _properties({**DEPENDENCY_KEYS, **CHILD_KEYS})
    places: dict[str, Schema] = {
        "variation": _closed(VARIATION_KEYS, "variation"),
        "version_block": _closed(VERSION_KEYS, "version"),
        "conditional_block": _closed(CONDITIONAL_KEYS, "update_meta_if_env"),
        "dependency": {
            "type": "object",
            "properties": entry,
            "propertyNames": open_names,
            "description": "any further key is an input of the recipe that is run",
        },
        "override": {
            "type": ["object", "null"],
            "properties": entry,
            "propertyNames": open_names,
        },
        "conditions": {
            "type": "object",
            "additionalProperties": False,
            "properties": _properties(CONDITION_KEYS),
        },
        "input": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                **_for_people("input_description"),
                "desc": {"type": "string", "description": "description for the user"},
                "type": {
                    "enum": [*INPUT_TYPES, *(LIST_OF + name for name in INPUT_TYPES)],
                    "description": "what a value is: "
                    + "; ".join(f"{name}: {what}" for name, what in INPUT_TYPES.items()),
                },
                "env": {"type": "string", "description": "the env key that gets the value"},
                "default": {"description": "what a hook gets when the input is not given. It sets no env key"},
                "env_default": {"description": "as default, but also the value of the env key, as in default_env"},
                "unit": {"type": "string", "description": "of a number, for the user"},
                "minimum": {"type": "number", "description": "minimum"},
                "maximum": {"type": "number", "description": "largest number that is allowed"},
                "above": {"type": "number", "description": "all allowed numbers are above it"},
                "choices": {"type": "array", "description": "all values that make sense"},
                "refused": {"type": "object", "description": "values that people may expect, to what to do instead"},
                "only_with": {**_ref("texts"), "description": "inputs, NAME or NAME=VALUE, one of which is required"},
                "together_with": {**_ref("texts"), "description": "inputs that are given with it or not at all"},
                "aliases": {**_ref("texts"), "description": "other names under which the input may be given"},
                "may_be_empty": {
                    **_ref("flag"),
                    "description": "of a text: an empty value is allowed, and counts as not given",
                },
                "boolean": {**_ref("flag"), "description": "as the type yes_no, in recipes of CM's successor"},
                "is_path": {**_ref("flag"), "description": "as the type path, in recipes of CM's successor"},
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
        "description": "A recipe of the CM format as crowdperf's engine reads it. Generated by tools/make_schema.py.",
        "type": "object",
        "required": ["uid", "tags"],
        "additionalProperties": False,
        "properties": dict(sorted(recipe.items())),
        "$defs": dict(sorted({**TYPES, **places}.items())),
    }


def schema_text() -> str:
    """The text of the published file."""
    return json.dumps(make_schema(), indent=2) + "\n"


def main() -> int:
    """Writes the file, or with ``--check`` tells whether it is up to date by the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write no file, exit with 1 if the file would change")
    if parser.parse_args().check:
        return 0 if TARGET.is_file() and TARGET.read_text(encoding="utf-8") == schema_text() else 1
    TARGET.write_text(schema_text(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(exit_code(main))
