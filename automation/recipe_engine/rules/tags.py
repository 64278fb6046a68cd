"""Tag queries: what the text ``get,cuda,_dev,-tmp`` asks for.

A word is a tag that must be there; ``-word`` one that must not; ``_word`` a variation that is wanted;
``-_word`` or ``_-word`` a variation that must not be chosen.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .errors import RequestError


class TagQuery(NamedTuple):
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
