"""CM's order of versions and its bounds (exact, minimum, maximum, maximum usable)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import zip_longest

_RUN = re.compile(r"\d+|[^\d.]+")

Piece = tuple[int, int, str]


def version_key(text: str) -> tuple[tuple[Piece, ...], ...]:
    """A sort key for a version: dotted parts, each cut into numbers and words.

    A number is greater than a word, and a part that ends earlier is greater than one that goes on with a word, so that
    ``3.9rc1 < 3.9 < 3.9.1``; the reference engine raises TypeError on such pairs.
    """
    parts = []
    for part in text.strip().split("."):
        pieces: list[Piece] = []
        for run in _RUN.findall(part):
            pieces.append((2, int(run), "") if run.isdigit() else (0, 0, run.strip("-_+")))
        pieces.append((1, 0, ""))
        parts.append(tuple(pieces))
    return tuple(parts)


_ZERO: tuple[Piece, ...] = ((2, 0, ""), (1, 0, ""))


def compare(first: str, second: str) -> int:
    """-1, 0 or 1 as ``first`` is lower than, equal to or higher than ``second``; missing parts count as 0."""
    for left, right in zip_longest(version_key(first), version_key(second), fillvalue=_ZERO):
        if left != right:
            return -1 if left < right else 1
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRange:
    """What a caller asks of a version; an empty string means no such bound."""

    exact: str = ""
    minimum: str = ""
    maximum: str = ""
    maximum_usable: str = ""

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

    def clamp(self, default: str) -> str:
        """``default`` moved into the bounds, as CM does when nobody asked for an exact version."""
        if not default:
            return ""
        if self.minimum and compare(default, self.minimum) < 0:
            return self.minimum
        if self.maximum and compare(default, self.maximum) > 0:
            return self.maximum_usable or self.maximum
        return default
