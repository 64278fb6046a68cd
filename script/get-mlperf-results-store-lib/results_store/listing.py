"""Pages of many results: what is asked for, and the SQL that answers it with every value bound. Pure.

    WHERE state IN (?) AND benchmark IN (?, ?) AND seq NOT IN (SELECT seq FROM label WHERE label IN (?)) ...

Names of columns come from the closed lists here, never from a caller's text. A page goes on after the sort value and
number of the row before (key-set paging), so that page 1000 costs as much as page 2.
"""

from __future__ import annotations

import base64
import binascii
import functools
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from results_store.objects import kept_text

FACETS = ("benchmark", "scenario", "division", "kind", "accelerator", "stack", "precision")
"""What a page counts values of, beside the labels."""

CHOICES = (*FACETS, "suite", "round", "category", "tier", "device", "data_kind", "run_class", "verification",
           "submitter", "signer", "key", "system_key", "id")  # fmt: skip
"""What results can be chosen by."""

SORTS = ("added", "made_utc", "value", "benchmark", "scenario", "precision", "division", "accelerator", "stack",
         "submitter", "system_name")  # fmt: skip
"""What results can be sorted by; `added` is the order in which they came."""

LARGEST_PAGE = 100_000
_WORD = re.compile(r"\w+")
_MOST_WORDS = 16

State = Literal["shown", "hidden"]


class BadQuery(ValueError):
    """A filter, a sort or a place that no page has; the text says which are allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which results. chosen: by name of CHOICES, any of the values. labels: any of them; without_labels: none of them.

    text: words that all begin a word of the result. states: "shown" alone is what the public sees.
    """

    chosen: Mapping[str, Sequence[str]] = field(default_factory=dict)
    labels: Sequence[str] = ()
    without_labels: Sequence[str] = ()
    text: str = ""
    states: Sequence[State] = ("shown",)


@dataclass(frozen=True, slots=True)
class Sort:
    """The order of a page: a name of SORTS; equal ones in the order in which they came."""

    by: str = "added"
    descending: bool = True


class Row(NamedTuple):
    """A result as a table shows it: a tuple, because a table may have tens of thousands.

    system_key, key: as of Result. signer: a key id or ""; alias: its name or "".
    """

    id: str
    key: str
    system_key: str
    state: State
    kind: str
    suite: str
    benchmark: str
    round: str
    division: str
    category: str
    scenario: str
    precision: str
    tier: str
    stack: str
    stack_version: str
    device: str
    data_kind: str
    run_class: str
    accelerator: str
    accelerator_count: int
    nodes: int
    cpu: str
    submitter: str
    system_name: str
    signer: str
    alias: str
    metric: str
    value: float
    unit: str
    higher_is_better: bool
    valid: bool | None
    verification: str
    labels: tuple[str, ...]
    made_utc: str
    added_utc: str


@dataclass(frozen=True, slots=True)
class Page:
    """Rows in order. next_key: what `after` is for the next page, "" on the last one."""

    rows: tuple[Row, ...]
    next_key: str


@dataclass(frozen=True, slots=True)
class Counts:
    """How many results, and how many of each value of a facet: the facet's own choice is left out of its counts.

    facets: by name of FACETS and "label", the values by count, the most frequent first.
    """

    total: int
    facets: Mapping[str, tuple[tuple[str, int], ...]]


@dataclass(frozen=True, slots=True)
class Sql:
    """A part of a statement with its values."""

    text: str
    values: tuple[Any, ...] = ()


COLUMNS = ", ".join("''" if name == "alias" else f"listing.{name}" for name in Row._fields)


def _any_of(column: str, values: Sequence[str]) -> Sql:
    return Sql(f"{column} IN ({', '.join('?' * len(values))})", tuple(map(kept_text, values)))


def match_of(text: str) -> str:
    """The FTS5 expression of a user's words: each a prefix in quotes, so that none is an operator; "" without words."""
    words = [word for word in _WORD.findall(text)[:_MOST_WORDS] if word.strip("_")]
    return " ".join(f'"{word}"*' for word in words)


def where(wanted: Filter, but: str = "", state: str = "listing.state") -> Sql:
    """The condition of a filter, without what it says of the facet `but`. Raises BadQuery."""
    unknown = sorted(set(wanted.chosen) - set(CHOICES))
    if unknown:
        raise BadQuery(f"results cannot be chosen by {', '.join(unknown)}; by: {', '.join(CHOICES)}")
    parts = [_any_of(state, wanted.states)]
    parts += [_any_of(f"listing.{name}", found) for name, found in wanted.chosen.items() if found and name != but]
    if wanted.labels and but != "label":
        inner = _any_of("label", wanted.labels)
        parts.append(Sql(f"listing.seq IN (SELECT seq FROM label WHERE {inner.text})", inner.values))
    if wanted.without_labels:
        inner = _any_of("label", wanted.without_labels)
        parts.append(Sql(f"listing.seq NOT IN (SELECT seq FROM label WHERE {inner.text})", inner.values))
    if wanted.text.strip():
        match = match_of(wanted.text)
        parts.append(Sql("listing.seq IN (SELECT rowid FROM search WHERE search MATCH ?)", (match,)) if match
                     else Sql("0"))  # fmt: skip
    return Sql(" AND ".join(part.text for part in parts), tuple(value for part in parts for value in part.values))


def key_of(sort: Sort, value: Any, seq: int) -> str:
    """What names the place after a row."""
    text = json.dumps([sort.by, sort.descending, value, seq])
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _place(sort: Sort, after: str) -> tuple[Any, int]:
    try:
        content = json.loads(base64.urlsafe_b64decode(after + "=" * (-len(after) % 4)))
        by, descending, value, seq = content
    except (ValueError, TypeError, binascii.Error, RecursionError) as error:
        raise BadQuery("this is no place in a list of results; begin at the first page") from error
    kind = float | int if sort.by in ("value", "added") else str
    if (by, descending) != (sort.by, sort.descending) or not isinstance(value, kind) or type(seq) is not int:
        raise BadQuery("the place is of a list in another order; begin at the first page")
    if (isinstance(value, int) and not -(2**53) < value < 2**53) or not 0 <= seq < 2**53:
        raise BadQuery("this is no place in a list of results; begin at the first page")
    return value, seq


def page_sql(wanted: Filter, sort: Sort, after: str, limit: int) -> Sql:
    """The statement of a page with one row more than `limit`; seq and the sort value lead. Raises BadQuery."""
    if sort.by not in SORTS:
        raise BadQuery(f"results cannot be sorted by {sort.by}; by: {', '.join(SORTS)}")
    if not 1 <= limit <= LARGEST_PAGE:
        raise BadQuery(f"a page has 1 to {LARGEST_PAGE} rows, got {limit}")
    column = "listing.seq" if sort.by == "added" else f"listing.{sort.by}"
    is_plain = sort.by == "added" and not wanted.chosen and not wanted.text.strip()
    condition = where(
        wanted, state="+listing.state" if is_plain else "listing.state"
    )  # with a +, no index is used for it
    text, values = condition.text, condition.values
    if after:
        place = _place(sort, after)
        text += f" AND ({column}, listing.seq) {'<' if sort.descending else '>'} (?, ?)"
        values = (*values, *place)
    way = "DESC" if sort.descending else "ASC"
    return Sql(
        f"SELECT listing.seq, {column}, {COLUMNS} FROM listing WHERE {text} "
        f"ORDER BY {column} {way}, listing.seq {way} LIMIT ?",
        (*values, limit + 1),
    )


@functools.lru_cache(maxsize=1024)
def _labels(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))


_SIGNER, _ALIAS, _BETTER, _VALID, _LABELS = map(
    Row._fields.index, ("signer", "alias", "higher_is_better", "valid", "labels")
)


def signers_of(found: Sequence[Sequence[Any]]) -> set[str]:
    """The keys that signed the rows of a page's statement."""
    return {columns[2 + _SIGNER] for columns in found} - {""}


def row_of(columns: Sequence[Any], aliases: Mapping[str, str]) -> Row:
    """The row of a page's statement; its columns after the first two are in the order of Row."""
    found = list(columns[2:])
    found[_ALIAS] = aliases.get(found[_SIGNER], "")
    found[_BETTER] = bool(found[_BETTER])
    found[_VALID] = None if found[_VALID] is None else bool(found[_VALID])
    found[_LABELS] = _labels(found[_LABELS])
    return Row._make(found)


def _hint(wanted: Filter) -> str:
    """The index that has all facets, where it is enough: the planner prefers an order to it, at a read of each row."""
    return " INDEXED BY listing_facets" if set(wanted.chosen) <= set(FACETS) and not wanted.text.strip() else ""


def facet_sql(wanted: Filter, name: str) -> Sql:
    """The statement that counts a facet's values."""
    condition = where(wanted, name)
    if name == "label":
        source = "label JOIN listing ON listing.seq = label.seq"
        column = "label.label"
    else:
        source, column = f"listing{_hint(wanted)}", f"listing.{name}"
    return Sql(
        f"SELECT {column}, count(*) FROM {source} WHERE {condition.text} GROUP BY 1 ORDER BY 2 DESC, 1",
        condition.values,
    )


_INDEXED = ("benchmark", "precision", "scenario", "division", "kind", "accelerator", "stack")
"""The facets in the order of the index, in which they are grouped without a sort."""


def groups_sql(wanted: Filter) -> Sql:
    """The statement that counts all combinations of values of the facets, which stand in the order of FACETS."""
    condition = where(wanted)
    grouped = ", ".join(f"listing.{name}" for name in _INDEXED)
    columns = ", ".join(f"listing.{name}" for name in FACETS)
    text = f"SELECT {columns}, count(*) FROM listing{_hint(wanted)} WHERE {condition.text} GROUP BY {grouped}"
    return Sql(text, condition.values)


def counts_of(groups: Sequence[Sequence[Any]]) -> dict[str, tuple[tuple[str, int], ...]]:
    """How often each value of each facet is there, the most frequent first, from the rows of `groups_sql`."""
    found: dict[str, Counter[str]] = {name: Counter() for name in FACETS}
    for *values, count in groups:
        for name, value in zip(FACETS, values, strict=True):
            found[name][value] += count
    return {name: tuple(sorted(counts.items(), key=lambda one: (-one[1], one[0]))) for name, counts in found.items()}
