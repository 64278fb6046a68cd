"""Tag queries and version bounds: what ``--tags=get,cuda,_dev,-tmp`` and ``--version_min=12.2`` ask for.

A word of a query is a tag that must be there; ``-word`` one that must not; ``_word`` a variation that is wanted;
``-_word`` or ``_-word`` a variation that must not be chosen. Versions have CM's order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from .errors import RequestError
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
            f"variation _{clash[0]} is both asked for and excluded in the tags '{','.join(split_words(text))}'",
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


_SHAPE = r"(?s)(\D*)([\d.]*)(.*)"
_RUN = r"\d+|[a-z]+"
_PATCH_LETTER = r"z?[a-z](?![a-z0-9])"
"""A later patch of OpenSSL up to 1.1.1, directly behind the last number: 1.1.1 < 1.1.1a, 0.9.8z < 0.9.8za."""
PRE_RELEASE_WORDS = frozenset({"a", "alpha", "b", "beta", "c", "rc", "pre", "preview", "dev"})
"""Words after the numbers that make a version earlier than the numbers alone (PEP 440's, with their spellings). A
single letter does only with a number behind it (``1.0a1``): see ``_PATCH_LETTER``."""

MOST_DIGITS = 4000
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
    numbers = [int(part[:MOST_DIGITS]) for part in dotted.split(".") if part]
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
        return (2, int(run[:MOST_DIGITS]), "")
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
