"""The parts of charts: axes, marks, words that do not overlap, the SVG around them. Pure.

A chart has a description in words (`<title>`, `<desc>`, `aria-label`), and a mark has its value in a `<title>`, which a
browser shows under the pointer. Series differ by shape and dash, not by color alone. Colors are classes of
`html_page.STYLE`, light and dark. There is no style attribute, because the policy of the collector's pages forbids it.
"""

import html
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from crowdperf.kit.html_page import Html, plain
from crowdperf.kit.numbers import quantity

ROOMY, NARROW = 960, 360
"""Widths of a chart in units of its drawing, which are about pixels: of a page, and of a phone."""
LOGARITHMIC_FROM = 20.0
"""Values whose highest is this many times the lowest are drawn on a logarithmic axis: this project's choice."""
MAX_MARKS = 7
_SMALLEST_STEP = 1e-6
MAX_SERIES = 8
"""Number of distinguishable series: four shapes, filled and hollow."""


def escaped(words: object) -> str:
    """Text for SVG. Invisible characters appear as escapes."""
    return html.escape(plain(str(words)))


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis from `low` to `high` (values), drawn from `start` to `end`, with round marks."""

    low: float
    high: float
    start: float
    end: float
    marks: tuple[float, ...]
    is_log: bool = False

    def at(self, value: float) -> float:
        """The position of a value. Values beyond the ends are drawn at the end."""
        value = min(max(value, self.low), self.high)
        if self.is_log:
            share = math.log10(value / self.low) / math.log10(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + (self.end - self.start) * share

    def words(self, mark: float) -> str:
        """A mark as text, with as many decimals as its neighbors need."""
        if self.is_log:
            return quantity(mark)
        if not mark:
            return "0"
        step = self.marks[1] - self.marks[0]
        if step < _SMALLEST_STEP:
            return f"{mark:.3g}"
        return f"{mark:,.{max(0, math.ceil(-math.log10(step) - 1e-9))}f}"


def _round_step(wanted: float) -> float:
    power = 10.0 ** math.floor(math.log10(wanted))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= wanted * (1 - 1e-9))


def _log_marks(low: float, high: float) -> tuple[float, ...]:
    """Round marks from the last one below `low` to the first one above `high`, at least two, at most MAX_MARKS."""
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        found = [factor * 10.0**power for power in range(first, last + 2) for factor in factors]
        start = max(place for place, mark in enumerate(found) if mark <= low * (1 + 1e-9))
        end = max(start + 1, next(place for place, mark in enumerate(found) if mark >= high * (1 - 1e-9)))
        if end - start < MAX_MARKS:
            return tuple(found[start : end + 1])
    step = math.ceil((end - start) / (MAX_MARKS - 1))
    return tuple(10.0 ** (first + step * place) for place in range(math.ceil((end - start) / step) + 1))


def is_wide(values: Iterable[float]) -> bool:
    """Whether values need a logarithmic axis, and can have one."""
    found = list(values)
    return bool(found) and min(found) > 0 and max(found) >= LOGARITHMIC_FROM * min(found)


def axis(
    values: Sequence[float], start: float, end: float, *, from_zero: bool = True, is_log: bool = False, steps: int = 4
) -> Axis:
    """An axis for all values, `steps` or a few more round steps long. values: at least one, finite."""
    low, high = min(values), max(values)
    if is_log and low > 0:
        marks = _log_marks(low, high)
        return Axis(marks[0], marks[-1], start, end, marks, True)
    if from_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if high == low:
        low, high = (low - abs(low) * 0.1, high + abs(high) * 0.1) if low else (0.0, 1.0)
    step = _round_step((high - low) / steps)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    marks = tuple(place * step for place in range(first, last + 1))
    return Axis(marks[0], marks[-1], start, end, marks)


SHAPES = ("circle", "square", "triangle", "diamond")


def mark(series: int, x: float, y: float, words: str = "", radius: float = 4.5, *, is_hollow: bool = False) -> str:
    """The mark of a series (from 0) at a point. From the fifth series on, marks are hollow. words: its tooltip."""
    r, hollow = radius, " hollow" if is_hollow or series % MAX_SERIES >= len(SHAPES) else ""
    name, shape = f"mark series-{series % len(SHAPES) + 1}{hollow}", SHAPES[series % len(SHAPES)]
    said = f"<title>{escaped(words)}</title>" if words else ""
    if shape == "circle":
        return f'<circle class="{name}" cx="{x:.1f}" cy="{y:.1f}" r="{r}">{said}</circle>'
    outlines = {
        "square": f"M{x - r:.1f} {y - r:.1f} h{2 * r} v{2 * r} h{-2 * r} z",
        "triangle": f"M{x:.1f} {y - r:.1f} l{r} {2 * r} h{-2 * r} z",
        "diamond": f"M{x:.1f} {y - r - 1:.1f} l{r + 1} {r + 1} l{-r - 1} {r + 1} l{-r - 1} {-r - 1} z",
    }
    return f'<path class="{name}" d="{outlines[shape]}">{said}</path>'


def key_mark(series: int, *, is_hollow: bool = False) -> Html:
    """The mark of a series alone, for a legend in words next to it."""
    drawn = mark(series, 7, 7, is_hollow=is_hollow)
    return Html(f'<svg class="key" viewBox="0 0 14 14" aria-hidden="true">{drawn}</svg>')


def legend(names: Sequence[str]) -> Html:
    """The names of series with their marks, empty for a single series."""
    if len(names) < 2:
        return Html("")
    rows = "".join(f"<li>{key_mark(place)} {escaped(name)}</li>" for place, name in enumerate(names))
    return Html(f'<ul class="legend">{rows}</ul>')


def path(points: Iterable[tuple[float, float] | None]) -> str:
    """The `d` of a line through points. None breaks the line."""
    parts, is_broken = [], True
    for point in points:
        if point is not None:
            parts.append(f"{'M' if is_broken else 'L'}{point[0]:.1f} {point[1]:.1f}")
        is_broken = point is None
    return " ".join(parts)


class Drawing:
    """A chart in the making: `width` by `height`, with room for words around the plot."""

    def __init__(self, width: float, height: float, *, left: float = 62, top: float = 28, below: float = 40) -> None:
        self.width, self.height = width, height
        self.left, self.right, self.top, self.bottom = left, width - 14.0, top, height - below
        self.parts: list[str] = []
        self._taken: list[tuple[float, float, float, float]] = []
        self._limits: list[tuple[float, float]] = []

    @property
    def is_narrow(self) -> bool:
        """Whether it is drawn for a phone."""
        return self.width <= NARROW

    def words(self, x: float, y: float, words: object, anchor: str = "start", kind: str = "", title: str = "") -> None:
        """Words at a place, with a tooltip."""
        kind, said = f' class="{kind}"' if kind else "", f"<title>{escaped(title)}</title>" if title else ""
        self.parts.append(f'<text{kind} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escaped(words)}{said}</text>')

    def stroke(self, d: str, kind: str) -> None:
        """A path of a class."""
        self.parts.append(f'<path class="{kind}" d="{d}"/>')

    def rect(self, kind: str, x: float, y: float, wide: float, high: float) -> None:
        """A rectangle of a class, at least one unit wide."""
        wide = max(wide, 1)
        self.parts.append(f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high}"/>')

    def up(self, scale: Axis, label: str = "") -> None:
        """The axis on the left, its grid, and its name above it. A zigzag marks a linear axis that does not begin at
        0."""
        for value in scale.marks:
            self.stroke(f"M{self.left:.1f} {scale.at(value):.1f} H{self.right:.1f}", "grid")
            self.words(self.left - 6, scale.at(value) + 4, scale.words(value), "end")
        if scale.low > 0 and not scale.is_log:
            self.stroke(f"M{self.left:.1f} {self.bottom} v-3 l-4 -3 8 -5 -4 -3", "axis break")
        self.words(2, self.top - 9, label + (", logarithmic" if scale.is_log and label else ""), kind="name")

    def across(self, scale: Axis, label: str = "") -> None:
        """The axis below, its grid, and its name under its end."""
        for value in scale.marks:
            self.stroke(f"M{scale.at(value):.1f} {self.top} V{self.bottom:.1f}", "grid")
            words, x = scale.words(value), scale.at(value)
            is_late = x + 3.4 * len(words) > self.width
            self.words(self.width - 2 if is_late else x, self.bottom + 15, words, "end" if is_late else "middle")
        if scale.low > 0 and not scale.is_log:
            self.stroke(f"M{scale.start:.1f} {self.bottom} h3 l3 -4 5 8 3 -4", "axis break")
        label += ", logarithmic" if scale.is_log and label else ""
        self.words(self.right, self.bottom + 32, label, "end", "name")

    def mark(
        self, series: int, x: float, y: float, words: str, radius: float = 4.5, *, is_hollow: bool = False
    ) -> None:
        """A mark with its tooltip. Labels keep clear of it."""
        self.parts.append(mark(series, x, y, words, radius, is_hollow=is_hollow))
        self._taken.append((x - radius, y - radius, x + radius, y + radius))

    def label(self, x: float, y: float, words: str) -> None:
        """Words next to a mark, on a side that is free of marks, other labels and edges, or none.

        Call this after all marks are drawn. A letter is assumed to be 6.6 units wide and 11 high.
        """
        wide = 6.6 * len(words)
        for side, away in ((1, -7.0), (-1, -7.0), (1, 15.0), (-1, 15.0)):
            start = x + 6 if side > 0 else x - 6 - wide
            box = (start, y + away - 10, start + wide, y + away + 1)
            is_inside = self.left <= box[0] and box[2] <= self.right + 8 and box[1] >= self.top - 8
            if is_inside and box[3] <= self.bottom and not any(_overlap(box, other) for other in self._taken):
                self._taken.append(box)
                self.words(start, y + away, words)
                return

    def limit(self, words: str, *, x: float | None = None, y: float | None = None) -> None:
        """A dashed line at a limit with its words."""
        if x is not None:
            self.stroke(f"M{x:.1f} {self.top} V{self.bottom:.1f}", "limit")
            is_late = x + 6.6 * len(words) > self.right
            lines = sum(1 for box in self._limits if box[0] <= x <= box[1])
            self._limits.append((x - 6.6 * len(words), x + 6.6 * len(words)))
            place = self.top + 11 + 13 * lines
            self.words(x + (-5 if is_late else 5), place, words, "end" if is_late else "start", "limit")
            self._taken.append((x - 6.6 * len(words), place - 10, x + 6.6 * len(words), place + 2))
            self._taken.append((x - 1, self.top, x + 1, self.bottom))
        if y is not None:
            self.stroke(f"M{self.left:.1f} {y:.1f} H{self.right:.1f}", "limit")
            self.words(self.right, y - 5, words, "end", "limit")
            self._taken.append((self.right - 6.6 * len(words), y - 15, self.right, y))

    def svg(self, title: str, description: str, kind: str = "chart") -> Html:
        """The whole drawing. title: its name. description: its content in words."""
        size = "" if kind.startswith("chart") else f' width="{self.width:g}" height="{self.height:g}"'
        name = f"{kind} {'narrow' if self.is_narrow else 'roomy'}" if kind == "chart" else kind
        return Html(
            f'<svg class="{name}" viewBox="0 0 {self.width:g} {self.height:g}"{size} role="img" '
            f'aria-label="{escaped(f"{title}: {description}")}">\n<title>{escaped(title)}</title>\n'
            f"<desc>{escaped(description)}</desc>\n" + "\n".join((*self.parts, "</svg>"))
        )


def _overlap(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def fit(draw: Callable[[int], Html]) -> Html:
    """A chart twice, for a page and for a phone: the width of the window decides which one is seen and read out."""
    return Html(f'<div class="fit">{draw(ROOMY)}\n{draw(NARROW)}</div>')
