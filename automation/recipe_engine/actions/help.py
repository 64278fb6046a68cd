"""``cm help``, ``--help`` and ``cm find script``: which actions and recipes there are, and how each is called.

An action that takes no inputs of a recipe refuses flags that its help does not name; of those that do (run, plan,
explain, lock), rules/inputs.py knows the flags.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..disk.repos import RecipeSource
from ..documents.console_text import cut
from ..documents.recipe_help import call_tags, help_json, help_lines, summary_of
from ..rules.amounts import counted
from ..rules.errors import RecipeError, RequestError
from ..rules.inputs import EVERYWHERE, renamed_line
from ..rules.query import IndexEntry, RecipeIndex, candidates, further_words, named
from ..rules.rerun import secret_flags
from ..rules.schema import Reader, is_yes
from ..rules.spelling import meant as meant_name
from .action_help import ACTION_HELP, COMMON_NAMES, automation_of, known_flags, name_of
from .adapter import Home, is_verbose, listing_width, print_lines, show
from .run import new_engine, parse_query_input, parse_request

logger = logging.getLogger(__name__)

Answer = dict[str, Any]
Action = Callable[[Mapping[str, Any]], Answer]

INSTEAD: Mapping[str, str] = {
    "docker": "cm run script --tags=run,container,mlperf --recipe_tags=TAGS runs it in Docker, Podman or Apptainer",
    "dockerfile": "cm run script --tags=run,container,mlperf,_plan --recipe_tags=TAGS shows Dockerfile and commands",
    "gui": (
        "cm help script RECIPE lists the options that the web page would offer. Every benchmark writes results.html, "
        "cm run script --tags=show,mlperf,results and cm diff script A B compare results, cm show cache lists the cache"
    ),
}
"""What to use instead of CM's actions that this engine does not have."""


def help_action(i: Mapping[str, Any], home: Home, adapter: type) -> Answer:
    """Answers ``cm help script [RECIPE | ACTION]``, ``cm help cache [ACTION]`` and ``cm run script --tags=... --help``.

    Without a name, lists the actions of ``adapter``, whose docstrings say what they do. Of several recipes that fit it
    shows the one that a run would choose. Raises RecipeError when a run would.
    """
    automation, word = automation_of(i), str(i.get("artifact") or "")
    if (automation, word) in ACTION_HELP and not i.get("tags"):
        return action_help_action({**i, "action": word})
    if automation == "cache" or not names_recipes(i):
        actions = own_actions(adapter)
        width = max(map(len, actions))
        lines = [f"  {action:<{width}} {text.partition(': cm ')[0]}" for action, text in actions.items()]
        names = "[UID] [--tags=...]" if automation == "cache" else "[RECIPE] [--tags=...]"
        more = f"cm ACTION {automation} --help shows the flags of an action"
        show(i, f"cm ACTION {automation} {names}", "", *lines, "", more)
        return {"return": 0, "actions": list(actions), "skip_delayed_help": True}
    engine = new_engine(home, None)
    asked = {name: value for name, value in i.items() if name not in ("help", "h")}
    recipe = engine.source.recipe(engine.choose(parse_request(asked)).entry)
    show(i, *help_lines(recipe))
    return {"return": 0, "recipe": help_json(recipe), "skip_delayed_help": True}


def action_help_action(i: Mapping[str, Any]) -> Answer:
    """Answers ``cm ACTION AUTOMATION --help``: the call of the action, its flags, examples."""
    name, automation = name_of(i), automation_of(i)
    text = ACTION_HELP.get((automation, name), f"cm {name} {automation}: cm help {automation} lists all actions")
    show(i, text)
    return {"return": 0, "help": text, "skip_delayed_help": True}


def own_actions(adapter: type) -> dict[str, str]:
    """The actions that the adapter has and does not only refuse, in order of their names, with their docstrings."""
    found = {
        COMMON_NAMES.get(name, name.replace("_", "-")): str(function.__doc__)
        for name, function in vars(adapter).items()
        if not name.startswith("_") and name not in INSTEAD and callable(function)
    }
    return dict(sorted(found.items()))


def names_recipes(i: Mapping[str, Any]) -> bool:
    """Whether the input names recipes, by tags or otherwise."""
    query, name = parse_query_input(i)
    return bool(name or query.all_of)


# --- flags ---


def checked(action: Action) -> Action:
    """The action on the console: with ``--help`` it says how to call it, and it refuses flags that it does not have."""

    def act(i: Mapping[str, Any]) -> Answer:
        check_comment(i)
        if is_yes(i.get("help")) or is_yes(i.get("h")):
            return action_help_action(i)
        check_flags(i)
        return action(i)

    return act


def check_comment(i: Mapping[str, Any]) -> None:
    """Raises RequestError for a comment behind the command, as documents have it: zsh hands it over as words."""
    if "#" in (i.get("artifact"), *further_words(i)):
        raise RequestError(
            "everything from # on was passed as arguments: this shell does not support comments on the command line",
            hint="remove them. In zsh, setopt interactive_comments enables comments",
        )


def check_flags(i: Mapping[str, Any]) -> None:
    """Raises RequestError for flags that the action does not have, with the nearest that it has.

    Secrets are let through: resume and reproduce take those that their run had.
    """
    action, automation = name_of(i), automation_of(i)
    own = known_flags(automation, action)
    if own is None:
        return
    own -= EVERYWHERE
    unknown = [name for name in i if name not in own | EVERYWHERE and not secret_flags({name: i[name]})]
    if not unknown:
        return
    meant = {name: meant_name(name, own) for name in unknown}
    lines = [
        f"unknown flag --{name} for cm {action} {automation}" + (f", did you mean --{near}?" if near else "")
        for name, near in meant.items()
    ]
    hint = f"it has {', '.join('--' + name for name in sorted(own))}" if own else "it has no flags"
    if all(meant.values()):
        hint = renamed_line(i, meant, action)
    raise RequestError("\n".join(lines), hint=hint)


# --- cm find script ---

ALIAS_WIDTH = 28
"""Most aliases are shorter; what follows a longer one begins further right."""


def search_action(i: Mapping[str, Any], home: Home) -> tuple[list[Path], list[dict[str, Any]]]:
    """Answers ``cm find script``: the folders of the recipes that fit, in order of preference, and facts of each.

    The name may hold ``*`` and ``?``, and a repository in front: ``cm find script crowdperf:get-*``. On the console
    several recipes are one line each; of one recipe, and with ``-v``, the folders are printed, as CM does.
    """
    source = home.source()
    found = fitting(i, home, source.index)
    if not i.get("out"):
        return [entry.path for entry in found], []
    rows = [_row(source, entry) for entry in found]
    if i["out"] == "con":
        if is_verbose(i) or len(found) == 1:
            print_lines(str(entry.path) for entry in found)
        else:
            print_lines(listing(rows, listing_width()))
    if not found:
        _log_nothing_found(i, source.index)
    elif len(found) == 1:
        logger.info(_line(rows[0]))
    return [entry.path for entry in found], rows


def fitting(i: Mapping[str, Any], home: Home, index: RecipeIndex) -> list[IndexEntry]:
    """The recipes that fit the tags, the name and the repository in the input, best first; empty when none does."""
    query, name = parse_query_input(i)
    found = index.by_tags(query.all_of, query.none_of)
    if name:
        found = tuple(entry for entry in named(name, index) if entry in found)
    repo = str(i.get("artifact") or "").strip().rpartition(":")[0]
    if repo and " " not in repo:
        wanted = {part.strip() for part in repo.split(",")}
        paths = [known.path for known in home.repos if wanted & {known.alias, known.uid}]
        found = tuple(entry for entry in found if entry.repo_path in paths)
    return [entry for entry in found if all(entry.declares(name) for name in query.variations)]


def _row(source: RecipeSource, entry: IndexEntry) -> dict[str, Any]:
    """Facts of a recipe; the tag that only repeats its alias is left out."""
    meta, _ = source.meta(entry)  # parsing whole recipes took a tenth of the command
    tags = call_tags(meta, Reader(meta, str(entry.path)).texts("tags"))
    tags = ",".join(tag for tag in tags.split(",") if tag != entry.alias) or tags
    facts = {"alias": entry.alias, "uid": entry.uid, "tags": tags, "name": summary_of(meta, entry.alias)}
    return {**facts, "path": str(entry.path), "repo": entry.repo_alias}


def listing(rows: Sequence[Mapping[str, Any]], width: int) -> Iterator[str]:
    """The recipes by their aliases, one line each, then how many there are; nothing without recipes."""
    if rows:
        yield from sorted(cut(_line(row), width) for row in rows)
        yield ""
        yield f"{counted(len(rows), 'recipe')}. cm help script NAME shows how to run one, -v the folders"


def _line(row: Mapping[str, Any]) -> str:
    return f"{row['alias']:<{ALIAS_WIDTH}}  {row['tags']}: {row['name']}"


def _log_nothing_found(i: Mapping[str, Any], index: RecipeIndex) -> None:
    """Says why nothing fits, with tags and recipes that are near."""
    query, name = parse_query_input(i)
    try:
        candidates(query, name, index)
    except RecipeError as error:
        logger.info(error.describe())
    else:
        logger.info("no recipe of this repository matches")
