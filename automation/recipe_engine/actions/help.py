"""``cm help script|cache``, and ``--help`` of every action: how to call an action, or a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..documents.action_help import ACTION_HELP, COMMON_NAMES, automation_of, name_of
from ..documents.recipe_help import help_json, help_lines
from .adapter import Home
from .listing import show
from .run import new_engine, parse_query_input, parse_request

Answer = dict[str, Any]

INSTEAD: Mapping[str, str] = {
    "docker": "cm run script --tags=run,container,mlperf --recipe_tags=TAGS runs it in Docker, Podman or Apptainer",
    "dockerfile": "cm run script --tags=run,container,mlperf,_plan --recipe_tags=TAGS shows Dockerfile and commands",
    "gui": (
        "cm help script RECIPE lists what the page would let you choose; every benchmark writes results.html, "
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
