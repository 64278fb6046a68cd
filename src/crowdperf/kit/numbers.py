"""Numbers as text: those that inputs of recipes give, and those that pages and tables show."""

import math
from collections.abc import Sequence
from statistics import median

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


def spread_percent(values: Sequence[float]) -> float | None:
    """Return half the range of some repeats in percent of their median, None for a median of 0."""
    middle = median(values)
    return (max(values) - min(values)) / 2 / abs(middle) * 100 if middle else None


def repeats_text(values: Sequence[float], unit: str = "") -> str:
    """Return the median of some repeats with their spread and number: `93,662 samples/s ±23 % (n=3)`."""
    spread = spread_percent(values)
    around = "" if spread is None else f" ±{spread:,.{0 if spread >= 10 else 1}f} %"
    return f"{quantity(median(values))}{f' {unit}' if unit else ''}{around} (n={len(values)})"
