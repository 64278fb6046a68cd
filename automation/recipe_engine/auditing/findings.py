"""What an audit of recipes can find: one stable code for each kind of mistake, with its level and why it matters."""

from typing import Literal, NamedTuple

Level = Literal["error", "warning", "info"]
LEVELS: tuple[Level, ...] = ("error", "warning", "info")

Texts = dict[str, tuple[str, str]]
"""Code to what the mistake is and why it is one."""

ERRORS: Texts = {
    "no-parse": ("the metadata file is not a YAML or JSON mapping", "the recipe cannot be used at all"),
    "wrong-type": ("a value has a type that its key cannot have", "the engine refuses the recipe, or the variation"),
    "uid-missing": ("the recipe has no `uid`", "the cache identifies recipes by it"),
    "uid-malformed": ("the `uid` is not 16 lower-case hex digits", "CM reads any other text as an alias"),
    "uid-unquoted": ("YAML reads the unquoted `uid` as a number", "as it reads `1234567890123456`, `12345e7890123456`"),
    "uid-repeated": ("two recipes of one repository share a `uid`", "each reuses the cache entries of the other"),
    "tags-missing": ("the recipe has no tags", "no query finds it"),
    "tag-unusable": ("a tag is empty, contains a comma, or starts with `_` or `-`", "no query can contain it"),
    "group-two-defaults": ("a group of variations has two defaults", "each query is refused"),
    "alias-unusable": ("a variation's `alias` is unknown, or comes with `group` or `default`", "the engine refuses it"),
    "default-unknown": (
        "`default_variation` or `default_variations` names a group or member that does not exist",
        "the engine refuses every query, or each with the variation",
    ),
    "base-unknown": ("a variation's `base` does not exist", "the engine refuses the variation"),
    "variation-unusable": ("a name of a variation has an empty part or whitespace", "no query can contain it"),
    "dep-unanswered": ("no registered recipe has the tags of a dependency", "the run fails there"),
    "dep-variation-unknown": ("no recipe with a dependency's tags has its variation", "the run fails there"),
    "handle-unknown": ("`ad` names a dependency that the recipe does not have", "the engine refuses the query"),
    "library-unknown": (
        "`library` names a module that is not in the repository's packages",
        "the engine refuses the query",
    ),
    "needs-unusable": ("`needs` has an unusable key or value", "plans omit it"),
    "hook-syntax": ("a Python file of the recipe does not compile", "its hooks cannot be called"),
    "hook-signature": ("a hook does not accept its one argument", "calling it fails"),
    "script-missing": ("`script_name` names a script that is not in the folder", "the step fails"),
    "shell-line-ends": ("a shell script has Windows line ends", "bash reads the CR as part of the last word"),
    "shell-syntax": ("bash cannot parse a native script", "the step fails"),
    "secret-literal": ("the metadata contains the value of a secret", "it is readable by everyone"),
}
"""The engine refuses the recipe or a part of it, or a user would be harmed."""

WARNINGS: Texts = {
    "alias-folder": ("the alias is not the name of the folder", "the folder is hard to find"),
    "alias-repeated": ("another recipe of the repository has the same alias", "its name is ambiguous"),
    "tags-same": ("two recipes of one repository have the same tags", "only `sort` or the path decides between them"),
    "tag-blank": ("a tag contains whitespace", 'only `--tags=` can select it, `cm run script "..."` cannot'),
    "tag-repeated": ("a tag is repeated", "one of them is probably a typo"),
    "key-repeated": ("a key is repeated in one mapping", "the first value is lost without a message"),
    "key-unknown": ("the key has no effect", "misspelt or in the wrong place: it has no effect"),
    "readme-missing": ("the folder has no README.md", "users cannot see its results, settings and cost"),
    "input-alias": ("an alias of an input is the name or alias of another input", "it can only mean one of them"),
    "input-twice": ("two inputs set one env key", "a wrong value is reported for both. `aliases` describe it once"),
    "input-type": ("inputs of a repository give one env key different types", "a value is right for one recipe only"),
    "input-default": (
        "the `default` of an input is not valid for its `type`",
        "hooks get it when the input is not given",
    ),
    "input-undescribed": ("a mapped input has no text in `input_description`", "its user has to read the code"),
    "cache-without-keys": ("the recipe is cached, but has no exports", "reusing the cache entry has no effect"),
    "keys-wide": ("`new_env_keys` exports every key of the env", "the callers' own values are overwritten"),
    "base-cycle": ("variations are each other's base", "they are only available together"),
    "combination-dead": ("a combined variation never comes into effect", "its values are never used"),
    "combination-unknown": ("a list of combinations names an unknown variation", "this combination never applies"),
    "dep-without-tags": ("a dependency has no tags", "the engine skips it"),
    "handle-unused": ("`adr` names a dependency that no registered recipe has", "it has no effect"),
    "override-unanswered": (
        "`ad` or `adr` requests a variation of a dependency that no recipe with its tags has",
        "the run fails where both come together",
    ),
    "condition-empty": ("a condition accepts no value, or a mapping as one", "it is never true"),
    "download-unchecked": ("a download has no checksum", "a truncated or changed file is accepted as the right one"),
    "shell-eval": ("a native script runs text as code with `eval`", "a value can become a command"),
    "shell-unquoted": (
        "a command that changes files gets an expansion without quotes",
        "whitespace or `*` in the value makes it another file",
    ),
}
"""It runs, but not as its author may think, or a user gets no help."""

NOTES: Texts = {
    "uid-plain": ("the unquoted `uid` happens to be read as a text", "the next one copied from it may be digits"),
    "uid-elsewhere": ("a recipe of another repository has the same `uid`", "intended if it replaces the other"),
    "input-unread": ("an input is described, but not mapped to the env", "setting it has no effect"),
    "variation-alone": ("requested alone, the variation is refused", "users have to know which others it needs"),
    "dep-open": ("whether a recipe answers a dependency depends on the env", "check that one does"),
    "env-unset": ("a condition or placeholder reads a key that no recipe sets", "only `--env.KEY=` can set it"),
    "promise-empty": ("`new_env_keys` names a key that no registered recipe sets", "its callers never get it"),
    "download-md5": ("a download is checked with MD5 only", "MD5 does not protect against deliberate changes"),
}
"""Worth a look."""


class Kind(NamedTuple):
    """A kind of mistake: how bad it is, what it is, and why it is one."""

    level: Level
    meaning: str
    why: str


CODES = {
    code: Kind(level, *texts)
    for level, kinds in zip(LEVELS, (ERRORS, WARNINGS, NOTES), strict=True)
    for code, texts in kinds.items()
}
"""docs/reference/audit.md lists them; tools/make_audit_page.py makes its table from this one."""


class Finding(NamedTuple):
    """One mistake that an audit found.

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
