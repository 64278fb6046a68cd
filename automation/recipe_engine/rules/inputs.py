"""Inputs of a request: which ones the engine and the recipe read, and in what way; how a misspelt one is refused.

Inputs of recipes of a repository whose ``cmr.yaml`` says ``inputs: strict`` must be declared: in ``input_mapping`` or
``input_description``. CM and all other repositories only warn, and let hooks read what no file describes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .env import INPUT_TO_ENV, Env, texts_of
from .errors import RequestError
from .frozen import Frozen
from .model import Recipe, Request, RunOptions
from .query import BOUND_KEYS, VersionRange, nearest, parse_query, split_words
from .schema import both_overrides, is_yes

if TYPE_CHECKING:
    from .input_types import WrongValue

_TABLE = """
cmind: action artifact artifacts automation cmd common out parsed_artifact parsed_artifacts parsed_automation
cmind: unparsed_cmd
query: ad add_deps add_deps_recursive adr tags unknown_inputs version version_max version_max_usable version_min
values: const const_state env force_new_env_keys force_new_state_keys path state
cache: cache_expiration force_cache frozen lock_timeout locked mixed_versions new only_execute_from_cache renew
cache: skip_cache
run: debug_uid dirty fake_deps fake_run ignore_script_error prepare print_deps save_env skip_write_test
console: debug h help ignore_inheritance j json q quiet s save_to_json script_call_prefix silent v verbose
extras: debug_script debug_script_tags dump_version_info pause print_env print_readme print_versions repro shell
extras: skip_remembered_selections space time
reference engine: recursion recursion_spaces remembered_selections repro_dir repro_prefix run_state
"""
_ROWS = [line.partition(":") for line in _TABLE.strip().splitlines()]

EVERYWHERE = frozenset(word for kind, _, words in _ROWS if kind in ("cmind", "console") for word in words.split())
"""The input keys that every action understands, or cmind for it."""

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

HANDED_ON = frozenset(
    ("git_ssh", "input", "name", "outbasename", "output", "path", "search_folder_path", "skip_compile", "skip_run")
)
"""Flags that only reach the recipe's own env, and have no effect on a recipe that does not read them."""

ACTION_FLAGS: Mapping[str, tuple[str, ...]] = {
    "explain": ("keys", "step"),
    "lock": ("file",),
    "plan": ("before_run", "graph"),
}
"""The flags that an action has besides the inputs of a recipe."""

UNKNOWN_INPUTS = "unknown_inputs"
"""The input that says what is done with inputs that nothing reads: ``error`` or ``warn``."""
CHOICES = ("error", "warn")
MAX_NAMES = 8
"""How many inputs, or names of dependencies, an error lists; ``cm help script`` shows all."""
Below = Callable[[], Sequence[tuple[str, str]]]
"""Gives the names of the dependencies that a request leads to, each with its recipe, the outermost first."""


class UnknownInput(Frozen):
    """An input that nothing reads, and the one that was probably meant; empty when none is near."""

    name: str
    meant: str

    def text(self, alias: str) -> str:
        """One line for people."""
        if self.name.startswith(NO_CONTAINER):
            return f"--{self.name} has no effect: this engine starts no containers"
        line = f"unknown input --{self.name} for recipe {alias}"
        return f"{line}, did you mean --{self.meant}?" if self.meant else line

    def warning(self, alias: str) -> str:
        """The line where the call goes on."""
        text = self.text(alias)
        return text if "no effect" in text or self.meant else f"{text}, so it has no effect"


def warnings_of_inputs(
    recipe: Recipe,
    request: Request,
    dependency_names: Callable[[], Collection[str]],
    hooks: Callable[[], str],
    below: Below = tuple,
) -> list[str]:
    """Lines that warn of inputs of a call; a hook, whose text ``hooks`` gives, may read what its recipe does not name.

    Raises RequestError for inputs that the recipe refuses, and, if its repository or the caller is strict, for those
    that it does not declare, for values that are not among an input's choices, and for an ``--adr.NAME`` that is nearly
    one of all ``dependency_names``.
    """
    inputs = request.inputs
    action = str(inputs.get("action") or "run")
    if action == "run":
        refuse_dry_run(recipe, inputs)
    is_refused = refuses_unknown(recipe, inputs)
    unknown = unknown_inputs(recipe, inputs, action)
    if unknown and is_refused:
        raise refusal(recipe, unknown, inputs, action)
    if is_refused and (rest := inputs.get("unparsed_cmd")):
        raise RequestError(f"{recipe.id.alias}: unknown words after --: {' '.join(map(str, rest))}")
    refuse_inputs(recipe, inputs)
    refuse_values(recipe, inputs)
    lines = remarks_on_inputs(recipe, inputs)
    if is_refused and request.recursive_overrides:
        lines += remarks_on_handles(recipe, inputs, request.recursive_overrides, dependency_names(), below)
    lines += [each.warning(recipe.id.alias) for each in unknown if each.meant or each.name not in hooks()]
    return list(dict.fromkeys(lines))


def declared_inputs(recipe: Recipe) -> frozenset[str]:
    """The inputs that a recipe describes or maps to env, in any variation or version."""
    blocks = [variation.source for variation in recipe.variations.values()] + list(recipe.versions.values())
    mapped = [recipe.layer.input_mapping, *(block.get("input_mapping") or {} for block in blocks if block)]
    return frozenset(recipe.inputs).union(*mapped)


def _own_names(recipe: Recipe) -> dict[str, str]:
    """The input that each alias stands for."""
    return {alias: name for name, described in recipe.inputs.items() for alias in described.aliases}


def with_own_names(recipe: Recipe, request: Request) -> Request:
    """The request with the recipe's own names in the place of ``aliases``; of several for one input the last counts."""
    names = _own_names(recipe) if request.inputs else {}
    if names.keys().isdisjoint(request.inputs):
        return request
    own: dict[str, Any] = {}
    for given, value in request.inputs.items():
        name = given if given in recipe.inputs else names.get(given, given)
        own.pop(name, None)
        own[name] = value
    return request._replace(inputs=own)


def unknown_inputs(recipe: Recipe, inputs: Iterable[str], action: str = "run") -> list[UnknownInput]:
    """The inputs, in the order given, that neither the engine nor the recipe declares."""
    flags = FLAGS - HANDED_ON if recipe.has_strict_inputs else FLAGS
    known = flags | declared_inputs(recipe) | set(ACTION_FLAGS.get(action, ())) | set(recipe.unused_inputs)
    known |= _own_names(recipe).keys()
    names = [name for name in map(str, inputs) if name not in known and name not in recipe.refused_inputs]
    if not names:
        return []
    from .spelling import meant  # here, because most calls spell all names right

    return [UnknownInput(name, "" if name.startswith(NO_CONTAINER) else meant(name, known)) for name in names]


def wrong_values(recipe: Recipe, inputs: Mapping[str, Any]) -> list[WrongValue]:
    """The inputs whose value is not of the type, or not one of the ``choices``, that the recipe describes."""
    if not any(described.kind and name in inputs for name, described in recipe.inputs.items()):
        return []
    from .input_types import Values  # here, because few calls of a recipe give it a typed input

    values = Values(recipe.inputs, {}, inputs)
    return [wrong for name in recipe.inputs if (wrong := values.wrong(name))]


def refuse_values(recipe: Recipe, inputs: Mapping[str, Any]) -> None:
    """Raises RequestError for values of a strict recipe's inputs that are not of their type or no ``choices``."""
    wrong = wrong_values(recipe, inputs) if recipe.has_strict_inputs else []
    if not wrong:
        return
    hint = f"cm help script {recipe.id.alias} lists the values of its inputs"
    error = RequestError("\n".join(f"{recipe.id.alias}: {each.text}" for each in wrong), hint=hint)
    if all(each.meant for each in wrong):
        error.instead = {each.name: each.meant for each in wrong}
    raise error


def refuses_unknown(recipe: Recipe, inputs: Mapping[str, Any]) -> bool:
    """Whether unknown inputs end the call; raises RequestError for a value of ``--unknown_inputs`` that is not one."""
    wanted = inputs.get(UNKNOWN_INPUTS)
    if wanted is None:
        return recipe.has_strict_inputs
    if wanted not in CHOICES:
        raise RequestError(f"--{UNKNOWN_INPUTS} must be one of {', '.join(CHOICES)}, got {wanted!r}")
    return bool(wanted == "error")


def refuse_inputs(recipe: Recipe, inputs: Mapping[str, Any]) -> None:
    """Raises RequestError for inputs that the recipe's ``refused_inputs`` name, unless their value says no."""
    given = [name for name in map(str, inputs) if name in recipe.refused_inputs and _says_something(inputs[name])]
    if given:
        raise RequestError("\n".join(f"{recipe.id.alias}: --{name}: {recipe.refused_inputs[name]}" for name in given))


def dependency_names(meta: Any) -> Iterator[str]:
    """The names of dependencies anywhere in a recipe's metadata."""
    if isinstance(meta, Mapping):
        names = meta.get("names")
        yield from names if isinstance(names, list) else ()
    parts = meta.values() if isinstance(meta, Mapping) else meta if isinstance(meta, list) else ()
    for part in parts:
        yield from dependency_names(part)


def _names_text(word: str, rows: Sequence[tuple[str, str]]) -> str:
    """A line with the names that there are, first those that look like ``word`` or whose recipe is called like it."""
    close = nearest(word, [name for name, _ in rows])
    ordered = sorted(rows, key=lambda row: (row[0] not in close, not any(word in text for text in row)))
    shown = [f"{name} ({alias})" for name, alias in ordered[:MAX_NAMES]]
    rest = f" and {len(rows) - MAX_NAMES} more" if len(rows) > MAX_NAMES else ""
    return f"\n  names in this run: {', '.join(shown)}{rest}" if rows else ""


def remarks_on_handles(
    recipe: Recipe,
    inputs: Mapping[str, Any],
    handles: Iterable[str],
    known: Collection[str],
    below: Below = tuple,
) -> list[str]:
    """A line for each ``--adr.NAME`` that is the name of no dependency of any recipe (``known``), with the reason where
    the recipe's ``unused_inputs`` have one, else with the names that ``below`` gives.

    Raises RequestError where it looks like a misspelt one; others come with commands that were written for recipes of
    somebody else.
    """
    handles = list(handles)
    reasons = {name: recipe.unused_inputs[name] for name in handles if name in recipe.unused_inputs}
    explained = [f"--adr.{name} has no effect: {reason}" for name, reason in reasons.items()]
    unknown = [handle for handle in handles if handle not in known and handle not in reasons]
    flags = {name: key for key in ("add_deps_recursive", "adr") for name in inputs.get(key) or ()}
    texts = {
        name: f"{recipe.id.alias}: --{flags.get(name, 'adr')}.{name}: no recipe has a dependency called {name}"
        for name in unknown
    }
    if not unknown:
        return explained
    from .spelling import meant

    right = {name: near for name in unknown if (near := meant(name, known))}
    if not right:
        rows = below()
        return [*explained, *(f"{texts[name]}, so it has no effect{_names_text(name, rows)}" for name in unknown)]
    renamed = {
        key: {right.get(name, name): changes for name, changes in inputs[key].items()}
        for key in ("adr", "add_deps_recursive")
        if isinstance(inputs.get(key), Mapping)
    }
    lines = [f"{texts[name]}, did you mean --{flags.get(name, 'adr')}.{near}?" for name, near in right.items()]
    raise RequestError(
        "\n".join(lines), hint=renamed_line({**inputs, **renamed}, {}, str(inputs.get("action") or "run"))
    )


def remarks_on_inputs(recipe: Recipe, inputs: Mapping[str, Any]) -> list[str]:
    """A line for each given input that the recipe accepts and that has no effect."""
    given = [name for name in map(str, inputs) if name in recipe.unused_inputs and _says_something(inputs[name])]
    return [f"--{name} has no effect: {recipe.unused_inputs[name]}" for name in given]


def _says_something(value: Any) -> bool:
    return str(value).strip().lower() not in ("", "none", "no", "false", "off")


def refuse_dry_run(recipe: Recipe, inputs: Mapping[str, Any]) -> None:
    """Raises RequestError for a ``--plan`` or ``--dry_run`` that the recipe does not know: it would really run."""
    for name in ("plan", "dry_run", "dry-run"):
        if inputs.get(name) and name not in declared_inputs(recipe):
            raise RequestError(
                f"cm run script has no --{name} and would run for real",
                hint="cm plan script with the same arguments shows the steps of a run",
            )


def refusal(recipe: Recipe, unknown: Iterable[UnknownInput], inputs: Mapping[str, Any], action: str) -> RequestError:
    """The error for inputs that nothing reads; its hint is the command with the names that were probably meant."""
    found = list(unknown)
    lines = [each.text(recipe.id.alias) for each in found]
    if any(each.name.startswith(NO_CONTAINER) for each in found):
        hint = "cm run script --tags=run,container,mlperf --recipe_tags=TAGS runs a recipe in a container"
        return RequestError("\n".join(lines), hint=hint)
    if not all(each.meant for each in found):
        names = sorted(declared_inputs(recipe))
        more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
        listed = ", ".join(f"--{name}" for name in names[:MAX_NAMES])
        lines.append(f"  it has: {listed}{more}" if names else "  it has no inputs")
        return RequestError("\n".join(lines), hint=f"cm help script {recipe.id.alias} lists its inputs")
    return RequestError("\n".join(lines), hint=renamed_line(inputs, {each.name: each.meant for each in found}, action))


def renamed_line(inputs: Mapping[str, Any], renamed: Mapping[str, str], action: str) -> str:
    """The command that was given with other names for some inputs; one whose name is given, too, is left out."""
    from .rerun import given_line  # here, because only errors need it

    kept = {renamed.get(name, name): value for name, value in inputs.items() if renamed.get(name, "") not in inputs}
    return given_line(kept, action).text


# --- the request ---


_OPTIONS = {
    "force_cache": "force_cache",
    "skip_cache": "skip_cache",
    "new": "new",
    "renew": "renew",
    "ignore_script_error": "ignore_script_error",
    "only_execute_from_cache": "only_from_cache",
    "fake_run": "fake_run",
}
"""Inputs that switch an option on."""


def request_from_inputs(inputs: Mapping[str, Any], *, options: RunOptions) -> Request:
    """The part of a request that input keys decide, the same for the command line and for a dependency entry.

    Raises MetaError for a malformed ``ad`` or ``adr``.
    """
    local_env: Env = {
        key: str(inputs[name])
        for name, key in INPUT_TO_ENV.items()
        if name in inputs
        and inputs[name] is not None
        and not isinstance(inputs[name], Mapping)  # a recipe in Python hands on all its inputs as ``input``
    }
    if isinstance(inputs.get("extra_cache_tags"), list):
        local_env["CM_EXTRA_CACHE_TAGS"] = ",".join(str(tag) for tag in inputs["extra_cache_tags"])
    given = {option: True for name, option in _OPTIONS.items() if name in inputs and is_yes(inputs[name])}
    if "fake_run" in given:
        local_env["CM_TMP_FAKE_RUN"] = "yes"
    paths = inputs.get("path")
    if paths:
        local_env["CM_TMP_PATH"] = ":".join(str(path) for path in paths) if isinstance(paths, list) else str(paths)
    return Request(
        query=parse_query(()),
        inputs=inputs,
        local_env=local_env,
        overrides=both_overrides(inputs, "ad", "add_deps", "--{}".format),
        recursive_overrides=both_overrides(inputs, "adr", "add_deps_recursive", "--{}".format),
        version=VersionRange(*(_text(inputs, key) for key in BOUND_KEYS)),
        extra_cache_tags=split_words(texts_of(inputs.get("extra_cache_tags", ""))),
        new_env_keys=_keys(inputs, "force_new_env_keys"),
        new_state_keys=_keys(inputs, "force_new_state_keys"),
        options=options._replace(**given),
    )


def _text(inputs: Mapping[str, Any], key: str) -> str:
    value = inputs.get(key)
    return "" if value is None or isinstance(value, bool) else str(value)


def _keys(inputs: Mapping[str, Any], key: str) -> tuple[str, ...] | None:
    value = inputs.get(key)
    if not value:
        return None
    if not isinstance(value, str | list | tuple):
        raise RequestError(f"--{key}={value!r} contains no keys", hint=f"write --{key},=KEY_ONE,KEY_TWO")
    return (value,) if isinstance(value, str) else tuple(str(item) for item in value if item is not None)
