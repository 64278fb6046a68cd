"""The chart above the table: results of one benchmark and scenario by accelerator, or curves with their Pareto line."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from crowdperf.kit.drawing import MAX_SERIES, key_mark, legend
from crowdperf.kit.html_page import Html
from crowdperf.kit.numbers import quantity
from crowdperf.kit.plot import Dot, StepPoint, curve_plot, steps_of, strip_plot
from crowdperf.rules.benchmarks import user_limits
from crowdperf.store.model import Result
from crowdperf.store.query import Row
from crowdperf.store.store import Store
from crowdperf.web.links import Links
from crowdperf.web.queries import TableQuery
from crowdperf.web.tables import per_accelerator
from crowdperf.web.wording import hardware_of, name_of, system_words

MAX_STRIPS: Final = 12
MAX_GROUPS: Final = 8
MAX_READ: Final = 60
"""Results that are read whole for a chart of token rates, which the rows of a table do not have."""
MIN_FRONT: Final = 2
_TPOT: Final = "TPOT 99"

Key = tuple[str, str, str, str, str, bool]


@dataclass(frozen=True, slots=True)
class HomeChart:
    """What the template reads. toggles, groups: words, address ("" for what is shown)."""

    title: str
    drawing: Html
    legend: Html
    words: str
    toggles: Sequence[tuple[str, str]] = ()
    groups: Sequence[tuple[str, str]] = ()


def _key(row: Row) -> Key:
    return row.benchmark, row.scenario, row.suite, row.metric, row.unit, row.higher_is_better


def home_chart(
    store: Store, link: Links, query: TableQuery, rows: Sequence[Row], every: Iterable[tuple[str, str]] = ()
) -> HomeChart | None:
    """The chart of the largest group of results that can be compared; None where there is none of two results.

    every: benchmarks and scenarios that there are, to link to.
    """
    counts = Counter(map(_key, rows))
    if not counts:
        return None
    largest = max(counts, key=lambda key: counts[key])
    found = [row for row in rows if _key(row) == largest]
    if len(found) < MIN_FRONT:
        return None
    is_per = bool(query.per)
    made = _curves(store, found, is_per=is_per) if largest[2] == "endpoints" else _strips(found, is_per=is_per)
    others = {*every, *(key[:2] for key in counts)} - {largest[:2]}
    groups = [
        (f"{benchmark} {scenario}".strip(), link.table(query.with_facets(benchmark=benchmark, scenario=scenario)))
        for benchmark, scenario in sorted(others)[:MAX_GROUPS]
        if benchmark and scenario
    ]
    toggles = [
        (words, "" if (query.per == per) else link.table(query.shown_per(per)))
        for per, words in (("", "Whole system"), ("accelerator", "Per accelerator"))
    ]
    can_toggle = any(row.accelerator_count for row in found) and largest[5] and link.table(query)
    front = _front(store, found) if largest[2] != "endpoints" else None
    if front:
        made = replace(made, drawing=Html(made.drawing + front))
    return replace(made, toggles=toggles if can_toggle else (), groups=[pair for pair in groups if pair[1]])


def _strips(rows: Sequence[Row], *, is_per: bool) -> HomeChart:
    """A strip of dots for each accelerator, the best one first."""
    first, strips = rows[0], dict[str, list[Dot]]()
    for row in rows:
        value = per_accelerator(row) if is_per else row.value
        if value is None:
            continue
        origin = f"{row.submitter or row.alias or row.kind} {row.round}".strip()
        words = f"{system_words(row)}, {origin}: {quantity(value)} {row.unit}"
        strips.setdefault(hardware_of(row), []).append(Dot(value, words, row.kind != "published"))
    best = max if first.higher_is_better else min
    ordered = sorted(
        strips.items(), key=lambda pair: best(dot.value for dot in pair[1]), reverse=first.higher_is_better
    )
    unit = f"{first.unit}{' per accelerator' if is_per else ''}"
    better = "more is better" if first.higher_is_better else "less is better"
    words = f"Each mark is a result: {first.metric}, {better}."
    if len(ordered) > MAX_STRIPS:
        words += f" The best {MAX_STRIPS} of {len(ordered)} kinds of hardware are drawn. The table has all."
    title = f"{first.benchmark} {first.scenario} by accelerator"
    return HomeChart(title, strip_plot(title, ordered[:MAX_STRIPS], unit), _origins(), words)


def _origins() -> Html:
    """What filled and hollow marks are."""
    return Html(
        f'<ul class="legend"><li>{key_mark(0)} published by MLCommons</li>'
        f"<li>{key_mark(0, is_hollow=True)} unofficial</li></ul>"
    )


def _read(store: Store, rows: Sequence[Row]) -> list[Result]:
    return [store.result(row.id) for row in rows[:MAX_READ]]


def curve_points(result: Result, *, is_per: bool) -> list[StepPoint]:
    """The points of a curve by their concurrency; is_per: the rate of the system is divided by its accelerators."""
    new = result.result
    share = max(new.configuration.system.accelerator_count, 1) if is_per else 1
    return [
        StepPoint(f"{point.concurrency}", point.tps_per_user, point.system_tps / share, new.kind != "published")
        for point in new.curve
    ]


def _curves(store: Store, rows: Sequence[Row], *, is_per: bool) -> HomeChart:
    """The measured points of curves by accelerator, and the Pareto line of each."""
    series: dict[str, list[StepPoint]] = {}
    for row, result in zip(rows, _read(store, rows), strict=False):
        points = [replace(one, words=f"{system_words(row)}, concurrency {one.words}")
                  for one in curve_points(result, is_per=is_per)]  # fmt: skip
        series.setdefault(hardware_of(row), []).extend(points)
    drawn = list(series.items())[:MAX_SERIES]
    title = f"{name_of(rows[0])}: tokens/s over tokens/s for each user"
    rate = f"tokens/s {'per accelerator' if is_per else 'of the system'}"
    drawing = curve_plot(title, drawn, user_limits(rows[0].benchmark), rate=rate, has_labels=False)
    words = "Marks are measured points, hollow ones unofficial. Each line is the Pareto line of an accelerator."
    return HomeChart(title, drawing, legend([name for name, _ in drawn]), words)


def _front(store: Store, rows: Sequence[Row]) -> Html | None:
    """Rates over what each user gets by TPOT p99, for results that say it; None for fewer than two of them."""
    if not rows[0].unit.lower().startswith("tokens"):
        return None
    points = []
    for row, result in zip(rows, _read(store, [row for row in rows if row.kind != "published"]), strict=False):
        tpot_ms = next((one.value for one in result.result.figures if one.name == _TPOT and one.value > 0), None)
        if tpot_ms is not None:
            points.append(StepPoint(system_words(row), 1000 / tpot_ms, result.result.value, True))
    if len(points) < MIN_FRONT:
        return None
    title = f"{name_of(rows[0])}: {rows[0].unit} over tokens/s for each user, by TPOT p99"
    best = len(steps_of(points))
    return curve_plot(f"{title}, {best} on the Pareto line", [(name_of(rows[0]), points)],
                      user_limits(rows[0].benchmark), rate=rows[0].unit, has_labels=False)  # fmt: skip
