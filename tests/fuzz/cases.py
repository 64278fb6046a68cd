"""What the fuzzing draws from: nasty scalars and structures, recipes and how to spoil them, words of command lines."""

import copy
from typing import Any

from hypothesis import strategies as st

UID = "a0000000000000fa"

NASTY_TEXTS = (
    "", " ", "_", "-", "_-", "-_", "#", "_#", ".", "..", ",", ",,", "=", "a=b=c", "<<<", ">>>", "<<<>>>", "<<<A>>>",
    "<<<CM_X>>>", "$(touch pwned)", "`touch pwned`", "'; touch pwned; '", '"', "'", "\\", "\n", "a\nb", "\t", "\r\n",
    "yes", "no", "True", "false", "on", "0", "-1", "1.0", "1.", "v", "3.9rc1", "1e400", "nan", "9" * 5000,
    "\x00", "\x7f",
    "é", "😀", "\u202e", "\ud800", "x" * 3000, "*", "?", "[", "[!", "[a-", "{", "}", "~", "a,_b", "_a,-_b", "n.#", "n.",
    "%s", "{0}", "get", "x", "CM_X", "CM_*", "a", "b", "tmp", "script-artifact-x", "-tmp", "../x", "none",
)  # fmt: skip
"""Texts that once broke something like this, or look as if they might."""

texts = st.one_of(st.sampled_from(NASTY_TEXTS), st.text(max_size=12))
scalars = st.one_of(
    texts,
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, -1, 10**30, 0.5, float("inf"), float("nan"), -0.0]),
    st.dates(),
    st.binary(max_size=3),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(texts, st.sampled_from([1, None, True])), inner, max_size=3),
    ),
    max_leaves=6,
)
"""Anything that YAML can hold, and some of what it cannot."""

_DEPENDENCY: dict[str, Any] = {
    "tags": "get,y,_v",
    "names": ["tool"],
    "enable_if_env": {"CM_A": ["yes"]},
    "skip_if_env": {"CM_B": ["yes", ""]},
    "enable_if_any_env": {"CM_A": ["yes"], "CM_C": ["1"]},
    "skip_if_any_env": {"CM_D": ["yes"]},
    "env": {"CM_Z": "<<<CM_A>>>"},
    "state": {"s": {"t": [1]}},
    "const": {"CM_K": "k"},
    "version": "1.0",
    "version_min": "0.9",
    "version_max": "2",
    "version_max_usable": "1.9",
    "update_tags_from_env_with_prefix": {"_w.": ["CM_A"]},
    "update_tags_from_env": ["CM_A"],
    "inherit_variation_tags": False,
    "skip_inherit_variation_groups": ["g"],
    "reuse_version": False,
    "force_env_keys": ["CM_TMP_*"],
    "extra_cache_tags": "extra",
    "dynamic": False,
    "skip_if_fake_run": False,
    "adr": {"other": {"tags": "_v"}},
    "continue_on_error": False,
}

RECIPE: dict[str, Any] = {
    "alias": "get-x",
    "uid": UID,
    "automation_alias": "script",
    "automation_uid": "5b4e0237da074764",
    "name": "X",
    "tags": ["get", "x"],
    "cache": False,
    "can_force_cache": True,
    "sort": 1,
    "category": "Tests",
    "default_env": {"CM_A": "yes", "CM_B": "no"},
    "env": {"CM_E": "1", "+PATH": ["/nowhere"]},
    "const": {"CM_CONST": "c"},
    "state": {"st": {"list": [1, 2]}},
    "default_version": "1.0",
    "version_min": "0.5",
    "version_max": "3",
    "version_max_usable": "2.5",
    "versions": {"1.0": {"env": {"CM_V": "one"}}, "2.0": {"deps": [{"tags": "get,y"}]}},
    "input_mapping": {"in": "CM_IN", "size": "CM_SIZE"},
    "input_description": {"in": {"desc": "text", "default": "d", "choices": ["d", "e"], "is_path": True}},
    "refused_inputs": {"old": "say --in"},
    "unused_inputs": {"older": "it is gone"},
    "new_env_keys": ["CM_*", "<<<CM_A>>>", "+PATH"],
    "new_state_keys": ["st"],
    "local_env_keys": ["CM_LOCAL*"],
    "clean_files": ["left.txt"],
    "clean_output_files": ["left.out"],
    "extra_cache_tags_from_env": [{"env": "CM_A", "prefix": "a-"}],
    "env_key_mappings": {"CM_": "CP_"},
    "print_env_at_the_end": {"CM_A": "the a"},
    "print_files_if_script_error": ["log"],
    "warnings": ["a warning"],
    "docker": {"run": True, "os": "ubuntu"},
    "required_disk_space": 0,
    "default_variation": "plain",
    "variations": {
        "plain": {"env": {"CM_P": "1"}, "group": "kind", "default": True},
        "fancy": {"group": "kind", "base": ["n.1"], "env": {"CM_P": "2"}, "warning": "w"},
        "n.#": {"env": {"CM_N": "#"}, "deps": [{"tags": "get,y,_v.#"}]},
        "also": {"alias": "fancy"},
        "plain,extra": {"env": {"CM_BOTH": "1"}},
        "extra": {
            "default_variations": {"kind": "plain"},
            "update_meta_if_env": [{"enable_if_env": {"CM_A": ["yes"]}, "env": {"CM_U": "1"}}],
            "ad": {"tool": {"tags": "_v", "version": "1.0"}},
        },
    },
    "valid_variation_combinations": [["plain"], ["fancy"], ["extra"]],
    "invalid_variation_combinations": [["fancy", "extra"]],
    "update_meta_if_env": [{"skip_if_env": {"CM_A": ["yes"]}, "default_env": {"CM_U2": "2"}}],
    "adr": {"tool": {"env": {"CM_T": "t"}}},
    "deps": [_DEPENDENCY, {"tags": "get,y"}],
    "prehook_deps": [{"tags": "get,y", "enable_if_env": {"CM_NEVER": ["yes"]}}],
    "posthook_deps": [{"tags": "get,y"}],
    "post_deps": [{"tags": "get,y"}],
    "script_name": "",
    "tags_help": "get x",
    "cache_expiration": "3d",
    "min_cm_version": "1.0",
}
"""A recipe with every key that the format knows, of which each may be spoilt."""

OTHER: dict[str, Any] = {
    "tags": ["get", "y"],
    "cache": True,
    "default_version": "1.0",
    "new_env_keys": ["CM_Y"],
    "env": {"CM_Y": "y"},
    "variations": {"v": {}, "v.#": {"env": {"CM_Y": "#"}}, "w.#": {}},
}
"""What the dependencies of ``RECIPE`` ask for."""

Path_ = tuple[Any, ...]


def paths_in(value: Any, at: Path_ = ()) -> list[Path_]:
    """The key path of everything inside a structure."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [] if at == () else [at]
    for key, item in items:
        found += paths_in(item, (*at, key))
    return found


PATHS = [path for path in paths_in(RECIPE) if path not in (("uid",), ("tags",), ("tags", 0), ("tags", 1))]


def spoilt(changes: list[tuple[Path_, Any]]) -> dict[str, Any]:
    """``RECIPE`` with the values at some paths replaced; a path that an earlier change removed is passed over."""
    recipe = copy.deepcopy(RECIPE)
    for path, value in changes:
        place: Any = recipe
        try:
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue
    return recipe


recipes = st.lists(st.tuples(st.sampled_from(PATHS), values), min_size=1, max_size=3).map(spoilt)
"""Recipes with one to three values spoilt."""

YAML_ALPHABET = "ab1 \n\t-:,?#&*!|>{}[]'\"%@`~<=.\\\x00é"
yaml_texts = st.one_of(
    st.text(st.sampled_from(YAML_ALPHABET), max_size=80),
    st.text(max_size=40),
    st.text(st.sampled_from(YAML_ALPHABET), max_size=30).map(lambda t: f"uid: '{UID}'\ntags: [get, x]\nenv: {t}\n"),
    st.text(st.sampled_from(YAML_ALPHABET), max_size=30).map(lambda t: f"uid: '{UID}'\ntags: [get, x]\n{t}\n"),
)
"""Texts that are YAML, nearly YAML, or nothing of the kind."""

tag_words = st.one_of(
    st.sampled_from(
        [
            "get",
            "x",
            "y",
            "_plain",
            "_fancy",
            "_n.1",
            "_n.2",
            "_n.#",
            "_also",
            "_extra",
            "-_plain",
            "_-plain",
            "-x",
            "_",
        ]
    ),
    texts,
)
tag_texts = st.lists(tag_words, max_size=6).map(lambda words: ",".join(map(str, words)))

FLAG_NAMES = (
    "tags", "env", "env.CM_A", "env.+PATH", "env.CM_A.b", "state", "state.st", "state.st.list", "const", "const.CM_E",
    "const_state", "ad", "ad.tool", "ad.tool.tags", "ad.tool.version", "adr.tool.env.CM_Q", "adr", "adr.tool",
    "add_deps",
    "add_deps_recursive", "version", "version_min", "version_max", "version_max_usable", "new", "renew", "skip_cache",
    "force_cache", "only_execute_from_cache", "fake_run", "fake_deps", "lock_timeout", "save_env", "dirty", "time", "v",
    "silent", "ignore_script_error", "in", "size", "extra_cache_tags", "name", "print_deps", "outdirname",
    "search_query",
    "artifact", "artifacts", "i", "", "modle", "env.", ".", "env.CM_TMP_X", "env.CM_NAME", "env.CM_EXTRA_CACHE_TAGS",
    "env.CM_QUIET", "recursion", "script_tags", "input", "output", "verify", "path", "force_new_env_keys",
)  # fmt: skip


def _word(name: str, separator: str, value: str) -> str:
    return f"--{name}{separator}{value}" if separator else f"--{name}"


command_words = st.one_of(
    st.builds(_word, st.sampled_from(FLAG_NAMES), st.sampled_from(["=", "=", ",=", ""]), texts),
    st.builds(_word, texts, st.sampled_from(["=", ",=", ""]), texts),
    tag_texts.map(lambda text: f"--tags={text}"),
    texts.filter(lambda text: not text.startswith("@")),  # @FILE is cmind's: it reads a file
)
command_lines = st.lists(command_words, max_size=5)
