"""Draws the charts of the pages as SVG: the spread of a configuration, its history, curves, bars of a comparison. Pure.

Each has a title and a description for those who do not see it, and the page has the same figures as a table. Series are
told apart by the shape of their marks and by words, not by colour alone. No style attributes, which the policy of the
pages forbids: the looks are classes in style.css.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from markupsafe import Markup

from crowdperf.kit.plot import number
from crowdperf.kit.step_plot import StepPoint, falls, steps_of
from crowdperf.web.formats import plain, quantity

WIDTH = 520
LEFT, RIGHT, TOP, BOTTOM = 64, 14, 14, 38
"""Room for the words at the axes, in units of the drawing."""


def _text(value: str) -> str:
    return html.escape(plain(value))


@dataclass(frozen=True, slots=True)
class Axis:
    """A linear axis from `low` to `high`, drawn from `start` to `end`, with round marks."""

    low: float
    high: float
    start: float
    end: float
    marks: tuple[float, ...]

    def at(self, value: float) -> float:
        """Where a value is drawn."""
        return self.start + (self.end - self.start) * (value - self.low) / (self.high - self.low)


def axis(values: Sequence[float], start: float, end: float, *, from_zero: bool) -> Axis:
    """An axis that holds all values, four or five round steps long. values: at least one, finite."""
    low, high = min(values), max(values)
    if from_zero:
        low = min(low, 0.0)
    if high == low:
        low, high = (low - abs(low) * 0.1, high + abs(high) * 0.1) if low else (0.0, 1.0)
    step = _round_step((high - low) / 4)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    marks = tuple(place * step for place in range(first, last + 1))
    return Axis(marks[0], marks[-1], start, end, marks)


def _round_step(wanted: float) -> float:
    power = 10.0 ** math.floor(math.log10(wanted))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= wanted * (1 - 1e-9))


def _mark_words(value: float, step: float) -> str:
    if abs(value) >= 10 or value == int(value):
        return number(value) if step >= 1 else f"{value:,.{min(max(0, math.ceil(-math.log10(step))), 6)}f}"
    return f"{value:.{min(max(1, math.ceil(-math.log10(step) + 0.01)), 9)}f}".rstrip("0").rstrip(".")


def _frame(title: str, description: str, height: int, parts: Sequence[str]) -> Markup:
    """The whole drawing; the title says what it is, the description what it shows."""
    return Markup(
        "\n".join(
            [
                f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" role="img" '
                f'aria-label="{_text(f"{title}. {description}")}">',
                f"<title>{_text(title)}</title>",
                f"<desc>{_text(description)}</desc>",
                *parts,
                "</svg>",
            ]
        )
    )


def _y_axis(scale: Axis, label: str) -> Iterator[str]:
    step = scale.marks[1] - scale.marks[0]
    for mark in scale.marks:
        y = scale.at(mark)
        yield f'<path class="grid" d="M{LEFT} {y:.1f} H{WIDTH - RIGHT}"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_mark_words(mark, step)}</text>'
    yield f'<text class="name" x="2" y="{TOP - 4}">{_text(label)}</text>'


def _x_axis(scale: Axis, label: str, bottom: float) -> Iterator[str]:
    step = scale.marks[1] - scale.marks[0]
    for mark in scale.marks:
        x = scale.at(mark)
        yield f'<path class="grid" d="M{x:.1f} {TOP} V{bottom:.1f}"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 15:.1f}" text-anchor="middle">{_mark_words(mark, step)}</text>'
    yield f'<text class="name" x="{WIDTH - RIGHT}" y="{bottom + 31:.1f}" text-anchor="end">{_text(label)}</text>'


SHAPES = ("circle", "square", "triangle", "diamond")
"""The marks of the first four series; style.css gives each its colour as `series-1` ..."""


def mark(place: int, x: float, y: float, words: str = "", radius: float = 4.5) -> str:
    """The mark of series `place` (from 0) at a point; `words` are shown where a pointer rests on it."""
    r, name = radius, f"mark series-{place % len(SHAPES) + 1}"
    said = f"<title>{_text(words)}</title>" if words else ""
    shape = SHAPES[place % len(SHAPES)]
    if shape == "circle":
        return f'<circle class="{name}" cx="{x:.1f}" cy="{y:.1f}" r="{r}">{said}</circle>'
    outlines = {
        "square": f"M{x - r:.1f} {y - r:.1f} h{2 * r} v{2 * r} h{-2 * r} z",
        "triangle": f"M{x:.1f} {y - r:.1f} l{r} {2 * r} h{-2 * r} z",
        "diamond": f"M{x:.1f} {y - r - 1:.1f} l{r + 1} {r + 1} l{-r - 1} {r + 1} l{-r - 1} {-r - 1} z",
    }
    return f'<path class="{name}" d="{outlines[shape]}">{said}</path>'


def key_mark(place: int) -> Markup:
    """The mark of a series alone, for a legend in words beside it."""
    return Markup(f'<svg class="key" viewBox="0 0 14 14" aria-hidden="true">{mark(place, 7, 7)}</svg>')


def spread(values: Sequence[float]) -> tuple[float, ...]:
    """The least, the three inclusive quarters and the greatest of at least one value."""
    quarters = quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
    return (min(values), *quarters, max(values))


def distribution(title: str, values: Sequence[float], unit: str, highlighted: float | None = None) -> Markup:
    """Dots and a box of a configuration's values; nothing for fewer than two of them."""
    if len(values) < 2:
        return Markup("")
    height = 132
    least, first, median_value, third, greatest = spread(values)
    scale = axis(values, LEFT - 30, WIDTH - RIGHT - 10, from_zero=False)
    bottom, middle = height - BOTTOM, 70.0
    left, right = scale.at(first), scale.at(third)
    parts = [
        *_x_axis(scale, unit, bottom),
        f'<path class="whisker" d="M{scale.at(least):.1f} {middle} H{left:.1f} '
        f'M{right:.1f} {middle} H{scale.at(greatest):.1f}"/>',
        f'<rect class="box" x="{left:.1f}" y="{middle - 12}" width="{max(right - left, 1):.1f}" height="24"/>',
        f'<path class="median" d="M{scale.at(median_value):.1f} {middle - 12} v24"/>',
    ]
    stacked: dict[int, int] = {}
    for value in sorted(values):
        place = round(scale.at(value) / 8)
        stacked[place] = level = stacked.get(place, 0) + 1
        y = 48 - 7 * (min(level, 5) - 1)
        parts.append(mark(0, scale.at(value), y, f"{quantity(value)} {unit}", 3))
    if highlighted is not None:
        x = scale.at(highlighted)
        parts.append(f'<path class="here" d="M{x:.1f} {TOP} V{bottom}"/>')
        anchor = "end" if x > WIDTH / 2 else "start"
        parts.append(f'<text x="{x + (-4 if anchor == "end" else 4):.1f}" y="{TOP + 6}" '
                     f'text-anchor="{anchor}">this result</text>')  # fmt: skip
    ends = f"from {quantity(least)} to {quantity(greatest)} {unit}"
    said = f"{len(values)} results {ends}, median {quantity(median_value)}"
    return _frame(title, said, height, parts)


def history(title: str, rows: Sequence[tuple[str, Sequence[float]]], unit: str) -> Markup:
    """The values of each version of the software, in the order given, and a line through their medians.

    rows: (version, values), each with at least one value; nothing for fewer than two versions.
    """
    if len(rows) < 2:
        return Markup("")
    height = 250
    bottom = height - BOTTOM
    scale = axis([value for _, values in rows for value in values], bottom, TOP + 10, from_zero=True)
    width = (WIDTH - RIGHT - LEFT) / len(rows)
    middles = [LEFT + width * (place + 0.5) for place in range(len(rows))]
    line = " L".join(f"{x:.1f} {scale.at(median(values)):.1f}" for x, (_, values) in zip(middles, rows, strict=True))
    parts = [*_y_axis(scale, unit), f'<path class="line series-1" d="M{line}"/>']
    longest = max(6, int(width / 6.5))
    for x, (version, values) in zip(middles, rows, strict=True):
        words = version if len(version) <= longest else f"{version[: longest - 1]}…"
        parts.append(f'<text x="{x:.1f}" y="{bottom + 15}" text-anchor="middle">{_text(words)}'
                     f"<title>{_text(version)}</title></text>")  # fmt: skip
        parts += [mark(0, x, scale.at(value), f"{version}: {quantity(value)} {unit}", 3.5) for value in values]
    said = "; ".join(f"{version}: median {quantity(median(values))} of {len(values)}" for version, values in rows)
    return _frame(title, f"{said}; {unit}", height, parts)


def curves(title: str, series: Sequence[tuple[str, Sequence[StepPoint]]]) -> Markup:
    """Step functions of up to four curves: what the system gives in all where each user has at least so much.

    Only measured points are drawn; a step says what the nearest faster point gives, nothing is interpolated.
    """
    points = [point for _, found in series for point in found]
    if not points:
        return Markup("")
    height = 340
    bottom = height - BOTTOM
    x = axis([point.tps_per_user for point in points], LEFT, WIDTH - RIGHT, from_zero=True)
    y = axis([point.system_tps for point in points], bottom, TOP + 10, from_zero=True)
    parts = [
        *_y_axis(y, "system tokens/s"),
        *_x_axis(x, "tokens/s for each user (at the 90th percentile of TPOT)", bottom),
    ]
    for place, (name, found) in enumerate(series):
        best = steps_of(found)
        path = "".join(f" H{x.at(point.tps_per_user):.1f} V{y.at(lower):.1f}" for point, lower in falls(best))
        if best:
            parts.append(
                f'<path class="line series-{place % 4 + 1}" d="M{LEFT} {y.at(best[-1].system_tps):.1f}{path}"/>'
            )
        for point in found:
            at = x.at(point.tps_per_user), y.at(point.system_tps)
            said = (
                f"{name}, {point.words}: {quantity(point.tps_per_user)} per user, {quantity(point.system_tps)} in all"
            )
            parts.append(mark(place, *at, said))
            offset, anchor = (-7, "end") if at[0] > WIDTH - 60 else (7, "start")
            place_of = f'x="{at[0] + offset:.1f}" y="{at[1] - 6:.1f}" text-anchor="{anchor}"'
            parts.append(f"<text {place_of}>{_text(point.words)}</text>")
    said = "; ".join(
        f"{name}: {len(found)} points, up to {quantity(max((one.system_tps for one in found), default=0.0))} tokens/s"
        for name, found in series
    )
    return _frame(title, said, height, parts)


@dataclass(frozen=True, slots=True)
class Bar:
    """A result of a comparison; `least` and `greatest` of its configuration's results, equal where there is one."""

    words: str
    value: float
    least: float
    greatest: float


def bars(title: str, rows: Sequence[Bar], unit: str) -> Markup:
    """Horizontal bars from 0 with the spread of each configuration as a whisker."""
    height = TOP + 38 * len(rows) + BOTTOM
    bottom = height - BOTTOM
    scale = axis([value for row in rows for value in (row.value, row.greatest)], 30, WIDTH - RIGHT - 60, from_zero=True)
    parts = [*_x_axis(scale, unit, bottom)]
    for place, row in enumerate(rows):
        y = TOP + 6 + 38 * place
        end = scale.at(row.value)
        parts.append(
            f'<rect class="bar series-{place % 4 + 1}" x="30" y="{y}" width="{max(end - 30, 1):.1f}" height="24"/>'
        )
        parts.append(f'<text class="letter" x="10" y="{y + 17}">{_text(row.words)}</text>')
        if row.greatest > row.least:
            low, high = scale.at(row.least), scale.at(row.greatest)
            parts.append(f'<path class="whisker" d="M{low:.1f} {y + 12} H{high:.1f} M{low:.1f} {y + 7} v10 '
                         f'M{high:.1f} {y + 7} v10"/>')  # fmt: skip
        beyond = max(end, scale.at(row.greatest))
        parts.append(f'<text x="{beyond + 6:.1f}" y="{y + 17}">{quantity(row.value)}</text>')
    said = "; ".join(f"{row.words}: {quantity(row.value)} {unit}" for row in rows)
    return _frame(title, said, height, parts)


def share_bar(share: float) -> Markup:
    """A bar in a table's cell; share: 0 to 1 of the best value of the column. Says nothing that the figure does not."""
    width = 60 * min(max(share, 0.0), 1.0)
    return Markup(
        '<svg class="share" viewBox="0 0 60 6" aria-hidden="true"><path class="track" d="M0 3 H60"/>'
        f'<path class="part" d="M0 3 H{width:.1f}"/></svg>'
    )
