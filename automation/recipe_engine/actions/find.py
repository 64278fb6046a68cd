"""``cm find script``: recipes by tags or name, one line each."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..disk.repos import RecipeSource
from ..documents.console_text import cut
from ..documents.recipe_help import call_tags, summary_of
from ..rules.amounts import counted
from ..rules.errors import RecipeError
from ..rules.query import IndexEntry, RecipeIndex, candidates, named
from .adapter import Home
from .listing import is_verbose, listing_width, print_lines
from .run import parse_query_input

logger = logging.getLogger(__name__)
ALIAS_WIDTH = 28
"""Most aliases are shorter; what follows a longer one begins further right."""


def search_action(i: Mapping[str, Any], home: Home) -> tuple[list[Path], list[dict[str, Any]]]:
    """Answers ``cm find script``: the folders of the recipes that fit, in order of preference, and facts of each.

    The name may hold ``*`` and ``?``, and a repository in front: ``cm find script crowdperf:get-*``. On the console
    several recipes are one line each; of one recipe, and with ``-v``, the folders are printed, as CM does.
    """
    source = RecipeSource(home.repos, home.index_folder)
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
    recipe = source.recipe(entry)
    facts = {"alias": entry.alias, "uid": entry.uid, "tags": _tags_without(call_tags(recipe), entry.alias)}
    return {**facts, "name": summary_of(recipe), "path": str(entry.path), "repo": entry.repo_alias}


def _tags_without(tags: str, alias: str) -> str:
    """The tags to call a recipe by, without the one that only repeats its alias."""
    return ",".join(tag for tag in tags.split(",") if tag != alias) or tags


def listing(rows: Sequence[Mapping[str, Any]], width: int) -> Iterator[str]:
    """The recipes by their aliases, one line each, then how many there are; nothing without recipes."""
    if rows:
        yield from sorted(cut(_line(row), width) for row in rows)
        yield ""
        yield f"{counted(len(rows), 'recipe')}; cm help script NAME shows how to call one, -v the folders"


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
        logger.info("no recipe of this repository fits")
