"""The input keys of ``cm run script`` that the engine itself understands; all others belong to recipes."""

from __future__ import annotations

from .deps import INPUT_TO_ENV

_TABLE = """
cmind: action artifact artifacts automation cmd common out parsed_artifact parsed_artifacts parsed_automation
cmind: unparsed_cmd
query: ad add_deps add_deps_recursive adr tags version version_max version_max_usable version_min
values: const const_state env force_new_env_keys force_new_state_keys ignore_inheritance path state
cache: force_cache frozen lock_timeout locked mixed_versions new only_execute_from_cache renew skip_cache
run: debug debug_uid dirty fake_deps fake_run ignore_script_error prepare print_deps save_env skip_write_test
console: h help j json q quiet s save_to_json script_call_prefix silent v verbose
extras: debug_script debug_script_tags dump_version_info pause print_env print_readme print_versions repro shell
extras: skip_remembered_selections space time
reference engine: recursion recursion_spaces remembered_selections repro_dir repro_prefix run_state
"""
_ROWS = [line.partition(":") for line in _TABLE.strip().splitlines()]

EXTRA_FLAGS = frozenset(word for kind, _, words in _ROWS if kind == "extras" for word in words.split())
"""The input keys that ask for something besides the run; see run_extras.py."""

FLAGS_AS_ENV = {
    "skip_sys_utils": "CM_SKIP_SYS_UTILS",
    "skip_sudo": "CM_TMP_SKIP_SUDO",
    "skip_remembered_selections": "CM_TMP_SKIP_REMEMBERED_SELECTIONS",
}
"""Flags that recipes read from the env as ``yes`` (reference engine, cm4mlops e1d5c7cf0)."""

FLAGS = frozenset(word for _, _, words in _ROWS for word in words.split()).union(INPUT_TO_ENV, FLAGS_AS_ENV)
"""The input keys that the engine itself understands."""

NO_CONTAINER = ("docker", "fake_run_deps")
"""How CM's flags for containers begin."""
