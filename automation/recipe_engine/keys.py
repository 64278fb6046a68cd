"""The keys of the recipe format by the place where they stand, and which keys of a recipe nothing reads.

Reading a recipe ignores a key that it does not know, as CM does; ``unknown_keys`` is for those who look over recipes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .conditions import KINDS
from .model import PHASES
from .tags import nearest

LAYER_KEYS = frozenset(
    [
        "default_env",
        "env",
        "const",
        "state",
        "const_state",
        "docker",
        "deps",
        "prehook_deps",
        "posthook_deps",
        "post_deps",
        "ad",
        "add_deps",
        "adr",
        "add_deps_recursive",
        "input_mapping",
        "new_env_keys",
        "new_state_keys",
        "update_meta_if_env",
        "script_name",
        "default_version",
        "warnings",
        "warning",
        "required_disk_space",
        "cache_expiration",
        "needs",
    ]
)
CONDITIONAL_KEYS = LAYER_KEYS | frozenset(["default_variations", *KINDS])
"""Keys of a block of ``update_meta_if_env``."""
VARIATION_KEYS = LAYER_KEYS | frozenset(
    ["group", "default", "base", "default_variations", "alias", "cache", "exclude-in-test"]
)
TEXT_KEYS = frozenset(
    [
        "alias",
        "uid",
        "automation_alias",
        "automation_uid",
        "category",
        "category_sort",
        "name",
        "sort",
        "developers",
        "tags_help",
        "gui",
        "docker",
        "repo_to_report_errors",
        "customize",
        "tests",
        "min_cm_version",
        "min_mlc_version",
        "copyright",
    ]
)
RECIPE_KEYS = (
    LAYER_KEYS
    | TEXT_KEYS
    | frozenset(
        [
            "tags",
            "cache",
            "can_force_cache",
            "variations",
            "versions",
            "input_description",
            "default_variation",
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
            "variation_groups_order",
            "default_variations",
            "_base",
            "predeps",
            "private",
        ]
    )
)
DEPENDENCY_KEYS = frozenset(
    [
        "tags",
        "names",
        "env",
        "state",
        "const",
        "const_state",
        "dynamic",
        "enable_if_env",
        "skip_if_env",
        "enable_if_any_env",
        "skip_if_any_env",
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
        "ad",
        "add_deps",
        "adr",
        "add_deps_recursive",
    ]
)
"""Inputs that every recipe understands, so that a dependency entry may hold them."""

LOOKS_ALIKE = 0.85
"""How much a dependency's key must resemble a known one to count as misspelt: any other name may be an input."""


def unknown_keys(meta: Mapping[str, Any]) -> list[str]:
    """The key paths of a recipe file that nothing reads, each with the key that was probably meant.

    A dependency entry may hold any input of the recipe it names; there only look-alikes of known keys are reported.
    """
    found = list(_in_layer(meta, RECIPE_KEYS, ""))
    for name, block in (meta.get("variations") or {}).items():
        found += _in_layer(block or {}, VARIATION_KEYS, f"variations.{name}.")
    for name, block in (meta.get("versions") or {}).items():
        found += _in_layer(block or {}, LAYER_KEYS, f"versions.{name}.")
    return found


def _in_layer(block: Mapping[str, Any], known: frozenset[str], where: str) -> Iterator[str]:
    for key in block:
        if key not in known:
            yield f"{where}{key}{_meant(nearest(str(key), known, 1))}"
    for number, inner in enumerate(block.get("update_meta_if_env") or ()):
        yield from _in_layer(inner, CONDITIONAL_KEYS, f"{where}update_meta_if_env[{number}].")
    for phase in PHASES:
        for number, entry in enumerate(block.get(phase) or ()):
            for key in entry:
                known_here = DEPENDENCY_KEYS | CHILD_KEYS
                close = [] if key in known_here else nearest(str(key), known_here, 1, LOOKS_ALIKE)
                if close:
                    yield f"{where}{phase}[{number}].{key}{_meant(close)}"


def _meant(close: list[str]) -> str:
    return f" (did you mean {close[0]}?)" if close else ""
