"""The input keys of ``cm run script`` that the engine itself understands; all others belong to recipes."""

from __future__ import annotations

from .deps import INPUT_TO_ENV

EXTRA_FLAGS = frozenset(
    [
        "debug_script",
        "debug_script_tags",
        "dump_version_info",
        "pause",
        "print_env",
        "print_readme",
        "print_versions",
        "repro",
        "shell",
        "skip_remembered_selections",
        "space",
        "time",
    ]
)
"""The input keys that ask for something besides the run; see run_extras.py."""

FLAGS_AS_ENV = {
    "skip_sys_utils": "CM_SKIP_SYS_UTILS",
    "skip_sudo": "CM_TMP_SKIP_SUDO",
    "skip_remembered_selections": "CM_TMP_SKIP_REMEMBERED_SELECTIONS",
}
"""Flags that recipes read from the env as ``yes`` (reference engine, cm4mlops e1d5c7cf0)."""

FLAGS = frozenset(
    [
        "action",
        "automation",
        "artifact",
        "artifacts",
        "parsed_automation",
        "parsed_artifact",
        "parsed_artifacts",
        "cmd",
        "out",
        "common",
        "ignore_inheritance",
        "tags",
        "env",
        "state",
        "const",
        "const_state",
        "ad",
        "add_deps",
        "adr",
        "add_deps_recursive",
        "version",
        "version_min",
        "version_max",
        "version_max_usable",
        "path",
        "quiet",
        "q",
        "skip_cache",
        "force_cache",
        "new",
        "renew",
        "only_execute_from_cache",
        "skip_write_test",
        "script_call_prefix",
        "repro_dir",
        "repro_prefix",
        "print_deps",
        "debug_uid",
        "help",
        "h",
        "j",
        "json",
        "dirty",
        "save_env",
        "fake_run",
        "prepare",
        "fake_deps",
        "verbose",
        "v",
        "silent",
        "s",
        "ignore_script_error",
        "mixed_versions",
        "locked",
        "frozen",
        "debug",
        "lock_timeout",
        "save_to_json",
        "unparsed_cmd",
        "force_new_env_keys",
        "force_new_state_keys",
        "recursion",
        "recursion_spaces",
        "remembered_selections",
        "run_state",
    ]
).union(INPUT_TO_ENV, EXTRA_FLAGS, FLAGS_AS_ENV)
"""The input keys that the engine itself understands."""


NO_CONTAINER = ("docker", "fake_run_deps")
"""How CM's flags for containers begin."""
