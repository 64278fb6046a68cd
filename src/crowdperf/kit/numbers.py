"""Numbers as text: those that inputs of recipes give, and those that pages and tables show."""

import math

MAX_DIGITS = 18
"""Of a whole number. LoadGen keeps its settings in 64 bits (19 digits), and Python reads at most 4,300."""
WHOLE = f"a whole number from 1, with at most {MAX_DIGITS} digits"
"""What `whole_number` allows."""


def whole_number(text: str, least: int = 1) -> int | None:
    """Return the whole number from `least` that `text` is, else None."""
    is_whole = text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS
    return int(text) if is_whole and int(text) >= least else None


def positive_number(text: str) -> float | None:
    """Return the finite number above 0 that `text` is, else None."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value > 0 else None


def quantity(value: float | None, digits: int = 4) -> str:
    """Return a value with `digits` significant digits, or with thousands separators, or a dash for None."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if 10 ** (digits - 1) <= abs(value) < 1e15 else f"{value:.{digits}g}"
