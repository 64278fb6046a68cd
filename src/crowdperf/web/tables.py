"""The table of results: its columns, how each cell is printed, and the view that the templates read. Pure."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from crowdperf.kit.html_page import Html
from crowdperf.kit.numbers import quantity
from crowdperf.kit.plot import share_bar
from crowdperf.store.query import Row
from crowdperf.web.formats import ABSENT, minute
from crowdperf.web.links import Links, round_url
from crowdperf.web.queries import TableQuery
from crowdperf.web.wording import name_of, system_words

NO_BAR: Final = Html("")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell: words, with a link or tags instead, or a bar behind them. label: its heading, for narrow screens."""

    label: str
    words: object = ""
    kind: str = ""
    href: str = ""
    tags: tuple[str, ...] = ()
    bar: Html = NO_BAR


@dataclass(frozen=True, slots=True)
class Head:
    """A heading; `href` sorts by it; sorted: "ascending", "descending" or ""."""

    words: str
    is_number: bool = False
    href: str = ""
    sorted: str = ""


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row: the result's id, its name with a link, and its cells."""

    id: str
    words: str
    href: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """What the template of a table reads. has_picks: each row has a box to tick for a comparison."""

    heads: tuple[Head, ...]
    rows: tuple[TableRow, ...]
    has_picks: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A column. words: its heading. sort: its name for the store where it can be sorted by; greatest_first: what the
    first click on its heading gives. text: what it says of a row, also in CSV; link: where its cell leads to."""

    words: str
    text: Callable[[Row], object]
    sort: str = ""
    greatest_first: bool = False
    is_number: bool = False
    link: Callable[[Row, Links], str] | None = None


def per_accelerator(row: Row) -> float | None:
    """A rate divided by the number of accelerators; None for a latency, or without accelerators."""
    return row.value / row.accelerator_count if row.higher_is_better and row.accelerator_count else None


def _validity(row: Row) -> str:
    return {True: "VALID", False: "INVALID", None: ABSENT}[row.valid]


def settings_words(row: Row) -> str:
    """The settings that the user chose, which tell two results of one system apart; ABSENT without any."""
    found = json.loads(row.settings or "{}")
    return ", ".join(f"{name} {value}" for name, value in found.items()) or ABSENT


NAME: Final = Column("Result", name_of, "benchmark")
COLUMNS: Final[dict[str, Column]] = {
    "value": Column("Value", lambda row: f"{quantity(row.value)} {row.unit}", "value", True, True),
    "each": Column("Per accelerator", lambda row: quantity(per_accelerator(row)), is_number=True),
    "metric": Column("Metric", lambda row: row.metric),
    "system": Column("System", system_words, "accelerator", link=lambda row, link: link.system(row.system_key)),
    "submitter": Column("From", lambda row: row.submitter or row.alias or row.kind, "submitter"),
    "stack": Column("Software", lambda row: row.stack_version.partition(",")[0] or row.stack or ABSENT, "stack"),
    "precision": Column("Precision", lambda row: row.precision or ABSENT, "precision"),
    "settings": Column("Chosen settings", settings_words),
    "ttft": Column("TTFT p99, ms", lambda row: quantity(row.ttft_p99_ms), is_number=True),
    "tpot": Column("TPOT p99, ms", lambda row: quantity(row.tpot_p99_ms), is_number=True),
    "score": Column("Accuracy", lambda row: quantity(row.score), is_number=True),
    "division": Column("Division", lambda row: row.division or ABSENT, "division"),
    "round": Column("Round", lambda row: row.round or ABSENT, link=lambda row, _: round_url(row.kind, row.round)),
    "valid": Column("LoadGen", _validity),
    "data": Column("Data", lambda row: row.data_kind),
    "verification": Column("Checked", lambda row: row.verification),
    "labels": Column("Labels", lambda row: ", ".join(shown_labels(row))),
    "made": Column("Made", lambda row: minute(row.made_utc) or ABSENT, "made_utc", True),
}
"""Every column but the name, by its name in an address."""
DEFAULT_COLUMNS: Final = (
    "value", "ttft", "tpot", "system", "submitter", "stack", "precision", "settings", "score", "labels", "made",
)  # fmt: skip
SORTS: Final = ("benchmark", *(column.sort for column in COLUMNS.values() if column.sort))


def columns_of(names: Sequence[str]) -> list[tuple[str, Column]]:
    """The columns to show, in their order; those of the default for none."""
    wanted = names or DEFAULT_COLUMNS
    return [(name, column) for name, column in COLUMNS.items() if name in wanted]


def _head(column: Column, query: TableQuery | None, link: Links) -> Head:
    if query is None or not column.sort:
        return Head(column.words, column.is_number)
    order = {column.sort: "ascending", f"-{column.sort}": "descending"}.get(query.sort, "")
    goes_down = order == "ascending" if order else column.greatest_first
    wanted = f"-{column.sort}" if goes_down else column.sort
    return Head(column.words, column.is_number, link.table(query.sorted_by(wanted)), order)


def table_of(
    rows: Sequence[Row], link: Links, *, columns: Sequence[str] = (), query: TableQuery | None = None
) -> Table:
    """The table of some rows. query: what it was asked with, where it can be sorted and ticked.

    Of the columns that nobody asked for by name, those that say nothing in any row are left out.
    """
    asked = query.columns if query else ()
    chosen = [
        (name, column)
        for name, column in columns_of(columns or asked)
        if asked or name in ("value", "labels") or any(column.text(row) != ABSENT for row in rows)
    ]
    heads = [_head(column, query, link) for column in (NAME, *(column for _, column in chosen))]
    share = _share(rows)
    return Table(
        tuple(heads),
        tuple(
            TableRow(
                row.id,
                name_of(row),
                link.result(row.id),
                tuple(_cell(name, one, row, link, share) for name, one in chosen),
            )
            for row in rows
        ),
        has_picks=query is not None and bool(link.compare(())),
    )


def shown_labels(row: Row) -> tuple[str, ...]:
    """The labels of a row; a published one carries its round."""
    return (f"published {row.round}".strip(), *row.labels) if row.kind == "published" else row.labels


def _share(rows: Sequence[Row]) -> Callable[[Row], float] | None:
    """How a row's value compares with the best of the table; None where they are not of one kind."""
    kinds = {(row.benchmark, row.scenario, row.metric, row.unit) for row in rows}
    if len(kinds) != 1 or len(rows) < 2:
        return None
    if rows[0].higher_is_better:
        best = max(row.value for row in rows)
        return (lambda row: row.value / best) if best > 0 else None
    least = min(row.value for row in rows)
    return (lambda row: least / row.value if row.value > 0 else 0.0) if least > 0 else None


def _cell(name: str, column: Column, row: Row, link: Links, share: Callable[[Row], float] | None) -> Cell:
    if name == "labels":
        return Cell(label=column.words, tags=shown_labels(row))
    words = column.text(row)
    kind = {"value": "number value", "made": "made"}.get(name, "number" if column.is_number else "")
    kind = f"{kind} absent".strip() if words == ABSENT else kind
    return Cell(
        label=column.words,
        words=words,
        kind=kind,
        href=column.link(row, link) if column.link else "",
        bar=share_bar(share(row)) if name == "value" and share else NO_BAR,
    )
