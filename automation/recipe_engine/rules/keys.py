"""The recipe format in one table: the keys of each place, what kind of value each holds, and what it is for.

Reading a recipe (schema.py), its JSON Schema (tools/make_schema.py) and the audit work from it. Reading ignores a key
that it does not know, as CM does; the audit finds such keys. tests/compat/test_format_keys.py has a case for each of
``LIVE_KEYS``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from .conditions import KINDS
from .model import PHASES

Keys = Mapping[str, tuple[str, str]]
"""Key to its kind (a reader in schema.py, a type in the JSON Schema) and its meaning."""

CONDITION_KEYS: Keys = {
    "enable_if_env": ("condition", "only when each key has one of its values"),
    "skip_if_env": ("condition", "not when each key has one of its values"),
    "enable_if_any_env": ("condition", "only when one key has one of its values"),
    "skip_if_any_env": ("condition", "not when one key has one of its values"),
}
_BOUNDS: Keys = {
    "version": ("version", "the one version to have"),
    "version_min": ("version", "the oldest version to have"),
    "version_max": ("version", "the newest version to have"),
    "version_max_usable": ("version", "the version to use when version_max excludes the default one"),
}
_OVERRIDES: Keys = {
    "ad": ("overrides", "changes to the recipe's own dependencies, by name (an unknown name is an error)"),
    "add_deps": ("overrides", "long form of ad"),
    "adr": ("overrides", "changes to dependencies at any depth, by name"),
    "add_deps_recursive": ("overrides", "long form of adr"),
}
_HANDED_ON: Keys = {
    "env": ("env", "env keys and values that replace the caller's"),
    "const": ("env", "env that cannot be overridden, here and in all dependencies"),
    "state": ("mapping", "state to merge in"),
    "const_state": ("mapping", "state that cannot be overridden"),
}
_LIFETIME: Keys = {"cache_expiration": ("lifetime", "how long an entry of the cache may be used: 90m, 2h, 3d, 0")}
_DEFAULTS: Keys = {"default_variations": ("members", "group to the member that is on when none of it is chosen")}
_VALUES: Keys = {
    "default_env": ("env", "env for keys that have no value yet"),
    **_HANDED_ON,
    "docker": ("docker", "settings for containers, passed on in state.docker"),
    **_OVERRIDES,
}
CONDITIONAL_KEYS: Keys = {**_VALUES, **_DEFAULTS, **CONDITION_KEYS}
VERSION_KEYS: Keys = {
    **_VALUES,
    "deps": ("deps", "recipes to run first, before preprocess. One entry per recipe, found by its tags"),
    "prehook_deps": ("deps", "recipes to run after preprocess, before the native script (entries as in deps)"),
    "posthook_deps": ("deps", "recipes to run after the native script, before postprocess (entries as in deps)"),
    "post_deps": ("deps", "recipes to run last, after postprocess (entries as in deps)"),
    "input_mapping": ("env_names", "input of the command line to the env key that gets its value"),
    "new_env_keys": ("texts", "env keys or globs that the recipe exports (all others stay inside)"),
    "new_state_keys": ("texts", "state keys or globs that the recipe exports"),
    "update_meta_if_env": ("conditional", "blocks that apply while their conditions are met"),
    "script_name": ("text", "base name of the native script instead of run"),
    "warnings": ("texts", "texts that the user sees before the run"),
    "warning": ("texts", "a text that the user sees before the run"),
    "required_disk_space": ("whole", "disk space in MB"),
    **_LIFETIME,
    "needs": ("needs", "requirements on the machine and its user, shown by cm plan script"),
}
_SHARED: Keys = {
    **VERSION_KEYS,
    "default_version": ("version", "the version when none is requested"),
    **_DEFAULTS,
    "alias": ("text", "the recipe's name, equal to its folder (for a variation: the one it is an alias of)"),
    "cache": ("flag", "whether the result is kept in the cache and reused"),
    "library": ("texts", "modules of the repository's packages that its code loads by name: its digest covers them"),
}
VARIATION_KEYS: Keys = {
    **_SHARED,
    "group": ("text", "variations of one group exclude each other"),
    "default": ("anything", "present: the member of its group that is on when none is chosen. The value is not read"),
    "base": ("texts", "variations that are switched on with this one"),
    "exclude-in-test": ("flag", "excluded from a test of all variations"),
}
RECIPE_KEYS: Keys = {
    **_SHARED,
    **_BOUNDS,
    "uid": ("uid", "16 lower-case hex digits that no other recipe has, in quotes"),
    "automation_uid": ("automation_uid", "the automation that runs recipes"),
    "name": ("text", "a name for people (for a dependency: the input CM_NAME of the child)"),
    "tags": ("tags", "words by which users and other recipes find the recipe"),
    "tags_help": ("text", "the tags to show in examples"),
    "sort": ("whole", "rank among recipes with the same tags (the lowest is preferred)"),
    "can_force_cache": ("flag", "whether a caller may force caching of an uncached recipe"),
    "variations": (
        "variations",
        "named changes, selected as _NAME (a,b applies when both are on, name.# accepts a value)",
    ),
    "versions": ("versions", "version to the block that applies to it"),
    "customize": ("anything", "free settings that hooks read as i['meta']['customize']"),
    "input_description": ("inputs", "help for each input"),
    "refused_inputs": (
        "env_names",
        "input of other recipes that this one refuses, to what to do instead",
    ),
    "unused_inputs": ("env_names", "input of other recipes that has no effect here, to the reason"),
    "default_variation": ("text", "the variation that is on when no variation is requested"),
    "valid_variation_combinations": ("combinations", "lists of variations, one of which must be complete"),
    "invalid_variation_combinations": ("combinations", "variations that cannot be combined"),
    "local_env_keys": ("texts", "env keys or globs that the recipe's dependencies do not see"),
    "clean_env_keys_post_deps": ("texts", "env keys that post_deps do not see"),
    "extra_cache_tags_from_env": ("cache_tags", "env keys whose values become tags of the cache entry"),
    "env_key_mappings": ("env_names", "prefix to prefix: env keys doubled under another name for the native script"),
    "clean_files": ("texts", "files to delete in the working folder before the run"),
    "clean_output_files": ("texts", "files to delete before it is decided whether to reuse an entry"),
    "print_files_if_script_error": ("texts", "files to show when the native script fails"),
    "print_env_at_the_end": ("env_names", "env key to the label under which its value is shown"),
    "min_cm_version": ("version", "the oldest cmind that can run the recipe"),
    "plan_first": ("flag", "a run that the user starts is planned first, and refused when it could not succeed"),
    "own_folder": (
        "flag",
        "an uncached recipe works in its own temporary folder, so that other runs do not wait for it",
    ),
    "predeps": ("flag", "false: a predeps hook is not called"),
    "tests": ("tests", "runs that cm test script makes"),
    "_base": ("text", "another recipe (script::ALIAS) whose metadata this one inherits"),
}
DEPENDENCY_KEYS: Keys = {
    "tags": ("text", "tags and _variations of the recipe to run, with commas"),
    "names": ("texts", "handles by which ad and adr change this dependency"),
    **_HANDED_ON,
    "dynamic": ("flag", "run this dependency even when its parent is reused from the cache"),
    **CONDITION_KEYS,
    "update_tags_from_env": ("texts", "env keys whose values are added to the tags"),
    "update_tags_from_env_with_prefix": ("tags_by_prefix", "prefix to env keys: prefix and value join the tags"),
    "update_tags_if_env": ("tags_by_condition", "tag to the condition under which it is added"),
    "update_meta_if_env": ("conditional", "blocks that apply while their conditions are met"),
    "force_env_keys": ("texts", "env keys or globs that the child sees although they are local to the parent"),
    "inherit_variation_tags": ("flag", "also request the parent's variations from the child"),
    "skip_inherit_variation_groups": ("texts", "groups that inherit_variation_tags leaves out"),
    "reuse_version": ("flag", "request the parent's version from the child"),
    "skip_if_fake_run": ("flag", "not in a fake run of the parent"),
    "continue_on_error": ("flag", "continue when this dependency fails"),
    "inherit_cache_expiration": ("flag", "the child's entry lives as long as the parent's"),
}
"""Keys of a dependency entry that the engine reads itself; every other one becomes an input of the child."""
CHILD_KEYS: Keys = {
    "name": ("text", "a name for people (for a dependency: the input CM_NAME of the child)"),
    "path": ("texts", "folders in which the child searches (CM_TMP_PATH)"),
    "input": ("text", "the child's input (CM_INPUT)"),
    "output": ("text", "the child's output (CM_OUTPUT)"),
    "outdirname": ("text", "folder in which the child runs (CM_OUTDIRNAME)"),
    "outbasename": ("text", "base name of the child's output (CM_OUTBASENAME)"),
    **_BOUNDS,
    "extra_cache_tags": ("texts", "tags for the child's entry in the cache"),
    "force_cache": ("flag", "cache the child although it is not cached by default (needs its can_force_cache)"),
    "skip_cache": ("flag", "run the child even if an entry matches"),
    **_LIFETIME,
    "ignore_script_error": ("flag", "continue when the child's native script fails"),
    "force_new_env_keys": ("texts", "exports of the child, instead of its new_env_keys"),
    "force_new_state_keys": ("texts", "exports of the child, instead of its new_state_keys"),
    **_OVERRIDES,
}
"""Inputs that every recipe understands, so that a dependency entry may hold them."""

INPUT_TYPES: Mapping[str, str] = {
    "text": "any text",
    "whole": "a whole number, from 0 unless minimum or above says otherwise",
    "number": "a finite number",
    "yes_no": "yes, true, on, 1, no, false, off, 0",
    "choice": "one of choices, ignoring case, dashes, underscores and spaces",
    "path": "a file or folder (relative to the current folder)",
    "port": "a TCP port, from 1 or minimum to 65535",
    "size": "bytes: 1000, 512MiB, 20GB",
    "duration": "seconds: 90, 1.5, 90s, 15min, 1h30min",
    "url": "an address that begins with http:// or https://",
    "sha256": "a SHA-256, 64 hexadecimal digits",
}
"""The types of inputs, each also as a comma list: ``list of whole``. input_types.py reads them."""
LIST_OF = "list of "

LIVE_KEYS: Mapping[str, Collection[str]] = {
    "recipe": RECIPE_KEYS,
    "variation": VARIATION_KEYS,
    "version": VERSION_KEYS,
    "update_meta_if_env": CONDITIONAL_KEYS,
    "dependency": {**DEPENDENCY_KEYS, **CHILD_KEYS},
    "override": ["tags", "env", *_BOUNDS, *KINDS, "extra_cache_tags"],
    "docker": ["run", "real_run"],
    "extra_cache_tags_from_env": ["env", "prefix"],
    "input_description": [
        *("type", "env", "desc", "default", "env_default", "unit", "minimum", "maximum", "above", "choices", "refused"),
        *("only_with", "together_with", "aliases", "may_be_empty", "boolean", "is_path"),
    ],
    "tests": ["run_inputs"],
    "tests.run_inputs": ["id", "env", "docker", "test-all-variations", "variations_list"],
}
"""Place to the keys that change what a run, a plan, a test or the help does.

``override`` is the block of a handle of ``ad`` or ``adr``: any key of a dependency; named are those that recipes use.
An entry of ``tests.run_inputs`` holds inputs of the recipe too.
"""

COSTS: Mapping[str, str] = {
    "time": "duration of a run, and the machine it was measured on",
    "download": "downloads (default: the downloads of needs)",
    "disk": "disk space that stays in use (default: disk_mb of needs)",
    "memory": "main memory, where that matters",
    "network": "hosts that are contacted, or none",
    "root": "what root is needed for. Without it sudo of needs, or never",
}
"""The keys of ``cost``: each is a text for the help and the README."""

FOR_PEOPLE: Mapping[str, Mapping[str, str]] = {
    "recipe": {
        "cost": "cost of a run, for the help and the README: texts by the keys time, download, disk and so on",
        "hardware_status": "on which hardware the recipe was run, for the help and the README",
        "automation_alias": "name of the automation (automation_uid decides)",
        **dict.fromkeys(("category", "category_sort", "copyright", "developers"), "documentation"),
        **dict.fromkeys(("repo_to_report_errors", "variation_groups_order"), "documentation"),
        "gui": "settings of a graphical interface",
        "min_mlc_version": "counts versions of CM's successor",
        "private": "the recipe needs private access",
        "result_folder_input": "the recipe writes result records: its input for the result folder",
    },
    "variation": {
        "default_gui": "settings of a graphical interface",
    },
    "input_description": {
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
        "default_variation": "only a recipe has one. default_variations is for variations",
        "force_cache": "an input, or a key of a dependency",
        "names": "belongs to a dependency",
    },
    "version": {"default_version": "the version is chosen before its block is read"},
    "update_meta_if_env": dict.fromkeys(PHASES, "give the dependency itself the condition"),
    "dependency": {
        "extra_cache_rm_tags": "no engine reads it",
        "new_env_keys": "force_new_env_keys is the one for a dependency",
        **dict.fromkeys(("version_max1", "version_max_usable1"), "switched off by its name"),
        "update_tags_from_env_with_prefix1": "switched off by its name",
    },
}
"""Keys of community recipes that have no effect, with the reason; the audit names them."""
