"""sweep.html: one static page with the table of all points and a plot of each metric over the first axis. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from crowdperf.kit.drawing import MAX_SERIES, legend
from crowdperf.kit.html_page import Html, chart, copyable, document, folded, table, text
from crowdperf.kit.numbers import quantity, repeats_text
from crowdperf.kit.plot import Spread, spread_plot
from crowdperf.rules.names import counted, duration_text
from crowdperf.sweeps.collecting import (
    TOKEN_COLUMNS,
    Figures,
    Row,
    best_of,
    repeat_key,
    repeats_of,
    score_text,
    token_columns,
    totals,
    varied_text,
)
from crowdperf.sweeps.folder import State
from crowdperf.sweeps.planning import Plan

MAX_PLOTS = 40

Key = tuple[str, ...]


def _keys(rows: Sequence[Row]) -> list[str]:
    """What varies: the axes in their order, and the variant where there are several."""
    axes = list(dict.fromkeys(key for row in rows for key in row.point.axes))
    several = [key for key in axes if len({row.point.axes.get(key) for row in rows}) > 1]
    return several + (["variant"] if len({row.point.variant for row in rows}) > 1 else [])


def _value(row: Row, key: str) -> str:
    return row.point.variant if key == "variant" else row.point.axes.get(key, "-")


def _valid_figures(rows: Sequence[Row]) -> Iterator[tuple[Row, Figures]]:
    for row in rows:
        if row.status.state is State.DONE:
            yield from ((row, each) for each in row.figures if each.metric is not None and each.is_passed)


Values = dict[str, dict[str, list[float]]]
"""Results by the value of the second axis, then of the first one."""


def _results(rows: Sequence[Row], keys: Sequence[str]) -> dict[Key, Values]:
    """Valid results by scenario, metric, unit, whether more is better, and what is neither the first nor the second
    axis."""
    across, along, rest = keys[0], keys[1:2], keys[2:]
    found: dict[Key, Values] = {}
    for row, each in _valid_figures(rows):
        metric = each.metric or {}
        better = "" if metric.get("higher_is_better", True) else "lower is better"
        others = (f"{key} {_value(row, key)}" for key in rest)
        kind = (each.scenario, str(metric["name"]), str(metric["unit"]), better, *others)
        series = found.setdefault(kind, {}).setdefault(", ".join(_value(row, key) for key in along), {})
        series.setdefault(_value(row, across), []).append(float(metric["value"]))
    return found


def _plots(rows: Sequence[Row]) -> Iterator[str]:
    """A chart for each scenario, metric and combination of further axes; with two axes a table of shades behind it."""
    keys = _keys(rows)
    if not keys:
        return
    across, along = keys[0], keys[1:2]
    for (scenario, name, unit, better, *others), by_series in _results(rows, keys).items():
        places = list(dict.fromkeys(_value(row, across) for row in rows))
        places = [place for place in places if any(place in series for series in by_series.values())]
        drawn = list(by_series.items())[:MAX_SERIES]
        names = [f"{along[0]} {word}" if along else "" for word, _ in drawn]
        spreads = [
            (word, [_spread(series.get(place)) for place in places])
            for word, (_, series) in zip(names, drawn, strict=True)
        ]
        words = ", ".join(filter(None, (f"{scenario} {name}, {unit}", better, *others, f"over {across}")))
        if len(by_series) > len(drawn):
            words += f". The table has {len(by_series) - len(drawn)} more series"
        yield chart(spread_plot(f"{scenario} {name} over {across}", unit, places, spreads), words, legend(names))
        if along:
            yield _shades(f"{along[0]} \\ {across}", places, by_series, words, is_higher_better=not better)


def _shades(corner: str, places: Sequence[str], by_series: Values, words: str, *, is_higher_better: bool) -> str:
    """A table of the medians over two axes; the better a value, the darker its cell."""
    medians = [
        [median(series[place]) if place in series else None for place in places] for series in by_series.values()
    ]
    known = [value for row in medians for value in row if value is not None]
    low, width = min(known), (max(known) - min(known)) or 1.0

    def cell(value: float | None) -> str:
        if value is None:
            return "<td></td>"
        share = (value - low) / width
        shade = 1 + round(4 * (share if is_higher_better else 1 - share))
        return f'<td class="number heat-{shade}">{quantity(value)}</td>'

    heads = "".join(f'<th scope="col" class="number">{text(place)}</th>' for place in places)
    lines = [
        f'<tr><th scope="row">{text(name)}</th>{"".join(map(cell, row))}</tr>'
        for name, row in zip(by_series, medians, strict=True)
    ]
    caption = f"Medians: {words}. Darker is better"
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{text(caption)}"><table class="shades">'
        f'<caption>{text(caption)}</caption><thead><tr><th scope="col">{text(corner)}</th>{heads}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _spread(values: Sequence[float] | None) -> Spread | None:
    return Spread(min(values), median(values), max(values)) if values else None


def _target(row: Row) -> str:
    """What a point leads to: the page of its results where there is one, else its folder."""
    point = row.point.id
    has_page = bool(row.figures) and not row.figures[0].is_search
    return f"points/{point}/results/{point}/results.html" if has_page else f"points/{point}/"


def _cells(
    row: Row, best: Row | None, columns: Sequence[str], repeats: Mapping[tuple[object, ...], Sequence[float]]
) -> Iterator[list[object]]:
    """A line of the table for each scenario; the point's own columns are in the first. columns: of token times."""
    facts = row.status
    folder = Html(f'<a href="{text(_target(row))}">{text(varied_text(row.point))}</a>')
    time = "" if facts.duration_s is None else duration_text(facts.duration_s)
    for place, each in enumerate(row.figures or (None,)):
        metric: Mapping[str, object] = (each.metric if each else None) or {}
        value = metric.get("value")
        result = f"{value:,.6g}" if isinstance(value, int | float) else ""
        times = each.tokens if each else {}
        shown = [quantity(times[name], 3) if name in times else "" for name in columns]
        values = repeats.get(repeat_key(row, each), ()) if each else ()
        middle = repeats_text(values) if len(values) > 1 else ""
        own = [result, str(metric.get("unit", "")), middle, *shown, score_text(each)]
        mark = "best" if row is best else ""
        state = facts.state.value if not facts.verdict or each is None else f"{facts.state.value}, {facts.verdict}"
        start = [folder, state, mark] if place == 0 else ["", "", ""]
        label = "; ".join(filter(None, (row.label, facts.reason if facts.state is not State.DONE else "")))
        end = [label, facts.node, time] if place == 0 else ["", "", ""]
        yield [*start, each.scenario if each else "", *own, *end]


def _points(rows: Sequence[Row]) -> str:
    """The table of all points, without columns that are empty in all of them."""
    best = best_of(rows)
    columns = token_columns(rows)
    named = [TOKEN_COLUMNS[name][0] for name in columns]
    start = ("Point", "State", "Best", "Scenario", "Result", "Unit", "Median of repeats")
    repeats = repeats_of(rows)
    headings = (*start, *named, "Accuracy", "Label", "Node", "Time")
    lines = [line for row in rows for line in _cells(row, best, columns, repeats)]
    used = [place for place in range(len(headings)) if place < 2 or any(line[place] for line in lines)]
    numbers = {4, 6, *range(len(start), len(start) + len(columns)), len(headings) - 1}
    return table(
        [headings[place] for place in used],
        [[line[place] for place in used] for line in lines],
        numbers=[number for number, place in enumerate(used) if place in numbers],
        kind="stacked",
        best=[number for number, line in enumerate(lines) if line[2]],
    )


def page(plan: Plan, rows: Sequence[Row], made_utc: str) -> str:
    """The whole page."""
    count = totals(rows)
    said = ", ".join(f"{number} {state}" for state, number in count.items() if state != "points")
    labels = sorted({row.label for row in rows if row.label})
    plots = list(_plots(rows))
    commands = table(("Point", "Command"), [(row.point.id, row.point.command) for row in rows], kind="facts")
    parts = [
        f"<h1>{text(plan.name)}</h1>",
        f'<p class="label">{text("; ".join(labels))}</p>' if labels else "",
        f"<p>{counted(count['points'], 'point')} of {text(plan.recipe)}: {text(said)}."
        f" Written {text(made_utc)}.</p>",
        *plots[:MAX_PLOTS],
        '<p class="quiet">Valid points only. A mark is the median of repeats, a bar reaches from their minimum to their'
        " maximum.</p>" if plots else "",
        f"<p>{len(plots) - MAX_PLOTS} more plots and tables are left out.</p>" if len(plots) > MAX_PLOTS else "",
        "<h2>Points</h2>",
        _points(rows),
        "<h2>Run it again</h2>",
        copyable("Finished points are kept, missing points run", plan.command),
        folded("The command of each point", commands),
    ]  # fmt: skip
    return document(f"{plan.name}: a sweep", parts)
