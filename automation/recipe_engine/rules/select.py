"""From a query to the recipes that can answer it, and a helpful refusal when none can.

The index is what is known of all registered recipes without reading their files: enough to select one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

from .env import ValueRule
from .errors import NotFound, RequestError, VariationNotFound
from .frozen import Frozen
from .query import TagQuery, nearest, nearest_hint


class RepoInfo(Frozen):
    """One registered CM repository; ``path`` is the folder that holds ``script/``.

    ``values`` is how its recipes' native scripts see env values, ``has_strict_inputs`` whether an input that a recipe
    does not declare is an error: what its ``cmr.yaml`` says, or CM's rule.
    """

    path: Path
    alias: str
    uid: str
    values: ValueRule = "cm"
    has_strict_inputs: bool = False


class IndexEntry(Frozen):
    """One recipe as selection sees it. ``sort`` is the recipe's own rank; a lower one is preferred."""

    alias: str
    uid: str
    path: Path
    repo_path: Path
    repo_alias: str
    tags: frozenset[str]
    variations: frozenset[str]
    sort: int
    is_cached: bool

    def has_tags(self, wanted: Iterable[str], unwanted: Iterable[str]) -> bool:
        """Whether the recipe has all ``wanted`` tags and none of the ``unwanted``."""
        return self.tags.issuperset(wanted) and self.tags.isdisjoint(unwanted)

    def declares(self, variation: str) -> bool:
        """Whether the recipe has this variation, by exact name or as ``name.#``."""
        return variation in self.variations or dynamic_name(variation, self.variations) != ""


def dynamic_name(variation: str, declared: Iterable[str]) -> str:
    """The ``name.#`` among ``declared`` that ``variation`` (``name.value``) is a case of, or an empty text."""
    name, _, value = variation.partition(".")
    candidate = f"{name}.#"
    return candidate if value and not value.endswith(".") and candidate in declared else ""


class RecipeIndex:
    """All recipes of all registered repositories, ordered as CM orders candidates: by ``sort``, then by path.

    ``broken`` are the folders that could not be read, with the reason.
    """

    def __init__(self, entries: Iterable[IndexEntry], broken: Mapping[str, str]) -> None:
        self._listed = tuple(entries)
        self._broken = broken

    def holding(self, words: Iterable[str]) -> Iterable[IndexEntry]:
        """At least the recipes that have each of ``words`` as a tag or a name."""
        return self._listed

    @property
    def broken(self) -> Mapping[str, str]:
        """The folders that could not be read, with the reason."""
        return self._broken

    @property
    def entries(self) -> tuple[IndexEntry, ...]:
        """All recipes."""
        return _ordered(self.holding(()))

    @property
    def all_tags(self) -> frozenset[str]:
        """Every tag that any recipe carries."""
        return frozenset().union(*(entry.tags for entry in self.holding(())))

    def by_name(self, name: str) -> tuple[IndexEntry, ...]:
        """The recipes whose alias or uid is ``name``."""
        return _ordered(entry for entry in self.holding([name]) if name in (entry.alias, entry.uid))

    def by_tags(self, wanted: Iterable[str], unwanted: Iterable[str]) -> tuple[IndexEntry, ...]:
        """The recipes that have all ``wanted`` tags and none of the ``unwanted``."""
        wanted, unwanted = frozenset(wanted), frozenset(unwanted)
        return _ordered(entry for entry in self.holding(wanted) if entry.has_tags(wanted, unwanted))


def _ordered(entries: Iterable[IndexEntry]) -> tuple[IndexEntry, ...]:
    return tuple(sorted(entries, key=lambda entry: (entry.sort, str(entry.path))))


Verdict = Literal["excluded tag", "no such variation", "variations clash", "other repository", "fits"]
ChoiceRule = Literal[
    "only one fits",
    "name",
    "own repository",
    "remembered",
    "variations",
    "cached",
    "tags_help",
    "first by sort and path",
    "picked on the terminal",
]
"""What decided between recipes that fit, in the order in which the rules count."""


def candidates(query: TagQuery, alias: str, index: RecipeIndex) -> tuple[IndexEntry, ...]:
    """The recipes that fit, best first; never empty.

    ``alias`` may be a pattern (``get-*``) and have a repository in front (``repo:name``). Raises RequestError for an
    empty query, NotFound when no recipe has tags and name, VariationNotFound when those that do lack a variation.
    """
    if alias:
        called = named(alias, index)
        if not called:
            raise _no_such_name(alias, index)
        found = tuple(entry for entry in called if entry.has_tags(query.all_of, query.none_of))
        if not found:
            raise _other_tags(query, called)
    elif not query.all_of:
        raise RequestError(
            "no recipe was asked for",
            hint='name one by tags: cm run script --tags=get,python3, or cm run script "get python3"',
        )
    else:
        found = index.by_tags(query.all_of, query.none_of)
        if not found:
            raise _no_such_tags(query, index)
    fitting = tuple(entry for entry in found if not _undeclared(query, entry))
    if not fitting:
        raise _no_such_variation(query, found)
    return fitting


class Refusal(Frozen):
    """What kept a recipe from answering a query, and in which words to say it."""

    verdict: Verdict
    reason: str


def refusal(query: TagQuery, entry: IndexEntry) -> Refusal | None:
    """Why a recipe with all the tags, or the name, of ``query`` cannot answer it; None when it can."""
    unwanted = [tag for tag in query.none_of if tag in entry.tags]
    if unwanted:
        return Refusal("excluded tag", f"has the excluded tag '{unwanted[0]}'")
    missing = ", ".join("_" + name for name in _undeclared(query, entry))
    return Refusal("no such variation", f"has no variation {missing}") if missing else None


def _undeclared(query: TagQuery, entry: IndexEntry) -> list[str]:
    return [name for name in query.variations + query.excluded_variations if not entry.declares(name)]


class Choice(Frozen):
    """The recipe that answers a query, the rule that decided, and why each other one that fits was passed over."""

    entry: IndexEntry
    rule: ChoiceRule
    passed_over: tuple[tuple[IndexEntry, Refusal], ...] = ()


def named(alias: str, index: RecipeIndex) -> tuple[IndexEntry, ...]:
    """The recipes called ``name`` or ``repo:name``, where the repository is named by its alias or its folder.

    A name with ``*`` or ``?`` is a pattern of aliases.
    """
    repo, _, name = alias.rpartition(":")
    is_pattern = "*" in name or "?" in name
    every = index.entries if is_pattern else index.by_name(name)
    found = tuple(entry for entry in every if not is_pattern or fnmatchcase(entry.alias, name))
    names = set(repo.split(","))
    return tuple(entry for entry in found if not repo or names & {entry.repo_alias, entry.repo_path.name})


def nearest_to_asker(found: tuple[IndexEntry, ...], asker: Path | None) -> tuple[IndexEntry, ...]:
    """Of recipes that fit a dependency, those in the repository of the recipe that asks (at ``asker``), if any are.

    A dependency means the recipe of its own repository; one of another repository is preferred only for a lower
    ``sort``, which its author chose on purpose.
    """
    own = tuple(entry for entry in found if entry.repo_path == asker)
    return own if own and own[0].sort <= found[0].sort else found


def _no_such_name(alias: str, index: RecipeIndex) -> NotFound:
    repo, _, name = alias.rpartition(":")
    elsewhere = index.by_name(name) if repo else ()
    if elsewhere:
        return NotFound(
            f"no recipe of the repository '{repo}' is called '{name}'",
            hint=f"it is in: {', '.join(sorted({entry.repo_alias for entry in elsewhere}))}",
        )
    return NotFound(
        "\n".join([f"no recipe is called '{name}'", *_broken_lines(index)]),
        hint=nearest_hint(name, [entry.alias for entry in index.entries], otherwise="cm find script lists all recipes"),
    )


def _other_tags(query: TagQuery, called: Sequence[IndexEntry]) -> NotFound:
    lines = []
    for entry in called:
        missing = [f"does not have the tag '{tag}'" for tag in query.all_of if tag not in entry.tags]
        unwanted = [f"has the excluded tag '{tag}'" for tag in query.none_of if tag in entry.tags]
        lines.append(f"recipe '{entry.alias}' {(missing + unwanted)[0]}; its tags: {','.join(sorted(entry.tags))}")
    return NotFound("\n".join(lines), hint="name the recipe by its alias or by tags, or by both where they fit")


def _no_such_tags(query: TagQuery, index: RecipeIndex) -> NotFound:
    known = index.all_tags
    unknown = [tag for tag in query.all_of if tag not in known]
    lines = [f"no recipe has all the tags '{query.text}'"]
    for tag in unknown:
        close = nearest(tag, known)
        lines.append(f"  no recipe at all has the tag '{tag}'" + (f"; close ones: {', '.join(close)}" if close else ""))
    excluding = index.by_tags(query.all_of, ()) if query.none_of else ()
    if not unknown and not excluding:
        lines.append("  each tag exists, but no recipe has all of them together")
    if excluding:
        lines.append(f"  only recipes with an excluded tag have them: {', '.join(entry.alias for entry in excluding)}")
    lines += _broken_lines(index)
    near = nearest_recipes(query.all_of, index.entries)
    lines += ["  nearest recipes:"] if near else []
    lines += [f"    {entry.alias}: {','.join(sorted(entry.tags))}" for entry in near]
    best = ",".join(tag for tag in query.all_of if near and tag in near[0].tags)
    return NotFound(
        "\n".join(lines), hint=f"cm find script --tags={best}" if best else "cm find script lists all recipes"
    )


def _broken_lines(index: RecipeIndex) -> list[str]:
    return [
        f"  not looked at, because it cannot be read: {folder} ({problem})" for folder, problem in index.broken.items()
    ]


def nearest_recipes(tags: Sequence[str], entries: Sequence[IndexEntry], count: int = 3) -> list[IndexEntry]:
    """Up to ``count`` recipes that share most with ``tags``; tags that look alike count a little."""

    def shared(entry: IndexEntry) -> float:
        return sum(1.0 if tag in entry.tags else 0.5 if nearest(tag, entry.tags, 1) else 0.0 for tag in tags)

    ranked = sorted(((-shared(entry), len(entry.tags), entry) for entry in entries), key=lambda row: row[:2])
    return [entry for score, _, entry in ranked if score < 0][:count]


def _no_such_variation(query: TagQuery, found: Sequence[IndexEntry]) -> VariationNotFound:
    lines = []
    for entry in found:
        missing = _undeclared(query, entry)
        close = [f"_{near}" for name in missing for near in nearest(name, entry.variations)]
        known = ", ".join("_" + name for name in sorted(entry.variations) if "," not in name) or "none"
        lines.append(
            f"recipe '{entry.alias}' has no variation {', '.join('_' + name for name in missing)}"
            + (f" (close: {', '.join(dict.fromkeys(close))})" if close else "")
            + f"\n  its variations: {known}"
        )
    tags = ",".join(query.all_of or sorted(found[0].tags))
    return VariationNotFound("\n".join(lines), hint=f"cm run script --tags={tags},_VARIATION")
