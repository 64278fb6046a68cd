"""Draws small SVG plots for static pages: a line over time, latencies over percentiles, a histogram. Pure; texts are
escaped."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH = 360
HEIGHT = 84
TALL_HEIGHT = 150
"""Of a distribution."""

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
    """A value at an axis: no places where it is whole or great, three significant digits where it is small."""
    if value >= 10 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 1 else f"{value:.3g}"


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


def _opening(said: str, height: int) -> list[str]:
    return [
        f'<svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" aria-label="{said}">',
        f"<title>{said}</title>",
        f'<path class="axis" d="M{_LEFT} {_TOP} V{height - _BOTTOM} H{WIDTH - _RIGHT}"/>',
    ]


def line_plot(title: str, unit: str, points: Sequence[tuple[float, float | None]], top: float | None = None) -> str:
    """An `<svg>` with one line from second 0 on; ``top`` is the upper end of the axis, from the values by default."""
    values = [value for _, value in points if value is not None]
    if not values:
        return ""
    end = top if top is not None and max(values) <= top else nice_top(max(values))
    last_s = max(moment_s for moment_s, _ in points)
    path = path_of([(0.0, points[0][1]), *points], last_s, end)
    bottom = HEIGHT - _BOTTOM
    lines = [
        *_opening(html.escape(f"{title}: {number(min(values))} to {number(max(values))} {unit}"), HEIGHT),
        f'<path class="line" d="{path}"/>',
        f'<text x="{_LEFT - 4}" y="{_TOP + 8}" text-anchor="end">{number(end)}</text>',
        f'<text x="{_LEFT - 4}" y="{bottom}" text-anchor="end">0</text>',
        f'<text x="{_LEFT}" y="{HEIGHT - 4}">0 s</text>',
        f'<text x="{WIDTH - _RIGHT}" y="{HEIGHT - 4}" text-anchor="end">{number(last_s)} s</text>',
        "</svg>",
    ]
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Quantile:
    """``percent`` of all answers came within ``value``; 0 stands for the fastest one, 100 for the slowest."""

    percent: float
    value: float


_FARTHEST_NINES = 3.3
"""Where the slowest answer is drawn: a little beyond 99.9 %, which is 3."""


def nines(percent: float) -> float:
    """How far to the right a percentile stands: 90 % at 1, 99 % at 2, 99.9 % at 3, so that the tail can be seen."""
    if percent >= 100:
        return _FARTHEST_NINES
    return min(-math.log10(1 - percent / 100), _FARTHEST_NINES)


LOGARITHMIC_FROM = 20.0
"""A distribution whose slowest answer took this many times as long as its fastest is drawn on a logarithmic axis."""


@dataclass(frozen=True, slots=True)
class _Axis:
    """The upward axis of a distribution: from `low` (0 on a linear one) to `high`, with marks between."""

    low: float
    high: float
    marks: tuple[float, ...]

    def share(self, value: float) -> float:
        """How far up a value stands, 0 to 1."""
        if self.low == 0:
            return max(value, 0.0) / self.high
        return (math.log10(max(value, self.low)) - math.log10(self.low)) / (
            math.log10(self.high) - math.log10(self.low)
        )


def _axis(values: Sequence[float]) -> _Axis:
    least, most = min(values), max(values)
    if least <= 0 or most < LOGARITHMIC_FROM * least:
        top = nice_top(most)
        return _Axis(0.0, top, (0.0, top / 2, top))
    low, high = math.floor(math.log10(least)), math.ceil(math.log10(most))
    return _Axis(10.0**low, 10.0**high, tuple(10.0**power for power in range(low, high + 1)))


def distribution_plot(title: str, unit: str, quantiles: Sequence[Quantile]) -> str:
    """An `<svg>` of latencies (upwards) over percentiles (to the right, see `nines`); empty without two of them."""
    found = sorted(quantiles, key=lambda quantile: quantile.percent)
    if len(found) < 2:
        return ""
    axis = _axis([quantile.value for quantile in found])
    width, height = WIDTH - _LEFT - _RIGHT - 8, TALL_HEIGHT - _TOP - _BOTTOM
    bottom = TALL_HEIGHT - _BOTTOM

    def x(percent: float) -> float:
        return _LEFT + width * nines(percent) / _FARTHEST_NINES

    def y(value: float) -> float:
        return _TOP + height * (1 - axis.share(value))

    through = " L".join(f"{x(quantile.percent):.1f} {y(quantile.value):.1f}" for quantile in found)
    said = f"{title}: " + ", ".join(f"{quantile.percent:g} % within {quantile.value:.4g} {unit}" for quantile in found)
    marks = [(50.0, "50 %"), (90.0, "90 %"), (99.0, "99 %"), (99.9, "99.9 %")]
    lines = [
        *_opening(html.escape(said), TALL_HEIGHT),
        *(f'<path class="grid" d="M{x(percent):.1f} {_TOP} V{bottom}"/>' for percent, _ in marks),
        *(f'<path class="grid" d="M{_LEFT} {y(mark):.1f} H{WIDTH - _RIGHT}"/>' for mark in axis.marks[1:]),
        f'<path class="line" d="M{through}"/>',
        *(f'<circle class="dot" cx="{x(q.percent):.1f}" cy="{y(q.value):.1f}" r="2.5"/>' for q in found),
        *(
            f'<text x="{_LEFT - 4}" y="{y(mark) + 3.5:.1f}" text-anchor="end">{number(mark)}</text>'
            for mark in axis.marks
        ),
        *(
            f'<text x="{x(percent):.1f}" y="{TALL_HEIGHT - 4}" text-anchor="middle">{words}</text>'
            for percent, words in marks
        ),
        "</svg>",
    ]
    return "\n".join(lines)


def histogram_plot(title: str, bars: Sequence[tuple[int, int]], bar_width: int) -> str:
    """An `<svg>` of how many answers (upwards) have how many tokens (to the right); empty without a bar.

    bars: where each begins, and its height; all are ``bar_width`` wide and follow each other.
    """
    if not bars:
        return ""
    top, first, last = nice_top(max(count for _, count in bars)), bars[0][0], bars[-1][0] + bar_width
    width, height, bottom = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM, HEIGHT - _BOTTOM

    def x(length: int) -> float:
        return _LEFT + width * (length - first) / (last - first)

    path = " ".join(
        f"M{x(start):.1f} {bottom} V{bottom - height * count / top:.1f} H{x(start + bar_width):.1f} V{bottom}"
        for start, count in bars
        if count
    )
    fullest = max(bars, key=lambda bar: bar[1])
    said = f"{title}: most have {fullest[0]:,} to {fullest[0] + bar_width - 1:,}, from {first:,} to {last - 1:,} in all"
    lines = [
        *_opening(html.escape(said), HEIGHT),
        f'<path class="line" d="{path}"/>',
        f'<text x="{_LEFT - 4}" y="{_TOP + 8}" text-anchor="end">{number(top)}</text>',
        f'<text x="{_LEFT - 4}" y="{bottom}" text-anchor="end">0</text>',
        f'<text x="{_LEFT}" y="{HEIGHT - 4}">{first:,} tokens</text>',
        f'<text x="{WIDTH - _RIGHT}" y="{HEIGHT - 4}" text-anchor="end">{last - 1:,}</text>',
        "</svg>",
    ]
    return "\n".join(lines)


MARKERS = "\u25cf\u25a0\u25b2\u25c6\u25cb\u25a1\u25b3\u25c7"
"""What the values of each series are drawn as: told apart without colour."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The least, the middle and the greatest of values that should be equal."""

    low: float
    middle: float
    high: float


def spread_plot(
    title: str, unit: str, places: Sequence[str], series: Sequence[tuple[str, Sequence[Spread | None]]]
) -> str:
    """An `<svg>` of the spreads of each series (name, one for each place, None where there is none) over named places;
    empty without any. Series are marked by MARKERS in their order.
    """
    found = [(name, place, spread) for name, row in series for place, spread in zip(places, row, strict=True) if spread]
    if not found:
        return ""
    top, bottom = nice_top(max(spread.high for _, _, spread in found)), TALL_HEIGHT - _BOTTOM
    width, height = WIDTH - _LEFT - _RIGHT, TALL_HEIGHT - _TOP - _BOTTOM
    said = f"{title}: " + ", ".join(f"{name} {place} {s.middle:.4g} {unit}".strip() for name, place, s in found)
    lines = _opening(html.escape(said), TALL_HEIGHT)

    def y(value: float) -> float:
        return _TOP + height * (1 - max(value, 0.0) / top)

    for number_of_series, (_, row) in enumerate(series):
        marker = MARKERS[number_of_series % len(MARKERS)]
        shift = 6 * (number_of_series - (len(series) - 1) / 2)
        for place, spread in enumerate(row):
            if spread:
                x = _LEFT + width * (place + 0.5) / len(places) + shift
                lines.append(f'<path class="line" d="M{x:.1f} {y(spread.low):.1f} V{y(spread.high):.1f}"/>')
                lines.append(f'<text x="{x:.1f}" y="{y(spread.middle) + 3.5:.1f}" text-anchor="middle">{marker}</text>')
    for value in (0.0, top / 2, top):
        lines.append(f'<text x="{_LEFT - 4}" y="{y(value) + 3.5:.1f}" text-anchor="end">{number(value)}</text>')
    for place, words in enumerate(places):
        x = _LEFT + width * (place + 0.5) / len(places)
        shown = html.escape(words if len(words) <= 12 else words[:11] + "\u2026")
        lines.append(f'<text x="{x:.1f}" y="{bottom + 14}" text-anchor="middle">{shown}</text>')
    return "\n".join([*lines, "</svg>"])
