"""How values become text on a page: control characters as escapes, figures with four digits, times to the minute. Pure.

Every text that a page prints passes through `shown`: it is the `finalize` of the template environment.
"""

from __future__ import annotations

import unicodedata
from typing import Final

from markupsafe import Markup

ABSENT: Final = "-"
LONGEST_TEXT: Final = 4_000
"""Characters of one text on a page; files and JSON have all of it."""

_KEPT_CONTROLS = frozenset("\n\t")
_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Co", "Zl", "Zp"))
"""Unicode's general categories of characters that are not seen, or that change what is seen around them: controls,
marks of direction, surrogates, private use, separators of lines."""


def plain(text: str) -> str:
    """The text with each invisible character as its escape, `\\u202e`, so that what is read is what is there."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_plain_character(one) for one in text)


def _plain_character(character: str) -> str:
    if character in _KEPT_CONTROLS or unicodedata.category(character) not in _HIDDEN:
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def shown(value: object) -> object:
    """What a template prints for a value: finished HTML as it is, a dash for None, else bounded plain text."""
    if isinstance(value, Markup):
        return value
    if value is None:
        return ABSENT
    text = plain(str(value))
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]} ... ({len(text):,} characters)"


def quantity(value: float | None) -> str:
    """A figure with about four significant digits below 1000 and thousands separators above; a dash for None."""
    if value is None:
        return ABSENT
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.4g}"


def minute(utc: str) -> str:
    """An ISO time to the minute, in words: `2026-11-23 10:15 UTC`; a date or another text as it is."""
    if len(utc) >= 16 and utc[10:11] == "T" and utc[:4].isdigit():
        return f"{utc[:10]} {utc[11:16]} UTC"
    return utc


def size(size_bytes: int) -> str:
    """A size in B, kB or MB."""
    if size_bytes < 1000:
        return f"{size_bytes} B"
    return f"{size_bytes / 1e3:,.1f} kB" if size_bytes < 1e6 else f"{size_bytes / 1e6:,.1f} MB"
