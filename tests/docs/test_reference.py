"""The reference pages say what the code knows: the schema of recipes, the codes of the audit."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import make_schema
import pytest
import yaml
from recipe_engine.auditing.findings import CODES
from recipe_engine.disk.metadata import SCRIPT_AUTOMATION_UID, read_mapping
from recipe_engine.rules.errors import RecipeError
from recipe_engine.rules.keys import RECIPE_KEYS
from recipe_engine.rules.schema import parse_recipe
from recipe_programs import loaded

ROOT = Path(__file__).resolve().parents[2]
RECIPES = sorted((ROOT / "script").glob("*/_cm.yaml"))
FIRST_LINE = "# yaml-language-server: $schema=../../docs/reference/cm-recipe.schema.json"


format_keys = loaded(ROOT / "tests" / "compat" / "test_format_keys.py")
SCHEMA = make_schema.make_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
SOUND = {"uid": "abcdef0123456789", "tags": ["get", "x"]}


def problems(meta: Any) -> list[str]:
    return [error.message for error in VALIDATOR.iter_errors(meta)]


def test_the_committed_schema_is_what_the_tool_makes() -> None:
    assert make_schema.TARGET.read_text(encoding="utf-8") == make_schema.schema_text(), "run tools/make_schema.py"


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_our_recipes_fit_the_schema_and_tell_editors_where_it_is() -> None:
    assert {path.parent.name: found for path in RECIPES if (found := problems(read_mapping(path)))} == {}
    assert [path for path in RECIPES if not path.read_text(encoding="utf-8").startswith(f"{FIRST_LINE}\n")] == []


@pytest.mark.parametrize(("place", "key"), format_keys.ALL, ids=[f"{place}-{key}" for place, key in format_keys.ALL])
def test_the_fixture_recipe_of_each_key_fits_the_schema(place: str, key: str) -> None:
    put, cases = format_keys.PLACES[place]
    if key == "automation_uid":  # its recipe belongs to another automation, so that nothing runs it
        assert problems({**SOUND, **put(cases[key].block, cases[key])}) == [f"'{SCRIPT_AUTOMATION_UID}' was expected"]
        return
    assert problems({**SOUND, **put(cases[key].block, cases[key])}) == []
    for other in cases[key].others.values():
        assert problems({**SOUND, **{name: value for name, value in other.items() if name != "+"}}) == []


def test_the_recipe_of_the_howto_page_fits_the_schema() -> None:
    page = (ROOT / "docs" / "howto" / "add-recipe.md").read_text(encoding="utf-8")
    found = re.search(r"_cm\.yaml`\n\n```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert found
    assert problems(yaml.safe_load(found[1])) == []


@pytest.mark.parametrize(
    "change",
    [
        {"cache": "yes", "can_force_cache": None},
        {
            "deps": [
                {"tags": "get,y", "names": "y", "verify": True, "md5sum": "1", "enable_if_env": {"A": "b", "C": [1]}}
            ]
        },
        {"variations": {"a": None, "n.#": {"env": {"A": "#"}, "default": True, "exclude-in-test": True}, "a,b": {}}},
        {"versions": {"1.0": {"env": {"A": 1}}, "2.0": None}},
        {
            "update_meta_if_env": [
                {"enable_if_env": {"A": ["yes"]}, "env": {"B": "c"}, "default_variations": {"g": "a"}}
            ]
        },
        {"needs": {"downloads": [{"what": "PyPI: x"}], "disk_mb": 3, "sudo": "to install", "tokens": ["HF_TOKEN"]}},
        {
            "cache_expiration": "2h",
            "input_description": {"a": "help", "b": {"desc": "x", "choices": [1], "is_path": True}},
        },
        {"adr": {"y": {"tags": "_z", "version_min": "1.0"}}, "deps": None},
    ],
)
def test_what_the_format_allows_fits(change: dict[str, Any], tmp_path: Path) -> None:
    assert problems({**SOUND, **change}) == []
    parse_recipe({**SOUND, **change}, tmp_path, tmp_path)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"uid": 1234567890123456}, "string"),
        ({"uid": "ABCDEF0123456789"}, "match"),
        ({"tags": "get,x"}, "array"),
        ({"tags": []}, "non-empty"),
        ({"tags": ["get", "get"]}, "unique"),
        ({"tags": ["_x"]}, "match"),
        ({"new_env_kyes": ["A"]}, "new_env_kyes"),
        ({"default_version": 3.1}, "string"),
        ({"cache": "maybe"}, "maybe"),
        ({"deps": {"tags": "get,y"}}, "array"),
        ({"deps": [{"force-cache": True}]}, "force-cache"),
        ({"deps": [{"tags": ["get"]}]}, "type"),
        ({"deps": [{"version_max": 2.0}]}, "string"),
        ({"variations": {"a": {"alis": "b"}}}, "valid"),
        ({"variations": {"a": {"CM_KEY": "b"}}}, "valid"),
        ({"versions": {"1.0": {"group": "g"}}}, "valid"),
        ({"update_meta_if_env": [{"enabel_if_env": {}}]}, "enabel_if_env"),
        ({"input_description": {"a": {"description": "x"}}}, "valid"),
        ({"needs": {"disk": 3}}, "disk"),
        ({"needs": {"downloads": [{"size_bytes": 3}]}}, "what"),
        ({"needs": {"downloads": [{"what": "x", "sha256": "1"}]}}, "match"),
        ({"cache_expiration": "2 weeks"}, "valid"),
        ({"automation_uid": "5b4e0237da074765"}, "expected"),
    ],
)
def test_typical_mistakes_do_not_fit(change: dict[str, Any], word: str) -> None:
    found = problems({**SOUND, **change})
    assert len(found) == 1
    assert word in found[0]


STRUCTURED = [
    "env",
    "mapping",
    "deps",
    "overrides",
    "variations",
    "versions",
    "conditional",
    "inputs",
    "env_names",
    "needs",
]


@pytest.mark.parametrize("key", sorted(key for key, (kind, _) in RECIPE_KEYS.items() if kind in STRUCTURED))
def test_engine_and_schema_refuse_a_text_where_a_structure_belongs(key: str, tmp_path: Path) -> None:
    meta = {**SOUND, key: "text"}
    assert problems(meta) != []
    with pytest.raises(RecipeError):
        parse_recipe(meta, tmp_path, tmp_path)


def test_every_key_of_the_schema_has_help() -> None:
    for place in ("variation", "version_block", "conditional_block", "dependency", "override", "input"):
        properties = SCHEMA["$defs"][place]["properties"]
        assert all(fragment.get("description") for fragment in properties.values()), place
    assert all(fragment.get("description") for fragment in SCHEMA["properties"].values())


def test_the_audit_page_lists_every_code() -> None:
    done = subprocess.run([sys.executable, ROOT / "tools" / "make_audit_page.py", "--check"], timeout=60)
    assert done.returncode == 0, "run tools/make_audit_page.py"
    page = (ROOT / "docs" / "reference" / "audit.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)) == set(CODES)


def test_the_page_about_the_schema_lists_what_needs_may_hold() -> None:
    page = (ROOT / "docs" / "reference" / "recipe-schema.md").read_text(encoding="utf-8")
    _, _, part = page.partition("## `needs`")
    listed = {
        name for row in re.findall(r"^\| (`[^|]+) \|", part, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    }
    assert listed == set(SCHEMA["$defs"]["needs_block"]["properties"])


def test_the_pages_of_recipes_say_what_their_files_say() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "make_recipe_pages.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"run: python tools/make_recipe_pages.py\n{done.stdout}{done.stderr}"
