"""The charts of all pages, as static SVG: load over time, latencies, lengths, sweeps, curves, spreads, bars. Pure.

Charts of a page's whole width are drawn twice, for a page and for a phone (`drawing.fit`). Only measured values are
drawn, and the page has the same values as a table.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from crowdperf.kit.drawing import MAX_SERIES, NARROW, SHAPES, Axis, Drawing, axis, fit, is_wide, path
from crowdperf.kit.html_page import Html
from crowdperf.kit.numbers import quantity

NOTHING = Html("")
SMALL = 84
"""Height of a plot that stands among others."""


def _small() -> Drawing:
    return Drawing(NARROW, SMALL, left=52, top=8, below=18)


def _ends(drawing: Drawing, top: float, first: str, last: str) -> None:
    """The words at the ends of a small plot's axes."""
    drawing.stroke(f"M{drawing.left:.1f} {drawing.top} V{drawing.bottom:.1f} H{drawing.right:.1f}", "axis")
    drawing.words(drawing.left - 4, drawing.top + 8, quantity(top), "end")
    drawing.words(drawing.left - 4, drawing.bottom, "0", "end")
    drawing.words(drawing.left, drawing.height - 4, first)
    drawing.words(drawing.right, drawing.height - 4, last, "end")


def line_plot(title: str, unit: str, points: Sequence[tuple[float, float | None]], top: float | None = None) -> Html:
    """One line from second 0 on. A missing value breaks it. top: the upper end of the axis, else from the values."""
    values = [value for _, value in points if value is not None]
    if not values:
        return NOTHING
    drawing = _small()
    end = top if top is not None and max(values) <= top else axis(values, 0, 1, steps=1).high
    up = Axis(0.0, end, drawing.bottom, drawing.top, ())
    last_s = max(moment_s for moment_s, _ in points)
    across = Axis(0.0, last_s or 1.0, drawing.left, drawing.right, ())
    every = [(0.0, points[0][1]), *points]
    line = path(None if value is None else (across.at(moment_s), up.at(value)) for moment_s, value in every)
    drawing.stroke(line, "line series-1")
    _ends(drawing, end, "0 s", f"{quantity(last_s)} s")
    return drawing.svg(title, f"{quantity(min(values))} to {quantity(max(values))} {unit}", "small")


def histogram_plot(title: str, bars: Sequence[tuple[int, int]], bar_width: int) -> Html:
    """Number of answers (upwards) by number of tokens (to the right).

    bars: the start and height of each. All are ``bar_width`` wide and contiguous.
    """
    if not bars:
        return NOTHING
    drawing, first, last = _small(), bars[0][0], bars[-1][0] + bar_width
    top = axis([count for _, count in bars], 0, 1, steps=1).high
    up, across = Axis(0, top, drawing.bottom, drawing.top, ()), Axis(first, last, drawing.left, drawing.right, ())
    line = " ".join(
        f"M{across.at(start):.1f} {up.start:.1f} V{up.at(count):.1f} "
        f"H{across.at(start + bar_width):.1f} V{up.start:.1f}"
        for start, count in bars
        if count
    )
    drawing.stroke(line, "line series-1")
    _ends(drawing, top, f"{first:,} tokens", f"{last - 1:,}")
    fullest = max(bars, key=lambda bar: bar[1])
    said = f"most have {fullest[0]:,} to {fullest[0] + bar_width - 1:,}, from {first:,} to {last - 1:,} in all"
    return drawing.svg(title, said, "small")


@dataclass(frozen=True, slots=True)
class Quantile:
    """``percent`` of all answers came within ``value``. 0 is the fastest answer, 100 the slowest."""

    percent: float
    value: float


_FARTHEST_NINES = 3.3
"""The position of the slowest answer: a little beyond 99.9 %, which is 3."""
_FIRST_NINES = 0.2
"""The start of the axis without the fastest answer: a little before 50 %, which is 0.3."""
_PERCENTS = ((0.0, "min"), (50.0, "p50"), (90.0, "p90"), (99.0, "p99"), (99.9, "p99.9"), (100.0, "max"))


def nines(percent: float) -> float:
    """How far to the right a percentile stands: 90 % at 1, 99 % at 2, 99.9 % at 3, so that the tail can be seen."""
    if percent >= 100:
        return _FARTHEST_NINES
    return min(-math.log10(1 - percent / 100), _FARTHEST_NINES)


def percentile_words(percent: float) -> str:
    """`p99`. The ends are `min` and `max`."""
    return {0.0: "min", 100.0: "max"}.get(percent, f"p{percent:g}")


def latency_plot(
    title: str,
    unit: str,
    series: Sequence[tuple[str, Sequence[Quantile]]],
    limits: Sequence[tuple[str, float]] = (),
) -> Html:
    """Latencies (upwards) over percentiles (to the right, see `nines`), a line for each series with two of them.

    limits: words and values of dashed lines. The legend is `drawing.legend` of the names of `latency_series`.
    """
    found = latency_series(series)
    if not found:
        return NOTHING
    values = [quantile.value for _, row in found for quantile in row]
    first = 0.0 if any(row[0].percent == 0 for _, row in found) else _FIRST_NINES
    said = "; ".join(
        f"{name} " + ", ".join(f"{percentile_words(q.percent)} {quantity(q.value)}" for q in row) for name, row in found
    )

    def draw(width: int) -> Html:
        drawing = Drawing(width, 300 if width > NARROW else 250)
        ends = [*values, *(value for _, value in limits)]
        up = axis(ends, drawing.bottom, drawing.top, is_log=is_wide(ends))
        across = Axis(first, _FARTHEST_NINES, drawing.left, drawing.right, ())
        drawing.up(up, f"latency, {unit}")
        for percent, words in _PERCENTS[0 if first == 0 else 1 :]:
            x = across.at(nines(percent))
            drawing.stroke(f"M{x:.1f} {drawing.top} V{drawing.bottom:.1f}", "grid")
            if not (drawing.is_narrow and words == "p99.9"):
                drawing.words(x, drawing.bottom + 15, words, "end" if words == "max" else "middle")
        for words, value in limits:
            drawing.limit(f"{words} {quantity(value)} {unit}", y=up.at(value))
        for place, (_, row) in enumerate(found):
            line = path((across.at(nines(quantile.percent)), up.at(quantile.value)) for quantile in row)
            drawing.stroke(line, f"line series-{place % len(SHAPES) + 1}")
        for place, (name, row) in enumerate(found):
            for q in row:
                words = f"{name} {percentile_words(q.percent)}: {quantity(q.value)} {unit}"
                drawing.mark(place, across.at(nines(q.percent)), up.at(q.value), words, 3.5)
        return drawing.svg(title, f"{said}, in {unit}")

    return fit(draw)


def latency_series(
    series: Sequence[tuple[str, Sequence[Quantile]]],
) -> list[tuple[str, list[Quantile]]]:
    """The series that a chart of latencies shows: those with at least two percentiles, MAX_SERIES at most."""
    rows = [(name, sorted(row, key=lambda quantile: quantile.percent)) for name, row in series if len(row) > 1]
    return rows[:MAX_SERIES]


@dataclass(frozen=True, slots=True)
class Spread:
    """The minimum, the median and the maximum of values that should be equal."""

    low: float
    middle: float
    high: float


def spread_plot(
    title: str, unit: str, places: Sequence[str], series: Sequence[tuple[str, Sequence[Spread | None]]]
) -> Html:
    """The spreads of each series (name, one for each place, None if there is none) over named places, with a line
    through the medians. Empty without any."""
    every = [(name, place, spread) for name, row in series for place, spread in zip(places, row, strict=True) if spread]
    if not every:
        return NOTHING
    said = ", ".join(f"{name} {place} {quantity(spread.middle)} {unit}".strip() for name, place, spread in every)
    ends = [value for _, _, spread in every for value in (spread.low, spread.high)]

    def draw(width: int) -> Html:
        drawing = Drawing(width, 300 if width > NARROW else 240)
        up = axis(ends, drawing.bottom, drawing.top, is_log=is_wide(ends))
        drawing.up(up, unit)
        step = (drawing.right - drawing.left) / len(places)
        middles = [drawing.left + step * (place + 0.5) for place in range(len(places))]
        for x, words in zip(middles, places, strict=True):
            drawing.words(x, drawing.bottom + 15, _short(words, step), "middle", title=words)
        for number, (name, row) in enumerate(series):
            shift = min(10.0, step / (len(series) + 1)) * (number - (len(series) - 1) / 2)
            at = [None if s is None else (x + shift, up.at(s.middle)) for x, s in zip(middles, row, strict=True)]
            drawing.stroke(path(at), f"line series-{number % len(SHAPES) + 1}")
            for point, spread, place in zip(at, row, places, strict=True):
                if point and spread:
                    if spread.high > spread.low:
                        drawing.stroke(f"M{point[0]:.1f} {up.at(spread.low):.1f} V{up.at(spread.high):.1f}", "whisker")
                    drawing.mark(number, *point, f"{name} {place}: {quantity(spread.middle)} {unit}".strip())
        return drawing.svg(title, said)

    return fit(draw)


def _short(words: str, room: float) -> str:
    longest = max(6, int(room / 6.8))
    return words if len(words) <= longest else f"{words[: longest - 1]}…"


@dataclass(frozen=True, slots=True)
class StepPoint:
    """A measured point of a curve: tokens per second for each user and of the whole system. is_hollow: unofficial."""

    words: str
    tps_per_user: float
    system_tps: float
    is_hollow: bool = False


def steps_of(points: Sequence[StepPoint]) -> tuple[StepPoint, ...]:
    """Return the points that no other one beats in both rates (the Pareto front), from the fastest for each user on."""
    found: list[StepPoint] = []
    for point in sorted(points, key=lambda one: (-one.tps_per_user, -one.system_tps)):
        if not found or point.system_tps > found[-1].system_tps:
            found.append(point)
    return tuple(found)


def falls(best: Sequence[StepPoint]) -> Iterator[tuple[StepPoint, float]]:
    """Yield each step from the slowest point for a user on, and the height that the line falls to behind it."""
    for place in range(len(best) - 1, -1, -1):
        yield best[place], best[place - 1].system_tps if place else 0.0


def curve_plot(
    title: str,
    series: Sequence[tuple[str, Sequence[StepPoint]]],
    limits: Sequence[tuple[str, float]] = (),
    *,
    rate: str = "system tokens/s",
    has_labels: bool = True,
) -> Html:
    """Step functions (Endpoints rules, v1.0 draft): the output of a system if each user gets at least a given rate.

    A step has the value of the nearest faster point, without interpolation. limits: words, tokens/s for each user.
    rate: the name of the upward axis. has_labels: whether points show their words next to them, not as tooltips alone.
    """
    every = [point for _, row in series for point in row]
    if not every:
        return NOTHING
    said = "; ".join(
        f"{name}: {len(row)} points, up to {quantity(max((one.system_tps for one in row), default=0.0))} {rate}"
        for name, row in series
    )

    def draw(width: int) -> Html:
        drawing = Drawing(width, 400 if width > NARROW else 320)
        rates, users = [point.system_tps for point in every], [point.tps_per_user for point in every]
        near = [value for _, value in limits if value <= 2 * max(users)]
        up = axis(rates, drawing.bottom, drawing.top, is_log=is_wide(rates))
        across = axis([*users, *near], drawing.left, drawing.right, is_log=is_wide(users))
        drawing.up(up, rate)
        drawing.across(across, "tokens/s for each user" + ("" if drawing.is_narrow else " (p90)"))
        for place, (_, row) in enumerate(series):
            best = steps_of(row)
            line = "".join(f" H{across.at(one.tps_per_user):.1f} V{up.at(lower):.1f}" for one, lower in falls(best))
            if best:
                start = f"M{drawing.left:.1f} {up.at(best[-1].system_tps):.1f}"
                drawing.stroke(start + line, f"line series-{place % len(SHAPES) + 1}")
        for place, (name, row) in enumerate(series):
            for one in row:
                words = f"{name}, {one.words}: {quantity(one.tps_per_user)} per user, {quantity(one.system_tps)} in all"
                at = across.at(one.tps_per_user), up.at(one.system_tps)
                drawing.mark(place, *at, words, is_hollow=one.is_hollow)
        for words, value in sorted(limits, key=lambda limit: limit[1]):
            if across.low < value < across.high:
                drawing.limit(words, x=across.at(value))
        for one in every if has_labels else ():
            drawing.label(across.at(one.tps_per_user), up.at(one.system_tps), one.words)
        return drawing.svg(title, said)

    return fit(draw)


def spread_of(values: Sequence[float]) -> tuple[float, ...]:
    """Return min, p25, median, p75 and max of at least one value."""
    quarters = quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
    return (min(values), *quarters, max(values))


def box_plot(title: str, values: Sequence[float], unit: str, highlighted: float | None = None) -> Html:
    """Dots and a box of a configuration's values. Empty for fewer than two values."""
    if len(values) < 2:
        return NOTHING
    low, first, middle, third, high = spread_of(values)

    def draw(width: int) -> Html:
        drawing = Drawing(width, 150, left=34)
        across = axis(values, drawing.left, drawing.right - 20, from_zero=False)
        drawing.across(across, unit)
        y, left, right = 80.0, across.at(first), across.at(third)
        drawing.stroke(f"M{across.at(low):.1f} {y} H{left:.1f} M{right:.1f} {y} H{across.at(high):.1f}", "whisker")
        drawing.rect("box", left, y - 12, right - left, 24)
        drawing.stroke(f"M{across.at(middle):.1f} {y - 12} v24", "median")
        stacked: dict[int, int] = {}
        for value in sorted(values):
            place = round(across.at(value) / 8)
            stacked[place] = level = stacked.get(place, 0) + 1
            drawing.mark(0, across.at(value), 58 - 7 * (min(level, 5) - 1), f"{quantity(value)} {unit}", 3)
        if highlighted is not None:
            drawing.limit("this result", x=across.at(highlighted))
        said = f"{len(values)} results from {quantity(low)} to {quantity(high)} {unit}, median {quantity(middle)}"
        return drawing.svg(title, said)

    return fit(draw)


def history_plot(title: str, rows: Sequence[tuple[str, Sequence[float]]], unit: str) -> Html:
    """The values of each version of the software, in the order given, and a line through their medians.

    rows: (version, values), each with at least one value. The chart is empty for fewer than two versions. The axis is
    around the values, so that a change of some percent is visible. A zigzag shows that it does not begin at 0.
    """
    if len(rows) < 2:
        return NOTHING
    said = "; ".join(f"{version}: median {quantity(median(values))} of {len(values)}" for version, values in rows)

    def draw(width: int) -> Html:
        drawing = Drawing(width, 260)
        every = [value for _, values in rows for value in values]
        up = axis(every, drawing.bottom, drawing.top, from_zero=False)
        drawing.up(up, unit)
        step = (drawing.right - drawing.left) / len(rows)
        middles = [drawing.left + step * (place + 0.5) for place in range(len(rows))]
        at = [(x, up.at(median(values))) for x, (_, values) in zip(middles, rows, strict=True)]
        drawing.stroke(path(at), "line series-1")
        for x, (version, values) in zip(middles, rows, strict=True):
            drawing.words(x, drawing.bottom + 15, _short(version, step), "middle", title=version)
            wide = min(14.0, step / 4)
            for place, value in enumerate(values):  # side by side in turn, so that equal ones are seen
                aside = wide * ((place % 5) - min(len(values) - 1, 4) / 2) / 2
                drawing.mark(0, x + aside, up.at(value), f"{version}: {quantity(value)} {unit}", 3.5)
        return drawing.svg(title, f"{said}, {unit}")

    return fit(draw)


@dataclass(frozen=True, slots=True)
class Bar:
    """A result of a comparison. `low` and `high` are of its configuration's results, equal if there is only one."""

    words: str
    value: float
    low: float
    high: float
    note: str = ""


def bars(title: str, rows: Sequence[Bar], unit: str) -> Html:
    """Horizontal bars from 0, each below its words, with the spread of its configuration as a whisker."""

    def draw(width: int) -> Html:
        drawing = Drawing(width, 24 + 56 * len(rows) + 40, left=14)
        every = [value for row in rows for value in (row.value, row.high)]
        across = axis(every, drawing.left, drawing.right - 40)
        drawing.across(across, unit)
        for place, row in enumerate(rows):
            y, end = drawing.top + 56 * place + 18, across.at(row.value)
            drawing.words(drawing.left, y - 5, _short(row.words, width - 30), title=row.words)
            drawing.rect(f"bar series-{place % len(SHAPES) + 1}", drawing.left, y, end - drawing.left, 24)
            if row.high > row.low:
                low, high = across.at(row.low), across.at(row.high)
                drawing.stroke(
                    f"M{low:.1f} {y + 12} H{high:.1f} M{low:.1f} {y + 7} v10 M{high:.1f} {y + 7} v10", "whisker"
                )
            beyond, words = max(end, across.at(row.high)) + 6, f"{quantity(row.value)} {row.note}".strip()
            is_outside = beyond + 6.8 * len(words) <= width
            drawing.words(beyond if is_outside else end - 6, y + 17, words, "start" if is_outside else "end",
                          "" if is_outside else "inside")  # fmt: skip
        return drawing.svg(title, "; ".join(f"{row.words}: {quantity(row.value)} {unit}" for row in rows))

    return fit(draw)


@dataclass(frozen=True, slots=True)
class Dot:
    """A result of a strip. is_hollow: not published by MLCommons."""

    value: float
    words: str
    is_hollow: bool


def strip_plot(title: str, rows: Sequence[tuple[str, Sequence[Dot]]], unit: str) -> Html:
    """A strip of dots for each name (an accelerator), one below the other. Empty without a dot."""
    every = [dot.value for _, dots in rows for dot in dots]
    if not every:
        return NOTHING
    said = "; ".join(f"{name}: {len(dots)}, best {quantity(max(dot.value for dot in dots))}" for name, dots in rows)

    def draw(width: int) -> Html:
        is_narrow = width <= NARROW
        drawing = Drawing(width, 24 + (46 if is_narrow else 34) * len(rows) + 40, left=14 if is_narrow else 235)
        across = axis(every, drawing.left, drawing.right - 10, is_log=is_wide(every))
        drawing.across(across, unit)
        for place, (name, dots) in enumerate(rows):
            y = drawing.top + (46 * place + 30 if is_narrow else 34 * place + 18)
            drawing.stroke(f"M{drawing.left:.1f} {y:.1f} H{drawing.right:.1f}", "grid")
            if is_narrow:
                drawing.words(drawing.left, y - 12, _short(name, width - 30), title=name)
            else:
                drawing.words(drawing.left - 10, y + 4, _short(name, 225), "end", title=name)
            for dot in dots:
                drawing.mark(0, across.at(dot.value), y, dot.words, 5, is_hollow=dot.is_hollow)
        return drawing.svg(title, said)

    return fit(draw)


def share_bar(share: float) -> Html:
    """A bar in a table's cell. share: 0 to 1 of the best value of the column. The bar repeats the value of the cell."""
    width = 60 * min(max(share, 0.0), 1.0)
    return Html(
        '<svg class="share" viewBox="0 0 60 6" aria-hidden="true"><path class="track" d="M0 3 H60"/>'
        f'<path class="part" d="M0 3 H{width:.1f}"/></svg>'
    )
