"""The numbers that inputs of recipes hold as text."""

from __future__ import annotations

import math


def whole_number(text: str) -> int | None:
    """Return the whole number from 1 that `text` is, else None."""
    return int(text) if text.isascii() and text.isdigit() and int(text) > 0 else None


def positive_number(text: str) -> float | None:
    """Return the finite number above 0 that `text` is, else None."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value > 0 else None
