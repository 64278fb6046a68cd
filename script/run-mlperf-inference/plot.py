"""Draws a line over time as a small SVG. Pure; texts are escaped."""

from __future__ import annotations

import html
from collections.abc import Sequence

WIDTH = 360
HEIGHT = 84
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 8, 8, 18
"""Room around the line, for the words at the axes."""


def nice_top(value: float) -> float:
    """The least of 1, 2, 5, 10, 20, 50 ... that ``value`` does not exceed."""
    if value <= 0:
        return 1.0
    step = 1.0
    while step < value:
        step *= 10
    while step / 10 >= value:
        step /= 10
    return next(top for top in (step / 10, step / 5, step / 2, step) if top >= value)


def number(value: float) -> str:
    """A value at an axis: no places where it is whole or great."""
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def path_of(points: Sequence[tuple[float, float | None]], last_s: float, top: float) -> str:
    """The `d` of an SVG path through the points (seconds, value); a value that is missing breaks the line."""
    width, height = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM
    parts, is_broken = [], True
    for moment_s, value in points:
        if value is None:
            is_broken = True
            continue
        x = _LEFT + width * (moment_s / last_s if last_s > 0 else 0.0)
        y = _TOP + height * (1 - min(max(value / top, 0.0), 1.0))
        parts.append(f"{'M' if is_broken else 'L'}{x:.1f} {y:.1f}")
        is_broken = False
    return " ".join(parts)


def line_plot(title: str, unit: str, points: Sequence[tuple[float, float | None]], top: float | None = None) -> str:
    """An `<svg>` with one line from second 0 on; ``top`` is the upper end of the axis, from the values by default."""
    values = [value for _, value in points if value is not None]
    if not values:
        return ""
    end = top if top is not None and max(values) <= top else nice_top(max(values))
    last_s = max(moment_s for moment_s, _ in points)
    path = path_of([(0.0, points[0][1]), *points], last_s, end)
    bottom = HEIGHT - _BOTTOM
    said = html.escape(f"{title}: {number(min(values))} to {number(max(values))} {unit}")
    lines = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{said}">',
        f"<title>{said}</title>",
        f'<path class="axis" d="M{_LEFT} {_TOP} V{bottom} H{WIDTH - _RIGHT}"/>',
        f'<path class="line" d="{path}"/>',
        f'<text x="{_LEFT - 4}" y="{_TOP + 8}" text-anchor="end">{number(end)}</text>',
        f'<text x="{_LEFT - 4}" y="{bottom}" text-anchor="end">0</text>',
        f'<text x="{_LEFT}" y="{HEIGHT - 4}">0 s</text>',
        f'<text x="{WIDTH - _RIGHT}" y="{HEIGHT - 4}" text-anchor="end">{number(last_s)} s</text>',
        "</svg>",
    ]
    return "\n".join(lines)
