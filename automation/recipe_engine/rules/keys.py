"""The keys of the recipe format by the place where they stand, and which keys of a recipe nothing reads.

Reading a recipe ignores a key that it does not know, as CM does; ``unknown_keys`` is for those who look over recipes.
``LIVE_KEYS`` is the whole format as this engine reads it: tests/compat/test_format_keys.py has a case for each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .conditions import KINDS
from .model import PHASES
from .tags import nearest

_VALUE_KEYS = frozenset(["default_env", "env", "const", "state", "const_state", "docker"])
_OVERRIDE_BLOCKS = frozenset(["ad", "add_deps", "adr", "add_deps_recursive"])

VERSION_KEYS = (
    _VALUE_KEYS
    | _OVERRIDE_BLOCKS
    | frozenset(PHASES)
    | frozenset(
        [
            "input_mapping",
            "new_env_keys",
            "new_state_keys",
            "update_meta_if_env",
            "script_name",
            "warnings",
            "warning",
            "required_disk_space",
            "cache_expiration",
            "needs",
        ]
    )
)
"""Keys of a block of ``versions``; recipes and variations have them too."""
LAYER_KEYS = VERSION_KEYS | frozenset(["default_version"])
"""Keys that recipes and variations share."""
CONDITIONAL_KEYS = _VALUE_KEYS | _OVERRIDE_BLOCKS | frozenset(["default_variations", *KINDS])
"""Keys of a block of ``update_meta_if_env``."""
VARIATION_KEYS = LAYER_KEYS | frozenset(
    ["group", "default", "base", "default_variations", "alias", "cache", "exclude-in-test"]
)

RECIPE_LIVE_KEYS = LAYER_KEYS | frozenset(
    [
        "alias",
        "uid",
        "automation_uid",
        "tags",
        "sort",
        "cache",
        "can_force_cache",
        "variations",
        "versions",
        "customize",
        "input_description",
        "default_variation",
        "default_variations",
        "version",
        "version_min",
        "version_max",
        "version_max_usable",
        "valid_variation_combinations",
        "invalid_variation_combinations",
        "local_env_keys",
        "clean_env_keys_post_deps",
        "extra_cache_tags_from_env",
        "env_key_mappings",
        "clean_files",
        "clean_output_files",
        "print_files_if_script_error",
        "print_env_at_the_end",
        "min_cm_version",
        "predeps",
        "name",
        "tags_help",
        "tests",
        "_base",
    ]
)

FOR_PEOPLE: Mapping[str, Mapping[str, str]] = {
    "recipe": {
        "automation_alias": "names the automation, automation_uid decides",
        "category": "documentation",
        "category_sort": "documentation",
        "copyright": "documentation",
        "developers": "documentation",
        "gui": "settings of a graphical interface",
        "min_mlc_version": "counts versions of CM's successor",
        "private": "tells that a recipe needs private access",
        "repo_to_report_errors": "documentation",
        "result_folder_input": "the recipe writes result records; its input that says where a result goes",
        "variation_groups_order": "documentation",
    },
    "variation": {
        "default_gui": "settings of a graphical interface",
    },
    "input_description": {
        "boolean": "documentation",
        "sort": "documentation",
    },
}
"""Keys that no run reads but people and other tools do, with what they are for."""

UNREAD: Mapping[str, Mapping[str, str]] = {
    "recipe": {
        "docker_input_mapping": "only docker.docker_input_mapping counts",
        "docker_off": "switched off by its name",
        "file_path_env_keys": "for containers of CM's successor",
        "folder_path_env_keys": "for containers of CM's successor",
        "print_env_at_the_end_disabled": "switched off by its name",
        "remote_run": "runs on other machines, by CM's successor",
        "sudo_install": "CM's successor does not read it either",
        "variation_tags_alias": "CM's successor does not read it either",
    },
    "variation": {
        "add_deps_tags": "old name of add_deps",
        "default_variation": "only a recipe has one; default_variations is for variations",
        "force_cache": "an input, or a key of a dependency",
        "names": "belongs to a dependency",
    },
    "version": {"default_version": "the version is chosen before its block is read"},
    "update_meta_if_env": dict.fromkeys(PHASES, "give the dependency itself the condition"),
    "dependency": {
        "extra_cache_rm_tags": "nobody reads it",
        "new_env_keys": "force_new_env_keys is the one for a dependency",
        "update_tags_from_env_with_prefix1": "switched off by its name",
        "version_max1": "switched off by its name",
        "version_max_usable1": "switched off by its name",
    },
}
"""Keys of community recipes that have no effect, with the reason; ``unknown_keys`` names them."""

RECIPE_KEYS = RECIPE_LIVE_KEYS.union(FOR_PEOPLE["recipe"])

DEPENDENCY_KEYS = frozenset(
    [
        "tags",
        "names",
        "env",
        "state",
        "const",
        "const_state",
        "dynamic",
        *KINDS,
        "update_tags_from_env",
        "update_tags_from_env_with_prefix",
        "force_env_keys",
        "inherit_variation_tags",
        "skip_inherit_variation_groups",
        "reuse_version",
        "skip_if_fake_run",
        "update_tags_if_env",
        "update_meta_if_env",
        "continue_on_error",
        "inherit_cache_expiration",
    ]
)
"""Keys of a dependency entry that the engine reads itself; every other one becomes an input of the child."""
CHILD_KEYS = frozenset(
    [
        "name",
        "path",
        "input",
        "output",
        "outdirname",
        "outbasename",
        "version",
        "version_min",
        "version_max",
        "version_max_usable",
        "extra_cache_tags",
        "force_cache",
        "skip_cache",
        "cache_expiration",
        "ignore_script_error",
        "force_new_env_keys",
        "force_new_state_keys",
        *_OVERRIDE_BLOCKS,
    ]
)
"""Inputs that every recipe understands, so that a dependency entry may hold them."""

LIVE_KEYS: Mapping[str, frozenset[str]] = {
    "recipe": RECIPE_LIVE_KEYS,
    "variation": VARIATION_KEYS,
    "version": VERSION_KEYS,
    "update_meta_if_env": CONDITIONAL_KEYS,
    "dependency": DEPENDENCY_KEYS | CHILD_KEYS,
    "override": frozenset(["tags", "env", "version", "version_min", "version_max", "version_max_usable", *KINDS])
    | frozenset(["extra_cache_tags"]),
    "docker": frozenset(["run", "real_run"]),
    "extra_cache_tags_from_env": frozenset(["env", "prefix"]),
    "input_description": frozenset(["choices", "is_path", "desc", "default"]),
    "tests": frozenset(["run_inputs"]),
    "tests.run_inputs": frozenset(["id", "env", "docker", "test-all-variations", "variations_list"]),
}
"""Place to the keys that change what a run, a plan, a test or the help does.

``override`` is what stands under a handle of ``ad`` or ``adr``: any key of a dependency; named are those that recipes
use. An entry of ``tests.run_inputs`` holds inputs of the recipe too.
"""

LOOKS_ALIKE = 0.85
"""How much a dependency's key must resemble a known one to count as misspelt: any other name may be an input."""


def unknown_keys(meta: Mapping[str, Any]) -> list[str]:
    """The key paths of a recipe file that nothing reads, each with the reason or the key that was probably meant.

    A dependency entry may hold any input of the recipe it names; there only look-alikes of known keys are reported.
    """
    found = list(_in_layer(meta, RECIPE_KEYS, "", "recipe"))
    for name, block in (meta.get("variations") or {}).items():
        known = VARIATION_KEYS.union(FOR_PEOPLE["variation"])
        found += _in_layer(block or {}, known, f"variations.{name}.", "variation")
    for name, block in (meta.get("versions") or {}).items():
        found += _in_layer(block or {}, VERSION_KEYS, f"versions.{name}.", "version")
    return found


def _in_layer(block: Mapping[str, Any], known: frozenset[str], where: str, place: str) -> Iterator[str]:
    for key in block:
        if key not in known:
            yield f"{where}{key}{_meant(str(key), known, place)}"
    for number, inner in _blocks(block, "update_meta_if_env"):
        yield from _in_layer(inner, CONDITIONAL_KEYS, f"{where}update_meta_if_env[{number}].", "update_meta_if_env")
    for phase in PHASES:
        for number, entry in _blocks(block, phase):
            for key in entry:
                known_here = DEPENDENCY_KEYS | CHILD_KEYS
                meant = "" if key in known_here else _meant(str(key), known_here, "dependency", LOOKS_ALIKE)
                if meant:
                    yield f"{where}{phase}[{number}].{key}{meant}"


def _blocks(block: Mapping[str, Any], key: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The mappings in a list with their places; whatever else stands there is not looked into."""
    items = block.get(key)
    for number, item in enumerate(items if isinstance(items, list) else ()):
        if isinstance(item, Mapping):
            yield number, item


def _meant(key: str, known: frozenset[str], place: str, likeness: float = 0.55) -> str:
    """In brackets: why nothing reads ``key``, else the known key that was probably meant; empty without either."""
    reason = UNREAD.get(place, {}).get(key)
    if reason:
        return f" ({reason})"
    close = nearest(key, known, 1, likeness)
    return f" (did you mean {close[0]}?)" if close else ""
