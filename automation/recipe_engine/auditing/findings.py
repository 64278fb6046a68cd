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


_KINDS: dict[Level, dict[str, tuple[str, str]]] = {
    "error": {
        "no-parse": ("the metadata file is no YAML or JSON mapping", "the recipe cannot be used at all"),
        "wrong-type": (
            "a value has a type that its key cannot have",
            "the engine refuses the recipe, or the variation",
        ),
        "uid-missing": ("the recipe has no `uid`", "the cache knows recipes by it"),
        "uid-malformed": ("the `uid` is not 16 lower-case hex digits", "CM reads any other text as an alias"),
        "uid-unquoted": (
            "the `uid` has no quotes and YAML reads it as a number",
            "`1234567890123456` and `12345e7890123456`",
        ),
        "uid-repeated": (
            "another recipe of the same repository has the same `uid`",
            "each takes the cache entries of the other",
        ),
        "tags-missing": ("the recipe has no tags", "no query finds it"),
        "tag-unusable": ("a tag is empty, holds a comma, or starts with `_` or `-`", "nobody can ask for it"),
        "group-two-defaults": ("a group of variations has two defaults", "each query is refused"),
        "alias-unusable": (
            "a variation's `alias` does not exist, or stands beside `group` or `default`",
            "the engine refuses it",
        ),
        "default-unknown": (
            "`default_variation` or `default_variations` names a group or member that does not exist",
            "the engine refuses every query, or each with the variation",
        ),
        "base-unknown": ("a variation's `base` does not exist", "the engine refuses the variation"),
        "variation-unusable": (
            "a variation's name is empty, or holds a blank or an empty part",
            "nobody can ask for it",
        ),
        "dep-unanswered": ("no registered recipe has the tags of a dependency", "the run fails there"),
        "dep-variation-unknown": (
            "the recipes with the tags of a dependency lack its variation",
            "the run fails there",
        ),
        "handle-unknown": ("`ad` names a dependency that the recipe does not have", "the engine refuses the query"),
        "needs-unusable": ("`needs` holds a key or value that nothing can use", "plans leave it out"),
        "hook-syntax": ("a Python file of the recipe does not compile", "its hooks cannot be called"),
        "hook-signature": ("a hook does not take the one argument that it gets", "calling it fails"),
        "script-missing": ("`script_name` names a script that is not in the folder", "the step fails"),
        "shell-line-ends": ("a shell script has Windows line ends", "bash takes them for part of each word"),
        "shell-syntax": ("bash cannot parse a native script", "the step fails"),
        "secret-literal": ("the metadata holds the value of a secret", "everybody can read it"),
    },
    "warning": {
        "alias-folder": ("the alias is not the name of the folder", "nobody finds the folder"),
        "alias-repeated": ("another recipe of the same repository has the same alias", "its name is ambiguous"),
        "tags-same": (
            "another recipe of the same repository has exactly the same tags",
            "no query can tell the two apart; `sort` or the path decides",
        ),
        "tag-blank": ("a tag holds a blank", 'only `--tags=` can ask for it, `cm run script "..."` cannot'),
        "tag-repeated": ("a tag stands twice", "one of them was meant to be another"),
        "key-repeated": ("a key stands twice in one mapping", "the first value is lost without a word"),
        "key-unknown": ("nothing reads the key", "misspelt or out of place: it has no effect"),
        "readme-missing": ("the folder has no README.md", "what it finds, sets and costs stands nowhere"),
        "input-undescribed": ("a mapped input has no text under `input_description`", "its user has to read the code"),
        "cache-without-keys": (
            "the recipe is cached, but nothing leaves it",
            "whoever reuses the entry gets nothing of it",
        ),
        "keys-wide": ("`new_env_keys` lets every key of the env out", "the callers' own values are overwritten"),
        "base-cycle": ("variations are each other's base", "they can only be had together"),
        "combination-dead": ("a combined variation never comes into effect", "its values are never used"),
        "combination-unknown": (
            "a list of combinations names a variation that does not exist",
            "that line never applies",
        ),
        "dep-without-tags": ("a dependency has no tags", "the engine skips it"),
        "handle-unused": ("`adr` names a dependency that no registered recipe has", "it has no effect"),
        "override-unanswered": (
            "`ad` or `adr` asks a dependency of the recipe for a variation that no recipe with its tags has",
            "the run fails where both come together",
        ),
        "condition-empty": ("a condition accepts no value, or a mapping as one", "it never holds"),
        "download-unchecked": (
            "something is downloaded without a checksum",
            "a cut or changed file is taken for the right one",
        ),
        "shell-eval": ("a native script runs text as code with `eval`", "a value can become a command"),
        "shell-unquoted": (
            "a command that changes files gets an expansion without quotes",
            "a blank or `*` in the value makes it another file",
        ),
    },
    "info": {
        "uid-plain": (
            "the `uid` has no quotes; YAML happens to read it as a text",
            "the next one copied from it may be digits",
        ),
        "uid-elsewhere": (
            "a recipe of another repository has the same `uid`",
            "meant where it takes the other's place",
        ),
        "input-unread": ("an input is described, but nothing maps it to the env", "giving it has no effect"),
        "variation-alone": (
            "asked for alone, the variation is refused",
            "its user has to know which others go with it",
        ),
        "dep-open": ("whether a recipe answers a dependency depends on the env", "look whether one does"),
        "env-unset": (
            "a condition or placeholder looks at a key that no registered recipe sets",
            "only `--env.KEY=` can",
        ),
        "promise-empty": (
            "`new_env_keys` names a key that no registered recipe sets",
            "its callers wait for it in vain",
        ),
        "download-md5": ("a download is checked with MD5 only", "MD5 does not protect from intent"),
    },
}
CODES = {code: Kind(level, *texts) for level, kinds in _KINDS.items() for code, texts in kinds.items()}
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
