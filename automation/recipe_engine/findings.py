"""What an audit of recipes can find: one stable code for each kind of mistake, with its level.

``error``: the engine refuses the recipe or a part of it, or somebody would be harmed. ``warning``: it runs, but not as
its author may think, or a user is left alone. ``info``: worth a look.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Level = Literal["error", "warning", "info"]
LEVELS: tuple[Level, ...] = ("error", "warning", "info")

CODES: dict[str, tuple[Level, str]] = {
    "no-parse": ("error", "the metadata file is no YAML or JSON mapping"),
    "wrong-type": ("error", "a value has a type that its key cannot have"),
    "uid-missing": ("error", "the recipe has no uid"),
    "uid-malformed": ("error", "the uid is not 16 lower-case hex digits"),
    "uid-unquoted": ("error", "the uid has no quotes and YAML reads it as a number"),
    "uid-plain": ("info", "the uid has no quotes; YAML happens to read it as a text"),
    "uid-repeated": ("error", "another registered recipe has the same uid"),
    "alias-folder": ("warning", "the alias is not the name of the folder"),
    "alias-repeated": ("info", "another registered recipe has the same alias"),
    "tags-missing": ("error", "the recipe has no tags, so that no query finds it"),
    "tag-unusable": ("error", "a tag cannot be asked for: it is empty, holds a blank or comma, or starts with _ or -"),
    "tag-repeated": ("warning", "a tag stands twice"),
    "key-repeated": ("warning", "a key stands twice in one mapping; the first value is lost"),
    "key-unknown": ("warning", "nothing reads the key"),
    "readme-missing": ("warning", "the folder has no README.md"),
    "input-undescribed": ("warning", "an input has no text under input_description"),
    "input-unread": ("info", "an input is described, but nothing maps it to the env"),
    "cache-without-keys": ("warning", "the recipe is cached, but nothing leaves it (new_env_keys, new_state_keys)"),
    "group-two-defaults": ("error", "a group of variations has two defaults"),
    "alias-unusable": ("error", "a variation's alias does not exist, or stands beside group or default"),
    "default-unknown": ("error", "default_variations names a group or member that does not exist"),
    "base-unknown": ("error", "a variation's base does not exist"),
    "base-cycle": ("warning", "variations are each other's base"),
    "variation-impossible": ("error", "the engine refuses the variation whenever it is asked for"),
    "combination-dead": ("warning", "a combined variation never comes into effect"),
    "combination-unknown": ("warning", "a list of combinations names a variation that does not exist"),
    "dep-unanswered": ("error", "no registered recipe has the tags of a dependency"),
    "dep-variation-unknown": ("error", "the recipes with the tags of a dependency lack its variation"),
    "dep-open": ("info", "whether a recipe answers a dependency depends on the env"),
    "handle-unknown": ("error", "ad names a dependency that the recipe does not have"),
    "handle-unused": ("warning", "adr names a dependency that no registered recipe has"),
    "condition-unset": ("info", "a condition looks at a key that no registered recipe sets"),
    "download-unchecked": ("warning", "something is downloaded without a checksum"),
    "download-md5": ("info", "a download is checked with MD5 only"),
    "hook-syntax": ("error", "a Python file of the recipe cannot be read by this Python"),
    "hook-signature": ("error", "a hook does not take the one argument that it gets"),
    "script-missing": ("error", "script_name names a native script that is not in the folder"),
    "shell-syntax": ("error", "bash cannot read a native script"),
    "shell-eval": ("warning", "a native script runs text as code with eval"),
    "shell-unquoted": ("warning", "a native script leaves an expansion without quotes (found by shellcheck)"),
    "secret-literal": ("error", "the metadata holds the value of a secret"),
    "secret-written": ("warning", "code seems to write a secret into a file"),
}
"""Code to its level and what it means; docs/reference/audit.md is made from this table."""


class Finding(NamedTuple):
    """One thing that an audit found.

    ``repo`` and ``recipe`` are aliases, ``file`` is a path, ``line`` counts from 1 (0: the whole file), ``key`` is a
    key path such as ``variations.cuda.deps[0].tags``.
    """

    code: str
    repo: str
    recipe: str
    file: str
    line: int
    key: str
    text: str
    hint: str = ""

    @property
    def level(self) -> Level:
        """How bad it is."""
        return CODES[self.code][0]
