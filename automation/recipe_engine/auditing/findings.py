"""What an audit of recipes can find: one stable code for each kind of mistake, with its level and why it matters.

``error``: the engine refuses the recipe or a part of it, or somebody would be harmed. ``warning``: it runs, but not as
its author may think, or a user is left alone. ``info``: worth a look.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Level = Literal["error", "warning", "info"]
LEVELS: tuple[Level, ...] = ("error", "warning", "info")


class Kind(NamedTuple):
    """A kind of mistake: how bad it is, what it is, and why it is one."""

    level: Level
    meaning: str
    why: str


CODES: dict[str, Kind] = {
    "no-parse": Kind("error", "the metadata file is no YAML or JSON mapping", "the recipe cannot be used at all"),
    "wrong-type": Kind(
        "error", "a value has a type that its key cannot have", "the engine refuses the recipe, or the variation"
    ),
    "uid-missing": Kind("error", "the recipe has no `uid`", "the cache knows recipes by it"),
    "uid-malformed": Kind("error", "the `uid` is not 16 lower-case hex digits", "CM reads any other text as an alias"),
    "uid-unquoted": Kind(
        "error", "the `uid` has no quotes and YAML reads it as a number", "`1234567890123456` and `12345e7890123456`"
    ),
    "uid-plain": Kind(
        "info",
        "the `uid` has no quotes; YAML happens to read it as a text",
        "the next one copied from it may be digits",
    ),
    "uid-repeated": Kind(
        "error", "another recipe of the same repository has the same `uid`", "each takes the cache entries of the other"
    ),
    "uid-elsewhere": Kind(
        "info", "a recipe of another repository has the same `uid`", "meant where it takes the other's place"
    ),
    "alias-folder": Kind("warning", "the alias is not the name of the folder", "nobody finds the folder"),
    "alias-repeated": Kind(
        "warning", "another recipe of the same repository has the same alias", "its name is ambiguous"
    ),
    "tags-missing": Kind("error", "the recipe has no tags", "no query finds it"),
    "tags-same": Kind(
        "warning",
        "another recipe of the same repository has exactly the same tags",
        "no query can tell the two apart; `sort` or the path decides",
    ),
    "tag-unusable": Kind("error", "a tag is empty, holds a comma, or starts with `_` or `-`", "nobody can ask for it"),
    "tag-blank": Kind("warning", "a tag holds a blank", 'only `--tags=` can ask for it, `cm run script "..."` cannot'),
    "tag-repeated": Kind("warning", "a tag stands twice", "one of them was meant to be another"),
    "key-repeated": Kind("warning", "a key stands twice in one mapping", "the first value is lost without a word"),
    "key-unknown": Kind("warning", "nothing reads the key", "misspelt or out of place: it has no effect"),
    "readme-missing": Kind("warning", "the folder has no README.md", "what it finds, sets and costs stands nowhere"),
    "input-undescribed": Kind(
        "warning", "a mapped input has no text under `input_description`", "its user has to read the code"
    ),
    "input-unread": Kind("info", "an input is described, but nothing maps it to the env", "giving it has no effect"),
    "cache-without-keys": Kind(
        "warning", "the recipe is cached, but nothing leaves it", "whoever reuses the entry gets nothing of it"
    ),
    "keys-wide": Kind(
        "warning", "`new_env_keys` lets every key of the env out", "the callers' own values are overwritten"
    ),
    "group-two-defaults": Kind("error", "a group of variations has two defaults", "each query is refused"),
    "alias-unusable": Kind(
        "error", "a variation's `alias` does not exist, or stands beside `group` or `default`", "the engine refuses it"
    ),
    "default-unknown": Kind(
        "error",
        "`default_variation` or `default_variations` names a group or member that does not exist",
        "the engine refuses every query, or each with the variation",
    ),
    "base-unknown": Kind("error", "a variation's `base` does not exist", "the engine refuses the variation"),
    "base-cycle": Kind("warning", "variations are each other's base", "they can only be had together"),
    "variation-unusable": Kind(
        "error", "a variation's name is empty, or holds a blank or an empty part", "nobody can ask for it"
    ),
    "variation-alone": Kind(
        "info", "asked for alone, the variation is refused", "its user has to know which others go with it"
    ),
    "combination-dead": Kind("warning", "a combined variation never comes into effect", "its values are never used"),
    "combination-unknown": Kind(
        "warning", "a list of combinations names a variation that does not exist", "that line never applies"
    ),
    "dep-without-tags": Kind("warning", "a dependency has no tags", "the engine skips it"),
    "dep-unanswered": Kind("error", "no registered recipe has the tags of a dependency", "the run fails there"),
    "dep-variation-unknown": Kind(
        "error", "the recipes with the tags of a dependency lack its variation", "the run fails there"
    ),
    "dep-open": Kind("info", "whether a recipe answers a dependency depends on the env", "look whether one does"),
    "handle-unknown": Kind(
        "error", "`ad` names a dependency that the recipe does not have", "the engine refuses the query"
    ),
    "handle-unused": Kind("warning", "`adr` names a dependency that no registered recipe has", "it has no effect"),
    "override-unanswered": Kind(
        "warning",
        "`ad` or `adr` asks a dependency of the recipe for a variation that no recipe with its tags has",
        "the run fails where both come together",
    ),
    "condition-empty": Kind("warning", "a condition accepts no value, or a mapping as one", "it never holds"),
    "env-unset": Kind(
        "info", "a condition or placeholder looks at a key that no registered recipe sets", "only `--env.KEY=` can"
    ),
    "promise-empty": Kind(
        "info", "`new_env_keys` names a key that no registered recipe sets", "its callers wait for it in vain"
    ),
    "needs-unusable": Kind("error", "`needs` holds a key or value that nothing can use", "plans leave it out"),
    "download-unchecked": Kind(
        "warning", "something is downloaded without a checksum", "a cut or changed file is taken for the right one"
    ),
    "download-md5": Kind("info", "a download is checked with MD5 only", "MD5 does not protect from intent"),
    "hook-syntax": Kind("error", "a Python file of the recipe does not compile", "its hooks cannot be called"),
    "hook-signature": Kind("error", "a hook does not take the one argument that it gets", "calling it fails"),
    "script-missing": Kind("error", "`script_name` names a script that is not in the folder", "the step fails"),
    "shell-line-ends": Kind("error", "a shell script has Windows line ends", "bash takes them for part of each word"),
    "shell-syntax": Kind("error", "bash cannot parse a native script", "the step fails"),
    "shell-eval": Kind("warning", "a native script runs text as code with `eval`", "a value can become a command"),
    "shell-unquoted": Kind(
        "warning",
        "a command that changes files gets an expansion without quotes",
        "a blank or `*` in the value makes it another file",
    ),
    "secret-literal": Kind("error", "the metadata holds the value of a secret", "everybody can read it"),
}
"""docs/reference/audit.md lists them; tools/make_audit_page.py makes its table from this one."""


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
        return CODES[self.code].level

    @property
    def severity(self) -> int:
        """The level as a rank: 0 is the worst."""
        return LEVELS.index(self.level)
