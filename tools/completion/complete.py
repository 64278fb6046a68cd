"""Prints what may complete a command line of ``cm``, a candidate a line: ``complete.py 'cm run script --tags=get,cu'``.

Called by the completion of a shell at each Tab, so it starts no cmind and imports little: what recipes there are, with
tags, variations and inputs, comes from the engine's recipe index, actions and flags from their help texts. A candidate
replaces the last word of the line; it ends with a blank where the next word may begin.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT / "automation"))

from recipe_engine.actions.action_help import ACTION_HELP, flags_of  # noqa: E402

if TYPE_CHECKING:
    from recipe_engine.disk.repos import RecipeSource
    from recipe_engine.rules.model import Recipe

WITH_INPUTS = ("run", "plan", "lock", "explain", "prepare", "test")
OWN_WORDS = {"completion": ("bash", "zsh", "fish")}
"""What ``./cm`` answers itself."""


def home_of(command: str) -> Path:
    """The CM home of a command: of ``./cm``, under any path, the checkout's; of ``cm`` the user's."""
    called = Path(command).expanduser()
    if "/" in command and called.resolve() == CHECKOUT / "cm":
        return CHECKOUT / ".cm"
    return Path(os.environ.get("CM_REPOS") or Path.home() / "CM")


def source_of(home: Path) -> RecipeSource:
    """The recipes of the repositories registered in a CM home; of this checkout alone where it knows none."""
    from recipe_engine.disk.repos import RecipeSource, RepoInfo  # here, because an action needs no recipes

    try:
        listed = json.loads((home / "repos.json").read_text(encoding="utf-8"))
        paths = [home / "repos" / str(item) for item in listed]
    except (OSError, ValueError, TypeError):
        paths = []
    paths = [path for path in paths if (path / "script").is_dir()] or [CHECKOUT]
    return RecipeSource([RepoInfo(path, path.name, "") for path in paths], home / "recipe-index")


def completions(line: str) -> Iterator[str]:
    """The candidates for the last word of ``line``, which is empty behind a blank."""
    words = line.split()
    current = words.pop() if words and not line[-1:].isspace() else ""
    if not words:
        return
    command, *given = words
    known = dict.fromkeys(name for _, name in ACTION_HELP)
    if not given:
        yield from ended([*known, *OWN_WORDS, "--help", "--version"])
    elif given[0] in OWN_WORDS:
        yield from ended(OWN_WORDS[given[0]])
    elif len(given) == 1:
        yield from ended(automation for automation, name in ACTION_HELP if name == given[0])
    else:
        home = home_of(command)
        yield from of_action(given, current, source_of(home), home)


def ended(words: Iterable[str]) -> list[str]:
    """Words behind which the next one may begin."""
    return [f"{word} " for word in words]


def of_action(given: list[str], current: str, source: RecipeSource, home: Path) -> Iterator[str]:
    """The candidates behind an action and its automation."""
    from recipe_engine.documents.recipe_help import inputs_of

    action, automation, *rest = given
    if current.startswith("--tags="):
        yield from tag_words(current, source)
        return
    recipe = chosen(rest, source) if action in WITH_INPUTS else None
    if current.startswith("--") and "=" in current:
        name = current[2:].partition("=")[0]
        found = next((item for item in inputs_of(recipe) if item.name == name), None) if recipe else None
        yield from ended(f"--{name}={choice}" for choice in (found.choices if found else ()))
    elif current.startswith("-"):
        own = [f"--{item.name}=" for item in inputs_of(recipe)] if recipe else []
        flags = flags_of(automation, action)
        help_text = ACTION_HELP.get((automation, action), "")
        yield from own
        yield from (f"{flag}=" if f"{flag}=" in help_text else f"{flag} " for flag in flags if f"{flag}=" not in own)
    elif action in ("runs", "resume"):
        folder = home / "runs"
        yield from ended(sorted(os.listdir(folder), reverse=True) if folder.is_dir() else ())
    elif automation == "script" and action not in ("diff", "reproduce", "native-run"):
        yield from ended(sorted({entry.alias for entry in source.index.entries}))
        if action == "help":
            yield from ended(name for place, name in ACTION_HELP if place == automation)


def tag_words(current: str, source: RecipeSource) -> Iterator[str]:
    """``--tags=`` with one more tag, or behind ``_`` one more variation, of a recipe that has those before it."""
    from recipe_engine.rules.query import parse_query, split_words

    start, comma, last = current.rpartition(",")
    if not comma:
        start, last = "--tags=", current.removeprefix("--tags=")
    query = parse_query(split_words(start.removeprefix("--tags=")))
    entries = source.index.by_tags(query.all_of, query.none_of)
    if last.startswith(("_", "-_")):
        mark = last[: last.index("_") + 1]
        words = {mark + name.removesuffix("#") for entry in entries for name in entry.variations if "," not in name}
        words -= {f"_{name}" for name in query.variations}
    else:
        words = {tag for entry in entries for tag in entry.tags} - set(query.all_of)
    yield from (f"{start}{comma}{word}" for word in sorted(words))


def chosen(rest: Iterable[str], source: RecipeSource) -> Recipe | None:
    """The recipe that the words behind the automation select: by tags, as a run would, or by name."""
    from recipe_engine.rules.query import parse_query, split_words

    words = list(rest)
    tags = next((word.removeprefix("--tags=") for word in words if word.startswith("--tags=")), "")
    name = next((word for word in words if not word.startswith("-")), "")
    query = parse_query(split_words(tags))
    found = source.index.by_tags(query.all_of, query.none_of) if query.all_of else source.index.by_name(name)
    recipes = [source.recipe(entry) for entry in found]
    asked = set(query.all_of)
    recommended = [recipe for recipe in recipes if set(str(recipe.meta.get("tags_help") or "").split()) == asked]
    return next(iter([*recommended, *recipes]), None)


def main(line: str) -> None:
    """Prints the candidates that begin with the last word of the line."""
    current = "" if line[-1:].isspace() else (line.split() or [""])[-1]
    for candidate in dict.fromkeys(completions(line)):
        if candidate.startswith(current):
            sys.stdout.write(f"{candidate}\n")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
