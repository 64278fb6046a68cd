"""Comparisons of results as text for people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from .comparison import Comparison, Difference, Figure

TITLES = {"recipe": "recipe", "made": "made by a recipe", "setting": "setting", "result": "file of the result"}
DIGEST_LENGTH = 64
SHOWN_DIGITS = 12
WIDTH = 60
"""Longer values are cut in a table; ``--out=json`` has them whole."""


def difference_line(difference: Difference, titles: tuple[str, str]) -> str:
    """One difference in a line: ``recipe get-x/run.sh: the file was changed (recorded 12ab..., now 34cd...)``."""
    where = f"{TITLES.get(difference.group, difference.group)} {difference.name}"
    values = f"{titles[0]} {value_text(difference.before)}, {titles[1]} {value_text(difference.after)}"
    has_values = difference.before is not None or difference.after is not None
    parts = [text for text in (difference.note, values if has_values else "") if text]
    return f"{where}: {'; '.join(parts)}"


def visible(line: str) -> str:
    """A line for a terminal: control characters of a foreign text are shown as escapes and not obeyed."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def value_text(value: Any) -> str:
    """A value in a few words; of a digest the first digits."""
    if value is None:
        return "-"
    if isinstance(value, str):
        if len(value) == DIGEST_LENGTH and not set(value) - set("0123456789abcdef"):
            return value[:SHOWN_DIGITS] + "..."
        text = value
    elif isinstance(value, float):
        text = f"{value:.6g}"
    else:
        text = json.dumps(value, sort_keys=True)
    return text if len(text) <= WIDTH else text[: WIDTH - 3] + "..."


def figure_line(figure: Figure, tolerance_percent: float, titles: tuple[str, str]) -> str:
    """One figure in a line with its verdict."""
    mark = "=" if figure.is_same(tolerance_percent) else "!"
    unit = f" {figure.unit}" if figure.unit else ""
    percent = f" ({figure.percent:+.2f} %)" if figure.percent else ""
    rule = "must be equal" if figure.kind == "exact" else f"within {tolerance_percent:g} %"
    values = f"{titles[0]} {exact_text(figure.before)}{unit}, {titles[1]} {exact_text(figure.after)}{unit}"
    return f"{mark} {figure.name}: {values}{percent}, {rule}"


def exact_text(value: Any) -> str:
    """A figure with all its digits."""
    return "-" if value is None else value if isinstance(value, str) else json.dumps(value)


def reproduction_lines(comparison: Comparison, tolerance_percent: float) -> Iterator[str]:
    """The comparison of a result and its reproduction."""
    titles = ("recorded", "now")
    verdict = "reproduced" if comparison.is_reproduced(tolerance_percent) else "NOT reproduced"
    yield f"{comparison.name}: {verdict}"
    for figure in comparison.figures:
        yield f"  {figure_line(figure, tolerance_percent, titles)}"
    for difference in comparison.inputs:
        yield f"  ! {difference_line(difference, titles)}"
    for difference in (*comparison.settings, *comparison.machine):
        yield f"  - {difference_line(difference, titles)}"


def diff_lines(comparison: Comparison, tolerance_percent: float) -> Iterator[str]:
    """Two results side by side: what decides them, what was set, the machine, the figures."""
    yield f"{comparison.name}:"
    if comparison.is_identical:
        yield "  identical: inputs, settings, machine and figures"
        return
    blocks: Sequence[tuple[str, Sequence[Difference]]] = (
        ("inputs", comparison.inputs),
        ("settings", comparison.settings),
        ("machine", comparison.machine),
    )
    for title, differences in blocks:
        if not differences:
            yield f"  {title}: the same"
            continue
        yield f"  {title}:"
        yield from table([_row(difference) for difference in differences], "    ")
    yield "  figures:"
    yield from table([_figure_row(figure, tolerance_percent) for figure in comparison.figures], "    ")


def _row(difference: Difference) -> tuple[str, ...]:
    name = f"{TITLES.get(difference.group, difference.group)} {difference.name}"
    return (name, value_text(difference.before), value_text(difference.after), difference.note)


def _figure_row(figure: Figure, tolerance_percent: float) -> tuple[str, ...]:
    percent = "" if figure.percent is None else f"{figure.percent:+.2f} %"
    mark = "" if figure.is_same(tolerance_percent) else "differs"
    return (f"{figure.name} {figure.unit}".strip(), exact_text(figure.before), exact_text(figure.after), percent, mark)


def table(rows: Sequence[Sequence[str]], indent: str) -> Iterator[str]:
    """Rows in columns."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))] if rows else []
    for row in rows:
        yield (indent + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))).rstrip()
