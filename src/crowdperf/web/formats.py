"""How values become text on a page: control characters as escapes, figures with four digits, times to the minute. Pure.

Every text that a page prints passes through `shown`: it is the `finalize` of the template environment.
"""

import re
from typing import Final

from crowdperf.kit.html_page import Html, plain

ABSENT: Final = "-"
LONGEST_TEXT: Final = 4_000
"""Characters of one text on a page; files and JSON have all of it."""


def shown(value: object) -> object:
    """What a template prints for a value: finished HTML as it is, a dash for None, else bounded plain text."""
    if hasattr(value, "__html__"):
        return value
    if value is None:
        return ABSENT
    text = plain(str(value))
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]} ... ({len(text):,} characters)"


_DIGEST = re.compile(r"[0-9a-f]{40,128}")


def shortened(value: object) -> object:
    """A digest by its first 12 digits with all of it in a tooltip; anything else as it is."""
    if isinstance(value, str) and _DIGEST.fullmatch(value):
        return Html(f'<span class="hash" title="{value}">{value[:12]}…</span>')
    return value


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
