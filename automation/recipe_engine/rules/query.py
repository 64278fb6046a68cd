"""Queries: what tags and version bounds ask for, and which recipes can answer; a helpful refusal when none can.

A word of ``--tags=get,cuda,_dev,-tmp`` is a tag that must be there; ``-word`` one that must not; ``_word`` a variation
that is wanted; ``-_word`` or ``_-word`` a variation that must not be chosen. Versions have CM's order. The index is
what is known of all registered recipes without reading their files: enough to select one.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from .errors import NotFound, RequestError, VariationNotFound
from .frozen import Frozen


class TagQuery(Frozen):
    """A parsed query. The order of words is the order in which they were written, without repeats."""

    all_of: tuple[str, ...] = ()
    none_of: tuple[str, ...] = ()
    variations: tuple[str, ...] = ()
    excluded_variations: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The query as one would type it."""
        words = [*self.all_of, *("-" + tag for tag in self.none_of)]
        words += ["_" + name for name in self.variations] + ["-_" + name for name in self.excluded_variations]
        return ",".join(words)


def further_words(i: Mapping[str, Any]) -> tuple[str, ...]:
    """The plain words behind the first one of the command line; raises RequestError where they are no list."""
    words = i.get("artifacts") or ()
    if not isinstance(words, list | tuple):
        raise RequestError(
            f"--artifacts is reserved for cmind (the words of the command line), found {words!r}",
            hint="write --tags=get,python3",
        )
    return tuple(map(str, words))


def split_words(text: str | Iterable[str]) -> tuple[str, ...]:
    """The comma-separated words of ``text`` (or of each text of a list), stripped, without empty ones and repeats."""
    parts = text.split(",") if isinstance(text, str) else [part for item in text for part in str(item).split(",")]
    return tuple(dict.fromkeys(stripped for part in parts if (stripped := part.strip())))


def parse_query(text: str | Iterable[str]) -> TagQuery:
    """The query that ``text`` asks for.

    Raises RequestError when one variation is both wanted and excluded.
    """
    all_of: list[str] = []
    none_of: list[str] = []
    variations: list[str] = []
    excluded: list[str] = []
    by_prefix = {"-_": excluded, "_-": excluded, "_": variations, "-": none_of, "": all_of}
    for word in split_words(text):
        prefix = next(filter(word.startswith, by_prefix))
        by_prefix[prefix].append(word.removeprefix(prefix))
    clash = [name for name in variations if name in excluded]
    if clash:
        raise RequestError(
            f"variation _{clash[0]} is both requested and excluded in the tags '{','.join(split_words(text))}'",
            hint=f"keep either _{clash[0]} or -_{clash[0]}",
        )
    return TagQuery(
        all_of=tuple(all_of),
        none_of=tuple(none_of),
        variations=tuple(variations),
        excluded_variations=tuple(dict.fromkeys(excluded)),
    )


def merge_tag_texts(old: str | Iterable[str], new: str | Iterable[str]) -> str:
    """The words of ``old`` (a text or a list) followed by those of ``new`` that it lacks; the given order is kept."""
    return ",".join(dict.fromkeys((*split_words(old), *split_words(new))))


def nearest(word: str, known: Iterable[str], count: int = 3, likeness: float = 0.55) -> list[str]:
    """Up to ``count`` words of ``known`` that look most like ``word``, best first; empty when none is close.

    ``likeness`` is the share of letters in common that makes a word close, 0 to 1.
    """
    import difflib  # here, because most calls never need it

    return difflib.get_close_matches(word, sorted(set(known)), n=count, cutoff=likeness)


def nearest_hint(word: str, known: Iterable[str], mark: str = "", otherwise: str = "") -> str:
    """The known words (each behind ``mark``) that look most like ``word``, as a hint; ``otherwise`` without any."""
    close = nearest(word, known)
    return f"the nearest are: {', '.join(mark + name for name in close)}" if close else otherwise


# --- versions ---


_SHAPE = r"(?s)(\D*)([\d.]*)(.*)"
_RUN = r"\d+|[a-z]+"
_PATCH_LETTER = r"z?[a-z](?![a-z0-9])"
"""A later patch of OpenSSL up to 1.1.1, directly behind the last number: 1.1.1 < 1.1.1a, 0.9.8z < 0.9.8za."""
PRE_RELEASE_WORDS = frozenset({"a", "alpha", "b", "beta", "c", "rc", "pre", "preview", "dev"})
"""Words after the numbers that make a version earlier than the numbers alone (PEP 440's, with their spellings). A
single letter does only with a number behind it (``1.0a1``): see ``_PATCH_LETTER``."""

MAX_DIGITS = 4000
"""Python reads no longer numbers (``sys.get_int_max_str_digits``), and no version has one."""

Piece = tuple[int, int, str]
VersionKey = tuple[tuple[int, str], tuple[int, ...], tuple[Piece, ...]]


def version_key(text: str) -> VersionKey:
    """A sort key for a version: the text before the numbers, the dotted numbers, what follows them.

    Missing numbers count as 0. A pre-release word goes before the plain version, anything else after it, so that
    ``3.9rc1 < 3.9 = 3.9.0 < 3.9+cu118 < 3.9.1``; a leading ``v`` does not count, and a version without numbers
    (a branch name) goes before all others. The reference engine raises TypeError where words meet numbers.
    """
    before, dotted, after = re.findall(_SHAPE, text.strip().lower())[0]
    numbers = [int(part[:MAX_DIGITS]) for part in dotted.split(".") if part]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    word = "" if before == "v" else before
    patch = re.match(_PATCH_LETTER, after) if dotted and not dotted.endswith(".") else None
    pieces = [(1, 0, patch[0])] if patch else []
    pieces += [_piece(run) for run in re.findall(_RUN, after[patch.end() if patch else 0 :])]
    return (0 if word else 1, word), tuple(numbers), (*pieces, (0, 0, ""))


def _piece(run: str) -> Piece:
    """The rank of a number or a word behind the version's numbers; the end of the version has rank 0."""
    if run.isdigit():
        return (2, int(run[:MAX_DIGITS]), "")
    rank = -2 if run == "dev" else -1 if run in PRE_RELEASE_WORDS else 1
    return (rank, 0, run)


def compare(first: str, second: str) -> int:
    """-1, 0 or 1 as ``first`` is lower than, equal to or higher than ``second``."""
    left, right = version_key(first), version_key(second)
    return (left > right) - (left < right)


BOUND_KEYS = ("version", "version_min", "version_max", "version_max_usable")
"""The keys of recipes and requests for the fields of a VersionRange, in their order."""


class VersionRange(Frozen):
    """The version requirement of a caller; an empty string means no such bound."""

    exact: str = ""
    minimum: str = ""
    maximum: str = ""
    maximum_usable: str = ""

    @property
    def bounds(self) -> tuple[str, str, str, str]:
        """The fields in the order of BOUND_KEYS."""
        return self.exact, self.minimum, self.maximum, self.maximum_usable

    @property
    def text(self) -> str:
        """The bounds in words, ``any version`` when there are none."""
        bounds = [("==", self.exact), (">=", self.minimum), ("<=", self.maximum)]
        return ", ".join(sign + " " + value for sign, value in bounds if value) or "any version"

    @property
    def pip_text(self) -> str:
        """The bounds as pip wants them, CM's ``CM_TMP_PIP_VERSION_STRING``."""
        if self.exact:
            return f"=={self.exact}"
        return ",".join(sign + value for sign, value in ((">=", self.minimum), ("<=", self.maximum)) if value)

    def admits(self, version: str) -> bool:
        """Whether ``version`` lies within minimum and maximum; an unknown (empty) version does."""
        if not version:
            return True
        if self.minimum and compare(version, self.minimum) < 0:
            return False
        return not (self.maximum and compare(version, self.maximum) > 0)

    def holds(self, version: str) -> bool:
        """Whether ``version`` is the exact one asked for, if one is, and lies within the bounds."""
        return self.admits(version) and (not self.exact or not version or compare(version, self.exact) == 0)

    def clamp(self, default: str) -> str:
        """``default`` moved into the bounds, as CM does when no exact version was requested."""
        if not default:
            return ""
        if self.minimum and compare(default, self.minimum) < 0:
            return self.minimum
        if self.maximum and compare(default, self.maximum) > 0:
            return self.maximum_usable or self.maximum
        return default


ANY_VERSION = VersionRange()


def intersection(first: VersionRange, second: VersionRange) -> VersionRange | None:
    """What both ranges allow; None when nothing does. An exact version takes the place of bounds that admit it."""
    exact = first.exact or second.exact
    if exact:
        return VersionRange(exact=exact) if first.holds(exact) and second.holds(exact) else None
    lower = [one for one in (first.minimum, second.minimum) if one]
    upper = [one for one in (first, second) if one.maximum]
    minimum = max(lower, key=version_key, default="")
    tightest = min(upper, key=lambda one: version_key(one.maximum), default=ANY_VERSION)
    if minimum and tightest.maximum and compare(minimum, tightest.maximum) > 0:
        return None
    return VersionRange("", minimum, tightest.maximum, tightest.maximum_usable)


# --- recipes ---


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
        return declared_as(variation, self.variations) != ""


def declared_as(variation: str, declared: Collection[str]) -> str:
    """The name under which ``declared`` has a variation: itself, or ``name.#`` for ``name.value``, or an empty text."""
    if variation in declared:
        return variation
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
    "only one matches",
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
            raise _no_such_name(alias, index, is_with_tags=bool(query.all_of))
        found = tuple(entry for entry in called if entry.has_tags(query.all_of, query.none_of))
        if not found:
            raise _other_tags(query, called)
    elif not query.all_of:
        raise RequestError(
            "no recipe was requested",
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


def _no_such_name(alias: str, index: RecipeIndex, *, is_with_tags: bool) -> NotFound:
    repo, _, name = alias.rpartition(":")
    elsewhere = index.by_name(name) if repo else ()
    if elsewhere:
        return NotFound(
            f"no recipe of the repository '{repo}' is called '{name}'",
            hint=f"it is in: {', '.join(sorted({entry.repo_alias for entry in elsewhere}))}",
        )
    aliases = [entry.alias for entry in index.entries]
    is_part = re.fullmatch(r"[\w.-]+", name) and any(name in one for one in aliases)
    listing = f"cm find script '*{name}*' lists those with it" if is_part else "cm find script lists all recipes"
    return _unreadable([name], index) or NotFound(
        "\n".join([f"no recipe is called '{name}'", *_broken_lines(index)]),
        hint=f"if it is the value of an input, both are one word: --INPUT={shlex.quote(name)}"
        if is_with_tags
        else nearest_hint(name, aliases, otherwise=listing),
    )


def _other_tags(query: TagQuery, called: Sequence[IndexEntry]) -> NotFound:
    lines = []
    for entry in called:
        missing = [f"does not have the tag '{tag}'" for tag in query.all_of if tag not in entry.tags]
        unwanted = [f"has the excluded tag '{tag}'" for tag in query.none_of if tag in entry.tags]
        lines.append(f"recipe '{entry.alias}' {(missing + unwanted)[0]}. Its tags: {','.join(sorted(entry.tags))}")
    return NotFound("\n".join(lines), hint="select the recipe by alias, by tags, or by both if they match")


def _no_such_tags(query: TagQuery, index: RecipeIndex) -> NotFound:
    known = index.all_tags
    unknown = [tag for tag in query.all_of if tag not in known]
    if broken := _unreadable(unknown, index):
        return broken
    lines = [f"no recipe has all the tags '{query.text}'"]
    for tag in unknown:
        close = nearest(tag, known)
        lines.append(f"  no recipe at all has the tag '{tag}'" + (f", close ones: {', '.join(close)}" if close else ""))
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
    hint = f"cm find script --tags={best}" if best else "cm find script lists all recipes"
    return NotFound("\n".join(lines), hint=hint)


def _broken_lines(index: RecipeIndex) -> list[str]:
    return [f"  left out, because it cannot be read: {problem}" for problem in _problems(index).values()]


def _problems(index: RecipeIndex) -> dict[str, str]:
    """Why recipes cannot be read, each with its path, by the names of their folders."""
    return {
        Path(folder).name: problem if problem.startswith(folder) else f"{folder}: {problem}"
        for folder, problem in index.broken.items()
    }


def _unreadable(words: Sequence[str], index: RecipeIndex) -> NotFound | None:
    """The error for an unreadable recipe that has all of ``words`` in the name of its folder; None if there is none."""
    for name, problem in _problems(index).items():
        if words and all(f"-{word}-" in f"-{name}-" for word in words):
            return NotFound(f"the recipe '{name}' cannot be read: {problem}", hint=f"cm audit script {name}")
    return None


def nearest_recipes(tags: Sequence[str], entries: Sequence[IndexEntry], count: int = 3) -> list[IndexEntry]:
    """Up to ``count`` recipes that share most with ``tags``; tags that look alike count a little."""

    def shared(entry: IndexEntry) -> float:
        return sum(1.0 if tag in entry.tags else 0.5 if nearest(tag, entry.tags, 1) else 0.0 for tag in tags)

    ranked = sorted(((-shared(entry), len(entry.tags), entry) for entry in entries), key=lambda row: row[:2])
    return [entry for score, _, entry in ranked if score < 0][:count]


def _no_such_variation(query: TagQuery, found: Sequence[IndexEntry]) -> VariationNotFound:
    lines, offered = [], list[str]()
    for entry in found:
        missing = _undeclared(query, entry)
        signs = dict.fromkeys(query.excluded_variations, "-")
        offered = offered or [
            f"{signs.get(name, '')}_{near}" for name in missing for near in nearest(name, entry.variations, 1)
        ]
        close = [f"_{near}" for name in missing for near in nearest(name, entry.variations)]
        known = ", ".join("_" + name for name in sorted(entry.variations) if "," not in name) or "none"
        lines.append(
            f"recipe '{entry.alias}' has no variation {', '.join('_' + name for name in missing)}"
            + (f" (close: {', '.join(dict.fromkeys(close))})" if close else "")
            + f"\n  its variations: {known}"
        )
    if not offered and any(entry.variations for entry in found):
        offered = ["_VARIATION"]
    kept = [f"_{name}" for name in query.variations if all(entry.declares(name) for entry in found)]
    words = ",".join([*(query.all_of or sorted(found[0].tags)), *kept, *offered])
    return VariationNotFound("\n".join(lines), hint=f"cm run script --tags={words}")
