"""sweep.html: one static page with the table of all points and a plot of each metric over the first axis. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from crowdperf.kit.html_page import Html, document, figures, folded, table, text
from crowdperf.kit.plot import MARKERS, Spread, spread_plot
from crowdperf.logs.text_metrics import number
from crowdperf.rules.names import counted, duration_text
from crowdperf.sweeps.collecting import TOKEN_COLUMNS, Facts, Figures, Row, best_of, score_text, totals, varied_text
from crowdperf.sweeps.folder import State

MAX_PLOTS = 40
MAX_SERIES = len(MARKERS)

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


def _plots(rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """A plot for each scenario, metric and combination of what is neither the first nor the second axis."""
    keys = _keys(rows)
    if not keys:
        return
    across, along, rest = keys[0], keys[1:2], keys[2:]
    found: dict[Key, dict[str, dict[str, list[float]]]] = {}
    for row, each in _valid_figures(rows):
        metric = each.metric or {}
        kind = (each.scenario, str(metric["name"]), str(metric["unit"]), *(f"{key} {_value(row, key)}" for key in rest))
        series = found.setdefault(kind, {}).setdefault(", ".join(_value(row, key) for key in along), {})
        series.setdefault(_value(row, across), []).append(float(metric["value"]))
    for (scenario, name, unit, *others), by_series in found.items():
        places = list(dict.fromkeys(_value(row, across) for row in rows))
        places = [place for place in places if any(place in series for series in by_series.values())]
        drawn = list(by_series.items())[:MAX_SERIES]
        spreads = [(words, [_spread(series.get(place)) for place in places]) for words, series in drawn]
        words = ", ".join([f"{scenario} {name}, {unit}", *others, f"over {across}"])
        if along:
            words += f"; {along[0]}: " + ", ".join(f"{MARKERS[n]} {word}" for n, (word, _) in enumerate(drawn))
            words += f" (and {len(by_series) - len(drawn)} more)" if len(by_series) > len(drawn) else ""
        yield words, spread_plot(f"{scenario} {name} over {across}", unit, places, spreads)


def _spread(values: Sequence[float] | None) -> Spread | None:
    return Spread(min(values), median(values), max(values)) if values else None


def _target(row: Row) -> str:
    """What a point leads to: the page of its results where there is one, else its folder."""
    point = row.point.id
    has_page = bool(row.figures) and not row.figures[0].is_search
    return f"points/{point}/results/{point}/results.html" if has_page else f"points/{point}/"


def _cells(row: Row, best: Row | None, columns: Sequence[str]) -> Iterator[list[object]]:
    """A line of the table for each scenario; the point's own columns stand in the first. columns: of token times."""
    facts = row.status
    folder = Html(f'<a href="{text(_target(row))}">{text(varied_text(row.point))}</a>')
    time = "" if facts.duration_s is None else duration_text(facts.duration_s)
    for place, each in enumerate(row.figures or (None,)):
        metric: Mapping[str, object] = (each.metric if each else None) or {}
        value = metric.get("value")
        figure = f"{value:,.6g}" if isinstance(value, int | float) else ""
        times = each.tokens if each else {}
        shown = [number(times[name]) if name in times else "" for name in columns]
        own = [figure, str(metric.get("unit", "")), *shown, score_text(each)]
        mark = "best" if row is best else ""
        state = facts.state.value if not facts.verdict or each is None else f"{facts.state.value}, {facts.verdict}"
        start = [folder, state, mark] if place == 0 else ["", "", ""]
        label = "; ".join(filter(None, (row.label, facts.reason if facts.state is not State.DONE else "")))
        end = [label, facts.node, time] if place == 0 else ["", "", ""]
        yield [*start, each.scenario if each else "", *own, *end]


def page(facts: Facts, rows: Sequence[Row]) -> str:
    """The whole page."""
    count, best = totals(rows), best_of(rows)
    said = ", ".join(f"{number} {state}" for state, number in count.items() if state != "points")
    labels = sorted({row.label for row in rows if row.label})
    plots = list(_plots(rows))
    columns = [name for name in TOKEN_COLUMNS if any(name in each.tokens for row in rows for each in row.figures)]
    named = [f"{name[:4].upper()} {name[5:8]}, ms" for name in columns]
    start = ("Point", "State", "Best", "Scenario", "Figure", "Unit")
    headings = (*start, *named, "Accuracy", "Label", "Node", "Time")
    lines = [line for row in rows for line in _cells(row, best, columns)]
    numbers = (4, *range(len(start), len(start) + len(columns)), len(headings) - 1)
    commands = table(("Point", "Command"), [(row.point.id, row.point.command) for row in rows], kind="facts")
    parts = [
        f"<h1>{text(facts.name)}</h1>",
        f'<p class="label">{text("; ".join(labels))}</p>' if labels else "",
        f"<p>{counted(count['points'], 'point')} of {text(facts.recipe)}: {text(said)}."
        f" Written {text(facts.made_utc)}.</p>",
        "<h2>Points</h2>",
        table(headings, lines, numbers=numbers, kind="stacked"),
        "<h2>Plots</h2>" if plots else "",
        '<p class="quiet">Valid points only. A bar reaches from the least to the greatest of repeats, its mark is their'
        " median.</p>" if plots else "",
        figures(plots[:MAX_PLOTS]),
        f"<p>{len(plots) - MAX_PLOTS} more plots are left out.</p>" if len(plots) > MAX_PLOTS else "",
        "<h2>Again</h2>",
        f"<pre>{text(facts.command)}</pre>",
        folded("The command of each point", commands),
    ]  # fmt: skip
    return document(f"{facts.name}: a sweep", parts)
