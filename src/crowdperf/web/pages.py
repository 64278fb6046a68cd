"""The pages but that of one result: the table, a configuration, a system, a key, curves, comparisons, what labels mean.

Each function asks the store and gives finished HTML; None where there is no such thing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from crowdperf.kit.drawing import key_mark
from crowdperf.kit.numbers import quantity
from crowdperf.kit.plot import box_plot, curve_plot, history_plot, spread_of
from crowdperf.rules.benchmarks import user_limits
from crowdperf.store.model import Result
from crowdperf.store.query import BadQuery, Counts, Filter, Groups, Page, Row, Sort, counts_of, most_frequent, without
from crowdperf.store.store import Store
from crowdperf.web import comparison
from crowdperf.web.formats import minute
from crowdperf.web.home_chart import curve_points, home_chart
from crowdperf.web.labels import usual_range
from crowdperf.web.links import Links
from crowdperf.web.queries import FACETS, TableQuery
from crowdperf.web.render import page
from crowdperf.web.result_page import (
    CURVE_HEADINGS,
    action_rows,
    configuration_pairs,
    curve_rows,
    system_pairs,
    warning_of,
)
from crowdperf.web.tables import COLUMNS, DEFAULT_COLUMNS, table_of
from crowdperf.web.wording import LABELS, VERIFICATIONS, name_of, system_words

PAGE_SIZE = 100
MAX_ROWS_OF_CONFIGURATION = 1_000
"""Results of one configuration that its page is made of, the newest ones."""
BATCH = 1_000
NEWEST = 3
FEW = 30
"""As many results are simply all shown to who asks for nothing."""
LEAD = "MLPerf Inference and Endpoints results: those published by MLCommons, and unofficial ones of volunteers."
MAX_OF_CHART = 1_000
"""Results that the chart above the table is made of, the first ones in its order."""
NEWEST_OF_ALL = TableQuery({"kind": "crowd"})
UNPUBLISHED = Filter(chosen={"kind": ("crowd", "own")})


@dataclass(frozen=True, slots=True)
class Choice:
    """A value of a facet with its count, or a column."""

    value: str
    words: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class FacetChoices:
    """A facet and its values."""

    name: str
    words: str
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """The form above the table."""

    text: str
    sort: str
    facets: tuple[FacetChoices, ...]
    columns: tuple[Choice, ...]


def filter_of(query: TableQuery) -> Filter:
    """What the store is asked for a query of the table."""
    label, without = query.facets.get("label"), query.facets.get("without")
    return Filter(
        chosen={name: (value,) for name, value in query.facets.items() if name not in ("label", "without")},
        labels=(label,) if label else (),
        without_labels=(without,) if without else (),
        text=query.text,
    )


def sort_of(query: TableQuery) -> Sort:
    """The order of a query; the newest first where it names none."""
    return Sort(query.sort.removeprefix("-"), query.sort.startswith("-")) if query.sort else Sort()


def rows_of_query(store: Store, query: TableQuery, limit: int, has_details: bool = True) -> Page:
    """The rows of a page; the first page for a place that no page has."""
    try:
        return store.find(filter_of(query), sort_of(query), query.after, limit, has_details)
    except BadQuery:
        return store.find(filter_of(query), sort_of(query), "", limit, has_details)


def row_batches(store: Store, query: TableQuery, most: int) -> Iterator[tuple[Row, ...]]:
    """The rows of all pages from a query's on, without details, a thousand at a time: all would fill the memory."""
    for _ in range(0, most, BATCH):
        found = rows_of_query(store, query, BATCH, has_details=False)
        yield found.rows
        if not found.next_key:
            break
        query = query.page_after(found.next_key)


def default_query(store: Store, groups: Groups) -> TableQuery:
    """What is shown to who asks for nothing: the benchmark, scenario and precision with the most results of real
    inputs, the best value first: results that can be compared with each other. Where there are few, all of them."""
    if sum(group[-1] for group in groups) <= FEW:
        return TableQuery()
    facets = most_frequent(without(groups, ["synthetic"]), ("benchmark", "scenario", "precision"))
    if not facets:
        return TableQuery(is_default=True)
    facets["without"] = "synthetic"
    first = store.find(filter_of(TableQuery(facets=facets)), limit=1).rows
    is_latency = bool(first) and not first[0].higher_is_better
    return TableQuery(facets, sort="value" if is_latency else "-value", is_default=True)


def _form(counts: Counts, query: TableQuery) -> Form:
    facets = []
    for name, words in FACETS.items():
        found, chosen = counts.facets.get("label" if name == "without" else name, ()), query.facets.get(name, "")
        choices = [Choice("", "none" if name == "without" else "any", not chosen)]
        choices += [Choice(value, f"{value} ({count:,})", value == chosen) for value, count in found if value]
        if chosen and all(choice.value != chosen for choice in choices):
            choices.append(Choice(chosen, f"{chosen} (0)", True))
        if len(choices) > 1:
            facets.append(FacetChoices(name, words, tuple(choices)))
    shown = query.columns or DEFAULT_COLUMNS
    columns = tuple(Choice(name, column.words, name in shown) for name, column in COLUMNS.items())
    return Form(query.text, query.sort, tuple(facets), columns)


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter in use, and the address without it."""

    words: str
    href: str


def _chips(query: TableQuery, link: Links) -> list[Chip]:
    found = [
        Chip(f"{words}: {query.facets[name]}", link.table(query.without(name)))
        for name, words in FACETS.items()
        if name in query.facets
    ]
    return found + ([Chip(f"Search: {query.text}", link.table(query.without("q")))] if query.text else [])


def table_page(store: Store, link: Links, query: TableQuery) -> str:
    """The table, with its form and, in the default view, the newest results that were not published."""
    groups = store.groups(filter_of(query))
    if query.is_default:
        query = default_query(store, groups)
    found, counts = rows_of_query(store, query, PAGE_SIZE), counts_of(groups, filter_of(query))
    address = replace(query, after="").address()
    newest = store.find(UNPUBLISHED, limit=NEWEST + 1).rows if query.is_default else ()
    drawn = found.rows
    if query.after or found.next_key:
        drawn = store.find(filter_of(query), sort_of(query), "", MAX_OF_CHART, has_details=False).rows
    return page(
        "home",
        link,
        here="home",
        title=link.site_name,
        heading=link.site_name if query.is_default else _heading(query, link.site_name),
        table_heading=_heading(query, "All results"),
        lead=LEAD,
        form=_form(counts, query),
        chips=_chips(query, link),
        groups=(),
        count=f"{counts.total:,} result{'' if counts.total == 1 else 's'}",
        rows=table_of(found.rows, link, query=query),
        chart=home_chart(store, link, query, drawn, {group[:2] for group in groups}),
        newest=table_of(newest[:NEWEST], link, columns=("value", "system", "stack", "labels", "made"))
        if newest
        else None,
        newest_href=link.table(NEWEST_OF_ALL) if len(newest) > NEWEST else "",
        caption="Results that match the filters",
        downloads=[("CSV", f"/api/v1/results.csv?{address}"), ("JSON", f"/api/v1/results.json?{address}")],
        first_href=link.table(query.page_after("")) if query.after else "",
        next_href=link.table(query.page_after(found.next_key)) if found.next_key else "",
    )


def _heading(query: TableQuery, otherwise: str) -> str:
    named = [query.facets[name] for name in ("benchmark", "scenario", "accelerator") if name in query.facets]
    return ", ".join(named) if named else otherwise


def rows_of(store: Store, name: str, value: str) -> tuple[Row, ...]:
    """The newest rows whose `name` is `value`."""
    return store.find(Filter(chosen={name: (value,)}), limit=MAX_ROWS_OF_CONFIGURATION).rows


def configuration_page(store: Store, link: Links, key: str) -> str | None:
    """All results of a configuration: their spread, their history over versions of the software, the rows.

    None where no result is shown: what a hidden one says of itself is hidden, also.
    """
    rows = rows_of(store, "key", key)
    configuration = store.configuration(key) if rows else None
    if configuration is None:
        return None
    values = [row.value for row in rows]
    usual = usual_range(values)
    rows = tuple(row._replace(labels=(*row.labels, *usual.labels(row.value))) for row in rows)
    unit = rows[0].unit
    versions = versions_of(rows)
    title = name_of(configuration)
    return page(
        "configuration",
        link,
        title=f"{title} on {system_words(configuration.system)}",
        heading=title,
        system_words=system_words(configuration.system),
        warning=warning_of(common_labels(rows)),
        summary=_summary(rows),
        distribution=box_plot(f"{title}: spread", values, unit),
        spread=[(unit, *map(quantity, spread_of(values)))],
        history=history_plot(f"{title}: versions of the software", versions, unit),
        versions=[
            (version, f"{len(found)}", quantity(min(found)), quantity(median(found)), quantity(max(found)))
            for version, found in versions
        ],
        rows=table_of(
            rows[:PAGE_SIZE], link, columns=("value", "submitter", "stack", "labels", "verification", "made")
        ),
        caption="Results of this configuration, the newest first",
        configuration=configuration_pairs(configuration),
        system=system_pairs(configuration.system),
        system_href=link.system(rows[0].system_key),
        json_href=link.configuration_json(key),
    )


def common_labels(rows: Sequence[Row]) -> tuple[str, ...]:
    """The labels that all of the rows carry, in the order of the first."""
    return tuple(label for label in rows[0].labels if all(label in row.labels for row in rows))


def _summary(rows: Sequence[Row]) -> str:
    signers = {row.signer for row in rows if row.signer}
    values, middle = [row.value for row in rows], median(row.value for row in rows)
    words = f"{len(rows):,} results" if len(rows) > 1 else "1 result"
    if len(signers) > 1:
        near = {row.signer for row in rows if row.signer and abs(row.value - middle) <= 0.1 * abs(middle)}
        words += f", {len(near)} keys of {len(signers)} got within 10 % of the median"
    best = max(values) if rows[0].higher_is_better else min(values)
    return f"{words}. Best {quantity(best)}, median {quantity(middle)} {rows[0].unit} ({rows[0].metric})."


def versions_of(rows: Sequence[Row]) -> list[tuple[str, list[float]]]:
    """The values of each version of the software, by when the first result with it was made."""
    first: dict[str, str] = {}
    values: dict[str, list[float]] = {}
    for row in rows:
        version = row.stack_version or "not known"
        values.setdefault(version, []).append(row.value)
        first[version] = min(first.get(version, row.made_utc), row.made_utc)
    return sorted(values.items(), key=lambda pair: (first[pair[0]], pair[0]))


def system_page(store: Store, link: Links, key: str) -> str | None:
    """All results of a system."""
    wanted = Filter(chosen={"system_key": (key,)})
    rows = store.find(wanted, Sort("benchmark", False), limit=MAX_ROWS_OF_CONFIGURATION).rows
    system = store.system(key) if rows else None
    if system is None:
        return None
    return page(
        "list",
        link,
        title=system_words(system),
        heading=system_words(system),
        lead=f"{len(rows):,} results of this hardware, by benchmark.",
        warning="",
        facts=system_pairs(system),
        rows=table_of(rows, link, columns=("value", "submitter", "stack", "precision", "labels", "made")),
        caption="Results of this system",
        actions=[],
    )


def signer_page(store: Store, link: Links, key_id: str) -> str | None:
    """All results that a key signed."""
    signer = store.signer(key_id)
    if signer is None:
        return None
    rows = rows_of(store, "signer", key_id)
    blocked = (
        "This key was blocked: results signed with it are no longer accepted." if signer.trust == "blocked" else ""
    )
    return page(
        "list",
        link,
        title=f"Key {key_id}",
        heading=f"Key {key_id}",
        lead="A key is a pseudonym: it shows that the same person sent these results, not who that is.",
        warning=blocked,
        facts=[("Alias", signer.signer.alias or "none"), ("First seen", minute(signer.first_seen)),
               ("Results shown", f"{len(rows):,}")],
        rows=table_of(rows[:PAGE_SIZE], link),
        caption="Results that this key signed, the newest first",
        actions=action_rows(store.actions(signer=key_id)),
    )  # fmt: skip


def about_page(link: Links) -> str:
    """What the labels mean."""
    values = {"verifications": list(VERIFICATIONS.items()), "labels": list(LABELS.items())}
    return page("about", link, here="about", title="Meaning of the labels", **values)


def curve_page(store: Store, link: Links, results: Sequence[Result], per: str = "") -> str:
    """One to four curves over each other; each has points. per: "accelerator" for rates per accelerator."""
    first = results[0]
    names = [f"{system_words(one.result.configuration.system)} ({one.id})" for one in results]
    series = [(name, curve_points(one, is_per=bool(per))) for name, one in zip(names, results, strict=True)]
    benchmark, ids = first.result.configuration.benchmark, [one.id for one in results]
    wanted = {"suite": ("endpoints",), "benchmark": (benchmark,)}
    others = [row for row in store.find(Filter(chosen=wanted), limit=PAGE_SIZE).rows if row.id not in ids]
    title = f"{benchmark}: curve"
    rate = f"tokens/s {'per accelerator' if per else 'of the system'}"
    ways = (("", "Whole system"), ("accelerator", "Per accelerator"))
    can_toggle = any(one.result.configuration.system.accelerator_count for one in results) and link.up is None
    return page(
        "curve",
        link,
        title=title,
        heading=title,
        lead="Tokens per second of the whole system, over tokens per second of each user.",
        warning=warning_of([label for one in results for label in one.result.labels if label == "unofficial"][:1]),
        toggles=[(words, "" if way == per else link.curve(ids[0], ids[1:], way)) for way, words in ways]
        if can_toggle
        else (),
        chart=curve_plot(title, series, user_limits(benchmark), rate=rate),
        has_limits=bool(user_limits(benchmark)),
        legend=[
            {"mark": key_mark(place), "words": name, "href": link.result(one.id), "labels": one.result.labels}
            for place, (name, one) in enumerate(zip(names, results, strict=True))
        ],
        headings=CURVE_HEADINGS,
        tables=[(name, curve_rows(one)) for name, one in zip(names, results, strict=True)],
        others=[
            (f"{name_of(row)}, {system_words(row)}", href)
            for row in others
            if (href := link.curve(ids[0], [*ids[1:], row.id], per)) and len(ids) < comparison.MOST
        ],
    )
